//! What accuracy costs: bytes kept for a class, seconds for a phase.

use std::collections::BTreeMap;

use ivoro_eval::record::Kind;
use serde_json::Value;

use crate::figures::{Shown, outdated};
use crate::group::{Entry, Group, Row};
use crate::plot::frame::Axis;
use crate::plot::palette;
use crate::plot::scale::{Scale, bytes, seconds};
use crate::plot::scatter::{Chart, Dot};

/// Bytes kept for each class against average accuracy.
pub(crate) fn memory(group: &Group<'_>) -> Option<Shown> {
    let cost = |row: &Row<'_>| row.spread(|entry| entry.method.summary.bytes_per_class);
    let points = points(&group.rows, |row| Some(cost(row)?.mean));
    let title = format!("{}: bytes kept against accuracy", group.title());
    let scale = Scale::logarithmic(points.iter().map(|(_, x, _)| *x), bytes);
    let x = Axis::new("kept for each class after the last phase", scale);
    chart(group, "bytes", &title, x, &points)
}

/// Seconds for a phase, learning and judging, against average accuracy; what was trained on a GPU
/// has a figure of its own.
pub(crate) fn time(group: &Group<'_>) -> Vec<Shown> {
    let cost = |row: &Row<'_>| {
        row.spread(|entry| entry.method.summary.seconds / entry.method.phases.len().max(1) as f64)
    };
    // a method may have run on both
    let mut devices: BTreeMap<&str, Vec<Row<'_>>> = BTreeMap::new();
    for row in &group.rows {
        for entry in &row.entries {
            let rows = devices.entry(device(entry)).or_default();
            match rows.last_mut().filter(|last| last.label == row.label) {
                Some(last) => last.entries.push(*entry),
                None => rows.push(row.of(vec![*entry])),
            }
        }
    }
    let several = devices.len() > 1;
    let of_device = |(device, rows): (&&str, &Vec<Row<'_>>)| {
        let points = points(rows, |row| Some(cost(row)?.mean));
        let on = if several { format!(" on {device}") } else { String::new() };
        let title = format!("{}: seconds against accuracy{on}", group.title());
        let scale = Scale::logarithmic(points.iter().map(|(_, x, _)| *x), seconds);
        let x = Axis::new("for one phase, mean: choosing settings, learning and judging", scale);
        let mut shown = chart(group, &format!("seconds{on}"), &title, x, &points)?;
        shown.caption.push_str(
            " A choice of settings that several variants share is in the time of the first of them. \
             Runs on machines of one kind need not be of one machine, nor have it for themselves.",
        );
        Some(shown)
    };
    devices.iter().filter_map(of_device).collect()
}

/// What a method was computed on. Heads on features are computed on a processor and do not say so.
fn device(entry: &Entry<'_>) -> &'static str {
    let told = entry.method.settings.get("device").and_then(Value::as_str);
    if told.is_some_and(|device| device != "cpu") { "a GPU" } else { "a processor" }
}

/// Variants that are named besides the best.
const OWN: usize = 4;

type Point<'g, 'a> = (&'g Row<'a>, f64, f64);

fn points<'g, 'a>(
    rows: &'g [Row<'a>],
    cost: impl Fn(&Row<'a>) -> Option<f64>,
) -> Vec<Point<'g, 'a>> {
    let point =
        |row: &'g Row<'a>| Some((row, cost(row).filter(|c| *c > 0.0)?, row.average()?.mean));
    rows.iter().filter_map(point).collect()
}

fn kind(row: &Row<'_>) -> usize {
    let ours = row.variant.is_some_and(|v| v.is_metric() || v.flip || v.lift);
    match row.kind {
        _ if !row.exemplar_free => 3,
        Kind::Variant if ours => 1,
        Kind::Variant => 0,
        Kind::Peer | Kind::Baseline => 2,
    }
}

fn chart(
    group: &Group<'_>,
    name: &str,
    title: &str,
    x: Axis,
    points: &[Point<'_, '_>],
) -> Option<Shown> {
    if points.is_empty() || group.rows.len() < 2 {
        return None;
    }
    let beaten = |(_, cost, accuracy): &Point<'_, '_>| {
        let mut honest = points.iter().filter(|(row, ..)| row.is_honest());
        honest.any(|(_, c, a)| c <= cost && a >= accuracy && (c < cost || a > accuracy))
    };
    let beaten: Vec<bool> = points.iter().map(beaten).collect();
    // the best is named first, then what is not ours, then a few more that none beats
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by(|&a, &b| points[b].2.total_cmp(&points[a].2));
    let best = order.iter().copied().find(|&at| !beaten[at]);
    order.retain(|at| Some(*at) != best);
    let (others, own): (Vec<usize>, Vec<usize>) =
        order.iter().partition(|&&at| points[at].0.kind != Kind::Variant);
    let own = own.into_iter().filter(|&at| !beaten[at]).take(OWN);
    let named: Vec<usize> = best.into_iter().chain(others).chain(own).collect();
    let marked: Vec<&Row<'_>> = named.iter().map(|&at| points[at].0).collect();
    order.retain(|at| !named.contains(at));
    let dot = |at: usize, named: bool| {
        let (row, cost, accuracy) = points[at];
        Dot { at: (cost, accuracy), name: named.then(|| row.marked()), kind: kind(row) }
    };
    let dots = named.iter().map(|&at| dot(at, true)).chain(order.iter().map(|&at| dot(at, false)));
    let values = points.iter().map(|(_, _, accuracy)| *accuracy);
    let figure = Chart {
        name: &format!("{name}-{}", group.title()),
        title,
        x,
        y: Axis::new(
            format!("average accuracy, % (n = {} test images)", group.tested()),
            Scale::within(values, 0.0, 100.0),
        ),
        dots: dots.collect(),
        kinds: vec![
            ("variants of the paper".to_owned(), palette::line(0)),
            ("our own".to_owned(), palette::line(1)),
            ("other methods".to_owned(), palette::line(2)),
            ("keeps samples".to_owned(), palette::line(3)),
        ],
        lines: Vec::new(),
    };
    let caption = "Named, as far as there is room: the best, methods that are not ours, and some that \
                   none beats in both.";
    Some(Shown::new(figure.draw(), format!("{caption}{}", outdated(&marked))))
}
