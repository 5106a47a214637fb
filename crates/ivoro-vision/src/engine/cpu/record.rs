//! What was added to a [`Builder`](super::graph::Builder), written down: so that a network of another
//! format becomes a list of operations.

use crate::network::{Clip, Kernel, Operation};

/// An addition to a builder, with the values it takes.
#[derive(Clone, Debug)]
pub(crate) enum Addition {
    /// A convolution, not clipped yet.
    Convolution(Operation, Kernel),
    /// A sum of two values.
    Add([usize; 2]),
    /// A value with its numbers cut off.
    Clip(usize, Clip),
    /// The mean of a value over all pixels.
    Mean(usize),
}

impl Addition {
    fn takes(&self, value: usize) -> bool {
        match self {
            Self::Convolution(Operation::Convolution { input, .. }, _)
            | Self::Clip(input, _)
            | Self::Mean(input) => *input == value,
            Self::Add(inputs) => inputs.contains(&value),
            // a convolution is none of these
            Self::Convolution(Operation::Add { .. }, _) => false,
        }
    }
}

/// Operations with their weights, and where the wanted values are among theirs.
pub(crate) struct Listed {
    pub(crate) steps: Vec<Operation>,
    pub(crate) kernels: Vec<Kernel>,
    pub(crate) wanted: Vec<usize>,
}

/// The list of operations that these additions are, if it can say all of them: what is cut off belongs to
/// the operation before it, and a mean over all pixels is what is wanted, or nothing.
pub(crate) fn list(additions: Vec<Addition>, wanted: &[usize]) -> Option<Listed> {
    let takers = |value: usize| {
        additions.iter().filter(|other| other.takes(value)).count()
            + wanted.iter().filter(|other| **other == value).count()
    };
    let alone: Vec<bool> = (0..=additions.len()).map(|value| takers(value) == 1).collect();
    let (mut steps, mut kernels) = (Vec::new(), Vec::new());
    // the new number of each value; none of a mean, which nothing may take
    let (mut places, mut ends) = (vec![Some(0)], vec![Some(0)]);
    for addition in additions {
        let (place, end) = match addition {
            Addition::Convolution(mut operation, kernel) => {
                if let Operation::Convolution { input, .. } = &mut operation {
                    *input = (*places.get(*input)?)?;
                }
                steps.push(operation);
                kernels.push(kernel);
                (Some(steps.len()), Some(steps.len()))
            }
            Addition::Add([one, other]) => {
                let inputs = [(*places.get(one)?)?, (*places.get(other)?)?];
                steps.push(Operation::Add { inputs, clip: Clip::default() });
                kernels.push(Kernel::default());
                (Some(steps.len()), Some(steps.len()))
            }
            Addition::Clip(input, new) => {
                let place = (*places.get(input)?)?;
                let (Operation::Convolution { clip, .. } | Operation::Add { clip, .. }) =
                    steps.get_mut(place.checked_sub(1)?)?;
                if !clip.is_none() || !*alone.get(input)? {
                    return None;
                }
                *clip = new;
                (Some(place), Some(place))
            }
            Addition::Mean(input) => (None, *places.get(input)?),
        };
        places.push(place);
        ends.push(end);
    }
    let wanted = wanted.iter().map(|&value| *ends.get(value)?).collect::<Option<Vec<_>>>()?;
    Some(Listed { steps, kernels, wanted })
}
