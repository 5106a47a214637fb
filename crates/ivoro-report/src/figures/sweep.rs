//! One thing changed at a time: λ, the number of base classes, the layers.

use std::collections::BTreeSet;

use ivoro::Variant;
use ivoro_eval::curves::five_numbers;
use ivoro_eval::record::Kind;

use crate::figures::Shown;
use crate::group::{Entry, Group, Row};
use crate::plot::boxes::{self, Whiskers};
use crate::plot::frame::Axis;
use crate::plot::lines::{self, MOST_LINES, Series};
use crate::plot::palette;
use crate::plot::scale::Scale;
use crate::plot::scatter::{self, Dot};
use crate::plot::text::joined;

/// Boxes of the accuracies of all phases, for each λ and without N.
pub(crate) fn lambda(group: &Group<'_>) -> Option<Shown> {
    if group.sweep.len() < 2 {
        return None;
    }
    let accuracies = |entries: &[Entry<'_>]| -> Vec<f64> {
        let phases = entries.iter().flat_map(|entry| &entry.method.phases);
        phases.map(|phase| phase.accuracy).filter(|value| value.is_finite()).collect()
    };
    let mut columns: Vec<(String, Vec<f64>)> = Vec::new();
    if let Some(row) = group.row("iVoro") {
        // of the networks that λ was changed for, where the folders tell
        let places: Vec<_> =
            group.sweep.values().flat_map(|row| &row.entries).map(Entry::place).collect();
        let entries = row.entries.iter().copied();
        let same: Vec<Entry<'_>> = entries.filter(|e| places.contains(&e.place())).collect();
        let entries = if same.is_empty() { &row.entries } else { &same };
        columns.push(("no N".to_owned(), accuracies(entries)));
    }
    for (lambda, row) in &group.sweep {
        columns.push((format!("{}", f64::from(*lambda) / 1e3), accuracies(&row.entries)));
    }
    let values: Vec<f64> = columns.iter().flat_map(|(_, values)| values.clone()).collect();
    let boxes = columns.iter().enumerate().map(|(at, (_, values))| {
        let colour = palette::area(usize::from(at > 0 || group.row("iVoro").is_none()));
        Some(Whiskers { five: five_numbers(values)?, colour: colour.to_owned() })
    });
    let counts: BTreeSet<usize> = columns.iter().map(|(_, values)| values.len()).collect();
    let counts: Vec<String> = counts.iter().map(ToString::to_string).collect();
    let title = format!("{}: accuracy of iVoro-N by λ", group.title());
    let figure = boxes::Chart {
        name: &format!("lambda-{}", group.title()),
        title: &title,
        y: Axis::new(
            format!("accuracy, % (n = {} test images at the end)", group.tested()),
            Scale::within(values, 0.0, 100.0),
        ),
        boxes: boxes.collect(),
        x: Axis::new(
            format!("λ (no N: iVoro); n = {} phases in a box", counts.join(" or ")),
            Scale::places(columns.into_iter().map(|(name, _)| name).collect()),
        ),
        ramp: None,
    };
    let caption = "Accuracy after each phase: median, quartiles, 5 and 95 %. Phases differ in \
                   difficulty, so a box is wide because of them; compare the medians.";
    let several = match counts.len() {
        1 => "",
        _ => " A box of more phases has them of several networks.",
    };
    Some(Shown::new(figure.draw(), format!("{caption}{several}")))
}

/// Last accuracy against the number of base classes, where phases are of one size.
pub(crate) fn base_size(groups: &[&Group<'_>]) -> Option<Shown> {
    let step = |group: &Group<'_>| group.phases.get(1).copied();
    let base = |group: &Group<'_>| group.phases.first().copied().unwrap_or(0);
    let sizes = |wanted: Option<usize>| {
        let same: Vec<&&Group<'_>> = groups.iter().filter(|group| step(group) == wanted).collect();
        let mut bases: Vec<usize> = same.iter().map(|group| base(group)).collect();
        bases.sort_unstable();
        bases.dedup();
        (bases, same)
    };
    let steps = groups.iter().map(|group| step(group));
    let (bases, same) = steps.map(sizes).max_by_key(|(bases, _)| bases.len())?;
    if bases.len() < 2 {
        return None;
    }
    let largest = same.iter().max_by_key(|group| base(group))?;
    let mut series: Vec<Series> = Vec::new();
    let peers = largest.rows.iter().filter(|row| row.kind != Kind::Variant && row.exemplar_free);
    // what is best elsewhere need not be best with the most base classes
    let best = same.iter().filter_map(|group| largest.row(&group.best_variant()?.label));
    for row in crate::figures::featured(largest).into_iter().chain(best).chain(peers) {
        let point =
            |group: &&&Group<'_>| Some((base(group) as f64, group.row(&row.label)?.last()?.mean));
        let mut points: Vec<(f64, f64)> = same.iter().filter_map(point).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let known = series.iter().any(|other| other.name.split(" = ").any(|n| n == row.label));
        if points.len() < 2 || known {
            continue;
        }
        // one line for methods that answer alike: the other would lie under it
        if let Some(other) = series.iter_mut().find(|other| other.points == points) {
            other.name = format!("{} = {}", other.name, row.label);
        } else if series.len() < MOST_LINES {
            series.push(Series::new(row.label.clone(), points));
        }
    }
    let values: Vec<f64> = series.iter().flat_map(|s| s.points.iter().map(|(_, y)| *y)).collect();
    let ticks = bases.iter().map(|&size| (size as f64, size.to_string())).collect();
    let (low, high) = (bases[0] as f64, bases[bases.len() - 1] as f64);
    let title = joined(&largest.data_set, ": last accuracy by number of base classes");
    let figure = lines::Chart {
        name: &format!("base-size-{}", largest.data_set),
        title: &title,
        x: Axis::new(
            format!("base classes (then phases of {})", step(largest).unwrap_or(0)),
            Scale::fixed(low - 0.04 * (high - low), high + 0.04 * (high - low), ticks),
        ),
        y: Axis::new(
            format!("accuracy after the last phase, % (n = {} test images)", largest.tested()),
            Scale::within(values, 0.0, 100.0),
        ),
        series,
        marks: true,
        guide: None,
    };
    let caption = "A frozen network knows only what its base classes taught it, so all lines fall \
                   to the left. Marks are what was measured: a line without one at some number \
                   passes it by. Where several seeds ran, a point is their mean.";
    Some(Shown::new(figure.draw(), caption))
}

/// The third block alone, the last layer alone and both, for the same letters.
pub(crate) fn layers(group: &Group<'_>) -> Option<Shown> {
    let plain = group
        .rows
        .iter()
        .filter(|row| row.variant.is_some_and(|v| !v.third && !v.layered) && row.label == row.name);
    let find = |variant: Variant| group.row(&variant.to_string());
    let mut names = Vec::new();
    let mut dots = Vec::new();
    for row in plain {
        let Some(variant) = row.variant else { continue };
        let three = [
            find(Variant { third: true, ..variant }),
            Some(row),
            find(Variant { layered: true, ..variant }),
        ];
        if three[0].is_none() || names.len() >= 6 {
            continue;
        }
        for (kind, row) in three.into_iter().enumerate() {
            let Some(last) = row.and_then(Row::last) else { continue };
            // beside each other, because two of them are often equal
            let aside = 0.12 * (kind as f64 - 1.0);
            dots.push(Dot { at: (names.len() as f64 + aside, last.mean), name: None, kind });
        }
        names.push(variant.to_string().replace("iVoro-", ""));
    }
    if dots.len() < 2 {
        return None;
    }
    let title = format!("{}: third block, last layer and both", group.title());
    let figure = scatter::Chart {
        name: &format!("layers-{}", group.title()),
        title: &title,
        x: Axis::new("letters of the variant", Scale::places(names)),
        y: Axis::new(
            format!("accuracy after the last phase, % (n = {} test images)", group.tested()),
            Scale::within(dots.iter().map(|dot| dot.at.1), 0.0, 100.0),
        ),
        dots,
        kinds: vec![
            ("third block".to_owned(), palette::line(1)),
            ("last layer".to_owned(), palette::line(0)),
            ("both (L)".to_owned(), palette::line(2)),
        ],
        lines: Vec::new(),
    };
    let caption = "The same letters with the features of one layer or of both; a mark is missing \
                   where no run has that variant.";
    Some(Shown::new(figure.draw(), caption))
}
