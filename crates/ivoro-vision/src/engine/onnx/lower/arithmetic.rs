//! Operators that make each number of one or two others.

use super::super::constants::{Array, Constant};
use super::super::operator::Node;
use super::Network;
use super::known::{Known, Scores, Statistic, Tensor};
use super::scalar::Scalar;
use crate::engine::cpu::activation::Activation;
use crate::engine::cpu::tokens::Meeting;

impl<'a> Network<'_, 'a> {
    /// What is known of a value, as a value of the network.
    pub(super) fn tensor_of(&mut self, known: Known) -> Option<Tensor> {
        match known {
            Known::Tensor(tensor) => Some(tensor),
            Known::Scalar { of, made: Some(value), .. } => Some(Tensor { value, ..of }),
            Known::Scalar { of, scalar, made: None } => {
                let (factor, shift) = scalar.linear()?;
                let mut tensor = self.whole(of)?;
                let length = self.builder.shape(tensor.value).len();
                let steps = [(Meeting::Product, factor, 1.0), (Meeting::Sum, shift, 0.0)];
                for (meeting, number, _) in steps.into_iter().filter(|step| step.1 != step.2) {
                    let numbers = vec![number as f32; length];
                    tensor.value = self.builder.meet(tensor.value, meeting, numbers)?;
                }
                Some(tensor)
            }
            _ => None,
        }
    }

    /// What becomes of each number of a value: computed at once if it is an activation, else left to
    /// what comes after it.
    fn each(&mut self, of: Tensor, scalar: Scalar) -> Known {
        let whole = of.view.is_whole(self.builder.shape(of.value));
        let activation = scalar.activation().filter(|_| whole);
        let made = activation.and_then(|known| self.builder.activate(of.value, known));
        Known::Scalar { of, scalar, made }
    }

    /// An operator that is an activation by itself.
    pub(super) fn activate(&mut self, node: &Node<'a>) -> Option<Known> {
        let activation = self.activation(node)?;
        let known = self.known(node, 0)?;
        if let Known::Scalar { of, scalar, made } = &known {
            let both = self.each(of.clone(), scalar.activated(activation));
            if made.is_none() || matches!(both, Known::Scalar { made: Some(_), .. }) {
                return Some(both);
            }
        }
        let of = self.tensor_of(known)?;
        let of = self.whole(of)?;
        let made = Some(self.builder.activate(of.value, activation)?);
        Some(Known::Scalar { of, scalar: Scalar::itself().activated(activation), made })
    }

    /// What an operator makes of each number.
    fn activation(&mut self, node: &Node<'a>) -> Option<Activation> {
        match (node.kind, node.text("approximate")) {
            ("Relu", _) => Some(Activation::RELU),
            ("Clip", _) => self.limits(node),
            ("Sigmoid", _) => Some(Activation::Sigmoid),
            ("HardSigmoid", _) => {
                let (slope, shift) = (node.float("alpha", 0.2), node.float("beta", 0.5));
                Some(Activation::HardSigmoid { slope, shift })
            }
            ("HardSwish", _) => Some(Activation::HardSwish),
            ("Gelu", b"" | b"none") => Some(Activation::Gelu),
            ("Gelu", b"tanh") => Some(Activation::TanhGelu),
            _ => None,
        }
    }

    /// The limits that numbers are cut off at.
    fn limits(&mut self, node: &Node<'a>) -> Option<Activation> {
        let mut limit = |at: usize, name: &str, open: f32| match node.inputs.get(at) {
            None | Some(&"") => Some(node.float(name, open)),
            Some(_) => self.constant(node, at)?.float(),
        };
        let least = limit(1, "min", f32::NEG_INFINITY)?;
        let most = limit(2, "max", f32::INFINITY)?;
        (least <= most).then_some(Activation::Clip { least, most })
    }

    /// An operator of one input that is no activation by itself.
    pub(super) fn of_each(&mut self, node: &Node<'a>) -> Option<Known> {
        let known = self.known(node, 0)?;
        if let ("Sqrt", Known::Statistic(of, Statistic::Variance(epsilon))) = (node.kind, &known) {
            return Some(Known::Statistic(of.clone(), Statistic::Deviation(*epsilon)));
        }
        let (of, scalar) = known.scalar()?;
        let made = match node.kind {
            "Erf" => scalar.erf(),
            "Tanh" => scalar.then(f64::tanh),
            "Sqrt" => scalar.then(f64::sqrt),
            _ => scalar.then(|number| -number),
        };
        Some(self.each(of, made))
    }

    /// A sum, difference, product, quotient or power.
    pub(super) fn combine(&mut self, node: &Node<'a>) -> Option<Known> {
        match (self.known(node, 0), self.known(node, 1)) {
            (Some(Known::Scores(scores)), _) if self.is_nothing(node, 1) => {
                Some(Known::Scores(scores))
            }
            (Some(one), Some(other)) => self.both(node.kind, &one, &other),
            (Some(known), None) => self.with_constant(node, known, 1),
            (None, Some(known)) => self.with_constant(node, known, 0),
            (None, None) => None,
        }
    }

    /// Whether an input of a sum is 0 everywhere, as a mask is that leaves nothing out.
    fn is_nothing(&mut self, node: &Node<'a>, at: usize) -> bool {
        let constant = match self.known(node, at) {
            _ if node.kind != "Add" => None,
            Some(Known::Repeated(constant)) => Some(constant),
            Some(_) => None,
            None => self.constant(node, at),
        };
        let numbers = constant.as_ref().and_then(Constant::floats);
        numbers.is_some_and(|all| all.iter().all(|&number| number == 0.0))
    }

    /// What two values make.
    fn both(&mut self, kind: &str, one: &Known, other: &Known) -> Option<Known> {
        if let Some(statistic) = self.statistic(kind, one, other) {
            return Some(statistic);
        }
        let made =
            |known: &Known| matches!(known, Known::Tensor(_) | Known::Scalar { made: Some(_), .. });
        let apart = kind == "Add" && made(one) && made(other);
        for (one, other) in one.scalars().iter().flat_map(|one| {
            let others = other.scalars();
            others.into_iter().map(move |other| (one.clone(), other))
        }) {
            let ((of, one), (same, other)) = (one, other);
            if of == same {
                let known = self.each(of, one.with(&other, |one, other| compute(kind, one, other)));
                if !apart || matches!(known, Known::Scalar { made: Some(_), .. }) {
                    return Some(known);
                }
            }
        }
        let one = self.tensor_of(one.clone())?;
        let other = self.tensor_of(other.clone())?;
        match kind {
            "Add" => {
                let (one, other) = (self.whole(one)?, self.whole(other)?);
                let same = one.view == other.view;
                let value = same.then(|| self.builder.add(one.value, other.value))??;
                Some(Known::Tensor(Tensor { value, ..one }))
            }
            "Mul" => self.scale(&one, &other),
            _ => None,
        }
    }

    /// Each channel of an image times a factor of its own.
    fn scale(&mut self, one: &Tensor, other: &Tensor) -> Option<Known> {
        let plain = |tensor: &Tensor| {
            let shape = self.builder.shape(tensor.value);
            let flat = tensor.view.is_flat(self.images, shape);
            (flat || tensor.view.is_of_maps(self.images, shape)).then_some(flat)
        };
        if plain(one)? != plain(other)? {
            return None;
        }
        let pairs = [(one, other), (other, one)];
        pairs.into_iter().find_map(|(image, factors)| {
            let value = self.builder.scale(image.value, factors.value)?;
            Some(Known::Tensor(Tensor { value, view: image.view.clone() }))
        })
    }

    /// What a value and numbers that never change make; those are the input `at`.
    fn with_constant(&mut self, node: &Node<'a>, known: Known, at: usize) -> Option<Known> {
        let array = match self.constant(node, at)? {
            Constant::Floats(array) => array,
            Constant::Integers(_) => return None,
        };
        let dimensions = known.dimensions()?;
        match array.numbers[..] {
            [number] if array.shape.len() <= dimensions => {
                self.with_number(node.kind, known, f64::from(number), at == 0)
            }
            _ => self.with_numbers(node, known, array, at),
        }
    }

    fn with_number(
        &mut self,
        kind: &str,
        known: Known,
        number: f64,
        turned: bool,
    ) -> Option<Known> {
        match (known, kind, turned) {
            (Known::Scores(scores), "Mul" | "Div", _) if !scores.softened => {
                let factor = match (kind, turned) {
                    ("Mul", _) => scores.factor * number,
                    (_, false) => scores.factor / number,
                    _ => return None,
                };
                Some(Known::Scores(Scores { factor, ..scores }))
            }
            (Known::Statistic(of, Statistic::Variance(epsilon)), "Add", _) => {
                Some(Known::Statistic(of, Statistic::Variance(epsilon + number as f32)))
            }
            (Known::Statistic(of, Statistic::Distance), "Pow", false) if number == 2.0 => {
                Some(Known::Statistic(of, Statistic::Square))
            }
            (known, ..) => {
                let (of, scalar) = known.scalar()?;
                let made = scalar.then(|value| {
                    let (one, other) = if turned { (number, value) } else { (value, number) };
                    compute(kind, one, other)
                });
                Some(self.each(of, made))
            }
        }
    }

    fn with_numbers(
        &mut self,
        node: &Node<'a>,
        known: Known,
        mut array: Array<f32>,
        at: usize,
    ) -> Option<Known> {
        let meeting = match (node.kind, at) {
            ("Add", _) => Meeting::Sum,
            ("Mul", _) => Meeting::Product,
            ("Sub", 1) => {
                array.numbers.iter_mut().for_each(|number| *number = -*number);
                Meeting::Sum
            }
            _ => return None,
        };
        let tensor = self.tensor_of(known)?;
        let Tensor { mut value, view } = self.whole(tensor)?;
        let shape = self.builder.shape(value);
        let of_channels = view.is_of_pixels(shape)
            && array.numbers.len() == shape.channels
            && array.shape.last() == Some(&shape.channels);
        let alone = of_channels && self.is_alone(node, 1 - at, value);
        if !alone || !self.builder.meet_channels(value, meeting, &array.numbers) {
            let numbers = view.arrange(&array, shape)?;
            value = self.builder.meet(value, meeting, numbers)?;
        }
        Some(Known::Tensor(Tensor { value, view }))
    }
}

/// What an operator makes of two numbers.
fn compute(kind: &str, one: f64, other: f64) -> f64 {
    match kind {
        "Add" => one + other,
        "Sub" => one - other,
        "Mul" => one * other,
        "Div" => one / other,
        _ => one.powf(other),
    }
}
