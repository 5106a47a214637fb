//! Accuracy and forgetting from phase to phase.

use ivoro::head::Views;
use ivoro_eval::metrics::forgetting_pass;
use ivoro_eval::record::Kind;

use crate::figures::{Shown, outdated};
use crate::group::{Entry, Group, Row};
use crate::plot::frame::Axis;
use crate::plot::lines::{Chart, MOST_LINES, Series};
use crate::plot::scale::Scale;

/// Stands behind the name of a method that keeps samples.
const KEEPS: &str = " *";

/// What is drawn over the phases.
#[derive(Clone, Copy)]
enum Drawn {
    Accuracy,
    Forgetting,
}

impl Drawn {
    fn of(self, entry: &Entry<'_>, phase: usize) -> Option<f64> {
        let phases = &entry.method.phases;
        match self {
            Self::Accuracy => phases.get(phase).map(|outcome| outcome.accuracy),
            Self::Forgetting => {
                let matrix: Vec<Vec<f64>> =
                    phases.iter().take(phase + 1).map(|p| p.accuracy_by_phase.clone()).collect();
                let whole = matrix.len() == phase + 1
                    && matrix.iter().enumerate().all(|(at, row)| row.len() == at + 1);
                whole.then(|| forgetting_pass(&matrix, phase))
            }
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Accuracy => "accuracy",
            Self::Forgetting => "forgetting",
        }
    }
}

/// Rows that belong in one panel.
struct Panel<'g, 'a> {
    title: String,
    rows: Vec<&'g Row<'a>>,
    /// Into how many panels rows of that kind are divided.
    parts: usize,
}

/// Accuracy of all methods, panel by panel.
pub(crate) fn accuracy(group: &Group<'_>) -> Vec<Shown> {
    draw(group, Drawn::Accuracy)
}

/// Accuracy of these methods in one panel.
pub(crate) fn overview<'g, 'a>(group: &'g Group<'a>, rows: Vec<&'g Row<'a>>) -> Option<Shown> {
    let panel = Panel { title: "a few methods".to_owned(), rows, parts: 1 };
    (group.phases.len() > 1).then(|| one(group, &panel, Drawn::Accuracy))
}

/// Average forgetting of all methods, panel by panel.
pub(crate) fn forgetting(group: &Group<'_>) -> Vec<Shown> {
    draw(group, Drawn::Forgetting)
}

fn draw(group: &Group<'_>, drawn: Drawn) -> Vec<Shown> {
    if group.phases.len() < 2 {
        return Vec::new();
    }
    let panels: Vec<Panel<'_, '_>> =
        panels(group).into_iter().filter(|panel| !panel.rows.is_empty()).collect();
    panels.iter().map(|panel| one(group, panel, drawn)).collect()
}

fn one(group: &Group<'_>, panel: &Panel<'_, '_>, drawn: Drawn) -> Shown {
    let known: Vec<f64> = group
        .phases
        .iter()
        .scan(0, |sum, size| {
            *sum += size;
            Some(*sum as f64)
        })
        .collect();
    let line = |row: &Row<'_>| {
        let values = row.curve(|entry, phase| drawn.of(entry, phase));
        let kept = if row.exemplar_free { "" } else { KEEPS };
        Series::new(format!("{}{kept}", row.marked()), known.iter().copied().zip(values).collect())
    };
    let mut series: Vec<Series> = panel.rows.iter().map(|row| line(row)).collect();
    let reference = group.row("iVoro").filter(|_| panel.rows.iter().all(|r| r.name != "iVoro"));
    series.extend(reference.map(|row| line(row).reference()));
    let points = series.iter().flat_map(|line| &line.points);
    let values: Vec<f64> = points.map(|(_, value)| *value).collect();
    let tested = group.tested();
    let title = format!("{}: {} of {}", group.title(), drawn.word(), panel.title);
    let unit = match drawn {
        Drawn::Accuracy => format!("accuracy, % (n = {tested} test images at the end)"),
        Drawn::Forgetting => {
            format!("average forgetting, points (n = {tested} test images at the end)")
        }
    };
    let figure = Chart {
        name: &format!("{}-{}", drawn.word(), title),
        title: &title,
        x: Axis::new("classes known", ends(&known)),
        y: Axis::new(unit, Scale::within(values, -100.0, 100.0)),
        series,
        marks: true,
        guide: None,
    };
    let runs = || panel.rows.iter().map(|row| row.entries.len());
    let over = match (runs().min(), runs().max()) {
        (Some(few), Some(many)) if few < many => format!(" Means over {few} to {many} runs."),
        (_, Some(many)) if many > 1 => format!(" Means over {many} runs."),
        _ => String::new(),
    };
    let what = match drawn {
        Drawn::Accuracy => "Accuracy on all classes known after each phase.",
        Drawn::Forgetting => "Average forgetting after each phase, as PASS defines it.",
    };
    let kept = panel.rows.iter().any(|row| !row.exemplar_free);
    let kept = if kept { " An asterisk: keeps samples of earlier phases." } else { "" };
    let scale = if panel.parts > 1 { " Each part has a scale of its own." } else { "" };
    let outdated = outdated(&panel.rows);
    Shown::new(figure.draw(), format!("{what}{over}{kept}{outdated}{scale}"))
}

/// An axis from the first to the last phase, with a tick at each.
fn ends(known: &[f64]) -> Scale {
    let (low, high) = (known.first().copied().unwrap_or(0.0), known.last().copied().unwrap_or(1.0));
    let room = 0.03 * (high - low).max(1.0);
    let ticks = known.iter().map(|&classes| (classes, format!("{classes:.0}"))).collect();
    Scale::fixed(low - room, high + room, ticks)
}

/// Methods first, then variants by family; no panel has more lines than names have room.
fn panels<'g, 'a>(group: &'g Group<'a>) -> Vec<Panel<'g, 'a>> {
    let others = |free: bool| {
        group.rows.iter().filter(move |row| row.kind != Kind::Variant && row.exemplar_free == free)
    };
    // the best variant and PASS are in every part: they are what is compared with
    let firsts: Vec<&Row<'a>> = group.best_variant().into_iter().chain(group.pass()).collect();
    let rest = |free: bool| -> Vec<&'g Row<'a>> {
        others(free).filter(|row| firsts.iter().all(|first| first.label != row.label)).collect()
    };
    let mut panels = Vec::new();
    for (free, title) in [
        (true, "methods that keep no sample"),
        (false, "methods that keep samples, and others to compare with"),
    ] {
        if others(free).next().is_some() {
            panels.extend(chunked(title, &firsts, &rest(free)));
        }
    }
    for (title, rows) in families(group) {
        panels.extend(chunked(title, &[], &rows));
    }
    panels
}

/// Rows in as many panels as they need, `firsts` in each.
fn chunked<'g, 'a>(
    title: &str,
    firsts: &[&'g Row<'a>],
    rows: &[&'g Row<'a>],
) -> Vec<Panel<'g, 'a>> {
    let all: Vec<&Row<'a>> = firsts.iter().chain(rows).copied().collect();
    if all.len() < MOST_LINES {
        return vec![Panel { title: title.to_owned(), rows: all, parts: 1 }];
    }
    let parts = rows.len().div_ceil(MOST_LINES - 1 - firsts.len());
    let size = rows.len().div_ceil(parts).max(1);
    let panel = |(at, part): (usize, &[&'g Row<'a>])| Panel {
        title: format!("{title}, part {} of {parts}", at + 1),
        rows: firsts.iter().chain(part).copied().collect(),
        parts,
    };
    rows.chunks(size).enumerate().map(panel).collect()
}

/// Variants that differ in little are compared in one panel.
fn families<'g, 'a>(group: &'g Group<'a>) -> Vec<(&'static str, Vec<&'g Row<'a>>)> {
    let mut families: Vec<(&'static str, Vec<&'g Row<'a>>)> = [
        "variants without rotations",
        "variants with AC",
        "variants with AI",
        "variants with the third block",
        "variants with W or Q",
        "other variants",
    ]
    .into_iter()
    .map(|title| (title, Vec::new()))
    .collect();
    for row in group.rows.iter().filter(|row| row.kind == Kind::Variant) {
        let at = match row.variant {
            None => 5,
            Some(variant) if variant.is_metric() => 4,
            Some(variant) if variant.third || variant.layered => 3,
            Some(variant) if variant.views == Views::Integration => 2,
            Some(variant) if variant.views == Views::Consensus => 1,
            Some(_) => 0,
        };
        families[at].1.push(row);
    }
    families
}
