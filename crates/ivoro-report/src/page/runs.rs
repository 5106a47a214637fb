//! Every record: what was run, and what came of it. Cells of the tables link here.

use std::collections::BTreeSet;

use ivoro::tune::Choice;
use ivoro_eval::record::{MethodRecord, RunRecord};
use maud::{Markup, html};
use serde_json::Value;

use super::{counted, name};
use crate::group::{OUTDATED, anchor};
use crate::inputs::{Found, Inputs};
use crate::plot::scale::{bytes, seconds};

pub(super) fn section(inputs: &Inputs) -> Markup {
    html! {
        @if inputs.records.is_empty() { p { "None." } }
        @else { p { "A line opens when it is clicked, and when a number of a table leads to it." } }
        @for run in 0..inputs.records.len() { (record(run, inputs)) }
    }
}

fn record(run: usize, inputs: &Inputs) -> Markup {
    let Found { file, content: record } = &inputs.records[run];
    let most = record.methods.iter().map(|method| method.phases.len()).max().unwrap_or(0);
    html! { details.more id={"run-" (run + 1)} {
        summary { "Run " (run + 1) ": " (name(file)) " (" (counted(record.methods.len(), "method")) ")" }
        @if record.tuned_on_test { p.stamp { "Settings chosen on test samples" } }
        @if let Some(tuned_on) = &record.tuned_on { p { "Settings chosen with " (name(tuned_on)) "." } }
        p {
            @if let Some(data_set) = &record.data_set { (name(data_set)) ", " }
            @if let Some(network) = &record.network { "network " (name(network)) ", " }
            "features " code { (name(&record.features)) } ", protocol " code { (name(&record.protocol)) }
            ", class order " code { (name(&record.order)) } ", " (name(&record.split))
            ", " (record.classes.len()) " classes"
            @for (what, value) in told(record) { ", " (what) " " (name(&value)) }
            ", ivoro " (name(&record.program)) "."
        }
        div.wide tabindex="0" { table {
            caption { "Accuracy after each phase, %. Bytes for each class after the last; seconds for all phases." }
            thead { tr {
                th { "Method" } th { "Average" }
                @for phase in 0..most { th { "Phase " (phase) } }
                th { "Forgetting" } th { "Calibration error" } th { "Rejection AUROC" } th { "Bytes" } th { "Time" }
                th.text { "Settings chosen" }
            } }
            tbody { @for (at, method) in record.methods.iter().enumerate() {
                (line((run, at), method, most, inputs.is_outdated(method)))
            } }
        } }
    } }
}

/// Device and seed of the training, where the record has them.
fn told(record: &RunRecord) -> Vec<(&'static str, String)> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let of = |what, pick: fn(&MethodRecord) -> Option<&Value>| {
        let all: BTreeSet<String> = record.methods.iter().filter_map(pick).map(text).collect();
        let all: Vec<String> = all.into_iter().collect();
        (!all.is_empty()).then(|| (what, all.join(" and ")))
    };
    let device = of("device", |method| method.settings.get("device"));
    let seed = of("training seed", |method| method.settings.get("recipe")?.get("seed"));
    device.into_iter().chain(seed).collect()
}

fn line((run, at): (usize, usize), method: &MethodRecord, most: usize, outdated: bool) -> Markup {
    let number = |value: f64, digits: usize| {
        if value.abs() < 1e6 { format!("{value:.digits$}") } else { "–".to_owned() }
    };
    let last = method.phases.last();
    let calibration = last.and_then(|phase| phase.calibration_error);
    let auroc = method.phases.iter().rev().find_map(|phase| phase.rejection_auroc);
    let kept = match (method.exemplar_free, method.exemplars) {
        (true, _) => String::new(),
        (false, Some(count)) => format!(" (keeps {count} samples per class)"),
        (false, None) => " (keeps samples)".to_owned(),
    };
    let summary = &method.summary;
    html! { tr id=(anchor(run, at)) {
        th scope="row" {
            (name(&method.name)) (kept)
            @if outdated { " (" (OUTDATED) " it has changed since)" }
        }
        td { (number(summary.average, 2)) }
        @for phase in 0..most {
            td { (method.phases.get(phase).map_or("–".to_owned(), |p| number(p.accuracy, 2))) }
        }
        td { (number(summary.forgetting_pass, 2)) }
        td { (calibration.map_or("–".to_owned(), |value| number(value, 3))) }
        td { (auroc.map_or("–".to_owned(), |value| number(value, 3))) }
        td { @if summary.bytes_per_class.is_finite() { (bytes(summary.bytes_per_class)) } @else { "–" } }
        td { @if summary.seconds.is_finite() { (seconds(summary.seconds)) } @else { "–" } }
        td.text { @for (at, choice) in method.choices.iter().enumerate() {
            @if at > 0 { ", " } (name(&chosen(choice)))
        } }
    } }
}

fn chosen(choice: &Choice) -> String {
    format!("{} {}", choice.setting, choice.value)
}
