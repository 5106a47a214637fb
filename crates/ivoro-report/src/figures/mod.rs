//! The figures of a report. Each module turns groups of records into figures; where the records
//! lack what a figure shows, the page says so instead.

pub(crate) mod bursts;
pub(crate) mod confusion;
pub(crate) mod cost;
pub(crate) mod embedding;
pub(crate) mod phases;
pub(crate) mod scene;
pub(crate) mod schematic;
pub(crate) mod sweep;
pub(crate) mod trust;
pub(crate) mod uncertainty;

use std::collections::HashSet;

use crate::group::{Group, Row, best};
use crate::plot::canvas::Figure;
use ivoro_eval::record::Kind;

/// A figure and the sentence below it.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub(crate) figure: Figure,
    pub(crate) caption: String,
}

impl Shown {
    pub(crate) fn new(figure: Figure, caption: impl Into<String>) -> Self {
        Self { figure, caption: caption.into() }
    }
}

/// A few methods that stand for all where a figure has room for few: the plain diagram, the
/// paper's fullest, the best variant, the best that keeps no samples, and PASS.
pub(crate) fn featured<'g, 'a>(group: &'g Group<'a>) -> Vec<&'g Row<'a>> {
    let others = group.rows.iter().filter(|row| row.kind != Kind::Variant && row.exemplar_free);
    let wanted = [
        group.row("iVoro"),
        group.row("iVoro-N"),
        group.row("iVoro-NDAIL"),
        group.best_variant(),
        best(others),
        group.pass(),
    ];
    let mut seen = HashSet::new();
    wanted.into_iter().flatten().filter(|row| seen.insert(row.label.clone())).collect()
}

/// For a caption: what the mark behind some of these names means, where one has it.
pub(crate) fn outdated(rows: &[&Row<'_>]) -> &'static str {
    let any = rows.iter().any(|row| row.is_outdated());
    if any { " †: of an earlier revision of that method." } else { "" }
}

/// Phases that are drawn, of those that there are.
pub(crate) const MOST_PHASES: usize = 6;

/// For a caption: how many phases are drawn, where that is not all.
pub(crate) fn some_phases(drawn: usize, all: usize) -> String {
    if drawn < all { format!(" {drawn} of {all} phases are drawn.") } else { String::new() }
}

/// So many of a list, evenly chosen, the first and the last among them.
pub(crate) fn evenly(count: usize, most: usize) -> Vec<usize> {
    if count <= most {
        return (0..count).collect();
    }
    (0..most).map(|at| at * (count - 1) / (most - 1).max(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::evenly;

    #[test]
    fn the_ends_are_always_chosen() {
        assert_eq!(evenly(3, 6), [0, 1, 2]);
        assert_eq!(evenly(21, 5), [0, 5, 10, 15, 20]);
        assert_eq!(evenly(0, 5), [0usize; 0]);
    }
}
