//! What every peer asks of a phase before it learns: the right layer, dimension and labels.

use rayon::prelude::*;

use super::Peer;
use ivoro::Matrix;
use ivoro::{Error, Result};
use ivoro::{Points, Samples, View};

/// What is known so far: the dimension, and where each phase's classes end.
#[derive(Debug)]
pub(super) struct Intake {
    peer: Peer,
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
    pub(super) fn new(peer: Peer) -> Self {
        Self { peer, dim: None, ends: Vec::new() }
    }

    pub(super) fn classes(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Checks a phase; nothing is recorded until it is admitted.
    pub(super) fn phase<'a>(&self, features: &'a Samples) -> Result<Phase<'a>> {
        let points = self.queries(features)?;
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

    /// The points of queries: last layer, upright, of the dimension learned.
    pub(super) fn queries<'a>(&self, features: &'a Points) -> Result<&'a Matrix> {
        let Some(points) = features.block(0, View::UPRIGHT) else {
            let found: Vec<String> = features.views().iter().map(View::to_string).collect();
            let (variant, found) = (self.peer.to_string(), found.join(", "));
            return Err(Error::MissingViews { variant, needed: View::UPRIGHT.to_string(), found });
        };
        match self.dim {
            Some(expected) if expected != points.cols() => {
                let what = format!("{}: dimensions of the last layer", features.origin());
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

impl Phase<'_> {
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
        let mut intake = Intake::new(Peer::Ncm);
        let features = phase(labels, 4);
        let checked = intake.phase(&features).unwrap();
        intake.admit(&checked);
        intake
    }

    #[test]
    fn a_class_without_samples_is_named() {
        let intake = after(&[0, 1]);
        let error = intake.phase(&phase(&[2, 4], 4)).unwrap_err();
        assert!(matches!(error, Error::EmptyClass { class, split: "train" } if class == "3"));
        let error = intake.phase(&phase(&[3], 4)).unwrap_err();
        assert!(matches!(error, Error::EmptyClass { class, .. } if class == "2"));
    }

    #[test]
    fn a_known_class_may_not_return() {
        let mut intake = after(&[1, 0]);
        let features = phase(&[2, 2], 4);
        let checked = intake.phase(&features).unwrap();
        intake.admit(&checked);
        let error = intake.phase(&phase(&[3, 2], 4)).unwrap_err();
        assert!(matches!(error, Error::ClassReturns { class, phase: 1 } if class == "2"));
    }

    #[test]
    fn sizes_that_do_not_fit_are_refused() {
        let intake = after(&[0]);
        assert!(matches!(intake.phase(&phase(&[1], 5)), Err(Error::Size { expected: 4, .. })));
        assert!(matches!(intake.queries(&phase(&[0], 3)), Err(Error::Size { found: 3, .. })));
        assert!(matches!(intake.phase(&phase(&[], 4)), Err(Error::Size { found: 0, .. })));
    }
}
