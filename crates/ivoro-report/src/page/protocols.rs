//! Single images and bursts, and which of the paper's figures each comes near to.

use ivoro::head::Views;
use maud::{Markup, html};

use super::cells::{difference, signed};
use super::{Album, each_group, missing_line, name};
use crate::figures::bursts::{self, Protocols};
use crate::group::Group;

/// Points within which a figure of the paper counts as met.
const NEAR: f64 = 1.5;

pub(super) fn section(album: &mut Album, groups: &[Group<'_>]) -> Markup {
    html! {
        p {
            "In the first protocol one test image is one query; under AC and AI it is seen at four "
            "rotations, and all four come from that image. In the second, a burst, four different "
            "images of one class are one query. A burst is told that its images belong together, "
            "so it is an easier task, and its accuracy is never counted as that of single images."
        }
        @if groups.is_empty() { (missing_line("both protocols", "ivoro run FEATURES --out runs/NAME")) }
        (each_group(groups, |group| compared(album, group)))
    }
}

fn compared(album: &mut Album, group: &Group<'_>) -> Markup {
    let both = bursts::both(group);
    html! {
        @if both.is_empty() {
            (missing_line("bursts, which need four test images of a class", "ivoro run FEATURES --out runs/NAME"))
        } @else {
            (verdict(&both))
            @if let Some(shown) = bursts::side_by_side(group) { (album.grid(vec![shown])) }
            (table(&both))
        }
    }
}

/// Which protocol matches which of the paper's figures, in plain words.
fn verdict(both: &[Protocols<'_, '_>]) -> Markup {
    let of = |wanted: Views| -> Vec<(f64, f64)> {
        let own = both.iter().filter(|one| one.row.variant.is_some_and(|v| v.views == wanted));
        own.filter_map(|one| Some((one.single - one.paper?, one.burst.2 - one.paper?))).collect()
    };
    let families = [
        ("Without rotations", of(Views::Single)),
        ("With AC, where four rotations of the image vote", of(Views::Consensus)),
        ("With AI, where distances of four rotations are added", of(Views::Integration)),
    ];
    let told = |(_, differences): &&(&str, Vec<(f64, f64)>)| !differences.is_empty();
    let told: Vec<&(&str, Vec<(f64, f64)>)> = families.iter().filter(told).collect();
    html! {
        @if told.is_empty() {
            p { "The paper has no figures of variants for this data set and protocol, so there is nothing that either would match." }
        } @else {
            p { "Accuracy after the last phase against the paper's, variants that both have:" }
            @let size = both.first().map_or(0, |one| one.burst.0);
            ul { @for (family, differences) in &told { li { (sentence(family, differences, size)) } } }
            p {
                "The paper's program for testing was not published. Why its figures for rotations are what they are "
                "is not known, and nothing more than this comparison is claimed."
            }
        }
    }
}

/// What a family's differences from the paper, of one image and of bursts, amount to.
fn sentence(family: &str, differences: &[(f64, f64)], size: usize) -> String {
    let all = differences.len();
    let near = |pick: fn(&(f64, f64)) -> f64| {
        differences.iter().map(pick).filter(|difference| difference.abs() <= NEAR).count()
    };
    let (single, burst) = (near(|d| d.0), near(|d| d.1));
    let between =
        differences.iter().filter(|(single, burst)| *single < 0.0 && *burst > 0.0).count();
    let verdict = match (single, burst) {
        (0, 0) if between == 0 => "Neither matches it.".to_owned(),
        (0, 0) => format!("Neither matches it; it lies between the two for {between} of {all}."),
        (single, 0) if single == all => "One image per query matches it; bursts do not.".to_owned(),
        (0, burst) if burst == all => "Bursts match it; one image per query does not.".to_owned(),
        _ => format!("One image per query matches it for {single} of {all}, bursts for {burst}."),
    };
    let range = |pick: fn(&(f64, f64)) -> f64| {
        let values = || differences.iter().map(pick);
        let (low, high) = (values().fold(f64::MAX, f64::min), values().fold(f64::MIN, f64::max));
        if all == 1 { signed(low) } else { format!("{} to {}", signed(low), signed(high)) }
    };
    format!(
        "{family} ({all}): one image differs from the paper by {} points, {size} images that vote by {}. A match \
         is a difference of at most {NEAR}. {verdict}",
        range(|d| d.0),
        range(|d| d.1)
    )
}

/// A method's label, and whether it keeps samples.
fn labelled(one: &Protocols<'_, '_>) -> String {
    let mark = if one.row.exemplar_free { "" } else { " (keeps samples)" };
    format!("{}{mark}", one.row.marked())
}

fn table(both: &[Protocols<'_, '_>]) -> Markup {
    let size = both.first().map_or(4, |one| one.burst.0);
    let printed = both.iter().any(|one| one.paper.is_some());
    let number = |value: f64| format!("{value:.2}");
    html! { div.wide tabindex="0" { table {
        caption { "Accuracy after the last phase, %. Single images and bursts are different tasks." }
        thead { tr {
            th { "Method" } th { "One image" } th { (size) " images, voted" } th { (size) " images, added" }
            @if printed { th { "Paper" } th { "One image − paper" } th { "Voted − paper" } }
        } }
        tbody { @for one in both { tr {
            th scope="row" { a href={"#" (one.row.first().anchor())} { (name(&labelled(one))) } }
            td { (number(one.single)) }
            td { (number(one.burst.2)) }
            td { (number(one.burst.1)) }
            @if printed {
                @match one.paper {
                    Some(paper) => {
                        td { (number(paper)) }
                        td { (difference(one.single, paper)) }
                        td { (difference(one.burst.2, paper)) }
                    }
                    None => { td { "–" } td { "–" } td { "–" } }
                }
            }
        } } }
    } } }
}
