//! Diagrams in the plane: exact cells, samples and sites, phase after phase.

use std::collections::BTreeMap;

use ivoro::Matrix;
use ivoro::diagram::{PowerDiagram, Rectangle, plane_cells};
use ivoro_eval::picture::{Scene, ScenePhase, Site};

use crate::figures::Shown;
use crate::plot::canvas::{Anchor, Canvas, Figure, Pen, WIDTH};
use crate::plot::palette;
use crate::plot::scatter::{Names, legend, mark};
use crate::plot::text::{SIZE, fitted, joined, number};

/// Classes whose names are written at their sites.
const MOST_NAMES: usize = 40;
/// Classes without a cell that are named.
const MOST_TOLD: usize = 10;
/// Room for a name in a cell.
const MOST_ROOM: f64 = 90.0;
/// Sites that can be told apart wherever they lie.
const MOST_APART: usize = 16;
/// A part of a picture as small as this that holds most sites has a picture of its own.
const CROWDED: f64 = 0.25;
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
    let both = |(at, phase)| {
        let middle = crowded(phase, shown).map(|middle| (middle, ", the middle"));
        [(shown, "")].into_iter().chain(middle).map(move |(shown, part)| (at, phase, shown, part))
    };
    let all = phases.flat_map(both);
    all.filter_map(|(at, phase, shown, part)| picture(scene, (at, phase), shown, part)).collect()
}

/// Share of the sites, on either axis, that is left out of a picture of the middle.
const OUTER: f64 = 0.15;

/// Where most sites are, if that is a small part of the picture.
fn crowded(phase: &ScenePhase, shown: Rectangle) -> Option<Rectangle> {
    if phase.sites.len() < MOST_APART {
        return None;
    }
    let between = |axis: usize| {
        let mut all: Vec<f32> = phase.sites.iter().map(|site| site.at[axis]).collect();
        all.retain(|value| value.is_finite());
        all.sort_by(f32::total_cmp);
        let outer = (OUTER * all.len() as f64) as usize;
        let (low, high) = (all.get(outer)?, all.get(all.len().checked_sub(outer + 1)?)?);
        Some((f64::from(*low), f64::from(*high)))
    };
    let ((left, right), (bottom, top)) = (between(0)?, between(1)?);
    let middle = Rectangle::around([[left, bottom], [right, top]], 0.08)?;
    // as they will be shown
    let area = |shown: Rectangle| {
        let view = View::new(shown, 0.0);
        let holds = phase.sites.iter().filter(|site| view.holds(site.at.map(f64::from))).count();
        let Rectangle { low, high } = view.rectangle();
        ((high[0] - low[0]) * (high[1] - low[1]), holds)
    };
    let ((part, held), (whole, _)) = (area(middle), area(shown));
    (part < CROWDED * whole && 2 * held > phase.sites.len()).then_some(middle)
}

/// A phase in a part of the plane.
fn picture(
    scene: &Scene,
    (at, phase): (usize, &ScenePhase),
    shown: Rectangle,
    part: &str,
) -> Option<Shown> {
    let title = joined(&scene.data_set, &format!(": {}, phase {at}{part}", scene.method));
    let mut canvas = Canvas::default();
    let mut used = canvas.title(&title);
    let inside = View::new(shown, 0.0);
    let samples = phase.samples.iter().map(|&(x, y, _)| [x, y].map(f64::from));
    let count = samples.filter(|at| part.is_empty() || inside.holds(*at)).count();
    used = canvas.note(used, &format!("both features of the network, n = {count} samples"));
    let sisters = phase.sites.iter().any(|site| site.sister > 0);
    if sisters {
        used = legend(&mut canvas, used, &TURNS.map(|(at, turn)| (at, turn, palette::REFERENCE)));
    }
    let view = View::new(shown, used + 2.0);
    let (figure, without) = draw(canvas, scene, phase, view, &format!("scene-{title}"), &title)?;
    if !part.is_empty() {
        let caption = "The same phase where most of its sites are.";
        return Some(Shown::new(figure, caption));
    }
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
        (true, _) => " Each class has a cell for each rotation.",
        (false, true) => {
            " Sites have weights, so that one may lie outside its own cell: a name without a mark \
             stands in such a cell."
        }
        (false, false) => "",
    };
    let without = match without.len() {
        0 => String::new(),
        count => {
            let mut names: Vec<String> = without.into_iter().take(MOST_TOLD).collect();
            if count > names.len() {
                names.push(format!("{} more", count - names.len()));
            }
            format!(
                " Without a cell in the picture, and so never the answer there: class {}.",
                names.join(", ")
            )
        }
    };
    let caption = format!(
        "Exact cells of {} sites with {} samples.{accuracy}{parts}{stop}{without}{cells}",
        phase.sites.len(),
        phase.samples.len()
    );
    Some(Shown::new(figure, caption.trim().to_owned()))
}

/// Rotations with their marks.
const TURNS: [(usize, &str); 4] = [(0, "upright"), (1, "90°"), (2, "180°"), (3, "270°")];

/// The picture, and the names of sites that have no cell in it.
fn draw(
    mut canvas: Canvas,
    scene: &Scene,
    phase: &ScenePhase,
    view: View,
    name: &str,
    title: &str,
) -> Option<(Figure, Vec<String>)> {
    let finite = |site: &&Site| site.at.iter().chain([&site.weight]).all(|v| v.is_finite());
    let sites: Vec<Site> = phase.sites.iter().filter(finite).copied().collect();
    let centres =
        Matrix::new(sites.len(), 2, sites.iter().flat_map(|site| site.at).collect()).ok()?;
    let diagram =
        PowerDiagram::new(centres, sites.iter().map(|site| site.weight).collect()).ok()?;
    let mut cells: Vec<Vec<(f64, f64)>> = Vec::new();
    for (site, polygon) in sites.iter().zip(plane_cells(&diagram, view.rectangle()).ok()?) {
        let points: Vec<(f64, f64)> = polygon.iter().map(|&point| view.at(point)).collect();
        if !points.is_empty() {
            let pen = Pen::new("currentColor", 0.8).faint(0.55);
            canvas.polygon(&points, palette::area(site.class as usize), 0.26, pen);
        }
        cells.push(points);
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
    draw_sites(&mut canvas, scene, &sites, &cells, view);
    let corners = view.rectangle().corners().map(|corner| view.at(corner));
    let frame = [corners.as_slice(), &corners[..1]].concat();
    canvas.polyline(&frame, Pen::new("currentColor", 1.0).faint(0.6));
    // a class has a cell if one of its sites has
    let mut found: BTreeMap<u32, (&Site, bool)> = BTreeMap::new();
    for (site, cell) in sites.iter().zip(&cells) {
        found.entry(site.class).or_insert((site, false)).1 |= !cell.is_empty();
    }
    let without =
        found.values().filter(|(_, any)| !any).map(|(site, _)| called(scene, site)).collect();
    Some((canvas.finish(name, title, view.bottom() + EDGE), without))
}

/// The name of a site's class.
fn called(scene: &Scene, site: &Site) -> String {
    let name = scene.classes.get(site.class as usize);
    name.cloned().unwrap_or_else(|| site.class.to_string())
}

fn draw_sites(
    canvas: &mut Canvas,
    scene: &Scene,
    sites: &[Site],
    cells: &[Vec<(f64, f64)>],
    view: View,
) {
    let place = |site: &Site| site.at.map(f64::from);
    let seen: Vec<(&Site, &Vec<(f64, f64)>)> =
        sites.iter().zip(cells).filter(|(site, _)| view.holds(place(site))).collect();
    let places: Vec<(f64, f64)> = seen.iter().map(|(site, _)| view.at(place(site))).collect();
    for ((site, _), &at) in seen.iter().zip(&places) {
        mark(canvas, at, site.sister as usize, palette::area(site.class as usize));
    }
    let upright = seen.iter().zip(&places).filter(|((site, _), _)| site.sister == 0);
    if upright.clone().count() > MOST_NAMES {
        return;
    }
    let mut names = Names::new(
        ((EDGE, view.at([0.0, view.shown.high[1]]).1), (WIDTH - EDGE, view.bottom())),
        &places,
    );
    for ((site, _), &at) in upright.clone() {
        names.put(canvas, &called(scene, site), at);
    }
    // a cell that its site lies outside of has the name too
    for ((site, cell), &at) in upright {
        if !cell.is_empty() && !holds(cell, at) {
            let (x, y) = middle(cell);
            let name = fitted(&called(scene, site), SIZE - 1.0, MOST_ROOM);
            canvas.plate((x, y + 4.0), Anchor::Middle, &name, SIZE - 1.0);
        }
    }
}

/// Whether a convex polygon holds a point.
fn holds(polygon: &[(f64, f64)], (x, y): (f64, f64)) -> bool {
    let next = polygon.iter().cycle().skip(1);
    let sides =
        polygon.iter().zip(next).map(|(a, b)| (b.0 - a.0) * (y - a.1) - (b.1 - a.1) * (x - a.0));
    let (low, high) = sides.fold((0f64, 0f64), |(low, high), side| (low.min(side), high.max(side)));
    low >= -1e-6 || high <= 1e-6
}

/// The mean of a polygon's corners: inside, where it is convex.
fn middle(polygon: &[(f64, f64)]) -> (f64, f64) {
    let count = polygon.len().max(1) as f64;
    let sum = polygon.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point.0, sum.1 + point.1));
    (sum.0 / count, sum.1 / count)
}

/// Used by the schematic too: a site with a label at its right.
pub(crate) fn labelled(canvas: &mut Canvas, at: (f64, f64), fill: &str, label: &str) {
    canvas.circle(at, 4.0, fill, Pen::new("currentColor", 0.8));
    if !label.is_empty() {
        canvas.text((at.0 + 7.0, at.1 + 4.0), Anchor::Start, label);
    }
}
