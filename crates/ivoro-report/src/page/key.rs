//! What the names in tables and figures mean.

use std::collections::BTreeSet;

use ivoro::head::LETTERS;
use ivoro_eval::peers::{Look, Peer};
use ivoro_eval::record::Kind;
use maud::{Markup, html};

use super::name;
use crate::group::{Group, Row};

/// Names of methods, letters and signs, as far as these records have them.
pub(super) fn section(groups: &[Group<'_>]) -> Markup {
    let rows: Vec<&Row<'_>> = groups.iter().flat_map(|group| &group.rows).collect();
    if rows.is_empty() {
        return html! {};
    }
    let has = |part: &str| rows.iter().any(|row| row.label.contains(part));
    let run: Vec<(Peer, Look)> =
        rows.iter().filter_map(|row| Peer::with_look(&row.name).ok()).collect();
    let peers = Peer::ALL.iter().filter(|peer| run.iter().any(|(other, _)| other == *peer));
    let looks = run.iter().any(|(_, look)| *look != Look::default());
    let networks: BTreeSet<&str> =
        rows.iter().filter_map(|row| row.first().record.network.as_deref()).collect();
    let several = rows.iter().any(|row| row.entries.len() > 1);
    let trained = rows.iter().any(|row| row.kind == Kind::Baseline);
    html! { details open {
        summary { "How names are read" }
        dl {
            dt { code { "50+5x10" } }
            dd { "a protocol: 50 classes first, then 5 phases of 10 new classes" }
            dt { code { "iVoro-…" } }
            dd {
                "the nearest class mean on frozen features; letters behind the name switch on: "
                @for (at, (letter, what)) in LETTERS.iter().enumerate() {
                    @if at > 0 { "; " } b { (letter) } " " (what)
                }
                ". F, K, W and Q are not the paper's."
            }
            @for peer in peers { dt { code { (peer) } } dd { (peer.description()) } }
            @if looks {
                dt { code { "…-FAIL" } }
                dd { "letters behind a peer: what it was given, F the mean of an image and its mirror image, AI four rotations side by side, L two layers side by side" }
            }
            @if trained {
                dt { "PASS, LwF, EWC, …" }
                dd { "train the network on in every phase; " code { "joint-training" } " does so on all images at once; it learns without rotations and is asked with one view, so methods that look at more views can be above it" }
            }
            @if has("· judged") {
                dt { "· judged" }
                dd { "settings were chosen with a second network on base classes that it has not seen, not by a rehearsal inside the base phase" }
            }
            @if has("· volume") {
                dt { "· volume 0" }
                dd { "Q without the term for the volume of a class, as it was at first" }
            }
            @for network in &networks {
                dt { "· " (name(network)) }
                dd { "on another network than rows without that word, named so when it ran" }
            }
            @if several {
                dt { "±" }
                dd { "standard deviation over runs (dividing by n − 1), other class orders or seeds; small letters behind a number lead to the further runs" }
            }
        }
    } }
}
