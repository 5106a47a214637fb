//! Operators that give the numbers of a value other axes, take some of them, or put others around them.

use super::super::constants::{Array, Constant, axis, range, reshaped};
use super::super::elementwise::expand;
use super::super::operator::Node;
use super::Network;
use super::known::{Known, Tensor};
use super::view::View;
use crate::engine::cpu::tokens::Around;

impl<'a> Network<'_, 'a> {
    /// What an operator makes of the axes of its first input.
    pub(super) fn of_axes(&mut self, node: &Node<'a>) -> Option<Known> {
        if node.kind == "Concat" {
            return self.concat(node);
        }
        if node.kind == "Expand" {
            return self.expanded(node);
        }
        let Tensor { value, view } = self.tensor(node, 0)?;
        let view = match node.kind {
            "Reshape" => self.reshape(node, &view)?,
            "Flatten" => flatten(&view, node.number("axis", 1))?,
            "Transpose" => {
                let all = 0..view.axes.len();
                let order = node.numbers("perm").iter().map(|&at| axis(at, view.axes.len()));
                let order: Vec<usize> = match node.numbers("perm") {
                    [] => all.rev().collect(),
                    _ => order.collect::<Option<_>>()?,
                };
                view.transposed(&order)?
            }
            "Unsqueeze" => {
                let axes = self.axes(node, 1)?;
                unsqueeze(view, &axes)?
            }
            "Squeeze" => {
                let axes = self.axes(node, 1)?;
                squeeze(&view, &axes)?
            }
            "Gather" => self.gather(node, &view)?,
            "Slice" => self.slice(node, view)?,
            _ => return None,
        };
        self.taken(Tensor { value, view })
    }

    /// A part of a value: tokens become a value of their own.
    fn taken(&mut self, tensor: Tensor) -> Option<Known> {
        let shape = self.builder.shape(tensor.value);
        let tokens = !tensor.view.is_whole(shape) && tensor.view.tokens(shape.channels).is_some();
        let tensor = if tokens { self.whole(tensor)? } else { tensor };
        Some(Known::Tensor(tensor))
    }

    /// The sizes of the axes of an input.
    pub(super) fn sizes(&mut self, node: &Node<'a>) -> Option<Constant> {
        let sizes = match self.known(node, 0)? {
            Known::Repeated(constant) => {
                let mut sizes = constant.shape().to_vec();
                *sizes.first_mut()? = self.images;
                sizes
            }
            known => known.tensor()?.view.sizes()?,
        };
        let whole: Option<Vec<i64>> = sizes.iter().map(|&size| i64::try_from(size).ok()).collect();
        let length = i64::try_from(sizes.len()).ok()?;
        let (start, end) = (node.number("start", 0), node.number("end", length));
        let (first, count) = range(start, end, 1, length)?;
        let numbers = whole?.get(first..first + count)?.to_vec();
        Some(Constant::Integers(Array { shape: vec![numbers.len()], numbers }))
    }

    fn reshape(&mut self, node: &Node<'a>, view: &View) -> Option<View> {
        let sizes = self.integers(node, 1)?;
        let sizes = reshaped(&view.sizes()?, &sizes, node.number("allowzero", 0) != 0)?;
        view.reshaped(&sizes)
    }

    /// One entry of an axis, which is then no axis any more, or stays one of one entry.
    fn gather(&mut self, node: &Node<'a>, view: &View) -> Option<View> {
        let place = self.constant(node, 1)?;
        let &[at] = place.integers()? else { return None };
        let along = axis(node.number("axis", 0), view.axes.len())?;
        let at = axis(at, *view.sizes()?.get(along)?)?;
        let mut view = view.part(along, at, 1)?;
        view.axes.splice(along..=along, vec![Vec::new(); place.shape().len()]);
        Some(view)
    }

    fn slice(&mut self, node: &Node<'a>, mut view: View) -> Option<View> {
        let (starts, ends) = match node.inputs.len() {
            1 => (node.numbers("starts").to_vec(), node.numbers("ends").to_vec()),
            _ => (self.integers(node, 1)?, self.integers(node, 2)?),
        };
        let axes = self.axes(node, 3)?;
        let axes = if axes.is_empty() { (0..).take(starts.len()).collect() } else { axes };
        let steps = match node.inputs.get(4) {
            None | Some(&"") => vec![1; starts.len()],
            Some(_) => self.integers(node, 4)?,
        };
        if [ends.len(), axes.len(), steps.len()] != [starts.len(); 3] {
            return None;
        }
        for (at, step) in steps.into_iter().enumerate() {
            let along = axis(axes[at], view.axes.len())?;
            let length = i64::try_from(*view.sizes()?.get(along)?).ok()?;
            let (first, count) = range(starts[at], ends[at], step, length)?;
            view = (step == 1).then(|| view.part(along, first, count))??;
        }
        Some(view)
    }

    /// Parts of a value along an axis, a name for each.
    pub(super) fn split(&mut self, node: &Node<'a>) -> Option<()> {
        let Tensor { value, view } = self.tensor(node, 0)?;
        let along = axis(node.number("axis", 0), view.axes.len())?;
        let (length, count) = (*view.sizes()?.get(along)?, node.outputs.len());
        let given = match node.inputs.get(1) {
            None | Some(&"") => node.numbers("split").to_vec(),
            Some(_) => self.integers(node, 1)?,
        };
        let given: Option<Vec<usize>> =
            given.into_iter().map(|size| usize::try_from(size).ok()).collect();
        let mut sizes = given?;
        if sizes.is_empty() && length.is_multiple_of(count) {
            sizes = vec![length / count; count];
        }
        let total = sizes.iter().try_fold(0usize, |sum, &size| sum.checked_add(size));
        if sizes.len() != count || total != Some(length) {
            return None;
        }
        let mut first = 0;
        for (&name, size) in node.outputs.iter().zip(sizes) {
            let view = view.part(along, first, size)?;
            let part = self.taken(Tensor { value, view })?;
            self.name(name, part)?;
            first += size;
        }
        Some(())
    }

    /// Numbers that never change, told to be there for each image.
    pub(super) fn repeated(&mut self, node: &Node<'a>) -> Option<Known> {
        if node.kind != "Expand" || self.images == 1 {
            return None;
        }
        let sizes: Option<Vec<usize>> =
            self.integers(node, 1)?.into_iter().map(|size| usize::try_from(size).ok()).collect();
        let mut sizes = sizes.filter(|sizes| sizes.first() == Some(&self.images))?;
        sizes[0] = 1;
        let constant = self.constant(node, 0)?;
        let same = constant.shape().len() < sizes.len() || constant.shape().first() == Some(&1);
        let constant = match constant {
            Constant::Floats(array) => Constant::Floats(expand(&array, &sizes)?),
            Constant::Integers(array) => Constant::Integers(expand(&array, &sizes)?),
        };
        same.then_some(Known::Repeated(constant))
    }

    /// A value that is told to have the size it has.
    fn expanded(&mut self, node: &Node<'a>) -> Option<Known> {
        let sizes = self.integers(node, 1)?;
        let tensor = self.tensor(node, 0)?;
        let has = tensor.view.sizes()?;
        let same = has.len() == sizes.len()
            && has
                .iter()
                .zip(&sizes)
                .all(|(&has, &told)| told == 1 || usize::try_from(told) == Ok(has));
        same.then_some(Known::Tensor(tensor))
    }

    /// Tokens that are the same for each image, before and after those of a value.
    fn concat(&mut self, node: &Node<'a>) -> Option<Known> {
        let mut inside = (0..node.inputs.len()).filter(|&at| {
            self.known(node, at).is_some_and(|known| !matches!(known, Known::Repeated(_)))
        });
        let (place, None) = (inside.next()?, inside.next()) else { return None };
        let Tensor { value, view } = self.whole_tensor(node, place)?;
        let shape = self.builder.shape(value);
        let rows = shape.height * shape.width;
        let images = self.images;
        if view != View::of_tokens(images, rows, shape.channels)
            || axis(node.number("axis", 0), 3)? != 1
        {
            return None;
        }
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for at in (0..node.inputs.len()).filter(|&at| at != place) {
            let numbers = self.tokens_of_all(node, at, shape.channels)?;
            if at < place { before.extend(numbers) } else { after.extend(numbers) }
        }
        let more = (before.len() + after.len()) / shape.channels;
        let view = View::of_tokens(images, rows + more, shape.channels);
        let value = self.builder.surround(value, Around { before, after })?;
        Some(Known::Tensor(Tensor { value, view }))
    }

    /// An input with tokens that are the same for each image.
    fn tokens_of_all(&mut self, node: &Node<'a>, at: usize, channels: usize) -> Option<Vec<f32>> {
        let constant = match self.known(node, at) {
            Some(Known::Repeated(constant)) => constant,
            _ => self.constant(node, at)?,
        };
        let Constant::Floats(Array { shape, numbers }) = constant else { return None };
        let &[images, tokens, size] = &shape[..] else { return None };
        let length = tokens.checked_mul(size).filter(|&length| length > 0)?;
        let mut each = numbers.chunks_exact(length);
        let first = each.next()?;
        let fits = size == channels && (images == 1 || images == self.images);
        (fits && each.all(|other| other == first)).then(|| first.to_vec())
    }
}

/// All axes before one as a single axis, and all from it on.
fn flatten(view: &View, along: i64) -> Option<View> {
    let sizes = view.sizes()?;
    let along = match usize::try_from(along) {
        Ok(along) if along == sizes.len() => along,
        _ => axis(along, sizes.len())?,
    };
    let product =
        |sizes: &[usize]| sizes.iter().try_fold(1usize, |all, &size| all.checked_mul(size));
    view.reshaped(&[product(&sizes[..along])?, product(&sizes[along..])?])
}

/// Puts axes of one entry in.
fn unsqueeze(view: View, axes: &[i64]) -> Option<View> {
    let dimensions = view.axes.len().checked_add(axes.len())?;
    let new: Vec<usize> = axes.iter().map(|&at| axis(at, dimensions)).collect::<Option<_>>()?;
    let mut old = view.axes.into_iter();
    let all = (0..dimensions)
        .map(|at| if new.contains(&at) { Some(Vec::new()) } else { old.next() })
        .collect::<Option<_>>()?;
    old.next().is_none().then_some(View { first: view.first, axes: all })
}

/// Takes axes of one entry out; without any named, all of them.
fn squeeze(view: &View, axes: &[i64]) -> Option<View> {
    let dimensions = view.axes.len();
    let out: Vec<usize> = axes.iter().map(|&at| axis(at, dimensions)).collect::<Option<_>>()?;
    let single = |at: usize| view.axes[at].is_empty();
    if out.iter().any(|&at| !single(at)) {
        return None;
    }
    let kept = |at: &usize| if out.is_empty() { !single(*at) } else { !out.contains(at) };
    let axes = (0..dimensions).filter(kept).map(|at| view.axes[at].clone()).collect();
    Some(View { first: view.first, axes })
}
