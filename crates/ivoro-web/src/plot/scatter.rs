//! Points with names, as many names as find room.

use crate::plot::canvas::{Anchor, Canvas, Figure, Pen, WIDTH};
use crate::plot::frame::{Axis, Frame};
use crate::plot::text::{self, SIZE, fitted, width};

/// Height of the plot itself.
const HEIGHT: f64 = 230.0;
/// Height of a line of text.
const LINE: f64 = 18.0;
/// Half the size of a point, with a little air.
const POINT: f64 = 5.0;

/// One point.
#[derive(Clone, Debug)]
pub(crate) struct Dot {
    pub(crate) at: (f64, f64),
    /// Its name, if it should have one.
    pub(crate) name: Option<String>,
    /// Whether the name may lie on other points where there is no other room.
    pub(crate) over: bool,
    /// Which of the kinds it is.
    pub(crate) kind: usize,
}

/// A chart of points.
pub(crate) struct Chart<'a> {
    pub(crate) name: &'a str,
    pub(crate) title: &'a str,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    /// Earlier points are named first.
    pub(crate) dots: Vec<Dot>,
    /// Name, colour and whether filled, for each kind.
    pub(crate) kinds: Vec<(String, &'static str)>,
    /// A straight line from end to end, as of a regression.
    pub(crate) line: Option<[(f64, f64); 2]>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

impl Place {
    fn around(at: (f64, f64), half: f64) -> Self {
        Self { left: at.0 - half, top: at.1 - half, right: at.0 + half, bottom: at.1 + half }
    }

    fn meets(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }
}

impl Chart<'_> {
    pub(crate) fn draw(self) -> Figure {
        let mut canvas = Canvas::default();
        let mut used = canvas.title(self.title);
        used = legend(&mut canvas, used, &self.kinds, true);
        let title = width(&self.y.label, SIZE) + 14.0;
        let frame = Frame::new(used, HEIGHT, 16.0, self.x, self.y);
        let bottom = frame.draw(&mut canvas);
        if let Some([(a, b), (c, d)]) = self.line {
            let ends = [frame.at(a, b), frame.at(c, d)];
            let [from, to] = between(ends, frame.top(), frame.bottom());
            canvas.line(from, to, Pen::new("currentColor", 1.5).faint(0.5));
        }
        let finite = |dot: &&Dot| dot.at.0.is_finite() && dot.at.1.is_finite();
        let dots: Vec<&Dot> = self.dots.iter().filter(finite).collect();
        let places: Vec<(f64, f64)> = dots.iter().map(|dot| frame.at(dot.at.0, dot.at.1)).collect();
        for (dot, &at) in dots.iter().zip(&places) {
            let colour = self.kinds.get(dot.kind).map_or("currentColor", |(_, colour)| colour);
            mark(&mut canvas, at, dot.kind, colour);
        }
        // beside the axis's title there is room for names too
        let corners = ((frame.left(), frame.top() - LINE), (WIDTH, frame.bottom()));
        let mut names = Names::new(corners, &places);
        let ((left, top), _) = corners;
        names.taken.push(Place {
            left: left.min(0.0),
            top,
            right: title,
            bottom: top + LINE - 4.0,
        });
        for (dot, &at) in dots.iter().zip(&places) {
            if let Some(name) = &dot.name {
                names.put(&mut canvas, name, at, dot.over);
            }
        }
        canvas.finish(self.name, self.title, bottom)
    }
}

/// Names that are put where they meet neither each other nor a point.
#[derive(Debug)]
pub(crate) struct Names {
    taken: Vec<Place>,
    /// How many of those are points; names follow.
    points: usize,
    inside: Place,
}

impl Names {
    /// Inside a rectangle, around these points.
    pub(crate) fn new(corners: ((f64, f64), (f64, f64)), points: &[(f64, f64)]) -> Self {
        let ((left, top), (right, bottom)) = corners;
        let taken: Vec<Place> = points.iter().map(|&at| Place::around(at, POINT)).collect();
        Self { points: taken.len(), taken, inside: Place { left, top, right, bottom } }
    }

    /// Writes a name beside its point, if there is room; `over` another point where that is all.
    pub(crate) fn put(&mut self, canvas: &mut Canvas, name: &str, at: (f64, f64), over: bool) {
        let name = fitted(name, SIZE - 1.0, 140.0);
        let first = free(&name, at, &self.taken, self.inside);
        let names = &self.taken[self.points..];
        let found = first.or_else(|| free(&name, at, names, self.inside).filter(|_| over));
        if let Some((place, anchor, from)) = found {
            self.taken.push(place);
            canvas.plate(from, anchor, &name, SIZE - 1.0);
        }
    }
}

/// A mark of its own for each kind, so that colour is not all that tells them apart.
pub(crate) fn mark(canvas: &mut Canvas, (x, y): (f64, f64), kind: usize, colour: &str) {
    let edge = Pen::new("currentColor", 0.7).faint(0.6);
    match kind % 4 {
        0 => canvas.circle((x, y), 4.0, colour, edge),
        1 => canvas.polygon(
            &[(x - 4.0, y + 3.5), (x + 4.0, y + 3.5), (x, y - 4.5)],
            colour,
            1.0,
            edge,
        ),
        2 => canvas.polygon(
            &[(x - 3.6, y - 3.6), (x + 3.6, y - 3.6), (x + 3.6, y + 3.6), (x - 3.6, y + 3.6)],
            colour,
            1.0,
            edge,
        ),
        _ => canvas.polygon(
            &[(x, y - 5.0), (x + 5.0, y), (x, y + 5.0), (x - 5.0, y)],
            colour,
            1.0,
            edge,
        ),
    }
}

/// The part of a line that lies between two heights.
fn between(ends: [(f64, f64); 2], top: f64, bottom: f64) -> [(f64, f64); 2] {
    let [(a, b), (c, d)] = ends;
    ends.map(|(x, y)| {
        let wanted = y.clamp(top, bottom);
        if wanted == y { (x, y) } else { (a + (c - a) * (wanted - b) / (d - b), wanted) }
    })
}

/// The kinds in a line or more, each with its mark, or all with dots; gives the height used.
pub(crate) fn legend(
    canvas: &mut Canvas,
    top: f64,
    kinds: &[(String, &'static str)],
    marked: bool,
) -> f64 {
    let (mut x, mut y) = (10.0, top + 11.0);
    if kinds.len() < 2 {
        return top;
    }
    for (at, (name, colour)) in kinds.iter().enumerate() {
        let name = fitted(name, SIZE, 180.0);
        let long = 14.0 + width(&name, SIZE) + 16.0;
        if x + long > WIDTH && x > 10.0 {
            (x, y) = (10.0, y + 17.0);
        }
        mark(canvas, (x, y), if marked { at } else { 0 }, colour);
        canvas.text((x + 9.0, y + 4.0), Anchor::Start, &name);
        x += long;
    }
    y + 9.0
}

/// The first place around a point where its name meets nothing.
fn free(
    name: &str,
    (x, y): (f64, f64),
    taken: &[Place],
    inside: Place,
) -> Option<(Place, Anchor, (f64, f64))> {
    let (long, high) = (text::width(name, SIZE - 1.0), SIZE - 1.0);
    let ways = [
        (Anchor::Start, x + 7.0, y + 4.0),
        (Anchor::End, x - 7.0, y + 4.0),
        (Anchor::Middle, x, y - 8.0),
        (Anchor::Middle, x, y + 16.0),
        (Anchor::Start, x + 5.0, y - 6.0),
        (Anchor::End, x - 5.0, y - 6.0),
        (Anchor::Start, x + 5.0, y + 14.0),
        (Anchor::End, x - 5.0, y + 14.0),
    ];
    ways.into_iter().find_map(|(anchor, at_x, at_y)| {
        let left = match anchor {
            Anchor::Start => at_x,
            Anchor::Middle => at_x - long / 2.0,
            Anchor::End => at_x - long,
        };
        let place =
            Place { left, top: at_y - high * 0.8, right: left + long, bottom: at_y + high * 0.25 };
        let fits = place.left >= inside.left
            && place.right <= inside.right
            && place.top >= inside.top
            && place.bottom <= inside.bottom;
        (fits && !taken.iter().any(|other| other.meets(&place))).then_some((
            place,
            anchor,
            (at_x, at_y),
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_room_is_left_out() {
        let inside = Place { left: 0.0, top: 0.0, right: 400.0, bottom: 200.0 };
        assert!(free("name", (50.0, 50.0), &[], inside).is_some());
        let all = [Place { left: 0.0, top: 0.0, right: 400.0, bottom: 200.0 }];
        assert!(free("name", (50.0, 50.0), &all, inside).is_none());
        let (place, anchor, _) = free("name", (395.0, 50.0), &[], inside).unwrap();
        assert_eq!(anchor, Anchor::End);
        assert!(place.right <= 400.0);
    }
}
