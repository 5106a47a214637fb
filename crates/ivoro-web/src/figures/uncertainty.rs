//! HV, the disagreement of an image's rotations: by class, and against what rotations gain.

use ivoro::Variant;
use ivoro::head::Views;
use ivoro::metrics::pearson;
use ivoro::record::{ClassOutcome, PhaseOutcome};

use crate::figures::{Shown, evenly};
use crate::group::{Group, Row};
use crate::plot::boxes::{self, Whiskers};
use crate::plot::frame::Axis;
use crate::plot::palette;
use crate::plot::scale::Scale;
use crate::plot::scatter::{self, Dot};
use crate::plot::text::number;

/// Phases that have a picture of their own.
const MOST_PHASES: usize = 6;
/// Classes that have a box of their own; of more, every n-th in the order of HV is drawn.
const MOST_BOXES: usize = 200;

/// Variants with AI that have a partner without, the plainest first.
fn integrated<'g, 'a>(group: &'g Group<'a>) -> Option<(&'g Row<'a>, &'g Row<'a>)> {
    let with = group.rows.iter().filter_map(|row| {
        let variant = row.variant.filter(|v| v.views == Views::Integration && !v.is_metric())?;
        let single = Variant { views: Views::Single, ..variant };
        Some((row, group.row(&single.to_string())?))
    });
    with.max_by_key(|(row, _)| row.variant.is_some_and(|v| v.to_string() == "iVoro-AI"))
}

fn share(class: &ClassOutcome) -> f64 {
    100.0 * class.correct as f64 / class.tested.max(1) as f64
}

/// HV by class, one picture a phase, coloured by the accuracy of the plain diagram.
pub(crate) fn by_class(group: &Group<'_>) -> Vec<Shown> {
    let with = group.row("iVoro-AI").or_else(|| integrated(group).map(|(row, _)| row));
    let Some(row) = with else { return Vec::new() };
    let plain = group.row("iVoro").unwrap_or(row);
    let phases = &row.first().method.phases;
    let chosen = evenly(phases.len(), MOST_PHASES);
    let drawn = chosen.into_iter().filter_map(|at| {
        let judge = plain.first().method.phases.get(at).unwrap_or(&phases[at]);
        boxes_of(group, row, plain, &phases[at], judge)
    });
    let mut drawn: Vec<Shown> = drawn.collect();
    let (count, all) = (drawn.len(), phases.len());
    if let Some(last) = drawn.last_mut().filter(|_| count < all) {
        last.caption = format!("{} {count} of {all} phases are drawn.", last.caption);
    }
    drawn
}

fn boxes_of(
    group: &Group<'_>,
    row: &Row<'_>,
    plain: &Row<'_>,
    phase: &PhaseOutcome,
    judge: &PhaseOutcome,
) -> Option<Shown> {
    let finite = |five: &[f64; 5]| five.iter().all(|value| value.is_finite());
    let mut classes: Vec<([f64; 5], f64)> = phase
        .by_class
        .iter()
        .zip(&judge.by_class)
        .filter_map(|(class, judged)| Some((class.hv.filter(finite)?, share(judged))))
        .collect();
    if classes.len() < 2 {
        return None;
    }
    classes.sort_by(|a, b| a.0[2].total_cmp(&b.0[2]));
    let count = classes.len();
    let kept: Vec<_> = evenly(count, MOST_BOXES).into_iter().map(|at| classes[at]).collect();
    let accuracy: Vec<f64> = classes.iter().map(|(_, share)| *share).collect();
    let median: Vec<f64> = classes.iter().map(|(five, _)| five[2]).collect();
    let r = pearson(&median, &accuracy);
    let (low, high) = crate::plot::scale::bounds(accuracy)?;
    let place = |share: f64| if high > low { (share - low) / (high - low) } else { 0.5 };
    let boxes = kept
        .iter()
        .map(|(five, share)| Some(Whiskers { five: *five, colour: palette::ramp(place(*share)) }));
    let values = kept.iter().flat_map(|(five, _)| *five).filter(|value| *value > 0.0);
    let title = format!("{}: HV of {} by class, phase {}", group.title(), row.label, phase.phase);
    let figure = boxes::Chart {
        name: &format!("hv-{}-phase-{}", group.title(), phase.phase),
        title: &title,
        x: Axis::new(
            format!("classes in the order of HV (n = {count})"),
            Scale::fixed(-0.5, kept.len() as f64 - 0.5, Vec::new()),
        ),
        y: Axis::new(
            "HV of the test images of a class, distance⁴",
            Scale::logarithmic(values, |value| format!("{value:.0e}")),
        ),
        boxes: boxes.collect(),
        ramp: Some(("accuracy", format!("{} %", number(low, 0)), format!("{} %", number(high, 0)))),
    };
    let correlation = r.map_or(String::new(), |r| {
        format!(" Median HV and accuracy of a class: Pearson's r = {}.", number(r, 2))
    });
    let caption = format!(
        "Median, quartiles, 5 and 95 %. Colour: accuracy of the class under {}.{correlation}",
        plain.label
    );
    Some(Shown::new(figure.draw(), caption))
}

/// Mean HV of a class against what adding up rotations gains for it.
pub(crate) fn against_gain(group: &Group<'_>) -> Vec<Shown> {
    let pairs = [("iVoro-AI", "iVoro"), ("iVoro-NAI", "iVoro-N")];
    let found = pairs
        .iter()
        .filter_map(|(with, without)| gain(group, group.row(with)?, group.row(without)?));
    let mut shown: Vec<Shown> = found.collect();
    if shown.is_empty() {
        shown.extend(integrated(group).and_then(|(with, without)| gain(group, with, without)));
    }
    shown
}

fn gain(group: &Group<'_>, with: &Row<'_>, without: &Row<'_>) -> Option<Shown> {
    let (last, plain) = (with.first().last()?, without.first().last()?);
    let classes = last.by_class.iter().zip(&plain.by_class);
    let dots: Vec<Dot> = classes
        .filter_map(|(class, alone)| {
            let hv = class.uncertainty.filter(|hv| hv.is_finite())?;
            Some(Dot { at: (share(class) - share(alone), hv), name: None, over: false, kind: 0 })
        })
        .collect();
    let (x, y): (Vec<f64>, Vec<f64>) = dots.iter().map(|dot| dot.at).unzip();
    if dots.len() < 3 {
        return None;
    }
    let r = pearson(&x, &y);
    let name = r.map_or("not defined".to_owned(), |r| number(r, 2));
    let title = format!(
        "{}: HV against the gain of {} over {}, Pearson's r = {name}",
        group.title(),
        with.label,
        without.label
    );
    let figure = scatter::Chart {
        name: &format!("hv-gain-{}-{}", group.title(), with.label),
        title: &title,
        x: Axis::new(
            format!("Δ accuracy of the class, points (n = {} classes)", dots.len()),
            Scale::over(x.iter().copied()),
        ),
        y: Axis::new("mean HV of the class, distance⁴", Scale::over(y.iter().copied())),
        line: r.map(|_| regression(&x, &y)),
        dots,
        kinds: vec![("class".to_owned(), palette::line(0))],
    };
    let tested = last.by_class.iter().map(|class| class.tested).max().unwrap_or(0);
    let caption = format!(
        "After the last phase, {tested} test images a class, so one image is {} points of Δ. The \
         paper finds r up to about 0.9 on ImageNet-Subset.",
        number(100.0 / tested.max(1) as f64, 1)
    );
    Some(Shown::new(figure.draw(), caption))
}

/// The line of least squares over the range of x.
fn regression(x: &[f64], y: &[f64]) -> [(f64, f64); 2] {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (mx, my) = (mean(x), mean(y));
    let sxy: f64 = x.iter().zip(y).map(|(x, y)| (x - mx) * (y - my)).sum();
    let sxx: f64 = x.iter().map(|x| (x - mx).powi(2)).sum();
    let slope = if sxx > 0.0 { sxy / sxx } else { 0.0 };
    let (low, high) = crate::plot::scale::bounds(x.iter().copied()).unwrap_or((0.0, 0.0));
    [low, high].map(|at| (at, my + slope * (at - mx)))
}

#[cfg(test)]
mod tests {
    use super::regression;

    #[test]
    fn a_straight_line_is_found() {
        let [(a, b), (c, d)] = regression(&[0.0, 1.0, 3.0], &[1.0, 3.0, 7.0]);
        assert_eq!((a, c), (0.0, 3.0));
        assert!((b - 1.0).abs() < 1e-12 && (d - 7.0).abs() < 1e-12);
    }
}
