//! Single images and bursts, and which of the paper's figures each comes near to.

use ivoro::Variant;
use ivoro::head::Views;
use maud::{Markup, html};

use super::tables::difference;
use super::{Album, missing_line, name};
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
        @for group in groups {
            h3 { (name(&group.title())) }
            @let both = bursts::both(group);
            @if both.is_empty() {
                (missing_line("bursts, which need four test images of a class", "ivoro run FEATURES --out runs/NAME"))
            } @else {
                (verdict(&both))
                @if let Some(shown) = bursts::side_by_side(group) { (album.grid(vec![shown])) }
                (table(&both))
            }
        }
    }
}

/// Which protocol comes near to which of the paper's figures, in plain words.
fn verdict(both: &[Protocols<'_, '_>]) -> Markup {
    let with: Vec<(&Protocols<'_, '_>, f64)> =
        both.iter().filter_map(|one| Some((one, one.paper?))).collect();
    let near = |value: f64, paper: f64| (value - paper).abs() <= NEAR;
    let pick = |wanted: &dyn Fn(&Protocols<'_, '_>, f64) -> bool| -> Vec<String> {
        let met = with.iter().filter(|(one, paper)| wanted(one, *paper));
        met.map(|(one, _)| labelled(one)).collect()
    };
    let voted = pick(&|one, paper| near(one.burst.2, paper));
    let single = pick(&|one, paper| near(one.single, paper));
    let below = pick(&|one, paper| one.single < paper - NEAR);
    let above = pick(&|one, paper| one.single > paper + NEAR);
    html! {
        @if with.is_empty() {
            p { "The paper has no figures for this data set and protocol, so there is nothing that either would match." }
        } @else {
            p {
                "Last accuracy against the paper's, for " (with.len()) " methods that both have. "
                "One image a query is within " (NEAR) " points for " (list(&single)) "; it is lower by more for "
                (list(&below)) " and higher by more for " (list(&above)) ". "
                "Bursts that vote are within " (NEAR) " points of it for " (list(&voted)) "."
            }
            (rotations(both))
        }
    }
}

/// Rotations of one image and bursts of several images, against what the paper has for rotations.
fn rotations(both: &[Protocols<'_, '_>]) -> Markup {
    let told = |one: &Protocols<'_, '_>| {
        let variant = one.row.variant.filter(|variant| variant.views != Views::Single)?;
        // the same letters without rotations; where nobody ran that, without the other layer too
        let whole = Variant { views: Views::Single, ..variant };
        let ran = [whole, Variant { layered: false, ..whole }].into_iter().find_map(|plain| {
            let label = plain.to_string();
            Some((both.iter().find(|other| other.row.label == label)?.burst, label))
        });
        let (burst, single) = ran?;
        let (paper, turned, voted) = (one.paper?, one.single, burst.2);
        let nearer =
            if (voted - paper).abs() < (turned - paper).abs() { "a burst" } else { "one image" };
        let between = if (turned..voted).contains(&paper) { "between the two, " } else { "" };
        Some(format!(
            "{}: paper {paper:.2}, one image at four rotations {turned:.2}, {} images voting under {single} {voted:.2}: the paper's is {between}nearer to {nearer}",
            one.row.label, burst.0
        ))
    };
    let sentences: Vec<String> = both.iter().filter_map(told).collect();
    html! {
        @if !sentences.is_empty() {
            p {
                "Rotations are where the two protocols could be mistaken for each other. A burst votes with as "
                "many images as AC and AI have rotations, but they are different images:"
            }
            ul { @for sentence in &sentences { li { (name(sentence)) } } }
            p {
                "The paper's program for testing was not published. Why its figures for rotations are what they are "
                "is not known, and nothing more than this comparison is claimed."
            }
        }
    }
}

/// A method's label, and whether it keeps samples.
fn labelled(one: &Protocols<'_, '_>) -> String {
    let mark = if one.row.exemplar_free { "" } else { " (keeps samples)" };
    format!("{}{mark}", one.row.label)
}

fn list(names: &[String]) -> Markup {
    html! {
        @if names.is_empty() { "none" }
        @for (at, label) in names.iter().enumerate() {
            @if at > 0 { ", " } (name(label))
        }
    }
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
