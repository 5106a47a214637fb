//! One table: lines of cells, ours with the paper's below, the best marked.

use ivoro::head::LETTERS;
use ivoro_eval::record::Kind;
use maud::{Markup, html};

use super::name;
use crate::group::{Entry, Group, OUTDATED, Row, Spread};
use crate::paper::{Measure, same_name};

/// What the columns of a table are.
pub(super) type Columns<'g, 'a> = [&'g Group<'a>];

/// One cell: ours, and the paper's with the difference.
struct Cell {
    /// The value, and the runs it is of.
    ours: Option<(Spread, Vec<String>)>,
    paper: Option<f64>,
    /// Whether a run is of the method as it was before.
    outdated: bool,
    best: bool,
}

impl Cell {
    fn show(&self) -> Markup {
        html! {
            td.best[self.best] {
                @match &self.ours {
                    Some((spread, runs)) => {
                        a href={"#" (runs.first().map_or("", String::as_str))} { (ours(*spread)) }
                        @if self.outdated { " " (OUTDATED) }
                        @for (at, run) in runs.iter().enumerate().skip(1) {
                            " " a.run href={"#" (run)} title={"run " (at + 1) " of " (runs.len())} { (letter(at)) }
                        }
                        @if self.best { span title="best in this column of those that keep no sample" { " ●" } }
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
    signed((ours * 100.0).round() / 100.0 - paper)
}

/// A difference in points, always with its sign.
pub(super) fn signed(difference: f64) -> String {
    let sign = if difference < 0.0 { '−' } else { '+' };
    format!("{sign}{:.2}", difference.abs())
}

/// The numbers of a table are these two, or forgetting.
#[derive(Clone, Copy)]
pub(super) enum Shows {
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
pub(super) struct Line<'g, 'a> {
    pub(super) title: Markup,
    pub(super) letters: Option<Markup>,
    pub(super) paper_name: String,
    /// Our row in each column.
    pub(super) rows: Vec<Option<&'g Row<'a>>>,
    /// Whether it takes part in the choice of the best.
    pub(super) counts: bool,
}

impl<'g, 'a> Line<'g, 'a> {
    pub(super) fn of(
        columns: &Columns<'g, 'a>,
        label: &str,
        paper_name: &str,
        counts: bool,
    ) -> Self {
        let rows = columns.iter().map(|group| {
            group
                .rows
                .iter()
                .find(|row| row.label == label)
                .or_else(|| group.rows.iter().find(|row| same_name(&row.label, label)))
        });
        let rows: Vec<Option<&'g Row<'a>>> = rows.collect();
        let honest = rows.iter().flatten().all(|row| row.is_honest());
        // a variant's letters are explained beside it
        let others = rows.iter().flatten().filter(|row| row.kind != Kind::Variant);
        let views = others.map(|row| row.views()).find(|&views| views > 1);
        Self {
            title: html! {
                (name(label))
                @if let Some(views) = views { " " small { (views) " views" } }
            },
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
                outdated: row.is_some_and(Row::is_outdated),
                best: false,
            })
        });
        cells.collect()
    }
}

/// Lines under a heading of their own.
pub(super) struct Part<'g, 'a> {
    pub(super) title: &'static str,
    pub(super) lines: Vec<Line<'g, 'a>>,
}

pub(super) fn table(
    columns: &Columns<'_, '_>,
    shows: Shows,
    parts: &[Part<'_, '_>],
    caption: &str,
) -> Markup {
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
            caption { span { (caption) } }
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
                    tr.part { th colspan=(width) { span { (part.title) } } }
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

/// Marks the best in each column, among lines that count.
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
