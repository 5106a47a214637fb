//! The tables' numbers as CSV: for spreadsheets, scripts and the tables of other papers.

use std::fmt::Write as _;

use ivoro_eval::csv::quoted;
use ivoro_eval::record::Kind;

use crate::group::{Group, Row, Spread};
use crate::paper::Measure;
use crate::plot::text;

const HEADER: &str = "data_set,protocol,method,kind,exemplar_free,runs,average,average_deviation,\
    last,last_deviation,forgetting,forgetting_deviation,paper_average,paper_last,paper_forgetting,outdated,views";

/// One line a method, data set and protocol; fields without a number are empty.
pub(crate) fn csv(groups: &[Group<'_>]) -> String {
    let mut text = format!("{HEADER}\n");
    for group in groups {
        for row in &group.rows {
            let ours = [row.average(), row.last(), row.forgetting()].map(spread).join(",");
            let papers = [Measure::Average, Measure::Last, Measure::Forgetting]
                .map(|measure| group.of_paper(&row.label, measure))
                .map(|value| value.map_or(String::new(), |value| format!("{value:.2}")))
                .join(",");
            let _ = writeln!(
                text,
                "{},{},{},{},{},{},{ours},{papers},{},{}",
                field(&group.data_set),
                field(&group.protocol),
                field(&row.label),
                kind(row),
                row.exemplar_free,
                row.entries.len(),
                row.is_outdated(),
                row.views(),
            );
        }
    }
    text
}

fn spread(spread: Option<Spread>) -> String {
    match spread {
        None => ",".to_owned(),
        Some(Spread { mean, count: 1, .. }) => format!("{mean:.2},"),
        Some(Spread { mean, deviation, .. }) => format!("{mean:.2},{deviation:.2}"),
    }
}

fn kind(row: &Row<'_>) -> &'static str {
    match row.kind {
        Kind::Variant => "variant",
        Kind::Peer => "peer",
        Kind::Baseline => "baseline",
    }
}

/// A name as a CSV field, without marks that turn text.
fn field(name: &str) -> String {
    quoted(&text::clean(name)).into_owned()
}
