//! What every peer asks of a phase before it learns: the right views, layers, dimension and labels.

use std::borrow::Cow;

use rayon::prelude::*;

use super::rows::one_hot;
use super::{Look, Peer};
use ivoro::Matrix;
use ivoro::{Error, Result};
use ivoro::{Points, Samples};

/// What is known so far: the dimension, and where each phase's classes end.
#[derive(Debug)]
pub(super) struct Intake {
    peer: Peer,
    look: Look,
    dim: Option<usize>,
    ends: Vec<usize>,
}

/// The samples of a phase, sorted out by class.
#[derive(Debug)]
pub(super) struct Phase<'a> {
    /// One row a sample.
    pub(super) points: &'a Matrix,
    /// For every sample its class, counted from the phase's first class.
    pub(super) labels: Vec<usize>,
    /// For every class of the phase its rows.
    pub(super) members: Vec<Vec<usize>>,
}

impl Intake {
    pub(super) fn new(peer: Peer, look: Look) -> Self {
        Self { peer, look, dim: None, ends: Vec::new() }
    }

    /// The name under which the peer was asked for.
    pub(super) fn name(&self) -> String {
        self.look.name(self.peer)
    }

    pub(super) fn classes(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Checks a phase that was seen at these points; nothing is recorded until it is admitted.
    pub(super) fn phase<'a>(&self, features: &Samples, points: &'a Matrix) -> Result<Phase<'a>> {
        let labels = self.labels(features)?;
        let classes = labels.iter().max().map_or(0, |last| last + 1);
        let members = members(&labels, classes);
        match members.iter().position(Vec::is_empty) {
            Some(class) => Err(Error::EmptyClass {
                class: features.classes()[self.classes() + class].clone(),
                split: "train",
            }),
            None => Ok(Phase { points, labels, members }),
        }
    }

    /// Records that a checked phase was learned.
    pub(super) fn admit(&mut self, phase: &Phase<'_>) {
        self.dim = Some(phase.points.cols());
        self.ends.push(self.classes() + phase.members.len());
    }

    /// What the peer sees of queries: one vector each, of the dimension learned.
    pub(super) fn points<'a>(&self, features: &'a Points) -> Result<Cow<'a, Matrix>> {
        let points = self.look.compose(self.peer, features)?;
        match self.dim {
            Some(expected) if expected != points.cols() => {
                let what = match self.look.layers() {
                    1 => format!("{}: dimensions of the last layer", features.origin()),
                    _ => format!("{}: dimensions of the layers together", features.origin()),
                };
                Err(Error::Size { what, expected, found: points.cols() })
            }
            _ => Ok(points),
        }
    }

    fn labels(&self, features: &Samples) -> Result<Vec<usize>> {
        if features.is_empty() {
            let what = format!("{}: samples in a phase", features.origin());
            return Err(Error::Size { what, expected: 1, found: 0 });
        }
        let relative = |&label: &u32| {
            let label = label as usize;
            label.checked_sub(self.classes()).ok_or_else(|| Error::ClassReturns {
                class: features.classes()[label].clone(),
                phase: self.ends.partition_point(|&end| end <= label),
            })
        };
        features.labels().iter().map(relative).collect()
    }
}

impl<'p> Phase<'p> {
    /// Samples of so many classes.
    pub(super) fn new(points: &'p Matrix, labels: Vec<usize>, classes: usize) -> Self {
        let members = members(&labels, classes);
        Self { points, labels, members }
    }

    /// For each of these rows 1 in the column of its class.
    pub(super) fn one_hot(&self, rows: &[usize]) -> Matrix {
        let labels: Vec<usize> = rows.iter().map(|&row| self.labels[row]).collect();
        one_hot(&labels, self.members.len())
    }

    /// The same samples at other points.
    pub(super) fn with<'a>(&self, points: &'a Matrix) -> Phase<'a> {
        Phase { points, labels: self.labels.clone(), members: self.members.clone() }
    }

    /// The mean of every class.
    pub(super) fn means(&self) -> Matrix {
        let mut means = Matrix::zeros(self.members.len(), self.points.cols());
        for (class, sum) in sums(self.points, &self.members).iter().enumerate() {
            let count = self.members[class].len() as f64;
            let mean = means.row_mut(class).iter_mut().zip(sum);
            mean.for_each(|(mean, sum)| *mean = (sum / count) as f32);
        }
        means
    }

    /// Every sample minus the mean of its class.
    pub(super) fn centred(&self, means: &Matrix) -> Matrix {
        let mut centred = self.points.clone();
        for (row, &class) in self.labels.iter().enumerate() {
            let pairs = centred.row_mut(row).iter_mut().zip(means.row(class));
            pairs.for_each(|(value, mean)| *value -= mean);
        }
        centred
    }
}

/// For every class the rows that carry its label.
pub(super) fn members(labels: &[usize], classes: usize) -> Vec<Vec<usize>> {
    let mut members = vec![Vec::new(); classes];
    labels.iter().enumerate().for_each(|(row, &class)| members[class].push(row));
    members
}

/// For every class the sum of its rows, each added in its order.
pub(super) fn sums(points: &Matrix, members: &[Vec<usize>]) -> Vec<Vec<f64>> {
    let sum = |rows: &Vec<usize>| {
        let mut sum = vec![0.0; points.cols()];
        for &row in rows {
            sum.iter_mut().zip(points.row(row)).for_each(|(sum, &value)| *sum += f64::from(value));
        }
        sum
    };
    members.par_iter().map(sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(labels: &[u32], dim: usize) -> Samples {
        let points = Matrix::zeros(labels.len(), dim);
        Samples::single("test", points, labels.to_vec(), 9).unwrap()
    }

    fn after(labels: &[u32]) -> Intake {
        let mut intake = Intake::new(Peer::Ncm, Look::default());
        admit(&mut intake, &phase(labels, 4));
        intake
    }

    fn admit(intake: &mut Intake, features: &Samples) {
        let points = intake.points(features).unwrap();
        let checked = intake.phase(features, &points).unwrap();
        intake.admit(&checked);
    }

    fn refused(intake: &Intake, features: &Samples) -> Error {
        let checked = intake.points(features);
        checked.and_then(|points| intake.phase(features, &points).map(|_| ())).unwrap_err()
    }

    #[test]
    fn a_class_without_samples_is_named() {
        let intake = after(&[0, 1]);
        let error = refused(&intake, &phase(&[2, 4], 4));
        assert!(matches!(error, Error::EmptyClass { class, split: "train" } if class == "3"));
        let error = refused(&intake, &phase(&[3], 4));
        assert!(matches!(error, Error::EmptyClass { class, .. } if class == "2"));
    }

    #[test]
    fn a_known_class_may_not_return() {
        let mut intake = after(&[1, 0]);
        admit(&mut intake, &phase(&[2, 2], 4));
        let error = refused(&intake, &phase(&[3, 2], 4));
        assert!(matches!(error, Error::ClassReturns { class, phase: 1 } if class == "2"));
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        let intake = after(&[0]);
        assert!(matches!(refused(&intake, &phase(&[1], 5)), Error::Size { expected: 4, .. }));
        assert!(matches!(intake.points(&phase(&[0], 3)), Err(Error::Size { found: 3, .. })));
        assert!(matches!(refused(&intake, &phase(&[], 4)), Error::Size { found: 0, .. }));
    }
}
