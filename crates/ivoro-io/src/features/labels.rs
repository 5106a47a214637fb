//! Labels as files hold them, and the class list that train and test share.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::Origin;
use ivoro::{Error, Result};

/// More classes than any label array may speak of.
pub(super) const MAX_CLASSES: usize = 1 << 24;

/// A longer class name is no name; files may point many rows at one long text.
const LONGEST_NAME: usize = 4096;

/// One label a row: integers, or strings kept once each.
#[derive(Debug)]
pub(super) enum Labels {
    Ids(Vec<u32>),
    Names { rows: Vec<u32>, names: Vec<String> },
}

impl Labels {
    pub(super) fn rows(&self) -> &[u32] {
        match self {
            Self::Ids(rows) | Self::Names { rows, .. } => rows,
        }
    }

    /// What a value in [`Labels::rows`] is called; `listed` are the names the file gives.
    fn name(&self, value: u32, listed: Option<&[String]>) -> Option<String> {
        match (self, listed) {
            (Self::Names { names, .. }, _) => names.get(value as usize).cloned(),
            (Self::Ids(_), Some(listed)) => listed.get(value as usize).cloned(),
            (Self::Ids(_), None) => Some(value.to_string()),
        }
    }

    /// The values that occur, each with its first row. A map, because a single forged label
    /// must not size a table.
    fn first_rows(&self) -> BTreeMap<u32, usize> {
        let mut first = BTreeMap::new();
        for (row, &value) in self.rows().iter().enumerate() {
            first.entry(value).or_insert(row);
        }
        first
    }
}

/// Collects string labels, keeping each name once.
#[derive(Debug, Default)]
pub(super) struct Interner {
    rows: Vec<u32>,
    names: Vec<String>,
    known: HashMap<String, u32>,
}

impl Interner {
    pub(super) fn push(&mut self, name: &str) -> Result<(), String> {
        let id = match self.known.get(name) {
            Some(&id) => id,
            None => self.introduce(name)?,
        };
        self.rows.push(id);
        Ok(())
    }

    fn introduce(&mut self, name: &str) -> Result<u32, String> {
        if name.is_empty() || name.len() > LONGEST_NAME {
            let length = name.len();
            return Err(format!("a class name of {length} bytes, expected 1 to {LONGEST_NAME}"));
        }
        let id = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.known.insert(name.to_owned(), id);
        Ok(id)
    }

    pub(super) fn finish(self) -> Labels {
        Labels::Names { rows: self.rows, names: self.names }
    }
}

/// The classes that have a sample, in the order labels count them.
#[derive(Debug)]
pub(super) struct Roster {
    pub(super) classes: Arc<[String]>,
    /// The first class the file speaks of that has no sample.
    pub(super) gap: Option<String>,
    index: HashMap<String, u32>,
}

impl Roster {
    /// The classes of `labels`: by id for integers, in the order of `listed` where the file names
    /// its classes, and sorted otherwise.
    pub(super) fn new(
        origin: Origin<'_>,
        labels: &Labels,
        listed: Option<&[String]>,
    ) -> Result<Self> {
        let mut present = named(origin, labels, listed)?;
        if matches!(labels, Labels::Names { .. }) {
            match listed {
                Some(listed) => sort_as_listed(origin, &mut present, listed)?,
                None => present.sort(),
            }
        }
        let classes: Arc<[String]> = present.into_iter().map(|(name, _)| name).collect();
        let index: HashMap<_, _> = classes.iter().cloned().zip(0..).collect();
        if index.len() > MAX_CLASSES {
            let what = format!("{} classes, at most {MAX_CLASSES} are read", index.len());
            return Err(origin.malformed(&what));
        }
        let gap = match (listed, labels) {
            (Some(listed), _) => listed.iter().find(|name| !index.contains_key(*name)).cloned(),
            (None, Labels::Ids(_)) => first_gap(labels),
            (None, Labels::Names { .. }) => None,
        };
        Ok(Self { classes, gap, index })
    }

    /// `labels` as indices of [`Roster::classes`].
    pub(super) fn translate(
        &self,
        origin: Origin<'_>,
        labels: &Labels,
        listed: Option<&[String]>,
    ) -> Result<Vec<u32>> {
        let mut table = HashMap::new();
        for (name, row) in named(origin, labels, listed)? {
            let Some(&class) = self.index.get(&name) else {
                let what = format!("row {row}: class {name} has no train sample");
                return Err(origin.malformed(&what));
            };
            table.insert(labels.rows()[row], class);
        }
        Ok(labels.rows().iter().map(|value| table[value]).collect())
    }
}

/// The smallest id below the largest that no row has.
fn first_gap(labels: &Labels) -> Option<String> {
    let present = labels.first_rows();
    present.keys().zip(0..).find(|&(&id, place)| id != place).map(|(_, place)| place.to_string())
}

/// The name and first row of every value that occurs, in ascending order of the value.
fn named(
    origin: Origin<'_>,
    labels: &Labels,
    listed: Option<&[String]>,
) -> Result<Vec<(String, usize)>> {
    let name = |(value, row)| match labels.name(value, listed) {
        Some(name) => Ok((name, row)),
        None => Err(Error::LabelRange {
            origin: origin.to_string(),
            row,
            label: i64::from(value),
            classes: listed.map_or(0, <[String]>::len),
        }),
    };
    labels.first_rows().into_iter().map(name).collect()
}

fn sort_as_listed(
    origin: Origin<'_>,
    present: &mut [(String, usize)],
    listed: &[String],
) -> Result<()> {
    let place: HashMap<&str, usize> = listed.iter().map(String::as_str).zip(0..).collect();
    if let Some((name, row)) = present.iter().find(|(name, _)| !place.contains_key(name.as_str())) {
        let what = format!("row {row}: class {name} is not among the classes the file lists");
        return Err(origin.malformed(&what));
    }
    present.sort_by_key(|(name, _)| place.get(name.as_str()).copied());
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn file() -> Origin<'static> {
        Origin { path: Path::new("f"), part: "" }
    }

    fn names(values: &[&str]) -> Labels {
        let mut interner = Interner::default();
        for value in values {
            interner.push(value).unwrap();
        }
        interner.finish()
    }

    fn listed(values: &[&str]) -> Vec<String> {
        values.iter().map(|&value| value.to_owned()).collect()
    }

    #[test]
    fn integers_keep_their_ids() {
        let labels = Labels::Ids(vec![2, 0, 1, 2]);
        let roster = Roster::new(file(), &labels, None).unwrap();
        assert_eq!(*roster.classes, ["0", "1", "2"]);
        assert_eq!(roster.gap, None);
        assert_eq!(roster.translate(file(), &labels, None).unwrap(), [2, 0, 1, 2]);
    }

    #[test]
    fn a_gap_is_recorded_and_closed() {
        let labels = Labels::Ids(vec![7, 9, 7]);
        let roster = Roster::new(file(), &labels, None).unwrap();
        assert_eq!(*roster.classes, ["7", "9"]);
        assert_eq!(roster.gap.as_deref(), Some("0"));
        assert_eq!(roster.translate(file(), &labels, None).unwrap(), [0, 1, 0]);
    }

    #[test]
    fn one_huge_label_costs_no_list_of_names() {
        let labels = Labels::Ids(vec![MAX_CLASSES as u32 - 1]);
        assert_eq!(Roster::new(file(), &labels, None).unwrap().classes.len(), 1);
    }

    #[test]
    fn strings_sort_by_name_or_by_the_list() {
        let labels = names(&["owl", "ant", "owl", "bee"]);
        let roster = Roster::new(file(), &labels, None).unwrap();
        assert_eq!(*roster.classes, ["ant", "bee", "owl"]);
        assert_eq!(roster.translate(file(), &labels, None).unwrap(), [2, 0, 2, 1]);
        let list = listed(&["owl", "bee", "ant"]);
        let roster = Roster::new(file(), &labels, Some(&list)).unwrap();
        assert_eq!(roster.translate(file(), &labels, Some(&list)).unwrap(), [0, 2, 0, 1]);
    }

    #[test]
    fn a_test_class_unknown_in_train_is_named() {
        let roster = Roster::new(file(), &names(&["ant", "bee"]), None).unwrap();
        let error = roster
            .translate(Origin { part: "test", ..file() }, &names(&["ant", "cat"]), None)
            .unwrap_err();
        assert_eq!(error.to_string(), "f: test: row 1: class cat has no train sample");
    }

    #[test]
    fn a_label_behind_the_listed_names_is_refused() {
        let list = listed(&["ant", "bee"]);
        let error = Roster::new(file(), &Labels::Ids(vec![0, 2]), Some(&list)).unwrap_err();
        assert_eq!(error.to_string(), "f: row 1: label 2 is outside 0..2");
    }
}
