//! What a name in a file stands for while the network is put together.

use super::super::constants::Constant;
use super::scalar::Scalar;
use super::view::View;

/// A value of the network, as the file sees it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tensor {
    pub(super) value: usize,
    pub(super) view: View,
}

/// What depends on the images: a value of the network, or what is on the way to one.
#[derive(Clone, Debug)]
pub(super) enum Known {
    Tensor(Tensor),
    /// With zeros around it that it does not have yet: rows above, columns left, rows below and
    /// columns right. A convolution takes them as its own.
    Padded(Tensor, [usize; 4]),
    /// What becomes of each number; with the value that holds it, if it is made already.
    Scalar {
        of: Tensor,
        scalar: Scalar,
        made: Option<usize>,
    },
    /// On the way to a layer norm.
    Statistic(Tensor, Statistic),
    /// On the way to an attention.
    Scores(Scores),
    /// Whether similarities are no numbers.
    Missing(Scores),
    /// The same numbers for each image, with an axis of images of one entry.
    Repeated(Constant),
}

/// What is made of the rows of numbers that the last axis holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Statistic {
    /// The numbers themselves.
    Itself,
    /// Their mean.
    Mean,
    /// How far each number is from it.
    Distance,
    /// The squares of those.
    Square,
    /// The mean of the squares, and a number more.
    Variance(f32),
    /// Its root.
    Deviation(f32),
}

/// Products of queries and keys.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scores {
    pub(super) queries: Tensor,
    pub(super) keys: Tensor,
    pub(super) factor: f64,
    /// Whether they sum to 1 along the keys.
    pub(super) softened: bool,
}

impl Known {
    /// Whether it takes numbers of a value of the network.
    pub(super) fn takes(&self, value: usize) -> bool {
        match self {
            Self::Tensor(of) | Self::Padded(of, _) | Self::Statistic(of, _) => of.value == value,
            Self::Scalar { of, made, .. } => of.value == value || *made == Some(value),
            Self::Scores(scores) | Self::Missing(scores) => {
                scores.queries.value == value || scores.keys.value == value
            }
            Self::Repeated(_) => false,
        }
    }

    /// The value that its numbers have the axes of.
    pub(super) fn tensor(&self) -> Option<&Tensor> {
        match self {
            Self::Tensor(of) | Self::Statistic(of, _) | Self::Scalar { of, .. } => Some(of),
            _ => None,
        }
    }

    /// How many axes it has.
    pub(super) fn dimensions(&self) -> Option<usize> {
        match self {
            Self::Scores(Scores { queries: of, .. }) => Some(of.view.axes.len()),
            known => known.tensor().map(|of| of.view.axes.len()),
        }
    }

    /// What is made of each number of which value.
    pub(super) fn scalar(&self) -> Option<(Tensor, Scalar)> {
        match self {
            Self::Tensor(of) => Some((of.clone(), Scalar::itself())),
            Self::Scalar { of, scalar, .. } => Some((of.clone(), scalar.clone())),
            _ => None,
        }
    }

    /// The same in all ways: what is made is a value itself.
    pub(super) fn scalars(&self) -> Vec<(Tensor, Scalar)> {
        let made = match self {
            Self::Scalar { of, made: Some(value), .. } => {
                Some((Tensor { value: *value, view: of.view.clone() }, Scalar::itself()))
            }
            _ => None,
        };
        self.scalar().into_iter().chain(made).collect()
    }
}
