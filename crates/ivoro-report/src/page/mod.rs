//! The page: one file that needs no network and no script.

mod cells;
mod charts;
mod glance;
mod key;
mod missing;
mod protocols;
mod runs;
mod tables;

use std::collections::HashSet;

use ivoro_eval::record::RunRecord;
use maud::{Markup, html};

use crate::document::{Document, Section};
use crate::figures::Shown;
use crate::group::{Group, by_data_set, first_and_further, groups};
use crate::inputs::{Found, Inputs};
use crate::plot::canvas::Figure;

/// A finished report.
#[derive(Debug)]
pub struct Report {
    /// The page.
    pub html: String,
    /// The numbers of its tables as CSV.
    pub csv: String,
    /// All figures of the page, each with a name of its own.
    pub figures: Vec<Figure>,
    /// What of the records is not in it, a sentence each; files that were not read are not here.
    pub notes: Vec<String>,
}

/// Builds the report of everything that was read.
pub fn build(inputs: &Inputs) -> Report {
    let groups = groups(inputs);
    let left_out = missing::LeftOut::of(inputs, &groups);
    let mut album = Album::default();
    let sections = [
        section("glance", "At a glance", glance::section(&mut album, &groups)),
        section("tables", "Tables", tables::tables(&groups)),
        section("phases", "Accuracy over phases", charts::phases(&mut album, &groups)),
        section(
            "protocols",
            "One image per query, and bursts",
            protocols::section(&mut album, &groups),
        ),
        section("plane", "Diagrams in the plane", charts::plane(&mut album, inputs)),
        section("tsne", "Features by t-SNE", charts::embeddings(&mut album, inputs)),
        section("sweeps", "λ, base classes, layers", charts::sweeps(&mut album, &groups)),
        section("uncertainty", "Uncertainty", charts::uncertainty(&mut album, &groups)),
        section("trust", "Trust and rejection", charts::trust(&mut album, &groups)),
        section("forgetting", "Forgetting and confusion", charts::forgetting(&mut album, &groups)),
        section("cost", "Memory and time", charts::cost(&mut album, &groups)),
        section("missing", "What is missing", missing::section(inputs, &groups, &left_out)),
        section("runs", "Runs", runs::section(inputs)),
    ];
    let html = page(inputs, &groups, &sections);
    Report {
        html,
        csv: crate::table::csv(&groups),
        figures: album.figures,
        notes: left_out.notes(),
    }
}

fn section(id: &'static str, title: &'static str, body: Markup) -> Section {
    Section { id, title, body }
}

fn page(inputs: &Inputs, groups: &[Group<'_>], sections: &[Section]) -> String {
    let document = Document {
        title: "iVoro: report",
        style: "",
        heading: html! { "iVoro: class-incremental learning without kept samples" },
        summary: summary(inputs, groups),
        sections,
        notes: html! {
            p.print { "Printed without the list of runs and without further protocols." }
        },
    };
    document.html()
}

fn summary(inputs: &Inputs, groups: &[Group<'_>]) -> Markup {
    let finished = |found: &Found<RunRecord>| {
        let phases = found.content.phases.len();
        found.content.methods.iter().filter(|method| method.is_whole(phases)).count()
    };
    let methods: usize = inputs.records.iter().map(finished).sum();
    let stamped = inputs.records.iter().filter(|found| found.content.tuned_on_test).count();
    html! {
        p {
            "Results of ivoro beside those of the paper \"Progressive Voronoi Diagram Subdivision: Towards A "
            "Holistic Geometric Framework for Exemplar-free Class-Incremental Learning\" (iVoro). "
            (counted(inputs.records.len(), "record")) ", " (counted(methods, "finished method"))
            " on " (counted(groups.len(), "data set and protocol")) ". "
            "Accuracies are in percent; each number links to the run it comes from. "
            "Settings were chosen on held-out samples of the first phase unless it is said otherwise."
        }
        @if stamped > 0 {
            p.stamp { (counted(stamped, "record")) " chose settings on test samples; their rows say so." }
        }
        @if inputs.records.is_empty() {
            (missing_line("any record", "ivoro run --out runs/first"))
        }
    }
}

/// `1 record`, `2 records`.
fn counted(count: usize, what: &str) -> String {
    let what = match (count, what.split_once(' ')) {
        (1, _) => what.to_owned(),
        (_, Some(("data", _))) => "data sets and protocols".to_owned(),
        _ => format!("{what}s"),
    };
    format!("{count} {what}")
}

/// Stands where all methods of some records had to be left out.
fn nothing() -> Markup {
    html! { p.missing { "No method of these records has all its numbers; why is said under \"What is missing\"." } }
}

/// The line that stands for a figure or a table whose data are not there.
fn missing_line(what: &str, command: &str) -> Markup {
    html! { p.missing { "Not in these records: " (what) ". Run " code { (command) } " to get it." } }
}

/// Every group under its name; protocols that few look for wait behind a line that names them.
fn each_group(groups: &[Group<'_>], mut body: impl FnMut(&Group<'_>) -> Markup) -> Markup {
    let mut titled = |group: &Group<'_>| html! { h3 { (title(group)) } (body(group)) };
    html! {
        @for set in by_data_set(groups) {
            @let (first, further) = first_and_further(&set);
            @for group in first { (titled(group)) }
            @if !further.is_empty() {
                details.more {
                    summary {
                        "Further protocols of " (name(&further[0].data_set)) ": "
                        @for (at, group) in further.iter().enumerate() {
                            @if at > 0 { ", " } (name(&group.protocol))
                        }
                    }
                    @for group in further { (titled(group)) }
                }
            }
        }
    }
}

/// Data set and protocol, each with a direction of its own.
fn title(group: &Group<'_>) -> Markup {
    html! { (name(&group.data_set)) ", " (name(&group.protocol)) }
}

/// A name out of a record, kept from turning the direction of what surrounds it.
pub(crate) fn name(text: &str) -> Markup {
    html! { bdi { (crate::plot::text::clean(text)) } }
}

/// Figures of a page, each under a name of its own.
#[derive(Debug, Default)]
struct Album {
    figures: Vec<Figure>,
    names: HashSet<String>,
}

impl Album {
    /// Takes in a figure and gives its place in the page.
    fn show(&mut self, shown: Shown) -> Markup {
        let Shown { mut figure, caption } = shown;
        let wanted = figure.name().to_owned();
        let mut count = 1;
        while !self.names.insert(figure.name().to_owned()) {
            count += 1;
            figure.rename(format!("{wanted}-{count}"));
        }
        let markup = html! {
            figure id={"figure-" (figure.name())} {
                (figure.inline())
                figcaption {
                    (crate::plot::text::clean(&caption)) " "
                    a href={"figures/" (figure.name()) ".svg"} { "SVG" } ", "
                    a href={"figures/" (figure.name()) ".png"} { "PNG" }
                }
            }
        };
        self.figures.push(figure);
        markup
    }

    fn grid(&mut self, shown: Vec<Shown>) -> Markup {
        html! { div.grid { @for one in shown { (self.show(one)) } } }
    }
}
