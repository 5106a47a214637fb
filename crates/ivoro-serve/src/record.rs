//! How good a model is on what it is taught: each sample is asked before it is learned. In memory alone.

use std::collections::BTreeMap;

/// Classes of which pairs are counted.
const MOST_PAIRS: usize = 10_000;
/// Parts of the probabilities from 0 to 1.
pub(crate) const BINS: usize = 10;

/// What was answered of samples of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) asked: u64,
    pub(crate) right: u64,
    pub(crate) unknown: u64,
}

/// Answers of one range of probabilities.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Bin {
    pub(crate) asked: u64,
    pub(crate) right: u64,
    /// The sum of the probabilities.
    pub(crate) promised: f64,
}

/// What was answered of a sample before it was learned.
#[derive(Clone, Debug)]
pub(crate) struct AskedFirst {
    pub(crate) class: String,
    pub(crate) answer: String,
    pub(crate) probability: Option<f64>,
    pub(crate) unknown: bool,
}

/// What was answered of all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    pub(crate) all: Tally,
    pub(crate) classes: BTreeMap<String, Tally>,
    /// How often a sample of the first class was taken for the second.
    pub(crate) confusions: BTreeMap<(String, String), u64>,
    pub(crate) bins: [Bin; BINS],
}

impl Record {
    pub(crate) fn add(&mut self, asked: &AskedFirst) {
        let right = asked.class == asked.answer;
        let tally = self.classes.entry(asked.class.clone()).or_default();
        for tally in [tally, &mut self.all] {
            tally.asked += 1;
            tally.right += u64::from(right);
            tally.unknown += u64::from(asked.unknown);
        }
        if !right && self.confusions.len() < MOST_PAIRS {
            *self.confusions.entry((asked.class.clone(), asked.answer.clone())).or_default() += 1;
        }
        if let Some(probability) = asked.probability {
            let at = ((probability * BINS as f64) as usize).min(BINS - 1);
            let bin = &mut self.bins[at];
            bin.asked += 1;
            bin.right += u64::from(right);
            bin.promised += probability;
        }
    }

    pub(crate) fn of(&self, class: &str) -> Tally {
        self.classes.get(class).copied().unwrap_or_default()
    }

    /// A class has another name, or is part of another one.
    pub(crate) fn rename(&mut self, class: &str, name: &str) {
        if let Some(moved) = self.classes.remove(class) {
            let tally = self.classes.entry(name.to_owned()).or_default();
            tally.asked += moved.asked;
            tally.right += moved.right;
            tally.unknown += moved.unknown;
        }
        let other = |text: String| if text == class { name.to_owned() } else { text };
        for ((own, taken), count) in std::mem::take(&mut self.confusions) {
            let (own, taken) = (other(own), other(taken));
            if own != taken {
                *self.confusions.entry((own, taken)).or_default() += count;
            }
        }
    }

    /// Nothing of a class is kept that was forgotten.
    pub(crate) fn forget(&mut self, class: &str) {
        self.classes.remove(class);
        self.confusions.retain(|(own, taken), _| own != class && taken != class);
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// The interval in which the share lies with 95 % certainty, after Wilson.
pub(crate) fn wilson(right: u64, asked: u64) -> Option<[f64; 2]> {
    if asked == 0 {
        return None;
    }
    let (n, z) = (asked as f64, 1.959_964);
    let share = right as f64 / n;
    let middle = (share + z * z / (2.0 * n)) / (1.0 + z * z / n);
    let half = z / (1.0 + z * z / n) * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    Some([(middle - half).max(0.0), (middle + half).min(1.0)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(class: &str, answer: &str) -> AskedFirst {
        let (class, answer) = (class.to_owned(), answer.to_owned());
        AskedFirst { class, answer, probability: Some(0.95), unknown: false }
    }

    #[test]
    fn names_change_in_all_that_was_counted() {
        let mut record = Record::default();
        for (class, answer) in [("a", "a"), ("a", "b"), ("b", "a"), ("c", "a")] {
            record.add(&asked(class, answer));
        }
        record.rename("b", "a");
        assert_eq!(record.of("a"), Tally { asked: 3, right: 1, unknown: 0 });
        assert_eq!(record.confusions.len(), 1);
        assert_eq!((record.bins[9].asked, record.bins[9].right), (4, 1));
        record.forget("a");
        assert!(record.confusions.is_empty() && record.of("a").asked == 0);
    }

    #[test]
    fn the_interval_is_the_one_in_tables() {
        let [low, high] = wilson(8, 10).unwrap();
        assert!((low - 0.490).abs() < 1e-3 && (high - 0.943).abs() < 1e-3);
        assert!(wilson(0, 0).is_none());
    }
}
