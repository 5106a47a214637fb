//! Table 1, Table 2 and the table of forgetting: ours beside the paper's.

use ivoro::head::{LETTERS, PAPER, Views};
use ivoro_eval::record::Kind;
use maud::{Markup, html};

use super::cells::{Columns, Line, Part, Shows, table};
use super::{key, missing_line, name, nothing};
use crate::group::{Group, MOST_PROTOCOLS, OUTDATED, Row, by_data_set, first_and_further};
use crate::paper::{Measure, paper, same_name};

pub(super) fn tables(groups: &[Group<'_>]) -> Markup {
    let sets = by_data_set(groups);
    html! {
        (key::section(groups))
        p {
            "Under each number of ours stands the paper's, where it has one, with the difference "
            "ours minus paper. The best of those that keep no sample is marked in each column. "
            "Methods that keep samples are set apart: they play another game. "
            "All numbers of ours, with the paper's beside them, are also in "
            a href="tables.csv" { "tables.csv" } "."
        }
        @if groups.iter().flat_map(|group| &group.rows).any(Row::is_outdated) {
            p {
                (OUTDATED) " Trained before the method was changed to what it computes now, which can "
                "move its results: it is to be run again."
            }
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
            @if set.iter().all(|group| group.rows.is_empty()) { (nothing()) }
            @else { @for (title, columns) in parts(set) {
                @if let Some(title) = title { h4 { (title) } }
                (comparison(&columns))
                (ablation(&columns))
                (forgetting(&columns))
            } }
        }
    }
}

/// Protocols of the paper, then others, so many that a table can be read.
fn parts<'g, 'a>(set: &[&'g Group<'a>]) -> Vec<(Option<String>, Vec<&'g Group<'a>>)> {
    if set.len() <= MOST_PROTOCOLS {
        return vec![(None, set.to_vec())];
    }
    let (first, further) = first_and_further(set);
    let mut parts = Vec::new();
    let title = if further.is_empty() { "Protocols" } else { "Protocols of the paper's tables" };
    for (title, groups) in [(title, first), ("Further protocols", further)] {
        let count = groups.len().div_ceil(MOST_PROTOCOLS);
        let size = groups.len().div_ceil(count.max(1)).max(1);
        for (at, columns) in groups.chunks(size).enumerate() {
            let title = if count == 1 {
                title.to_owned()
            } else {
                format!("{title}, part {} of {count}", at + 1)
            };
            parts.push((Some(title), columns.to_vec()));
        }
    }
    parts
}

fn comparison(columns: &Columns<'_, '_>) -> Markup {
    let best = Line {
        title: html! { "iVoro, best variant" },
        letters: None,
        paper_name: "iVoro (best)".to_owned(),
        rows: columns.iter().map(|group| group.best_variant()).collect(),
        counts: true,
    };
    let both = columns.iter().zip(&best.rows);
    let chosen: Vec<(&&Group<'_>, String)> =
        both.filter_map(|(group, row)| Some((group, (*row)?.label.clone()))).collect();
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
        @if !chosen.is_empty() { p {
            "The best variant is the one with the best average on the test samples, as in the paper: "
            @for (at, (group, label)) in chosen.iter().enumerate() {
                @if at > 0 { ", " } (name(label)) " on " (name(&group.protocol))
            }
            ". So its number is a little too good as a forecast; Table 2 has all variants."
            @for group in columns {
                @if let Some(theirs) = papers_best(group) {
                    " The paper's on " (name(&group.protocol)) " is " (theirs) "."
                }
            }
        } }
    }
}

/// Which variant is the best in the paper's own table.
fn papers_best(group: &Group<'_>) -> Option<&'static str> {
    let average = |method: &str| group.of_paper(method, Measure::Average);
    let best = average("iVoro (best)")?;
    PAPER.into_iter().find(|method| average(method) == Some(best))
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
    let in_paper = columns.iter().any(|group| group.is_in_paper());
    for (method, exemplars) in printed {
        if exemplars != free && !method.starts_with("iVoro") && in_paper {
            add(method);
        }
    }
    names.iter().map(|label| Line::of(columns, label, label, free)).collect()
}

/// Where the paper has numbers of this data set: its table, or the sections that name some.
fn source(columns: &Columns<'_, '_>, table: &str) -> String {
    let mut labels: Vec<&str> = Vec::new();
    if columns.iter().any(|group| group.is_in_paper()) {
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
            v.per_class_metric,
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
