//! One image per query and four: two tasks, side by side.

use crate::figures::Shown;
use crate::group::{Group, Row};
use crate::paper::{Measure, paper};
use crate::plot::frame::Axis;
use crate::plot::palette;
use crate::plot::scale::Scale;
use crate::plot::scatter::{Chart, Dot};

/// Last accuracies of one method under both protocols.
#[derive(Clone, Debug)]
pub(crate) struct Protocols<'g, 'a> {
    pub(crate) row: &'g Row<'a>,
    pub(crate) single: f64,
    /// Images in a burst, added and voted accuracy.
    pub(crate) burst: (usize, f64, f64),
    pub(crate) paper: Option<f64>,
}

/// Every method that has both.
pub(crate) fn both<'g, 'a>(group: &'g Group<'a>) -> Vec<Protocols<'g, 'a>> {
    let of = |row: &'g Row<'a>| {
        let burst = row.first().last()?.burst?;
        let mean = |pick: fn(&ivoro_eval::record::BurstOutcome) -> f64| {
            let spread = row.spread(|entry| {
                entry.last().and_then(|last| last.burst.as_ref()).map_or(f64::NAN, pick)
            });
            spread.map(|spread| spread.mean)
        };
        Some(Protocols {
            row,
            single: row.last()?.mean,
            burst: (burst.size, mean(|burst| burst.sum)?, mean(|burst| burst.vote)?),
            paper: paper_last(group, row),
        })
    };
    group.rows.iter().filter_map(of).collect()
}

pub(crate) fn paper_last(group: &Group<'_>, row: &Row<'_>) -> Option<f64> {
    let known = group.named && row.label == row.name;
    known.then(|| paper().value(&group.data_set, &group.protocol, &row.name, Measure::Last))?
}

/// A few methods under both protocols, with the paper's figure.
pub(crate) fn side_by_side(group: &Group<'_>) -> Option<Shown> {
    const WANTED: [&str; 7] =
        ["iVoro", "iVoro-N", "iVoro-D", "iVoro-AC", "iVoro-NAC", "iVoro-AI", "iVoro-NAI"];
    let both = both(group);
    let chosen: Vec<_> = both.iter().filter(|p| WANTED.contains(&p.row.label.as_str())).collect();
    let size = chosen.first()?.burst.0;
    let queries = chosen.first()?.row.first().last()?.burst?.queries;
    let mut dots = Vec::new();
    let mut names = Vec::new();
    for (at, one) in chosen.iter().enumerate() {
        let mut dot = |value: f64, kind: usize, aside: f64| {
            dots.push(Dot { at: (at as f64 + aside, value), name: None, kind });
        };
        dot(one.single, 0, -0.12);
        dot(one.burst.2, 1, 0.0);
        dot(one.burst.1, 2, 0.12);
        if let Some(paper) = one.paper {
            dot(paper, 3, 0.24);
        }
        names.push(one.row.label.replace("iVoro-", ""));
    }
    let values: Vec<f64> = dots.iter().map(|dot| dot.at.1).collect();
    let title = format!("{}: one image per query and {size}", group.title());
    let mut kinds = vec![
        ("one image".to_owned(), palette::line(0)),
        (format!("{size} images, voted"), palette::line(1)),
        (format!("{size} images, added"), palette::line(2)),
    ];
    if chosen.iter().any(|one| one.paper.is_some()) {
        kinds.push(("paper".to_owned(), palette::line(3)));
    }
    let figure = Chart {
        name: &format!("bursts-{}", group.title()),
        title: &title,
        x: Axis::new("variant", Scale::places(names)),
        y: Axis::new(
            format!("last accuracy, % (n = {} images; {queries} bursts)", group.tested()),
            Scale::within(values, 0.0, 100.0),
        ),
        dots,
        kinds,
        lines: Vec::new(),
    };
    let beside = chosen.iter().any(|one| one.paper.is_some());
    let told = if beside { " Paper: the number in its table." } else { "" };
    let caption = format!(
        "A burst is {size} different test images of one class that are known to belong together. \
         It is an easier task and is never counted as single-image accuracy.{told}"
    );
    Some(Shown::new(figure.draw(), caption))
}
