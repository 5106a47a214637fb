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
/// Points nearer than this can't be told apart.
const SAME: f64 = 1.0;
/// Names of points nearer than this stand in the order of their points.
const CROWD: f64 = 16.0;
/// Room around a name.
const AIR: f64 = 1.0;
/// Up to here a name stands beside its point and needs no line to it.
const BESIDE: f64 = 12.0;
/// How far off names are put where there is no room beside the point.
const RINGS: [f64; 7] = [18.0, 26.0, 36.0, 48.0, 64.0, 84.0, 108.0];

/// One point.
#[derive(Clone, Debug)]
pub(crate) struct Dot {
    pub(crate) at: (f64, f64),
    /// Its name, if it should have one.
    pub(crate) name: Option<String>,
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
    /// Straight lines from end to end, as of regressions, in the colours of their kinds.
    pub(crate) lines: Vec<(usize, [(f64, f64); 2])>,
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

    /// The point of its edge that is nearest to another point.
    fn nearest(&self, (x, y): (f64, f64)) -> Option<(f64, f64)> {
        // not `clamp`, which panics where a place is no number
        let found = (x.max(self.left).min(self.right), y.max(self.top).min(self.bottom));
        (found != (x, y)).then_some(found)
    }

    /// How far a point is from it.
    fn distance(&self, at: (f64, f64)) -> f64 {
        self.nearest(at).map_or(0.0, |edge| apart(edge, at))
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
        let shown = |at: usize| self.dots.iter().any(|dot| dot.kind == at);
        let kinds: Vec<(usize, &str, &str)> = self
            .kinds
            .iter()
            .enumerate()
            .filter(|(at, _)| shown(*at))
            .map(|(at, (name, colour))| (at, name.as_str(), *colour))
            .collect();
        used = legend(&mut canvas, used, &kinds);
        let title = width(&self.y.label, SIZE) + 14.0;
        let frame = Frame::new(used, HEIGHT, 16.0, self.x, self.y);
        let bottom = frame.draw(&mut canvas);
        let colour =
            |kind: usize| self.kinds.get(kind).map_or("currentColor", |(_, colour)| colour);
        for &(kind, [(a, b), (c, d)]) in &self.lines {
            let ends = [frame.at(a, b), frame.at(c, d)];
            let [from, to] = between(ends, frame.top(), frame.bottom());
            canvas.line(from, to, Pen::new(colour(kind), 1.5).faint(0.8));
        }
        let finite = |dot: &&Dot| dot.at.0.is_finite() && dot.at.1.is_finite();
        let dots: Vec<&Dot> = self.dots.iter().filter(finite).collect();
        let places: Vec<(f64, f64)> = dots.iter().map(|dot| frame.at(dot.at.0, dot.at.1)).collect();
        // what has a name lies on top of what has none
        for (dot, &at) in dots.iter().zip(&places).rev() {
            mark(&mut canvas, at, dot.kind, colour(dot.kind));
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
                names.put(&mut canvas, name, at);
            }
        }
        canvas.finish(self.name, self.title, bottom)
    }
}

/// Names that are put where they meet neither each other nor a point.
#[derive(Debug)]
pub(crate) struct Names {
    points: Vec<(f64, f64)>,
    taken: Vec<Place>,
    /// Points with the heights of their names.
    put: Vec<((f64, f64), f64)>,
    inside: Place,
}

impl Names {
    /// Inside a rectangle, around these points.
    pub(crate) fn new(corners: ((f64, f64), (f64, f64)), points: &[(f64, f64)]) -> Self {
        let ((left, top), (right, bottom)) = corners;
        let taken: Vec<Place> = points.iter().map(|&at| Place::around(at, POINT)).collect();
        let inside = Place { left, top, right, bottom };
        Self { points: points.to_vec(), taken, put: Vec::new(), inside }
    }

    /// Writes a name beside its point, or further off with a line to it; not at all where there is
    /// no room.
    pub(crate) fn put(&mut self, canvas: &mut Canvas, name: &str, at: (f64, f64)) {
        let name = fitted(name, SIZE - 1.0, 150.0);
        if let Some((place, anchor, from)) = self.free(&name, at) {
            canvas.plate(from, anchor, &name, SIZE - 1.0);
            if let Some(end) = place.nearest(at).filter(|end| apart(*end, at) > BESIDE) {
                let mut begin = towards(at, end, POINT);
                if self.neighbours(at).next().is_some() {
                    // among others it begins where the point itself is
                    begin = at;
                    canvas.circle(at, 1.2, "currentColor", Pen::new("currentColor", 0.0));
                }
                canvas.line(begin, end, Pen::new("currentColor", 0.7).faint(0.6));
                // no other name lies on the line
                let steps = (apart(begin, end) / 6.0).ceil() as usize;
                let along = (1..steps).map(|step| towards(begin, end, 6.0 * step as f64));
                self.taken.extend(along.map(|point| Place::around(point, 1.0)));
            }
            self.taken.push(place);
            self.put.push((at, from.1));
        }
    }

    /// Other points whose marks lie on this one's.
    fn neighbours(&self, at: (f64, f64)) -> impl Iterator<Item = &(f64, f64)> {
        let near = move |distance: f64| (SAME..2.0 * POINT).contains(&distance);
        self.points.iter().filter(move |&&other| near(apart(other, at)))
    }

    /// Whether a name at this height is above the names of lower neighbours, and below those of
    /// higher ones.
    fn is_in_order(&self, at: (f64, f64), height: f64) -> bool {
        let near = self.put.iter().filter(|(other, _)| apart(*other, at) < CROWD);
        near.filter(|(other, _)| (other.1 - at.1).abs() > SAME)
            .all(|(other, name)| (height - name) * (at.1 - other.1) >= 0.0)
    }

    /// The first place around a point where its name meets nothing, nor the line to it; in a crowd
    /// the line may cross the crowd's own points.
    fn free(&self, name: &str, at: (f64, f64)) -> Option<(Place, Anchor, (f64, f64))> {
        let (points, names) = self.taken.split_at(self.points.len());
        [POINT, CROWD].into_iter().find_map(|near| {
            // points that lie on this one are no obstacle
            let own = Place::around(at, near);
            let others = points.iter().filter(|other| !other.meets(&own));
            let uncrossed: Vec<Place> = others.chain(names).copied().collect();
            self.first(name, at, &uncrossed)
        })
    }

    /// The first place of which that holds; a name without a line stands nearest to its own point.
    fn first(
        &self,
        name: &str,
        at: (f64, f64),
        uncrossed: &[Place],
    ) -> Option<(Place, Anchor, (f64, f64))> {
        let (long, high) = (text::width(name, SIZE - 1.0), SIZE - 1.0);
        candidates(at).find_map(|(anchor, x, y)| {
            let left = match anchor {
                Anchor::Start => x,
                Anchor::Middle => x - long / 2.0,
                Anchor::End => x - long,
            };
            let place = Place {
                left: left - AIR,
                top: y - high * 0.85 - AIR,
                right: left + long + AIR,
                bottom: y + high * 0.25 + AIR,
            };
            let fits = place.left >= self.inside.left
                && place.right <= self.inside.right
                && place.top >= self.inside.top
                && place.bottom <= self.inside.bottom;
            let meets = self.taken.iter().any(|other| other.meets(&place));
            let own = place.distance(at);
            let told = own > BESIDE
                || self
                    .points
                    .iter()
                    .all(|&other| apart(other, at) < SAME || place.distance(other) > own + POINT);
            let ordered = self.is_in_order(at, y);
            let good = fits && !meets && told && ordered && is_clear(at, &place, uncrossed);
            good.then_some((place, anchor, (x, y)))
        })
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

/// The kinds in a line or more, each with its mark; gives the height used.
pub(crate) fn legend(canvas: &mut Canvas, top: f64, kinds: &[(usize, &str, &str)]) -> f64 {
    let (mut x, mut y) = (10.0, top + 11.0);
    if kinds.len() < 2 {
        return top;
    }
    for &(kind, name, colour) in kinds {
        let name = fitted(name, SIZE, 180.0);
        let long = 14.0 + width(&name, SIZE) + 16.0;
        if x + long > WIDTH && x > 10.0 {
            (x, y) = (10.0, y + 17.0);
        }
        mark(canvas, (x, y), kind, colour);
        canvas.text((x + 9.0, y + 4.0), Anchor::Start, &name);
        x += long;
    }
    y + 9.0
}

fn apart(one: (f64, f64), other: (f64, f64)) -> f64 {
    (one.0 - other.0).hypot(one.1 - other.1)
}

/// So far from one point towards another.
fn towards(from: (f64, f64), to: (f64, f64), way: f64) -> (f64, f64) {
    let share = way / apart(from, to).max(f64::MIN_POSITIVE);
    (from.0 + share * (to.0 - from.0), from.1 + share * (to.1 - from.1))
}

/// Whether a line from a point to its name meets no other point and no name.
fn is_clear(at: (f64, f64), place: &Place, taken: &[Place]) -> bool {
    let Some(end) = place.nearest(at) else { return true };
    let steps = (apart(at, end) / 3.0).ceil() as usize;
    let mut along = (1..steps).map(|step| towards(at, end, 3.0 * step as f64));
    !along.any(|point| taken.iter().any(|other| other.meets(&Place::around(point, 0.5))))
}

/// Places of a name around its point, nearest first: beside it, and further and further off.
fn candidates((x, y): (f64, f64)) -> impl Iterator<Item = (Anchor, f64, f64)> {
    let near = [
        (Anchor::Start, x + 7.0, y + 4.0),
        (Anchor::End, x - 7.0, y + 4.0),
        (Anchor::Middle, x, y - 8.0),
        (Anchor::Middle, x, y + 16.0),
        (Anchor::Start, x + 5.0, y - 6.0),
        (Anchor::End, x - 5.0, y - 6.0),
        (Anchor::Start, x + 5.0, y + 14.0),
        (Anchor::End, x - 5.0, y + 14.0),
    ];
    let far = RINGS.into_iter().flat_map(move |ring| {
        (0..16).map(move |turn| {
            let angle = std::f64::consts::TAU * f64::from(turn) / 16.0;
            let anchor = match angle.cos() {
                cos if cos > 0.3 => Anchor::Start,
                cos if cos < -0.3 => Anchor::End,
                _ => Anchor::Middle,
            };
            (anchor, x + ring * angle.cos(), y + ring * angle.sin() + 4.0)
        })
    });
    near.into_iter().chain(far)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_room_is_left_out() {
        let names = Names::new(((0.0, 0.0), (400.0, 200.0)), &[]);
        assert!(names.free("name", (50.0, 50.0)).is_some());
        let (place, anchor, _) = names.free("name", (395.0, 50.0)).unwrap();
        assert_eq!(anchor, Anchor::End);
        assert!(place.right <= 400.0);
        let mut full = Names::new(((0.0, 0.0), (400.0, 200.0)), &[]);
        full.taken.push(full.inside);
        assert!(full.free("name", (50.0, 50.0)).is_none());
    }

    #[test]
    fn a_name_without_a_line_stands_nearest_to_its_own_point() {
        let points = [(100.0, 100.0), (112.0, 112.0), (88.0, 90.0)];
        let names = Names::new(((0.0, 0.0), (400.0, 200.0)), &points);
        let (place, ..) = names.free("between", points[0]).unwrap();
        let own = place.distance(points[0]);
        assert!(own > BESIDE || points[1..].iter().all(|&p| place.distance(p) > own + POINT));
    }

    #[test]
    fn a_name_far_off_has_a_line_to_its_point_and_hides_no_other() {
        let crowd: Vec<(f64, f64)> = (0..25)
            .map(|at| (180.0 + f64::from(at % 5) * 9.0, 80.0 + f64::from(at / 5) * 9.0))
            .collect();
        let mut names = Names::new(((0.0, 0.0), (400.0, 200.0)), &crowd);
        let mut canvas = Canvas::default();
        let points = names.taken.clone();
        names.put(&mut canvas, "in the midst", crowd[12]);
        let place = names.taken.last().copied().unwrap();
        assert!(points.iter().all(|point| !point.meets(&place)));
        assert!(canvas.finish("a", "t", 200.0).svg().contains("<path d=\"M"));
    }
}
