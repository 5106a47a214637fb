//! Table 1, Table 2 and the table of forgetting: ours beside the paper's.

use ivoro::head::{LETTERS, Views};
use ivoro::record::Kind;
use maud::{Markup, html};

use super::{missing_line, name};
use crate::group::{Entry, Group, Row, Spread, by_data_set};
use crate::paper::{Measure, Paper, paper, same_name};

/// What the columns of a table are.
type Columns<'g, 'a> = [&'g Group<'a>];

pub(super) fn tables(groups: &[Group<'_>]) -> Markup {
    let sets = by_data_set(groups);
    html! {
        p {
            "Under each number of ours stands the paper's, where it has one, with the difference "
            "ours minus paper. The best of ours in each column is marked. "
            "Methods that keep samples are set apart: they play another game. "
            "All numbers of ours, with the paper's beside them, are also in "
            a href="tables.csv" { "tables.csv" } "."
        }
        @if groups.is_empty() { (missing_line("tables", "ivoro run --out runs/first")) }
        @for set in &sets {
            h3 { (name(&set[0].data_set)) }
            @if !set[0].named {
                p.missing {
                    "These records do not say which data set this is, so nothing of the paper stands "
                    "beside them. Run with " code { "--data-set NAME" } " to say it."
                }
            }
            (comparison(set))
            (ablation(set))
            (forgetting(set))
        }
    }
}

/// One cell: ours, and the paper's with the difference.
struct Cell {
    /// The value, and the runs it is of.
    ours: Option<(Spread, Vec<String>)>,
    paper: Option<f64>,
    best: bool,
}

impl Cell {
    fn show(&self) -> Markup {
        html! {
            td.best[self.best] {
                @match &self.ours {
                    Some((spread, runs)) => {
                        a href={"#" (runs.first().map_or("", String::as_str))} { (ours(*spread)) }
                        @for (at, run) in runs.iter().enumerate().skip(1) {
                            " " a.run href={"#" (run)} title={"run " (at + 1) " of " (runs.len())} { (letter(at)) }
                        }
                        @if self.best { span title="best of ours in this column" { " ●" } }
                    }
                    None => "–",
                }
                @if let Some(paper) = self.paper {
                    small {
                        "paper " (format!("{paper:.2}"))
                        @if let Some((spread, _)) = &self.ours { " (" (difference(spread.mean, paper)) ")" }
                    }
                }
            }
        }
    }
}

/// A letter for each further run: a number behind a number would be read as a part of it.
fn letter(at: usize) -> char {
    u8::try_from(at).ok().filter(|at| *at < 26).map_or('+', |at| char::from(b'a' + at))
}

fn ours(spread: Spread) -> String {
    match spread.count {
        1 => format!("{:.2}", spread.mean),
        _ => format!("{:.2} ± {:.2}", spread.mean, spread.deviation),
    }
}

/// The difference of two numbers as they are printed, so that a reader finds the same.
pub(super) fn difference(ours: f64, paper: f64) -> String {
    let difference = (ours * 100.0).round() / 100.0 - paper;
    let sign = if difference < 0.0 { '−' } else { '+' };
    format!("{sign}{:.2}", difference.abs())
}

/// The numbers of a table are these two, or forgetting.
#[derive(Clone, Copy)]
enum Shows {
    Accuracy,
    Forgetting,
}

impl Shows {
    fn measures(self) -> &'static [(Measure, &'static str)] {
        match self {
            Self::Accuracy => &[(Measure::Average, "average"), (Measure::Last, "last")],
            Self::Forgetting => &[(Measure::Forgetting, "forgetting")],
        }
    }
}

fn value(row: &Row<'_>, measure: Measure) -> Option<Spread> {
    match measure {
        Measure::Average => row.average(),
        Measure::Last => row.last(),
        Measure::Forgetting => row.forgetting(),
    }
}

/// A row of a table: a method of ours, of the paper, or of both.
struct Line<'g, 'a> {
    title: Markup,
    letters: Option<Markup>,
    paper_name: String,
    /// Our row in each column.
    rows: Vec<Option<&'g Row<'a>>>,
    /// Whether it takes part in the choice of the best.
    counts: bool,
}

impl<'g, 'a> Line<'g, 'a> {
    fn of(columns: &Columns<'g, 'a>, label: &str, paper_name: &str, counts: bool) -> Self {
        let rows = columns.iter().map(|group| {
            group
                .rows
                .iter()
                .find(|row| row.label == label)
                .or_else(|| group.rows.iter().find(|row| same_name(&row.label, label)))
        });
        let rows: Vec<Option<&'g Row<'a>>> = rows.collect();
        let honest = rows.iter().flatten().all(|row| row.is_honest());
        Self {
            title: name(label),
            letters: None,
            paper_name: paper_name.to_owned(),
            rows,
            counts: counts && honest,
        }
    }

    fn cells(&self, columns: &Columns<'_, '_>, shows: Shows) -> Vec<Cell> {
        let columns = columns.iter().zip(&self.rows);
        let cells = columns.flat_map(|(group, row)| {
            shows.measures().iter().map(move |&(measure, _)| Cell {
                ours: row.and_then(|row| {
                    let runs = row.entries.iter().map(Entry::anchor).collect();
                    Some((value(row, measure)?, runs))
                }),
                paper: group.of_paper(&self.paper_name, measure),
                best: false,
            })
        });
        cells.collect()
    }
}

/// Lines under a heading of their own.
struct Part<'g, 'a> {
    title: &'static str,
    lines: Vec<Line<'g, 'a>>,
}

fn comparison(columns: &Columns<'_, '_>) -> Markup {
    let best = Line {
        title: html! { "iVoro, best variant" },
        letters: None,
        paper_name: "iVoro (best)".to_owned(),
        rows: columns.iter().map(|group| group.best_variant()).collect(),
        counts: true,
    };
    let chosen: Vec<String> =
        best.rows.iter().map(|row| row.map_or("–".to_owned(), |row| row.label.clone())).collect();
    let mut own = vec![best];
    if columns.iter().any(|group| group.row("iVoro").is_some()) {
        own.insert(0, Line::of(columns, "iVoro", "iVoro", true));
    }
    let parts = [
        Part { title: "Keep samples", lines: others(columns, false, Shows::Accuracy) },
        Part { title: "Keep no sample", lines: others(columns, true, Shows::Accuracy) },
        Part { title: "iVoro", lines: own },
    ];
    html! {
        (table(columns, Shows::Accuracy, &parts, &format!("Table 1{}. Average accuracy over the phases and accuracy after the last phase, %.", source(columns, &paper().comparison.label))))
        p {
            "The best variant is the one with the best average on the test samples, as in the paper: "
            @for (at, (group, label)) in columns.iter().zip(&chosen).enumerate() {
                @if at > 0 { ", " } (name(label)) " on " (name(&group.protocol))
            }
            ". So its number is a little too good as a forecast; Table 2 has all variants."
        }
    }
}

/// Methods that are not ours, of the records and of the paper.
fn others<'g, 'a>(columns: &Columns<'g, 'a>, free: bool, shows: Shows) -> Vec<Line<'g, 'a>> {
    let mut names: Vec<String> = Vec::new();
    let mut add = |label: &str| {
        if !names.iter().any(|known| same_name(known, label)) {
            names.push(label.to_owned());
        }
    };
    for row in columns.iter().flat_map(|group| &group.rows) {
        if row.kind != Kind::Variant && row.exemplar_free == free {
            add(&row.label);
        }
    }
    let printed: Vec<(&str, bool)> = match shows {
        Shows::Accuracy => {
            paper().comparison.row.iter().map(|r| (r.method.as_str(), r.exemplars)).collect()
        }
        Shows::Forgetting => {
            paper().forgetting.row.iter().map(|r| (r.method.as_str(), r.exemplars)).collect()
        }
    };
    for (method, exemplars) in printed {
        if exemplars != free && !method.starts_with("iVoro") && has_columns(paper(), columns) {
            add(method);
        }
    }
    names.iter().map(|label| Line::of(columns, label, label, free)).collect()
}

/// Where the paper has numbers of this data set: its table, or the sections that name some.
fn source(columns: &Columns<'_, '_>, table: &str) -> String {
    let mut labels: Vec<&str> = Vec::new();
    if has_columns(paper(), columns) {
        labels.push(table);
    } else {
        let named = columns.iter().filter(|group| group.named);
        for group in named {
            let remarks = paper().remark.iter();
            labels.extend(remarks.filter_map(|remark| {
                let here = same_name(&remark.data_set, &group.data_set);
                (here && remark.protocol == group.protocol).then_some(remark.label.as_str())
            }));
        }
        labels.dedup();
    }
    if labels.is_empty() { String::new() } else { format!(" (paper: {})", labels.join(", ")) }
}

/// Whether the paper has one of these columns.
fn has_columns(paper: &Paper, columns: &Columns<'_, '_>) -> bool {
    columns.iter().any(|group| {
        group.named
            && paper.protocol.iter().any(|column| {
                same_name(&column.data_set, &group.data_set) && column.name == group.protocol
            })
    })
}

/// The variants of all columns, each label once.
fn variants<'g, 'a>(columns: &Columns<'g, 'a>) -> Vec<&'g Row<'a>> {
    let mut found: Vec<&'g Row<'a>> = Vec::new();
    for row in columns.iter().flat_map(|group| &group.rows) {
        if row.kind == Kind::Variant && found.iter().all(|other| other.label != row.label) {
            found.push(row);
        }
    }
    found
}

fn ablation(columns: &Columns<'_, '_>) -> Markup {
    let rows = variants(columns);
    if rows.is_empty() {
        return missing_line("variants", "ivoro run FEATURES --variants paper --out runs/NAME");
    }
    let lines = rows.into_iter().map(|row| Line {
        letters: Some(letters(row)),
        ..Line::of(columns, &row.label, &row.label, true)
    });
    let part = Part { title: "", lines: lines.collect() };
    table(
        columns,
        Shows::Accuracy,
        &[part],
        &format!(
            "Table 2{}. All variants; ■ marks the letters that are on. 3: third block alone.",
            source(columns, &paper().ablation.label)
        ),
    )
}

/// Which of [`LETTERS`] are on.
fn letters(row: &Row<'_>) -> Markup {
    let on = row.variant.map(|v| {
        [
            v.third,
            v.normalise,
            v.flip,
            v.lift,
            v.whiten,
            v.own,
            v.divide,
            v.residual,
            v.views == Views::Consensus,
            v.views == Views::Integration,
            v.layered,
        ]
    });
    html! {
        @for (at, (letter, _)) in LETTERS.iter().enumerate() {
            td.mid {
                @match on {
                    Some(on) if on[at] => span title=(letter) { "■" },
                    Some(_) => span.off { "·" },
                    None => span.off { "?" },
                }
            }
        }
    }
}

fn forgetting(columns: &Columns<'_, '_>) -> Markup {
    let own = variants(columns);
    let parts = [
        Part { title: "Keep samples", lines: others(columns, false, Shows::Forgetting) },
        Part { title: "Keep no sample", lines: others(columns, true, Shows::Forgetting) },
        Part {
            title: "iVoro",
            lines: own
                .into_iter()
                .map(|row| Line::of(columns, &row.label, &row.label, true))
                .collect(),
        },
    ];
    table(
        columns,
        Shows::Forgetting,
        &parts,
        &format!(
            "Average forgetting after the last phase{}, points; less is better.",
            source(columns, &paper().forgetting.label)
        ),
    )
}

fn table(columns: &Columns<'_, '_>, shows: Shows, parts: &[Part<'_, '_>], caption: &str) -> Markup {
    let measures = shows.measures();
    let lettered = parts.iter().flat_map(|part| &part.lines).any(|line| line.letters.is_some());
    let width = 1 + columns.len() * measures.len() + if lettered { LETTERS.len() } else { 0 };
    let mut cells: Vec<Vec<Vec<Cell>>> = parts
        .iter()
        .map(|part| part.lines.iter().map(|line| line.cells(columns, shows)).collect())
        .collect();
    mark_best(&mut cells, parts, shows);
    html! {
        div.wide tabindex="0" { table {
            caption { (caption) }
            thead {
                tr {
                    th rowspan="2" { "Method" }
                    @if lettered { @for (letter, _) in LETTERS { th.mid rowspan="2" { (letter) } } }
                    @for group in columns {
                        th.mid colspan=(measures.len()) { (name(&group.protocol)) }
                    }
                }
                tr { @for _ in columns { @for (_, word) in measures { th { (word) } } } }
            }
            tbody { @for (part, cells) in parts.iter().zip(&cells) {
                @if !part.title.is_empty() && !part.lines.is_empty() {
                    tr.part { th colspan=(width) { (part.title) } }
                }
                @for (line, cells) in part.lines.iter().zip(cells) {
                    tr {
                        th scope="row" { (line.title) }
                        @if let Some(letters) = &line.letters { (letters) }
                        @for cell in cells { (cell.show()) }
                    }
                }
            } }
        } }
    }
}

/// Marks the best of ours in each column, among lines that count.
fn mark_best(cells: &mut [Vec<Vec<Cell>>], parts: &[Part<'_, '_>], shows: Shows) {
    let columns = cells.iter().flatten().map(Vec::len).max().unwrap_or(0);
    let sign = match shows {
        Shows::Accuracy => 1.0,
        Shows::Forgetting => -1.0,
    };
    for column in 0..columns {
        let score = |cell: &Cell| cell.ours.as_ref().map(|(spread, _)| sign * spread.mean);
        let mut best: Option<f64> = None;
        for (part, rows) in parts.iter().zip(cells.iter()) {
            for (_, row) in part.lines.iter().zip(rows).filter(|(line, _)| line.counts) {
                best = row.get(column).and_then(score).into_iter().chain(best).reduce(f64::max);
            }
        }
        for (part, rows) in parts.iter().zip(cells.iter_mut()) {
            for (line, row) in part.lines.iter().zip(rows) {
                let Some(cell) = row.get_mut(column).filter(|_| line.counts) else { continue };
                cell.best = best.is_some() && score(cell) == best;
            }
        }
    }
}
