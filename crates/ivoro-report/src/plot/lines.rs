//! Line charts whose lines carry their names at their ends.

use crate::plot::canvas::{Anchor, Canvas, Figure, Pen, WIDTH};
use crate::plot::frame::{Axis, Frame};
use crate::plot::palette;
use crate::plot::text::{SIZE, fitted, width};

/// Lines that have room for their names in one chart.
pub(crate) const MOST_LINES: usize = 9;
/// Height of the plot itself.
const HEIGHT: f64 = 220.0;
/// Most room for a name.
const MOST_NAME: f64 = 178.0;
/// Longest way from the end of a line to its name that has a line of its own.
const MOST_LEADER: f64 = 90.0;
/// Height of a name.
const LINE: f64 = 15.0;

/// A line; points that are no numbers break nothing, they are left out.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
    /// A line that is drawn faintly, for comparison.
    pub(crate) reference: bool,
}

impl Series {
    pub(crate) fn new(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        let finite = |(x, y): &(f64, f64)| x.is_finite() && y.is_finite();
        let points = points.into_iter().filter(finite).collect();
        Self { name: name.into(), points, reference: false }
    }

    pub(crate) fn reference(self) -> Self {
        Self { reference: true, ..self }
    }
}

/// A line chart.
pub(crate) struct Chart<'a> {
    pub(crate) name: &'a str,
    pub(crate) title: &'a str,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
    /// Whether points are marked.
    pub(crate) marks: bool,
    /// A faint line from one value to another, as the diagonal of a reliability diagram.
    pub(crate) guide: Option<[(f64, f64); 2]>,
}

impl Chart<'_> {
    pub(crate) fn draw(self) -> Figure {
        let mut canvas = Canvas::default();
        let used = canvas.title(self.title);
        let shown: Vec<&Series> = self.series.iter().filter(|s| !s.points.is_empty()).collect();
        let names: Vec<String> = shown.iter().map(|s| fitted(&s.name, SIZE, MOST_NAME)).collect();
        let widest = names.iter().map(|name| width(name, SIZE)).fold(0.0, f64::max);
        let height = HEIGHT.max(LINE * shown.len() as f64);
        let frame = Frame::new(used, height, widest + 40.0, self.x, self.y);
        let bottom = frame.draw(&mut canvas);
        if let Some([(a, b), (c, d)]) = self.guide {
            let pen = Pen::new("currentColor", 1.0).faint(0.5).dashed("3 3");
            canvas.line(frame.at(a, b), frame.at(c, d), pen);
        }
        let mut looks = 0;
        let mut ends = Vec::new();
        for series in &shown {
            let look = Look::next(series.reference, &mut looks);
            let points: Vec<(f64, f64)> =
                series.points.iter().map(|&(x, y)| frame.at(x, y)).collect();
            look.draw(&mut canvas, &points, self.marks);
            ends.push((points[points.len() - 1], look));
        }
        let wanted: Vec<f64> = ends.iter().map(|((_, y), _)| *y).collect();
        let places = spread(&wanted, LINE, frame.top() + 4.0, frame.bottom() - 2.0);
        // where all lines end in one point, or one ends long before its name, the look alone tells
        let apart = wanted.iter().any(|y| (y - wanted[0]).abs() > 1.0) || wanted.len() == 1;
        for (((end, look), place), name) in ends.iter().zip(places).zip(&names) {
            let at = (WIDTH - widest - 4.0, place + 4.0);
            let swatch = [(at.0 - 20.0, place), (at.0 - 4.0, place)];
            if apart && swatch[0].0 - end.0 < MOST_LEADER {
                // dotted, so that it is not taken for a part of the line
                canvas.line(*end, swatch[0], Pen::new(look.colour, 1.0).faint(0.6).dashed("1 3"));
            }
            canvas.text(at, Anchor::Start, name);
            canvas.polyline(&swatch, look.pen());
        }
        canvas.finish(self.name, self.title, bottom)
    }
}

/// Colour, dash and mark of one line.
#[derive(Clone, Copy, Debug)]
struct Look {
    colour: &'static str,
    dash: &'static str,
    width: f64,
}

impl Look {
    fn next(reference: bool, count: &mut usize) -> Self {
        if reference {
            return Self { colour: palette::REFERENCE, dash: "4 3", width: 1.5 };
        }
        let at = *count;
        *count += 1;
        Self { colour: palette::line(at), dash: palette::dash(at), width: 2.0 }
    }

    fn pen(&self) -> Pen<'static> {
        Pen::new(self.colour, self.width).dashed(self.dash)
    }

    fn draw(&self, canvas: &mut Canvas, points: &[(f64, f64)], marks: bool) {
        canvas.polyline(points, self.pen());
        if marks || points.len() == 1 {
            canvas.dots(points.iter().copied(), 5.0, self.colour, 1.0);
        }
    }
}

/// Places as near to the wanted ones as can be, `gap` apart and between the limits.
pub(crate) fn spread(wanted: &[f64], gap: f64, low: f64, high: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&a, &b| wanted[a].total_cmp(&wanted[b]));
    // neighbours that are too near form a block around the middle of what its members want
    let mut blocks: Vec<(f64, Vec<usize>)> = Vec::new();
    for at in order {
        blocks.push((wanted[at], vec![at]));
        while let [.., (before, first), (after, second)] = blocks.as_slice() {
            let reach = gap * (first.len() + second.len()) as f64 / 2.0;
            if after - before >= reach {
                break;
            }
            let (_, second) = blocks.pop().unwrap_or_default();
            if let Some((centre, members)) = blocks.last_mut() {
                members.extend(second);
                *centre = members.iter().map(|&at| wanted[at]).sum::<f64>() / members.len() as f64;
                let half = gap * (members.len() as f64 - 1.0) / 2.0;
                *centre = centre.clamp(low + half, (high - half).max(low + half));
            }
        }
    }
    let mut places = vec![0.0; wanted.len()];
    for (centre, members) in blocks {
        let half = gap * (members.len() as f64 - 1.0) / 2.0;
        let first = (centre - half).max(low).min((high - 2.0 * half).max(low));
        for (step, at) in members.into_iter().enumerate() {
            places[at] = first + gap * step as f64;
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_distance_and_their_order() {
        let places = spread(&[50.0, 51.0, 10.0, 50.5, 99.0], 10.0, 0.0, 100.0);
        let mut sorted = places.clone();
        sorted.sort_by(f64::total_cmp);
        assert!(sorted.windows(2).all(|pair| pair[1] - pair[0] >= 10.0 - 1e-9), "{places:?}");
        assert!(places[0] < places[3] && places[3] < places[1]);
        assert_eq!(places[2], 10.0);
        assert!(sorted[0] >= 0.0 && sorted[4] <= 100.0);
        assert!(spread(&[], 10.0, 0.0, 1.0).is_empty());
    }
}
