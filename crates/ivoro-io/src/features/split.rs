//! Which samples of a file are learned from and which are asked about.

use std::fmt;

use super::{FeatureFile, Set};
use ivoro::Samples;
use ivoro::random::mix;
use ivoro::samples::Split;
use ivoro::{Error, Result};

/// Who decided which samples are for testing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SplitOrigin {
    /// The file has a train and a test part.
    File,
    /// The file has one set; part of each class was held out.
    HeldOut {
        /// The fraction of each class.
        fraction: f64,
        /// The seed of the choice.
        seed: u64,
    },
}

impl fmt::Display for SplitOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File => f.write_str("the file's own training and test parts"),
            Self::HeldOut { fraction, seed } => {
                write!(f, "{fraction} of each class held out as test, seed {seed}")
            }
        }
    }
}

impl FeatureFile {
    /// A train and a test part: the file's own, else `holdout` of each class chosen by `seed`.
    ///
    /// Every class the file speaks of must have a sample.
    pub fn into_split(self, holdout: f64, seed: u64) -> Result<(Split, SplitOrigin)> {
        if let Some(class) = self.gap {
            return Err(Error::EmptyClass { class, split: "train" });
        }
        match (self.train, self.test, self.all) {
            (Some(Set::Labelled(train)), Some(Set::Labelled(test)), _) => {
                Ok((Split { train, test }, SplitOrigin::File))
            }
            (Some(Set::Labelled(samples)), None, _)
            | (None, None, Some(Set::Labelled(samples))) => {
                let split = hold_out(&samples, holdout, seed)?;
                Ok((split, SplitOrigin::HeldOut { fraction: holdout, seed }))
            }
            (None, Some(_), _) => {
                Err(Error::malformed(&self.path, "there is a test part but no train part"))
            }
            _ => Err(Error::malformed(&self.path, "there are samples without labels")),
        }
    }

    /// What there is to learn from: the train part, else the undivided set; with labels.
    pub fn learning(self) -> Result<Samples> {
        match self.train.or(self.all) {
            Some(Set::Labelled(samples)) => Ok(samples),
            Some(_) => Err(Error::malformed(&self.path, "learning needs labels, found none")),
            None => Err(Error::malformed(
                &self.path,
                "learning needs a train part, found only a test part",
            )),
        }
    }

    /// What there is to ask about: the test part, else the undivided set; labels are optional.
    pub fn asking(self) -> Result<Set> {
        let message = "asking needs a test part, found only a train part";
        self.test.or(self.all).ok_or_else(|| Error::malformed(&self.path, message))
    }
}

/// `fraction` of the samples of each class, at least one and never all, become the test part.
fn hold_out(features: &Samples, fraction: f64, seed: u64) -> Result<Split> {
    if !(fraction > 0.0 && fraction < 1.0) {
        let reason = "the fraction held out must be between 0 and 1";
        return Err(Error::Setting { name: "holdout", value: fraction.to_string(), reason });
    }
    let mut rows_of = vec![Vec::new(); features.classes().len()];
    for (row, &label) in features.labels().iter().enumerate() {
        rows_of[label as usize].push(row);
    }
    let (mut train, mut test) = (Vec::new(), Vec::new());
    for (class, mut rows) in rows_of.into_iter().enumerate() {
        if rows.len() < 2 {
            let split = if rows.is_empty() { "train" } else { "test" };
            return Err(Error::EmptyClass { class: features.classes()[class].clone(), split });
        }
        let held = ((rows.len() as f64 * fraction).round() as usize).clamp(1, rows.len() - 1);
        shuffle(&mut rows, seed ^ mix(0, class as u64));
        test.extend_from_slice(&rows[..held]);
        train.extend_from_slice(&rows[held..]);
    }
    train.sort_unstable();
    test.sort_unstable();
    Ok(Split { train: features.select(&train), test: features.select(&test) })
}

/// Fisher and Yates with `SplitMix64`: the same on every machine.
fn shuffle(rows: &mut [usize], seed: u64) {
    for (step, last) in (1..rows.len()).rev().enumerate() {
        let random = mix(0, seed.wrapping_add(step as u64));
        let pick = (u128::from(random) * (last as u128 + 1)) >> 64;
        rows.swap(last, pick as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ivoro::Matrix;

    fn features(labels: &[u32]) -> Samples {
        let points = (0..labels.len()).map(|row| row as f32).collect();
        let points = Matrix::new(labels.len(), 1, points).unwrap();
        Samples::single("f", points, labels.to_vec(), 3).unwrap()
    }

    #[test]
    fn holds_out_of_every_class_and_loses_no_row() {
        let labels: Vec<u32> =
            (0..50).map(|row| u32::from(row >= 10) + u32::from(row >= 48)).collect();
        let split = hold_out(&features(&labels), 0.2, 7).unwrap();
        let count = |class| split.test.labels().iter().filter(|&&label| label == class).count();
        assert_eq!([count(0), count(1), count(2)], [2, 8, 1]);
        let rows = |part: &Samples| part.block(0, part.views()[0]).unwrap().as_slice().to_vec();
        let mut all = [rows(&split.train), rows(&split.test)].concat();
        all.sort_by(f32::total_cmp);
        assert_eq!(all, (0..50_u8).map(f32::from).collect::<Vec<_>>());
    }

    #[test]
    fn the_seed_alone_decides() {
        let labels: Vec<u32> = (0..60).map(|row| row % 3).collect();
        let chosen = |seed| {
            let test = hold_out(&features(&labels), 0.5, seed).unwrap().test;
            test.block(0, test.views()[0]).unwrap().as_slice().to_vec()
        };
        assert_eq!(chosen(1), chosen(1));
        assert_ne!(chosen(1), chosen(2));
    }

    #[test]
    fn a_class_of_one_sample_is_refused() {
        let error = hold_out(&features(&[0, 0, 1, 1, 2]), 0.2, 0).unwrap_err();
        assert_eq!(error.to_string(), "class 2 has no test sample");
        assert!(hold_out(&features(&[0, 0, 1, 1, 2, 2]), f64::NAN, 0).is_err());
    }
}
