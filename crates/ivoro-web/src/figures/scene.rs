//! Diagrams in the plane: exact cells, samples and sites, phase after phase.

use ivoro::Matrix;
use ivoro::diagram::{PowerDiagram, Rectangle, plane_cells};
use ivoro::picture::{Scene, ScenePhase, Site};

use crate::figures::Shown;
use crate::plot::canvas::{Anchor, Canvas, Figure, Pen, WIDTH};
use crate::plot::palette;
use crate::plot::scatter::{Names, mark};
use crate::plot::text::number;

/// Classes whose names are written at their sites.
const MOST_NAMES: usize = 40;
/// Air around a picture.
const EDGE: f64 = 4.0;

/// From the plane of the diagram to the canvas.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    shown: Rectangle,
    top: f64,
    unit: f64,
}

impl View {
    /// A rectangle as wide as the canvas; one that is very flat or very steep is made squarer.
    pub(crate) fn new(mut shown: Rectangle, top: f64) -> Self {
        let side = |r: &Rectangle, axis: usize| r.high[axis] - r.low[axis];
        let ratio = (side(&shown, 1) / side(&shown, 0)).clamp(0.6, 1.15);
        let wide = side(&shown, 0).max(side(&shown, 1) / ratio);
        for (axis, wanted) in [(0, wide), (1, wide * ratio)] {
            let more = (wanted - side(&shown, axis)) / 2.0;
            shown.low[axis] -= more;
            shown.high[axis] += more;
        }
        Self { shown, top, unit: (WIDTH - 2.0 * EDGE) / wide }
    }

    pub(crate) fn at(&self, [x, y]: [f64; 2]) -> (f64, f64) {
        (
            EDGE + (x - self.shown.low[0]) * self.unit,
            self.top + (self.shown.high[1] - y) * self.unit,
        )
    }

    pub(crate) fn bottom(&self) -> f64 {
        self.at(self.shown.low).1
    }

    pub(crate) fn rectangle(&self) -> Rectangle {
        self.shown
    }

    fn holds(&self, [x, y]: [f64; 2]) -> bool {
        let (low, high) = (self.shown.low, self.shown.high);
        x >= low[0] && x <= high[0] && y >= low[1] && y <= high[1]
    }
}

/// One picture a phase.
pub(crate) fn pictures(scene: &Scene) -> Vec<Shown> {
    let sites = scene.phases.iter().flat_map(|phase| phase.sites.iter().map(|site| site.at));
    let samples = scene.phases.iter().flat_map(|p| p.samples.iter().map(|&(x, y, _)| [x, y]));
    let all = sites.chain(samples).map(|at| at.map(f64::from));
    let Some(shown) = Rectangle::around(all, 0.03) else { return Vec::new() };
    let phases = scene.phases.iter().enumerate();
    phases.filter_map(|(at, phase)| picture(scene, at, phase, shown)).collect()
}

fn picture(scene: &Scene, at: usize, phase: &ScenePhase, shown: Rectangle) -> Option<Shown> {
    let title = format!("{}: {}, phase {at}", scene.data_set, scene.method);
    let mut canvas = Canvas::default();
    let mut used = canvas.title(&title);
    let note = format!("both features of the network, n = {} samples", phase.samples.len());
    used = canvas.note(used, &note);
    let sisters = phase.sites.iter().any(|site| site.sister > 0);
    if sisters {
        used = crate::plot::scatter::legend(&mut canvas, used, &turns(), true);
    }
    let view = View::new(shown, used + 2.0);
    let figure = draw(canvas, scene, phase, view, &format!("scene-{title}"), &title)?;
    let accuracy =
        phase.accuracy.map_or(String::new(), |a| format!(" Accuracy {} %", number(a, 1)));
    let parts: Vec<String> = phase
        .accuracy_by_phase
        .iter()
        .map(|part| part.map_or("–".to_owned(), |value| number(value, 1)))
        .collect();
    let parts = match parts.len() {
        0 | 1 => String::new(),
        _ => format!(" ({} on the classes of each phase)", parts.join(" / ")),
    };
    let stop = if accuracy.is_empty() { "" } else { "." };
    let weighted = phase.sites.iter().any(|site| site.weight != 0.0);
    let cells = match (sisters, weighted) {
        (true, _) => "Each class has a cell for each rotation.",
        (false, true) => "Sites have weights, so that one may lie outside its own cell.",
        (false, false) => "",
    };
    let caption = format!(
        "Exact cells of {} sites with {} samples.{accuracy}{parts}{stop} {cells}",
        phase.sites.len(),
        phase.samples.len()
    );
    Some(Shown::new(figure, caption.trim().to_owned()))
}

fn turns() -> Vec<(String, &'static str)> {
    ["upright", "90°", "180°", "270°"].map(|turn| (turn.to_owned(), palette::REFERENCE)).to_vec()
}

fn draw(
    mut canvas: Canvas,
    scene: &Scene,
    phase: &ScenePhase,
    view: View,
    name: &str,
    title: &str,
) -> Option<Figure> {
    let finite = |site: &&Site| site.at.iter().chain([&site.weight]).all(|v| v.is_finite());
    let sites: Vec<Site> = phase.sites.iter().filter(finite).copied().collect();
    let centres =
        Matrix::new(sites.len(), 2, sites.iter().flat_map(|site| site.at).collect()).ok()?;
    let diagram =
        PowerDiagram::new(centres, sites.iter().map(|site| site.weight).collect()).ok()?;
    for (site, polygon) in sites.iter().zip(plane_cells(&diagram, view.rectangle()).ok()?) {
        let points: Vec<(f64, f64)> = polygon.iter().map(|&point| view.at(point)).collect();
        if !points.is_empty() {
            let pen = Pen::new("currentColor", 0.8).faint(0.55);
            canvas.polygon(&points, palette::area(site.class as usize), 0.26, pen);
        }
    }
    let classes = scene.classes.len().max(sites.iter().map(|s| s.class as usize + 1).max()?);
    let mut dots: Vec<Vec<(f64, f64)>> = vec![Vec::new(); classes.min(1 << 20)];
    for &(x, y, class) in &phase.samples {
        let at = [f64::from(x), f64::from(y)];
        if let Some(of_class) = dots.get_mut(class as usize).filter(|_| view.holds(at)) {
            of_class.push(view.at(at));
        }
    }
    for (class, points) in dots.into_iter().enumerate().filter(|(_, points)| !points.is_empty()) {
        canvas.dots(points, 2.0, palette::area(class), 0.75);
    }
    draw_sites(&mut canvas, scene, &sites, view);
    let corners = view.rectangle().corners().map(|corner| view.at(corner));
    let frame = [corners.as_slice(), &corners[..1]].concat();
    canvas.polyline(&frame, Pen::new("currentColor", 1.0).faint(0.6));
    Some(canvas.finish(name, title, view.bottom() + EDGE))
}

fn draw_sites(canvas: &mut Canvas, scene: &Scene, sites: &[Site], view: View) {
    let places: Vec<(f64, f64)> =
        sites.iter().map(|site| view.at(site.at.map(f64::from))).collect();
    for (site, &at) in sites.iter().zip(&places) {
        mark(canvas, at, site.sister as usize, palette::area(site.class as usize));
    }
    let upright = sites.iter().zip(&places).filter(|(site, _)| site.sister == 0);
    if upright.clone().count() > MOST_NAMES {
        return;
    }
    let mut names = Names::new(
        ((EDGE, view.at([0.0, view.shown.high[1]]).1), (WIDTH - EDGE, view.bottom())),
        &places,
    );
    for (site, &at) in upright {
        let number = site.class.to_string();
        let name = scene.classes.get(site.class as usize).unwrap_or(&number);
        names.put(canvas, name, at, true);
    }
}

/// Used by the schematic too: a site with a label at its right.
pub(crate) fn labelled(canvas: &mut Canvas, at: (f64, f64), fill: &str, label: &str) {
    canvas.circle(at, 4.0, fill, Pen::new("currentColor", 0.8));
    if !label.is_empty() {
        canvas.text((at.0 + 7.0, at.1 + 4.0), Anchor::Start, label);
    }
}
