//! What accuracy costs: bytes kept for a class, seconds for a phase.

use ivoro::record::Kind;

use crate::figures::Shown;
use crate::group::{Group, Row};
use crate::plot::frame::Axis;
use crate::plot::palette;
use crate::plot::scale::{Scale, bytes, seconds};
use crate::plot::scatter::{Chart, Dot};

/// Bytes kept for each class against average accuracy.
pub(crate) fn memory(group: &Group<'_>) -> Option<Shown> {
    let cost = |row: &Row<'_>| row.spread(|entry| entry.method.summary.bytes_per_class);
    let points = points(group, |row| Some(cost(row)?.mean));
    let title = format!("{}: bytes kept against accuracy", group.title());
    let scale = Scale::logarithmic(points.iter().map(|(_, x, _)| *x), bytes);
    let x = Axis::new("kept for each class after the last phase", scale);
    chart(group, "bytes", &title, x, &points).map(|figure| {
        figure.with(
            "Named, as far as there is room: the best, methods that are not ours, and some that none \
             beats in both.",
        )
    })
}

/// Seconds for a phase, learning and judging, against average accuracy.
pub(crate) fn time(group: &Group<'_>) -> Option<Shown> {
    let cost = |row: &Row<'_>| {
        row.spread(|entry| entry.method.summary.seconds / entry.method.phases.len().max(1) as f64)
    };
    let points = points(group, |row| Some(cost(row)?.mean));
    let title = format!("{}: seconds against accuracy", group.title());
    let scale = Scale::logarithmic(points.iter().map(|(_, x, _)| *x), seconds);
    let x = Axis::new("for one phase, mean: choosing settings, learning and judging", scale);
    chart(group, "seconds", &title, x, &points).map(|figure| {
        figure.with(
            "A choice of settings that several variants share is in the time of the first of them. \
             Times of one machine can be compared with each other alone.",
        )
    })
}

impl Shown {
    fn with(self, caption: &str) -> Self {
        Self { caption: caption.to_owned(), ..self }
    }
}

/// Variants that are named besides the best.
const OWN: usize = 4;

type Point<'g, 'a> = (&'g Row<'a>, f64, f64);

fn points<'g, 'a>(
    group: &'g Group<'a>,
    cost: impl Fn(&Row<'a>) -> Option<f64>,
) -> Vec<Point<'g, 'a>> {
    let point =
        |row: &'g Row<'a>| Some((row, cost(row).filter(|c| *c > 0.0)?, row.average()?.mean));
    group.rows.iter().filter_map(point).collect()
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
    if points.len() < 2 {
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
        line: None,
    };
    Some(Shown::new(figure.draw(), ""))
}
