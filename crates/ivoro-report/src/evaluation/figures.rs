//! Figures of the page: who is taken for whom, and confidence against the share that is right.

use std::collections::HashMap;

use ivoro_eval::evaluation::{Findings, Reliability};

use crate::figures::Shown;
use crate::figures::confusion::{Names, Shares, draw};
use crate::plot::canvas::Canvas;
use crate::plot::frame::Axis;
use crate::plot::lines::{Chart, Series};
use crate::plot::scale::Scale;

/// The confusion matrix of all classes that were asked about or given.
pub(super) fn confusion(found: &Findings) -> Option<Shown> {
    let there: Vec<_> =
        found.classes.iter().filter(|class| class.queries > 0 || class.named > 0).collect();
    let place: HashMap<&str, usize> =
        there.iter().enumerate().map(|(at, class)| (class.class.as_str(), at)).collect();
    let right = there.iter().enumerate().map(|(at, class)| [at, at, class.right]);
    let wrong = found.confusions.iter().filter_map(|it| {
        Some([*place.get(it.class.as_str())?, *place.get(it.named.as_str())?, it.queries])
    });
    let counts: Vec<[usize; 3]> = right.chain(wrong).collect();
    let shares = Shares::of(&counts, there.len())?;
    let title = "True class and the class given";
    let mut canvas = Canvas::default();
    let used = canvas.title(title);
    let note = format!("down: true class, in order of arrival (n = {} queries)", found.queries);
    let used = canvas.note(used, &note);
    let names: Vec<&str> = there.iter().map(|class| class.class.as_str()).collect();
    let bottom = draw(&mut canvas, &shares, used, &Names { classes: &names, borders: &[] });
    let caption = format!(
        "Rows: true class (n = {} classes). The stronger the colour, the larger the share of the row.{}",
        there.len(),
        shares.together()
    );
    Some(Shown::new(canvas.finish("confusion", title, bottom + 24.0), caption))
}

/// Confidence against the share of right answers.
pub(super) fn reliability(found: &Reliability) -> Shown {
    let percent = || {
        let ticks = [0, 20, 40, 60, 80, 100].map(|at| (f64::from(at), at.to_string()));
        Scale::fixed(0.0, 100.0, ticks.to_vec())
    };
    let answers: usize = found.bins.iter().map(|bin| bin.queries).sum();
    let points = found.bins.iter().map(|bin| (100.0 * bin.confidence, 100.0 * bin.accuracy));
    let figure = Chart {
        name: "reliability",
        title: "Confidence and what turned out to be right",
        x: Axis::new("mean confidence in the bin, %", percent()),
        y: Axis::new(format!("right answers in the bin, % (n = {answers} answers)"), percent()),
        series: vec![Series::new("this model", points.collect())],
        marks: true,
        guide: Some([(0.0, 0.0), (100.0, 100.0)]),
    };
    let caption = format!(
        "{} bins of as many answers each. Below the dashed line answers are surer than they should be.",
        found.bins.len()
    );
    Shown::new(figure.draw(), caption)
}
