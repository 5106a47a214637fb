//! HV, the disagreement of an image's rotations: by class, and against what rotations gain.

use ivoro::Variant;
use ivoro::head::Views;
use ivoro_eval::metrics::{mean_deviation, pearson};
use ivoro_eval::record::{ClassOutcome, PhaseOutcome};

use crate::figures::{MOST_PHASES, Shown, evenly, some_phases};
use crate::group::{Group, Row};
use crate::plot::boxes::{self, Whiskers};
use crate::plot::canvas::Figure;
use crate::plot::frame::Axis;
use crate::plot::palette;
use crate::plot::scale::{Scale, bounds};
use crate::plot::scatter::{self, Dot};
use crate::plot::text::{self, number};

/// Classes that have a box of their own; of more, every n-th in the order of HV is drawn.
const MOST_BOXES: usize = 200;
/// Runs that have a colour and a mark of their own; of more, every fourth shares them.
const MOST_KINDS: usize = 4;
/// Room for the names of classes below their boxes.
const ROOM: f64 = 300.0;

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

/// A class in a phase: its place in the order of arrival, HV, accuracy and test images.
type ClassOfPhase = (usize, [f64; 5], f64, usize);

/// Classes of one phase in the order of HV.
fn classes_by_uncertainty(phase: &PhaseOutcome, plain: &PhaseOutcome) -> Vec<ClassOfPhase> {
    let finite = |five: &[f64; 5]| five.iter().all(|value| value.is_finite());
    let both = phase.by_class.iter().zip(&plain.by_class).enumerate();
    let mut classes: Vec<ClassOfPhase> = both
        .filter_map(|(at, (class, of_plain))| {
            Some((at, class.hv.filter(finite)?, share(of_plain), class.tested))
        })
        .collect();
    classes.sort_by(|a, b| a.1[2].total_cmp(&b.1[2]));
    classes
}

/// HV by class, one picture a phase, coloured by the accuracy of the plain diagram; all phases have
/// one scale and one range of colours.
pub(crate) fn by_class(group: &Group<'_>) -> Vec<Shown> {
    let with = group.row("iVoro-AI").or_else(|| integrated(group).map(|(row, _)| row));
    let Some(row) = with else { return Vec::new() };
    let plain = group.row("iVoro").unwrap_or(row);
    let phases = &row.first().method.phases;
    // HV and accuracy of one run, or a class would be held against another
    let same = plain.entries.iter().find(|entry| entry.run == row.first().run);
    let (plain, accurate) = same.map_or((row, row.first()), |entry| (plain, entry));
    let chosen = evenly(phases.len(), MOST_PHASES);
    let accuracy_of = |at: usize| accurate.method.phases.get(at).unwrap_or(&phases[at]);
    let drawn: Vec<(usize, Vec<ClassOfPhase>)> = chosen
        .into_iter()
        .map(|at| (phases[at].phase, classes_by_uncertainty(&phases[at], accuracy_of(at))))
        .filter(|(_, classes)| classes.len() > 1)
        .collect();
    let all = || drawn.iter().flat_map(|(_, classes)| classes);
    let Some(accuracy) = bounds(all().map(|(_, _, share, _)| *share)) else { return Vec::new() };
    let hv: Vec<f64> = all().flat_map(|(_, five, ..)| *five).filter(|value| *value > 0.0).collect();
    let some = some_phases(drawn.len(), phases.len());
    let of_phase = |(phase, classes): &(usize, Vec<ClassOfPhase>)| {
        let mut shown = boxes_of(group, row, plain, (*phase, classes), accuracy, &hv);
        shown.caption.push_str(&some);
        shown
    };
    drawn.iter().map(of_phase).collect()
}

fn boxes_of(
    group: &Group<'_>,
    row: &Row<'_>,
    plain: &Row<'_>,
    (phase, classes): (usize, &[ClassOfPhase]),
    (low, high): (f64, f64),
    hv: &[f64],
) -> Shown {
    let count = classes.len();
    let kept: Vec<ClassOfPhase> =
        evenly(count, MOST_BOXES).into_iter().map(|at| classes[at]).collect();
    let (median, accuracy): (Vec<f64>, Vec<f64>) =
        classes.iter().map(|(_, five, share, _)| (five[2], *share)).unzip();
    let place = |share: f64| if high > low { (share - low) / (high - low) } else { 0.5 };
    let boxes = kept.iter().map(|(_, five, share, _)| {
        Some(Whiskers { five: *five, colour: palette::ramp(place(*share)) })
    });
    let names = kept.iter().filter_map(|(at, ..)| row.first().record.classes.get(*at).cloned());
    let names: Vec<String> = names.collect();
    let long: f64 = names.iter().map(|name| text::width(name, text::SIZE) + 6.0).sum();
    let scale = if names.len() == kept.len() && long < ROOM {
        Scale::places(names)
    } else {
        Scale::fixed(-0.5, kept.len() as f64 - 0.5, Vec::new())
    };
    let title = format!("{}: HV of {} by class, phase {phase}", group.title(), row.label);
    let coloured = format!("accuracy under {}", plain.label);
    let tested = counted(classes.iter().map(|(.., tested)| *tested));
    let figure = boxes::Chart {
        name: &format!("hv-{}-phase-{phase}", group.title()),
        title: &title,
        x: Axis::new(format!("classes in the order of HV (n = {count})"), scale),
        y: Axis::new(
            format!("HV of a class's images (n = {tested} each), distance⁴"),
            Scale::logarithmic(hv.iter().copied(), power_of_ten),
        ),
        boxes: boxes.collect(),
        ramp: Some((&coloured, format!("{} %", number(low, 0)), format!("{} %", number(high, 0)))),
    };
    let correlation = pearson(&median, &accuracy).map_or(String::new(), |r| {
        format!(
            " Median HV and accuracy of a class: Pearson's r = {} over {count} classes.",
            number(r, 2)
        )
    });
    let caption = format!(
        "Median, quartiles, 5 and 95 %. Colour: accuracy of the class under {}.{correlation}{}",
        plain.label,
        row.which()
    );
    Shown::new(figure.draw(), caption)
}

/// `100`, or `892 to 1135`.
fn counted(counts: impl Iterator<Item = usize> + Clone) -> String {
    let (few, many) = (counts.clone().min().unwrap_or(0), counts.max().unwrap_or(0));
    if few == many { many.to_string() } else { format!("{few} to {many}") }
}

/// A tick of a logarithmic scale.
fn power_of_ten(value: f64) -> String {
    let exponent = (value.log10() + 1e-9).floor() as i32;
    let first = value / 10f64.powi(exponent);
    let times = if (first - 1.0).abs() < 1e-6 { String::new() } else { format!("{first:.0}·") };
    let raised = |digit: char| "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().nth(digit as usize - '0' as usize);
    let digits: String = exponent.abs().to_string().chars().filter_map(raised).collect();
    format!("{times}10{}{digits}", if exponent < 0 { "⁻" } else { "" })
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

/// Classes of one run: what rotations gain for each, and its mean HV.
fn gained(with: &PhaseOutcome, plain: &PhaseOutcome) -> Vec<(f64, f64)> {
    let classes = with.by_class.iter().zip(&plain.by_class);
    let one = |(class, alone): (&ClassOutcome, &ClassOutcome)| {
        Some((share(class) - share(alone), class.uncertainty.filter(|hv| hv.is_finite())?))
    };
    classes.filter_map(one).collect()
}

fn gain(group: &Group<'_>, with: &Row<'_>, without: &Row<'_>) -> Option<Shown> {
    // of every run that has both
    let pairs = with.entries.iter().filter_map(|entry| {
        let other = without.entries.iter().find(|other| other.run == entry.run)?;
        Some((entry.last()?, other.last()?))
    });
    let mut runs: Vec<Vec<(f64, f64)>> = pairs.map(|(last, plain)| gained(last, plain)).collect();
    let mut label = "mean HV of the class, distance⁴";
    if runs.len() > 1 {
        label = "mean HV of the class / mean of its run";
        runs.iter_mut().for_each(|run| relative(run));
    }
    let points: Vec<(f64, f64)> = runs.concat();
    if points.len() < 3 {
        return None;
    }
    let told = |r: Option<f64>| r.map_or("not defined".to_owned(), |r| number(r, 2));
    // networks differ in their distances, so that runs can't be thrown together
    let by_run: Vec<Option<f64>> = runs.iter().map(|run| correlation(run)).collect();
    let defined: Vec<f64> = by_run.iter().copied().flatten().collect();
    let mean = (!defined.is_empty()).then(|| mean_deviation(&defined).0);
    let over = if runs.len() > 1 { ", the mean of its runs" } else { "" };
    let title = format!(
        "{}: HV against the gain of {} over {}, Pearson's r = {}{over}",
        group.title(),
        with.label,
        without.label,
        told(mean)
    );
    let classes = match runs.len() {
        1 => format!("n = {} classes", points.len()),
        several => format!("n = {} classes, {several} runs", points.len() / several),
    };
    let x = Axis::new(
        format!("Δ accuracy of the class, points ({classes})"),
        Scale::over(points.iter().map(|(gain, _)| *gain)),
    );
    let y = Axis::new(label, Scale::over(points.iter().map(|(_, hv)| *hv)));
    let name = format!("hv-gain-{}-{}", group.title(), with.label);
    let figure = by_runs(&name, &title, x, y, &runs);
    let last = with.first().last()?;
    let tested = last.by_class.iter().map(|class| class.tested).filter(|tested| *tested > 0);
    let each: Vec<String> = by_run.iter().map(|r| told(*r)).collect();
    let each = match each.len() {
        1 => String::new(),
        _ => {
            format!(" By run r is {}; a line is that of least squares of one run.", each.join(", "))
        }
    };
    let caption = format!(
        "After the last phase, {} test images a class, so one image is up to {} points of Δ.{each} The \
         paper finds r up to about 0.9 on ImageNet-Subset.",
        counted(tested.clone()),
        number(100.0 / tested.min().unwrap_or(1).max(1) as f64, 1)
    );
    Some(Shown::new(figure, caption))
}

/// The points of each run under a mark of its own, with the line that fits them.
fn by_runs(name: &str, title: &str, x: Axis, y: Axis, runs: &[Vec<(f64, f64)>]) -> Figure {
    let kind = |run: usize| run % MOST_KINDS;
    let dots = runs.iter().enumerate().flat_map(|(run, points)| {
        points.iter().map(move |&at| Dot { at, name: None, kind: kind(run) })
    });
    let sloped = runs.iter().enumerate().filter(|(_, points)| correlation(points).is_some());
    let lines = sloped.map(|(run, points)| (kind(run), regression(points)));
    let kinds = (0..runs.len().min(MOST_KINDS)).map(|run| {
        let same: Vec<String> =
            (run..runs.len()).step_by(MOST_KINDS).map(|run| (run + 1).to_string()).collect();
        let runs = if same.len() > 1 { "runs" } else { "run" };
        (format!("{runs} {}", same.join(", ")), palette::line(run))
    });
    let (dots, lines, kinds) = (dots.collect(), lines.collect(), kinds.collect());
    scatter::Chart { name, title, x, y, dots, kinds, lines }.draw()
}

fn correlation(points: &[(f64, f64)]) -> Option<f64> {
    let (x, y): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
    pearson(&x, &y)
}

/// HV in multiples of its mean: that of one network's distances differs from another's by its unit.
fn relative(run: &mut [(f64, f64)]) {
    let mean = run.iter().map(|(_, hv)| hv).sum::<f64>() / run.len().max(1) as f64;
    if mean > 0.0 {
        run.iter_mut().for_each(|(_, hv)| *hv /= mean);
    }
}

/// The line of least squares over the range of x.
fn regression(points: &[(f64, f64)]) -> [(f64, f64); 2] {
    let count = points.len().max(1) as f64;
    let (mx, my) =
        points.iter().fold((0.0, 0.0), |(mx, my), (x, y)| (mx + x / count, my + y / count));
    let sxy: f64 = points.iter().map(|(x, y)| (x - mx) * (y - my)).sum();
    let sxx: f64 = points.iter().map(|(x, _)| (x - mx).powi(2)).sum();
    let slope = if sxx > 0.0 { sxy / sxx } else { 0.0 };
    let (low, high) = bounds(points.iter().map(|(x, _)| *x)).unwrap_or((0.0, 0.0));
    [low, high].map(|at| (at, my + slope * (at - mx)))
}

#[cfg(test)]
mod tests {
    use super::{power_of_ten, regression, relative};

    #[test]
    fn ticks_are_powers() {
        assert_eq!([1e3, 1e-12, 1.0, 5e4].map(power_of_ten), ["10³", "10⁻¹²", "10⁰", "5·10⁴"]);
    }

    #[test]
    fn hv_is_held_against_its_own_run() {
        let mut run = [(3.0, 10.0), (1.0, 30.0)];
        relative(&mut run);
        assert_eq!(run, [(3.0, 0.5), (1.0, 1.5)]);
        let mut nothing = [(1.0, 0.0)];
        relative(&mut nothing);
        assert_eq!(nothing, [(1.0, 0.0)]);
    }

    #[test]
    fn a_straight_line_is_found() {
        let [(a, b), (c, d)] = regression(&[(0.0, 1.0), (1.0, 3.0), (3.0, 7.0)]);
        assert_eq!((a, c), (0.0, 3.0));
        assert!((b - 1.0).abs() < 1e-12 && (d - 7.0).abs() < 1e-12);
    }
}
