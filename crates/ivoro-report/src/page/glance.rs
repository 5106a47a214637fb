//! What a reader in a hurry takes away: one figure and a few lines for each data set.

use ivoro_eval::record::Kind;
use maud::{Markup, html};

use super::cells::{Line, Part, Shows, table};
use super::{Album, missing_line, name, nothing, title};
use crate::figures::phases;
use crate::group::{Group, Row, best, by_data_set};

pub(super) fn section(album: &mut Album, groups: &[Group<'_>]) -> Markup {
    html! {
        @if groups.is_empty() { (missing_line("anything to look at", "ivoro run --out runs/first")) }
        @else {
            p {
                "The first protocol of each data set, and of each kind of method the one with the best "
                "average on the test samples. All others are in the tables below."
            }
        }
        @for set in by_data_set(groups) {
            h3 { (title(set[0])) }
            (taken(album, set[0]))
        }
    }
}

/// A method, and why it is one of the few that are shown.
type Role<'g, 'a> = (&'g Row<'a>, &'static str);

/// The best of each kind of method, and the two ends that all lie between.
fn roles<'g, 'a>(group: &'g Group<'a>) -> Vec<Role<'g, 'a>> {
    let network = |row: &Row<'_>| row.first().record.network.clone();
    // of one network alone: that of the best variant
    let (best_variant, all) = (group.best_variant(), group.rows.iter());
    let same = best_variant.map(network);
    let rows: Vec<&'g Row<'a>> =
        all.filter(|row| same.as_ref().is_none_or(|same| network(row) == *same)).collect();
    let rows = || rows.iter().copied();
    let exemplars = |row: &&Row<'_>| row.first().method.exemplars.is_some();
    let named = |name: &str| rows().find(|row| row.name == name);
    let of = |kind: Kind| rows().filter(move |row| row.kind == kind);
    let roles = [
        (best_variant, "the best variant; network frozen, no image kept"),
        (named("iVoro"), "the plain diagram of class means"),
        (
            best(of(Kind::Peer).filter(|row| row.exemplar_free)),
            "the best other method on the same frozen features",
        ),
        (
            best(of(Kind::Baseline).filter(|row| row.exemplar_free)),
            "the best that trains the network on and keeps no image",
        ),
        (best(of(Kind::Baseline).filter(exemplars)), "the best that keeps images of old classes"),
        (
            named("joint-training"),
            "trained on all images of all classes at once, asked with one view",
        ),
        (named("fine-tuning"), "trained on new images, nothing done against forgetting"),
    ];
    let mut found: Vec<Role<'g, 'a>> = Vec::new();
    for (row, role) in roles.into_iter().filter_map(|(row, role)| Some((row?, role))) {
        if found.iter().all(|(other, _)| other.label != row.label) {
            found.push((row, role));
        }
    }
    found
}

fn taken(album: &mut Album, group: &Group<'_>) -> Markup {
    let roles = roles(group);
    if roles.is_empty() {
        return nothing();
    }
    let line = |&(row, role): &Role<'_, '_>| Line {
        title: html! { (name(&row.label)) small { (role) } },
        ..Line::of(&[group], &row.label, &row.label, row.exemplar_free)
    };
    let part = Part { title: "", lines: roles.iter().map(line).collect() };
    let rows = roles.iter().map(|(row, _)| *row).collect();
    html! { div.grid {
        @if let Some(shown) = phases::overview(group, rows) { (album.show(shown)) }
        (table(&[group], Shows::Accuracy, &[part], "Accuracy, %: average over the phases, and after the last."))
    } }
}
