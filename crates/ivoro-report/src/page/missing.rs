//! What is not in the report, and why.

use std::collections::BTreeSet;

use ivoro_eval::record::{MethodRecord, PhaseOutcome};
use maud::{Markup, html};

use super::{name, title};
use crate::group::Group;
use crate::inputs::{Found, Inputs};
use crate::paper::{PaperProtocol, paper, same_name};

/// Files with what of them is left out, and with what is counted once.
pub(super) struct LeftOut {
    odd: Vec<(String, String)>,
    copies: Vec<(String, String)>,
    superseded: Vec<(String, String)>,
    /// Cells of grids, each with its command.
    unfinished: Vec<(String, String)>,
}

impl LeftOut {
    pub(super) fn of(inputs: &Inputs, groups: &[Group<'_>]) -> Self {
        let of_before = groups.iter().flat_map(|group| &group.superseded).map(|entry| {
            let what = format!(
                "{}: of an earlier revision; another record has the present one",
                entry.method.name
            );
            (entry.file.to_owned(), what)
        });
        Self {
            odd: odd(inputs),
            copies: copies(inputs, groups),
            superseded: of_before.collect(),
            unfinished: unfinished(inputs),
        }
    }

    /// All of it for a terminal, a sentence each.
    pub(super) fn notes(&self) -> Vec<String> {
        let all = self.odd.iter().chain(&self.copies).chain(&self.superseded);
        let cells = self.unfinished.iter().map(|(cell, _)| format!("{cell}: not finished"));
        all.map(|(file, what)| format!("{file}: {what}")).chain(cells).collect()
    }
}

pub(super) fn section(inputs: &Inputs, groups: &[Group<'_>], left_out: &LeftOut) -> Markup {
    let (holes, unrun) = (holes(groups), unrun(groups));
    let LeftOut { odd, copies, superseded, unfinished } = left_out;
    let lists = [
        ("Records with gaps", odd),
        ("Counted once", copies),
        ("Results of methods as they were before", superseded),
    ];
    let whole = holes.is_empty() && unfinished.is_empty();
    let nothing = whole && lists.iter().all(|(_, lines)| lines.is_empty());
    html! {
        @if inputs.problems.is_empty() && nothing {
            p { "Every file was read, every method has all its phases, and every number is one." }
        }
        @if !inputs.problems.is_empty() {
            h3 { "Files, and methods in them, that were not read" }
            ul { @for problem in &inputs.problems {
                li { code { (name(&problem.file)) } ": " (name(&problem.error.to_string())) }
            } }
        }
        @if !unfinished.is_empty() {
            h3 { "Cells of a grid that are not finished" }
            ul { @for (folder, command) in unfinished { li { (name(folder)) ": " code { (name(command)) } } } }
        }
        @if !unrun.is_empty() {
            h3 { "Protocols of the paper that no record is of" }
            p { (unrun.join("; ")) "." }
        }
        @if !holes.is_empty() {
            h3 { "Methods that some protocols lack" }
            ul { @for (group, methods) in &holes {
                li { (title(group)) ": " @for (at, method) in methods.iter().enumerate() {
                    @if at > 0 { ", " } (name(method))
                } }
            } }
        }
        @for (title, lines) in lists {
            @if !lines.is_empty() {
                h3 { (title) }
                ul { @for (file, what) in lines { li { code { (name(file)) } ": " (name(what)) } } }
            }
        }
    }
}

/// Cells that a job was to run and that did not come to their end, each with its command.
fn unfinished(inputs: &Inputs) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for Found { file, content } in &inputs.plans {
        let file = file.replace('\\', "/");
        let root = file.rfind('/').map_or("", |at| &file[..=at]);
        for cell in &content.cells {
            let folder = format!("{root}{}", cell.folder);
            let completion = format!("{folder}/cell.json");
            if !inputs.completions.iter().any(|known| known.replace('\\', "/") == completion) {
                found.push((folder, cell.command.clone()));
            }
        }
    }
    found
}

/// What the paper has tables of and the records have not, where they have some of it.
fn unrun(groups: &[Group<'_>]) -> Vec<String> {
    let ran = |one: &PaperProtocol| {
        let same = |group: &&Group<'_>| same_name(&group.data_set, &one.data_set);
        groups.iter().filter(same).any(|group| group.protocol == one.name)
    };
    if !paper().protocol.iter().any(ran) {
        return Vec::new();
    }
    let rest = paper().protocol.iter().filter(|one| !ran(one));
    rest.map(|one| format!("{}, {}", one.data_set, one.name)).collect()
}

/// For each group the methods that another group of the same data set has.
fn holes<'g, 'a>(groups: &'g [Group<'a>]) -> Vec<(&'g Group<'a>, Vec<String>)> {
    let missing = |group: &'g Group<'a>| {
        let others = groups.iter().filter(|other| other.data_set == group.data_set);
        let all: BTreeSet<&str> =
            others.flat_map(|other| other.rows.iter().map(|row| row.label.as_str())).collect();
        let lacks = all.into_iter().filter(|label| group.row(label).is_none());
        (group, lacks.map(str::to_owned).collect::<Vec<_>>())
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
            let left_out = method
                .fault(content.phases.len())
                .map(|what| format!("{what}; left out of tables and figures"));
            if let Some(what) = left_out.or_else(|| gaps(method)) {
                found.push((record.file.clone(), format!("{}: {what}", method.name)));
            }
        }
    }
    found
}

/// Numbers that are none, in a method that takes part nevertheless.
fn gaps(method: &MethodRecord) -> Option<String> {
    let of_phases = |numbers: fn(&PhaseOutcome) -> Vec<f64>| -> usize {
        let all = method.phases.iter().flat_map(numbers);
        all.filter(|value| !value.is_finite()).count()
    };
    let counts = [
        (of_phases(|phase| phase.accuracy_by_phase.clone()), "accuracies"),
        (of_phases(further), "numbers of its figures"),
    ];
    let told: Vec<String> =
        counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    (!told.is_empty()).then(|| format!("{} that are none; they are left out", told.join(" and ")))
}

/// The numbers that figures of a phase are drawn from.
fn further(phase: &PhaseOutcome) -> Vec<f64> {
    let PhaseOutcome { by_class, reliability, risk_coverage, rejection_roc, burst, .. } = phase;
    let hv = by_class.iter().filter_map(|class| class.hv).flatten();
    let bins = reliability.iter().flat_map(|bin| [bin.confidence, bin.accuracy]);
    let curves = risk_coverage.iter().chain(rejection_roc).copied().flatten();
    let bursts = burst.iter().flat_map(|burst| [burst.sum, burst.vote]);
    hv.chain(bins).chain(curves).chain(bursts).collect()
}

/// Methods that another record has to the last digit.
fn copies(inputs: &Inputs, groups: &[Group<'_>]) -> Vec<(String, String)> {
    let file = |run: usize| inputs.records[run].file.clone();
    let told = groups.iter().flat_map(|group| &group.copies).map(|(entry, other)| {
        (file(entry.run), format!("{}: a copy of that in {}", entry.method.name, file(*other)))
    });
    told.collect()
}
