//! What a model got right, as one page: numbers, figures, the surest mistakes, and what to label next.
//!
//! Photos stand in the page as small copies and nowhere else. The page runs no script and fetches nothing,
//! whatever classes and files are called.

mod figures;
mod shots;

use std::collections::BTreeMap;

use ivoro_eval::evaluation::{Answer, Findings, Interval, Next, Rejected};
use maud::{Markup, html};

use crate::document::{Document, Section};
use crate::figures::Shown;
use crate::page::name;

const STYLE: &str = include_str!("style.css");
/// Confusions in the table.
const CONFUSIONS: usize = 20;

/// All that the page shows.
#[derive(Clone, Copy, Debug)]
pub struct Sheet<'a> {
    /// The model, as it was named.
    pub model: &'a str,
    /// The data, as they were named.
    pub data: &'a str,
    /// The numbers.
    pub findings: &'a Findings,
    /// What was said of each query.
    pub answers: &'a [Answer],
    /// The queries to look at.
    pub next: &'a Next,
    /// Small JPEG copies of photos, by the places of their answers.
    pub thumbnails: &'a BTreeMap<usize, Vec<u8>>,
    /// Most queries of each kind.
    pub most: usize,
}

/// The page.
pub fn page(sheet: &Sheet<'_>) -> String {
    let section = |id, title, body| Section { id, title, body };
    let sections = [
        section("numbers", "Numbers", numbers(sheet)),
        section("mistakes", "The surest mistakes", shots::mistakes(sheet)),
        section("next", "What to label next", shots::next(sheet)),
        section("confusion", "Which classes are taken for each other", confusion(sheet)),
        section("calibration", "Can probabilities be believed", calibration(sheet)),
        section("classes", "Every class", classes(sheet.findings)),
    ];
    let findings = sheet.findings;
    let document = Document {
        title: "iVoro: evaluation",
        style: STYLE,
        heading: html! { "How good is " (name(sheet.model)) "?" },
        summary: html! { p {
            "Asked about " (name(sheet.data)) ": "
            (counted(findings.queries, "query", "queries")) " of classes that the model knows. "
            (findings.variant) " looked at " (counted(findings.views, "view", "views"))
            " of each. Nothing of it was put into the model."
        } },
        sections: &sections,
        notes: html! { @if !sheet.thumbnails.is_empty() {
            p { "This page holds small copies of photos: keep it where you would keep the photos. "
                "The model holds none." }
        } },
    };
    document.html()
}

/// `1 query`, `2 queries`.
fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// A share in percent; the sign stays on the line of its number.
fn percent(share: f64) -> String {
    format!("{:.1}\u{a0}%", 100.0 * share)
}

fn or_dash(share: Option<f64>) -> String {
    share.map_or("–".to_owned(), percent)
}

fn between(interval: Interval) -> String {
    format!("95 % interval {:.1} to {}", 100.0 * interval.low, percent(interval.high))
}

/// One large number with what it means.
fn tile(title: &str, number: &str, meaning: &str) -> Markup {
    html! { div.tile { span.what { (title) } b { (number) } span.meaning { (meaning) } } }
}

fn numbers(sheet: &Sheet<'_>) -> Markup {
    let found = sheet.findings;
    let accuracy = found.accuracy.map(|it| {
        let of = counted(found.queries, "query", "queries");
        tile(
            "Accuracy",
            &percent(it.share),
            &format!("{}; {} of {of} right", between(it), found.right),
        )
    });
    let calibration = found.calibration.as_ref().map(|it| {
        let meaning = format!(
            "mean confidence {}, {} right; 0 % is best",
            percent(it.confidence),
            percent(it.accuracy)
        );
        tile("Calibration error", &percent(it.error), &meaning)
    });
    html! {
        div.tiles {
            @if let Some(tile) = accuracy { (tile) }
            (tile("Macro accuracy", &or_dash(found.macro_accuracy), "mean over classes, each counting once"))
            @if let Some(tile) = calibration { (tile) }
            (rejection(found))
        }
        @if !found.unknown_classes.is_empty() {
            p {
                "Counted as unknown, since the model does not know these classes: "
                @for (at, class) in found.unknown_classes.iter().enumerate() {
                    @if at > 0 { ", " } (name(&class.class)) " (" (class.queries) ")"
                }
                "."
            }
        }
    }
}

fn rejection(found: &Findings) -> Markup {
    let Some(rejection) = &found.rejection else { return html! {} };
    let share = |it: &Rejected| or_dash(it.share.map(|it| it.share));
    let at = rejection.at_threshold.as_ref().map(|at| {
        let of = |it: &Rejected| format!("{} of {}", it.rejected, it.queries);
        let meaning = format!("{}; {} promised", of(&at.known), percent(at.promised));
        let known = tile("Known ones rejected", &share(&at.known), &meaning);
        let accepted =
            at.accepted.map(|it| tile("Right if accepted", &percent(it.share), &between(it)));
        let unknown = at.unknown.map(|it| tile("Unknown ones rejected", &share(&it), &of(&it)));
        html! { (known) @if let Some(it) = accepted { (it) } @if let Some(it) = unknown { (it) } }
    });
    let area = rejection.auroc.zip(rejection.fpr95).map(|(auroc, fpr)| {
        let meaning = format!(
            "AUROC: chance that an unknown query is stranger than a known one; {} of unknown ones are taken \
             for known where 95 % of known ones are accepted",
            percent(fpr)
        );
        tile("Unknown told from known", &format!("{auroc:.3}"), &meaning)
    });
    html! { @if let Some(it) = at { (it) } @if let Some(it) = area { (it) } }
}

fn drawing(shown: &Shown) -> Markup {
    html! { figure { (shown.figure.inline()) figcaption { (shown.caption) } } }
}

fn confusion(sheet: &Sheet<'_>) -> Markup {
    let found = sheet.findings;
    if found.confusions.is_empty() {
        return html! { p { "No query of a known class was given a wrong class." } };
    }
    let most = found.confusions.iter().take(CONFUSIONS);
    html! {
        div.grid {
            @if let Some(shown) = figures::confusion(found) { (drawing(&shown)) }
            div {
                div.wide tabindex="0" { table {
                    thead { tr { th { "Class" } th.text { "taken for" } th { "queries" } } }
                    tbody { @for it in most {
                        tr { th { (name(&it.class)) } td.text { (name(&it.named)) } td { (it.queries) } }
                    } }
                } }
                @if found.confusions.len() > CONFUSIONS {
                    p { "And " (found.confusions.len() - CONFUSIONS) " more pairs." }
                }
            }
        }
    }
}

fn calibration(sheet: &Sheet<'_>) -> Markup {
    let Some(found) = &sheet.findings.calibration else {
        return html! { p.missing { "The model gives no probabilities for these queries." } };
    };
    html! {
        div.grid {
            (drawing(&figures::reliability(found)))
            div.wide tabindex="0" { table {
                thead { tr { th { "Bin" } th { "answers" } th { "mean confidence" } th { "right" } } }
                tbody { @for (at, bin) in found.bins.iter().enumerate() {
                    tr { th { (at + 1) } td { (bin.queries) } td { (percent(bin.confidence)) } td { (percent(bin.accuracy)) } }
                } }
            } }
        }
        p { "If the error is more than a few percent, calibrate the model on samples like these that it has not "
            "learned: " code { "ivoro calibrate" } "." }
    }
}

fn classes(found: &Findings) -> Markup {
    let asked = found.classes.iter().filter(|it| it.queries > 0 || it.named > 0);
    let silent = found.classes.iter().filter(|it| it.queries == 0 && it.named == 0).count();
    html! {
        div.wide tabindex="0" { table {
            caption { span {
                "Recall: share of the queries of a class that are given it. Precision: share of the queries given a "
                "class that are of it, known queries alone."
            } }
            thead { tr {
                th { "Class" } th { "queries" } th { "right" } th { "recall" } th { "precision" }
                th.text { "most confused with" }
            } }
            tbody { @for it in asked {
                tr {
                    th { (name(&it.class)) }
                    td { (it.queries) } td { (it.right) } td { (or_dash(it.recall)) } td { (or_dash(it.precision)) }
                    td.text { @if let Some(other) = &it.confused_with { (name(&other.class)) " (" (other.queries) ")" } }
                }
            } }
        } }
        @if silent > 0 {
            p { (counted(silent, "class", "classes")) " of the model had no query and was given to none." }
        }
    }
}
