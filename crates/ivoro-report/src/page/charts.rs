//! The sections that are figures.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::{Album, each_group, missing_line, name};
use crate::figures::{
    Shown, confusion, cost, embedding, phases, scene, schematic, sweep, trust, uncertainty,
};
use crate::group::{Group, by_data_set};
use crate::inputs::{Found, Inputs};
use crate::paper::{paper, same_name};
use crate::plot::text::number;

pub(super) fn phases(album: &mut Album, groups: &[Group<'_>]) -> Markup {
    each(
        album,
        groups,
        phases::accuracy,
        "a protocol of several phases",
        "ivoro run FEATURES --protocol 50+5x10 --out runs/NAME",
    )
}

pub(super) fn uncertainty(album: &mut Album, groups: &[Group<'_>]) -> Markup {
    let intro = html! { p {
        "HV measures how much the four rotations of a query disagree. If it is high for a class, "
        "rotations see different things in it. Below: its spread by class and phase, and whether "
        "classes with high HV gain more from adding rotations up."
    } };
    let drawn = |group: &Group<'_>| {
        let mut shown = uncertainty::by_class(group);
        shown.extend(uncertainty::against_gain(group));
        shown
    };
    let command = "ivoro run FEATURES --variants iVoro,iVoro-AI --out runs/NAME";
    html! { (intro) (each(album, groups, drawn, "HV by class, which needs features of four rotations", command)) }
}

pub(super) fn trust(album: &mut Album, groups: &[Group<'_>]) -> Markup {
    let drawn = |group: &Group<'_>| {
        let all = [trust::reliability(group), trust::risk_coverage(group), trust::rejection(group)];
        all.into_iter().flatten().collect()
    };
    let command = "ivoro run FEATURES --variants iVoro,iVoro-N --out runs/NAME";
    each(album, groups, drawn, "reliability, risk and rejection curves", command)
}

pub(super) fn forgetting(album: &mut Album, groups: &[Group<'_>]) -> Markup {
    let drawn = |group: &Group<'_>| {
        let mut shown = phases::forgetting(group);
        shown.extend(confusion::matrix(group));
        shown
    };
    let command = "ivoro run FEATURES --protocol 50+5x10 --out runs/NAME";
    each(album, groups, drawn, "accuracies by phase and confusions", command)
}

pub(super) fn cost(album: &mut Album, groups: &[Group<'_>]) -> Markup {
    let drawn =
        |group: &Group<'_>| cost::memory(group).into_iter().chain(cost::time(group)).collect();
    let command = "ivoro run FEATURES --variants all --peers all --out runs/NAME";
    each(album, groups, drawn, "two methods whose cost can be compared", command)
}

/// Figures of every group under its name, or the line that says what is missing.
fn each(
    album: &mut Album,
    groups: &[Group<'_>],
    draw: impl Fn(&Group<'_>) -> Vec<Shown>,
    what: &str,
    command: &str,
) -> Markup {
    html! {
        @if groups.is_empty() { (missing_line(what, command)) }
        (each_group(groups, |group| {
            let shown = draw(group);
            if shown.is_empty() { missing_line(what, command) } else { album.grid(shown) }
        }))
    }
}

/// Methods in the order of the paper's figures.
const SCENES: [&str; 4] = ["fine-tuning", "PASS", "iVoro", "iVoro-AC"];
const EMBEDDINGS: [&str; 4] = ["PASS", "iVoro", "iVoro-N", "iVoro-NAC"];

/// Pictures of one data set and method together, methods in this order and others behind them.
fn by_method<'f, T>(
    found: &'f [Found<T>],
    of: impl Fn(&'f T) -> (&'f String, &'f String),
    order: &[&str],
) -> Vec<(String, Vec<&'f Found<T>>)> {
    let mut groups: BTreeMap<(&str, usize, &str), Vec<&'f Found<T>>> = BTreeMap::new();
    for one in found {
        let (data_set, method) = of(&one.content);
        let rank = order.iter().position(|known| known == method).unwrap_or(order.len());
        groups.entry((data_set, rank, method)).or_default().push(one);
    }
    let titled =
        groups.into_iter().map(|((data_set, _, method), of)| (format!("{data_set}, {method}"), of));
    titled.collect()
}

pub(super) fn plane(album: &mut Album, inputs: &Inputs) -> Markup {
    let command =
        "ivoro figure scene FEATURES --variant iVoro --protocol 4,3,3 --out runs/NAME.scene.json";
    html! {
        p {
            "Cells are exact polygons of the diagram, cut by the half-planes of all other sites. "
            "A new site takes room from its neighbours alone; all other cells stay as they are."
        }
        (album.grid(schematic::pictures()))
        @for (title, found) in by_method(&inputs.scenes, |s| (&s.data_set, &s.method), &SCENES) {
            h3 { (name(&title)) }
            @let shown: Vec<Shown> = found.iter().flat_map(|found| scene::pictures(&found.content)).collect();
            @if shown.is_empty() { (missing_line("a finite site or sample in this scene", command)) }
            @else { (album.grid(shown)) }
        }
        @if inputs.scenes.is_empty() { (missing_line("a diagram of two-dimensional features", command)) }
    }
}

pub(super) fn embeddings(album: &mut Album, inputs: &Inputs) -> Markup {
    let command =
        "ivoro figure tsne FEATURES --variant iVoro-N --protocol 50+5x10 --out runs/NAME.tsne.json";
    html! {
        @for (title, found) in by_method(&inputs.embeddings, |e| (&e.data_set, &e.method), &EMBEDDINGS) {
            h3 { (name(&title)) }
            @let shown: Vec<Shown> = found.into_iter().flat_map(embedding::pictures).collect();
            @if shown.is_empty() { (missing_line("a finite point in this embedding", command)) }
            @else { (album.grid(shown)) }
        }
        @if inputs.embeddings.is_empty() { (missing_line("an embedding", command)) }
    }
}

pub(super) fn sweeps(album: &mut Album, groups: &[Group<'_>]) -> Markup {
    let lambda: Vec<Shown> = groups.iter().filter_map(sweep::lambda).collect();
    let layers: Vec<Shown> = groups.iter().filter_map(sweep::layers).collect();
    let sets = by_data_set(groups);
    let bases: Vec<Shown> = sets.iter().filter_map(|set| sweep::base_size(set)).collect();
    html! {
        h3 { "λ of the normalisation" }
        @if lambda.is_empty() {
            (missing_line("runs with a given λ", "ivoro run FEATURES --variants iVoro-N --lambda 0.3 --out runs/lambda-0.3"))
            p.missing { "Likewise with 0.4 to 0.9, and 1 for the length alone, each in a folder of its own." }
        } @else { (album.grid(lambda)) }
        h3 { "Number of base classes" }
        @if bases.is_empty() {
            (missing_line(
                "one data set with several numbers of base classes and phases of one size",
                "ivoro run FEATURES --data-set NAME --protocol 40+12x5 --out runs/base-40",
            ))
        } @else { (album.grid(bases)) (gains(&sets)) }
        h3 { "Third block, last layer, both" }
        @if layers.is_empty() {
            (missing_line("a variant with its partner on the third block", "ivoro run FEATURES --variants iVoro,iVoro3 --out runs/NAME"))
        } @else { (album.grid(layers)) }
    }
}

/// How far the best variant is above PASS with fewer base classes, beside the paper's gain.
fn gains(sets: &[Vec<&Group<'_>>]) -> Markup {
    let row = |group: &&Group<'_>| {
        let paper = paper().base_size.iter().find(|size| size.protocol == group.protocol)?;
        let best = group.best_variant()?;
        let pass = group.pass()?;
        Some((paper.classes, best.label.clone(), best.last()?.mean - pass.last()?.mean, paper.gain))
    };
    let cifar = sets.iter().filter(|set| set[0].named && same_name(&set[0].data_set, "CIFAR-100"));
    let rows: Vec<_> = cifar.flat_map(|set| set.iter().filter_map(row)).collect();
    html! {
        @if rows.is_empty() {
            p.missing {
                "The paper's gains of its best variant over PASS with 40, 30, 20 and 10 base classes are "
                @for (at, size) in paper().base_size.iter().enumerate() {
                    @if at > 0 { ", " } (number(size.gain, 2))
                }
                " points; these records have no run of PASS to compare with."
            }
        } @else {
            div.wide tabindex="0" { table {
                caption { "Best variant above PASS after the last phase, points" }
                thead { tr { th { "Base classes" } th { "Best variant" } th { "Ours" } th { "Paper" } } }
                tbody { @for (classes, label, ours, gain) in &rows {
                    tr { th { (classes) } td { (name(label)) } td { (number(*ours, 2)) } td { (number(*gain, 2)) } }
                } }
            } }
        }
    }
}
