//! Queries to look at: small copies of photos with what was said of them.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use ivoro_eval::evaluation::{Answer, Cluster, Clusters, Set};
use maud::{Markup, html};

use super::{Sheet, counted, percent};
use crate::page::name;

/// Labels of a cluster that are named.
const LABELS: usize = 3;

/// Wrong answers, the surest first.
pub(super) fn mistakes(sheet: &Sheet<'_>) -> Markup {
    let places = &sheet.next.mistakes;
    if places.is_empty() {
        return html! { p { "No query of a known class was given a wrong class." } };
    }
    html! {
        p { "Wrong answers, the surest first. A label may be wrong too; else more samples that look like these "
            "help most." }
        (shots(sheet, places.iter().take(sheet.most), |_| html! {}))
    }
}

/// What a person should label.
pub(super) fn next(sheet: &Sheet<'_>) -> Markup {
    let next = sheet.next;
    html! {
        h3 { "Looks like a new class" }
        (clusters(sheet, next.clusters.as_ref()))
        h3 { "Uncertain" }
        @if next.uncertain.is_empty() {
            p { "The model gives no probabilities for these queries, so none is known to be uncertain." }
        } @else {
            p { "Two classes claim these queries nearly alike. Their labels tell the model where to draw the line." }
            (shots(sheet, next.uncertain.iter().take(sheet.most), |_| html! {}))
        }
        h3 { "Strange" }
        @if next.strange.is_empty() {
            p { "The variant of this model measures no strangeness." }
        } @else {
            p { "The queries least like anything known: new classes, odd samples of known ones, or photos of "
                "nothing. 1 is usual." }
            (shots(sheet, next.strange.iter().take(sheet.most), |answer| html! {
                @if let Some(it) = answer.strangeness { "strangeness " (format!("{it:.2}")) br; }
            }))
        }
    }
}

fn clusters(sheet: &Sheet<'_>, clusters: Option<&Clusters>) -> Markup {
    let Some(clusters) = clusters else {
        return html! { p {
            "Clusters need unknown or rejected queries, and labelled classes that are more alike inside than to each "
            "other."
        } };
    };
    let compared = counted(clusters.compared, "unknown query was", "unknown queries were");
    html! {
        p {
            (compared) " compared with each other by the distances of " (clusters.by) ", by the angle seen from the middle of "
            "the labelled ones. Two labelled queries of one class are " (distance(clusters.within)) " apart in the "
            "mean (0: alike, 1: nothing in common), of neighbouring classes " (distance(clusters.between))
            ". Unknown queries stand together where they are less apart than the middle of both (average linkage)."
            @if clusters.by != sheet.findings.variant {
                " Of " (sheet.findings.variant) " some letters are left away here: probes of D and R are trained on whole "
                "phases, and votes of AC are no distances."
            }
        }
        @if clusters.found.is_empty() { p { "No three of them are so alike." } }
        @for (at, (cluster, members)) in clusters.shown().enumerate() {
            h4 { "Cluster " (at + 1) ": " (counted(cluster.members.len(), "query", "queries")) (labels(cluster)) }
            (shots(sheet, members.iter(), |_| html! {}))
        }
    }
}

/// What the labels of a cluster say, for those who know them.
fn labels(cluster: &Cluster) -> Markup {
    html! {
        @if !cluster.labels.is_empty() {
            " – labelled "
            @for (at, (label, count)) in cluster.labels.iter().take(LABELS).enumerate() {
                @if at > 0 { ", " } (name(label)) " (" (count) ")"
            }
            @if cluster.labels.len() > LABELS { ", …" }
        }
    }
}

fn distance(value: f64) -> String {
    format!("{value:.2}")
}

fn shots<'a>(
    sheet: &Sheet<'_>,
    places: impl Iterator<Item = &'a usize>,
    more: impl Fn(&Answer) -> Markup,
) -> Markup {
    html! { div.shots { @for &at in places {
        @if let Some(answer) = sheet.answers.get(at) { (shot(sheet, at, answer, &more(answer))) }
    } } }
}

fn shot(sheet: &Sheet<'_>, at: usize, answer: &Answer, more: &Markup) -> Markup {
    let file = answer.query.rsplit(['/', '\\']).next().unwrap_or(&answer.query);
    html! {
        figure.shot title=(crate::plot::text::clean(&answer.query)) {
            @match sheet.thumbnails.get(&at) {
                Some(jpeg) => {
                    img src={"data:image/jpeg;base64," (BASE64_STANDARD.encode(jpeg))} width="128" height="128"
                        alt=(crate::plot::text::clean(file));
                }
                None => div.none { "row " (name(file)) },
            }
            figcaption {
                b { (name(&answer.class)) } @if let Some(it) = answer.probability { " " (percent(it)) } br;
                @if let Some(second) = &answer.runner_up {
                    "then " (name(&second.class)) @if let Some(it) = second.probability { " " (percent(it)) } br;
                }
                (more)
                @if let Some(label) = &answer.label {
                    @if answer.is_right() { "label: the same" } @else { "label: " em { (name(label)) } }
                    br;
                } @else if answer.set == Set::Unknown { "of the unknown set" br; }
                @if answer.rejected == Some(true) { span.stamp { "rejected" } br; }
                small { (name(file)) }
            }
        }
    }
}
