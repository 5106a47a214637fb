//! The journal of a model: when what was done to it, with how many samples of which classes. No sample
//! and nothing of one is in it.
//!
//! It has a bound, since a model that learns for years from a stream must not grow with it: the last
//! [`ENTRIES`] entries are kept, and what came before is one line with sums.

use std::collections::VecDeque;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Entries kept one by one.
pub const ENTRIES: usize = 1000;
/// Names of classes kept in an entry.
pub const NAMES: usize = 100;

/// What was done to a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    /// New classes were learned.
    Learn,
    /// Samples of known classes were added.
    Update,
    /// Samples were taken back.
    Retract,
    /// Samples got another class.
    Relabel,
    /// A class got another name.
    Rename,
    /// A class was forgotten.
    Forget,
    /// Another model was merged.
    Merge,
    /// Classes gave up their sums.
    Seal,
    /// Probabilities and thresholds were measured on samples that were not learned.
    Calibrate,
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Learn => "learn",
            Self::Update => "update",
            Self::Retract => "retract",
            Self::Relabel => "relabel",
            Self::Rename => "rename",
            Self::Forget => "forget",
            Self::Merge => "merge",
            Self::Seal => "seal",
            Self::Calibrate => "calibrate",
        })
    }
}

/// One change of a model.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Entry {
    /// Seconds since 1970 began (UTC), as the caller gave them.
    pub when: u64,
    /// What was done.
    pub verb: Verb,
    /// Samples that came, went or changed their class.
    pub samples: u64,
    /// The first [`NAMES`] of the classes that they are of.
    pub classes: Vec<String>,
    /// How many more classes there were.
    #[serde(default)]
    pub more: usize,
    /// What the samples or the class are called since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub into: Option<String>,
    /// Classes of the model afterwards.
    pub known: usize,
    /// A hash of the sums that were added or taken: the same lesson has the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lesson: Option<String>,
}

impl Entry {
    pub(crate) fn new(when: u64, verb: Verb, classes: Vec<String>) -> Self {
        Self { when, verb, samples: 0, classes, more: 0, into: None, known: 0, lesson: None }
    }
}

/// What is left of entries that are no longer kept one by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Earlier {
    /// How many there were.
    pub entries: u64,
    /// When the first was made.
    pub from: u64,
    /// When the last was made.
    pub until: u64,
    /// Samples learned and added.
    pub added: u64,
    /// Samples taken back and forgotten.
    pub taken: u64,
}

impl Earlier {
    fn add(&mut self, entry: &Entry) {
        let first = self.entries == 0;
        self.from = if first { entry.when } else { self.from.min(entry.when) };
        self.until = self.until.max(entry.when);
        self.entries = self.entries.saturating_add(1);
        let sum = match entry.verb {
            Verb::Learn | Verb::Update => &mut self.added,
            Verb::Retract | Verb::Forget => &mut self.taken,
            Verb::Relabel | Verb::Rename | Verb::Merge | Verb::Seal | Verb::Calibrate => return,
        };
        *sum = sum.saturating_add(entry.samples);
    }

    fn join(&mut self, other: &Self) {
        if self == other || other.entries == 0 {
            return;
        }
        if self.entries == 0 {
            *self = *other;
            return;
        }
        self.from = self.from.min(other.from);
        self.until = self.until.max(other.until);
        for (own, other) in [
            (&mut self.entries, other.entries),
            (&mut self.added, other.added),
            (&mut self.taken, other.taken),
        ] {
            *own = own.saturating_add(other);
        }
    }
}

/// All that was done to a model, in order.
///
/// ```
/// use ivoro::{Matrix, Model, Samples, Variant, journal::Verb};
/// let points = Matrix::new(4, 2, vec![0.0, 0.1, 0.1, 0.0, 5.0, 5.1, 5.1, 5.0])?;
/// let mut model = Model::new("iVoro".parse::<Variant>()?, Default::default());
/// model.set_time(1_700_000_000);
/// model.learn(&Samples::single("monday", points, vec![0, 0, 1, 1], 2)?)?;
/// let entry = model.journal().entries().next().unwrap();
/// assert_eq!((entry.when, entry.verb, entry.samples), (1_700_000_000, Verb::Learn, 4));
/// assert_eq!(entry.classes, ["0", "1"]);
/// # Ok::<(), ivoro::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Journal {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    earlier: Option<Earlier>,
    #[serde(default)]
    entries: VecDeque<Entry>,
}

impl Journal {
    /// Whether nothing was ever entered.
    pub fn is_empty(&self) -> bool {
        self.earlier.is_none() && self.entries.is_empty()
    }

    /// What came before the entries.
    pub fn earlier(&self) -> Option<&Earlier> {
        self.earlier.as_ref()
    }

    /// The last entries, oldest first.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.entries.iter()
    }

    /// How often a lesson was learned or added, and how often it was taken back, as far as the entries
    /// say.
    pub(crate) fn lesson(&self, lesson: &str) -> (usize, usize) {
        let same = || self.entries.iter().filter(|entry| entry.lesson.as_deref() == Some(lesson));
        let count = |verbs: &[Verb]| same().filter(|entry| verbs.contains(&entry.verb)).count();
        (count(&[Verb::Learn, Verb::Update]), count(&[Verb::Retract]))
    }

    pub(crate) fn enter(&mut self, mut entry: Entry) {
        entry.more += entry.classes.len().saturating_sub(NAMES);
        entry.classes.truncate(NAMES);
        self.entries.push_back(entry);
        self.shorten();
    }

    /// What was done to either of two models, by time; what both say counts once.
    pub(crate) fn join(&mut self, other: &Self) {
        let own = std::mem::take(&mut self.entries);
        let mut all: Vec<Entry> = own.into_iter().collect();
        all.extend(
            other.entries.iter().filter(|entry| !all.contains(entry)).cloned().collect::<Vec<_>>(),
        );
        all.sort_by_key(|entry| entry.when);
        self.entries = all.into();
        if let Some(theirs) = &other.earlier {
            self.earlier.get_or_insert_default().join(theirs);
        }
        self.shorten();
    }

    /// Takes the name of a class out of all entries; they say that there was one more.
    pub(crate) fn strike(&mut self, class: &str) {
        for entry in &mut self.entries {
            let before = entry.classes.len();
            entry.classes.retain(|name| name != class);
            entry.more += before - entry.classes.len();
            entry.into = entry.into.take().filter(|name| name != class);
        }
    }

    fn shorten(&mut self) {
        while self.entries.len() > ENTRIES {
            let Some(oldest) = self.entries.pop_front() else { return };
            self.earlier.get_or_insert_default().add(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(when: u64, verb: Verb, classes: usize) -> Entry {
        let classes = (0..classes).map(|class| class.to_string()).collect();
        Entry { when, verb, samples: 3, classes, more: 0, into: None, known: 2, lesson: None }
    }

    #[test]
    fn a_journal_has_a_bound() {
        let mut journal = Journal::default();
        for when in 0..5000 {
            let verb = if when % 5 == 4 { Verb::Retract } else { Verb::Update };
            journal.enter(entry(when, verb, 150));
        }
        assert_eq!(journal.entries().count(), ENTRIES);
        assert!(journal.entries().all(|entry| entry.classes.len() == NAMES && entry.more == 50));
        let earlier =
            Earlier { entries: 4000, from: 0, until: 3999, added: 3 * 3200, taken: 3 * 800 };
        assert_eq!(journal.earlier(), Some(&earlier));
    }

    #[test]
    fn journals_are_joined_by_time_and_what_both_say_counts_once() {
        let made = |times: &[u64]| {
            let mut journal = Journal::default();
            times.iter().for_each(|&when| journal.enter(entry(when, Verb::Update, 1)));
            journal
        };
        let mut joined = made(&[1, 2, 5]);
        joined.join(&made(&[1, 2, 4, 9]));
        let times: Vec<u64> = joined.entries().map(|entry| entry.when).collect();
        assert_eq!(times, [1, 2, 4, 5, 9]);
        let before = joined.clone();
        joined.join(&before);
        assert_eq!(joined, before);
    }

    #[test]
    fn a_name_that_is_struck_is_nowhere() {
        let mut journal = Journal::default();
        journal.enter(entry(1, Verb::Learn, 3));
        journal.enter(Entry { into: Some("1".to_owned()), ..entry(2, Verb::Relabel, 3) });
        journal.strike("1");
        assert!(!serde_json::to_string(&journal).unwrap().contains("\"1\""));
        assert!(journal.entries().all(|entry| entry.more == 1 && entry.classes == ["0", "2"]));
    }
}
