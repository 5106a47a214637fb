//! What is not in the report, and why.

use std::collections::BTreeSet;

use ivoro::record::MethodRecord;
use maud::{Markup, html};

use super::name;
use crate::group::Group;
use crate::inputs::Inputs;

pub(super) fn section(inputs: &Inputs, groups: &[Group<'_>]) -> Markup {
    let holes = holes(groups);
    let odd = odd(inputs);
    html! {
        @if inputs.problems.is_empty() && holes.is_empty() && odd.is_empty() {
            p { "Every file was read, every method has all its phases, and every number is one." }
        }
        @if !inputs.problems.is_empty() {
            h3 { "Files that were not read" }
            ul { @for problem in &inputs.problems {
                li { code { (name(&problem.file)) } ": " (name(&problem.error.to_string())) }
            } }
        }
        @if !holes.is_empty() {
            h3 { "Methods that some protocols lack" }
            ul { @for (title, methods) in &holes {
                li { (name(title)) ": " @for (at, method) in methods.iter().enumerate() {
                    @if at > 0 { ", " } (name(method))
                } }
            } }
        }
        @if !odd.is_empty() {
            h3 { "Records with gaps" }
            ul { @for (file, what) in &odd { li { code { (name(file)) } ": " (name(what)) } } }
        }
    }
}

/// For each group the methods that another group of the same data set has.
fn holes(groups: &[Group<'_>]) -> Vec<(String, Vec<String>)> {
    let missing = |group: &Group<'_>| {
        let others = groups.iter().filter(|other| other.data_set == group.data_set);
        let all: BTreeSet<&str> =
            others.flat_map(|other| other.rows.iter().map(|row| row.label.as_str())).collect();
        let lacks = all.into_iter().filter(|label| group.row(label).is_none());
        (group.title(), lacks.map(str::to_owned).collect::<Vec<_>>())
    };
    groups.iter().map(missing).filter(|(_, methods)| !methods.is_empty()).collect()
}

/// Records whose methods lack phases or numbers.
fn odd(inputs: &Inputs) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for record in &inputs.records {
        let content = &record.content;
        if content.methods.is_empty() {
            found.push((record.file.clone(), "no finished method".to_owned()));
        }
        if content.phases.iter().sum::<usize>() != content.classes.len() {
            let (phases, classes) = (content.phases.iter().sum::<usize>(), content.classes.len());
            let what = format!("phases of {phases} classes, but {classes} class names");
            found.push((record.file.clone(), what));
        }
        for method in &content.methods {
            if let Some(what) = gaps(method, content.phases.len()) {
                found.push((record.file.clone(), format!("{}: {what}", method.name)));
            }
        }
    }
    found
}

fn gaps(method: &MethodRecord, phases: usize) -> Option<String> {
    if method.phases.len() != phases {
        return Some(format!("{} of {phases} phases", method.phases.len()));
    }
    let summary = &method.summary;
    let numbers = [summary.average, summary.last, summary.forgetting_pass];
    let accuracies = method
        .phases
        .iter()
        .flat_map(|phase| phase.accuracy_by_phase.iter().copied().chain([phase.accuracy]));
    let broken = numbers.into_iter().chain(accuracies).filter(|value| !value.is_finite()).count();
    (broken > 0).then(|| format!("{broken} accuracies that are no numbers; they are left out"))
}
