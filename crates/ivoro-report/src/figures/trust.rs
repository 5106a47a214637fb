//! How far answers can be trusted: reliability, risk against coverage, rejection of unknowns.

use ivoro_eval::record::PhaseOutcome;

use crate::figures::{MOST_PHASES, Shown, evenly, featured, some_phases};
use crate::group::{Group, Row};
use crate::plot::canvas::Figure;
use crate::plot::frame::Axis;
use crate::plot::lines::{Chart, MOST_LINES, Series};
use crate::plot::scale::Scale;
use crate::plot::text::number;

/// Answers in a bin whose share of right ones is more than chance.
const FEWEST: usize = 10;

/// Percent of a share, from 0 to 100.
fn percent() -> Scale {
    let ticks = [0, 20, 40, 60, 80, 100].map(|at| (f64::from(at), at.to_string()));
    Scale::fixed(0.0, 100.0, ticks.to_vec())
}

fn scaled(points: &[[f64; 2]]) -> Vec<(f64, f64)> {
    points.iter().map(|[x, y]| (100.0 * x, 100.0 * y)).collect()
}

/// Featured methods of which the last phase has what `pick` asks for.
fn lines(
    group: &Group<'_>,
    pick: impl Fn(&PhaseOutcome) -> (Option<f64>, Vec<(f64, f64)>),
) -> Vec<Series> {
    let line = |row: &Row<'_>| {
        let (value, points) = pick(row.first().last()?);
        let name = match value {
            Some(value) => format!("{} {}", number(value, 2), row.label),
            None => row.label.clone(),
        };
        (points.len() > 1).then(|| Series::new(name, points))
    };
    featured(group).into_iter().filter_map(line).take(MOST_LINES).collect()
}

/// Confidence against the share of right answers.
pub(crate) fn reliability(group: &Group<'_>) -> Option<Shown> {
    let series = lines(group, |phase| {
        let bins = phase.reliability.iter().filter(|bin| bin.count >= FEWEST);
        let points = bins.map(|bin| (100.0 * bin.confidence, 100.0 * bin.accuracy)).collect();
        (phase.calibration_error, points)
    });
    let title = format!(
        "{}: reliability after the last phase, with the calibration error (0 to 1) before each name",
        group.title()
    );
    let figure = chart(
        group,
        "reliability",
        &title,
        ["mean confidence in the bin, %", "right answers in the bin, %"],
        series,
        Some([(0.0, 0.0), (100.0, 100.0)]),
    )?;
    let caption = "Below the dashed line answers are \
                   surer than they should be. Temperatures come from held-out samples of the first \
                   phase; methods without one are not shown.";
    let first = first_of(&featured(group));
    Some(Shown::new(
        figure,
        format!("{caption} Bins of fewer than {FEWEST} answers are left out.{first}"),
    ))
}

/// The share of wrong answers where the least sure are left out.
pub(crate) fn risk_coverage(group: &Group<'_>) -> Option<Shown> {
    let series = lines(group, |phase| (None, scaled(&phase.risk_coverage)));
    let title = format!("{}: risk against coverage after the last phase", group.title());
    let axes = ["answers given, the surest first, %", "wrong among them, %"];
    let figure = chart(group, "risk-coverage", &title, axes, series, None)?;
    let caption = "The sooner a line falls to the left, the better its confidence tells right \
                   from wrong.";
    Some(Shown::new(figure, format!("{caption}{}", first_of(&featured(group)))))
}

/// Known queries rejected wrongly against unknown ones rejected rightly, phase by phase.
pub(crate) fn rejection(group: &Group<'_>) -> Option<Shown> {
    let with = |row: &&Row<'_>| {
        row.first().method.phases.iter().any(|phase| !phase.rejection_roc.is_empty())
    };
    let row = group.best_variant().filter(with).or_else(|| group.rows.iter().find(with))?;
    let phases: Vec<&PhaseOutcome> =
        row.first().method.phases.iter().filter(|phase| phase.rejection_roc.len() > 1).collect();
    let line = |at: usize| {
        let phase = phases[at];
        let area = phase.rejection_auroc.map_or(String::new(), |a| format!(" ({})", number(a, 2)));
        Series::new(format!("phase {}{area}", phase.phase), scaled(&phase.rejection_roc))
    };
    let series: Vec<Series> = evenly(phases.len(), MOST_PHASES).into_iter().map(line).collect();
    let title = format!("{}: rejecting classes not yet seen, {}", group.title(), row.label);
    let figure = chart(
        group,
        "rejection",
        &title,
        ["known queries rejected, %", "unknown queries rejected, %"],
        series,
        Some([(0.0, 0.0), (100.0, 100.0)]),
    )?;
    let caption = "Queries of classes that arrive later are the unknown ones, by strangeness; the later \
                   the phase, the fewer they are. In brackets the area under the curve, 0 to 1; the \
                   dashed line is chance.";
    let some = some_phases(phases.len().min(MOST_PHASES), phases.len());
    Some(Shown::new(figure, format!("{caption}{some}{}", row.which())))
}

/// For a caption: that one run of several is shown, where there are several.
fn first_of(rows: &[&Row<'_>]) -> &'static str {
    if rows.iter().any(|row| row.entries.len() > 1) { " Of several runs, the first." } else { "" }
}

fn chart(
    group: &Group<'_>,
    name: &str,
    title: &str,
    [x, y]: [&str; 2],
    series: Vec<Series>,
    guide: Option<[(f64, f64); 2]>,
) -> Option<Figure> {
    if series.is_empty() {
        return None;
    }
    let most = series.iter().flat_map(|s| s.points.iter().map(|(_, y)| *y)).fold(0.0, f64::max);
    let scale = if guide.is_some() { percent() } else { Scale::within([0.0, most], 0.0, 100.0) };
    let figure = Chart {
        name: &format!("{name}-{}", group.title()),
        title,
        x: Axis::new(x, percent()),
        y: Axis::new(format!("{y} (n = {} test images)", group.tested()), scale),
        series,
        marks: name == "reliability",
        guide,
    };
    Some(figure.draw())
}
