//! Exact cells of a diagram in the plane, as polygons for pictures.

use crate::diagram::PowerDiagram;
use crate::error::{Error, Result};

/// A point of the plane.
pub type Point = [f64; 2];

/// What a picture shows of the plane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rectangle {
    /// Lower corner.
    pub low: Point,
    /// Upper corner.
    pub high: Point,
}

impl Rectangle {
    /// The smallest rectangle with these points in it, larger by `margin` of its longer side on
    /// each side; `None` without a finite point.
    pub fn around(points: impl IntoIterator<Item = Point>, margin: f64) -> Option<Self> {
        let mut found: Option<Self> = None;
        for point in points.into_iter().filter(|point| point.iter().all(|c| c.is_finite())) {
            let rectangle = found.get_or_insert(Self { low: point, high: point });
            let ([x, y], [low_x, low_y], [high_x, high_y]) = (point, rectangle.low, rectangle.high);
            rectangle.low = [low_x.min(x), low_y.min(y)];
            rectangle.high = [high_x.max(x), high_y.max(y)];
        }
        found.map(|rectangle| {
            let side = (0..2).map(|axis| rectangle.high[axis] - rectangle.low[axis]);
            let longer = side.fold(0.0, f64::max);
            let room = if longer > 0.0 { longer * margin } else { 1.0 };
            Self { low: rectangle.low.map(|c| c - room), high: rectangle.high.map(|c| c + room) }
        })
    }

    /// The corners, counter-clockwise.
    pub fn corners(&self) -> [Point; 4] {
        let ([x0, y0], [x1, y1]) = (self.low, self.high);
        [[x0, y0], [x1, y0], [x1, y1], [x0, y1]]
    }
}

/// The cell of every centre inside a rectangle: a convex polygon, counter-clockwise, without points
/// where the cell does not reach into the rectangle. A centre that equals an earlier one has no
/// cell, as in [`PowerDiagram::nearest`].
///
/// ```
/// use ivoro::Matrix;
/// use ivoro::diagram::{PowerDiagram, Rectangle, plane_cells};
/// let centres = Matrix::new(2, 2, vec![0.0, 0.0, 4.0, 0.0])?;
/// let within = Rectangle { low: [-1.0, -1.0], high: [5.0, 1.0] };
/// let cells = plane_cells(&PowerDiagram::voronoi(centres), within)?;
/// assert_eq!(cells[0], [[-1.0, -1.0], [2.0, -1.0], [2.0, 1.0], [-1.0, 1.0]]);
/// # Ok::<(), ivoro::Error>(())
/// ```
pub fn plane_cells(diagram: &PowerDiagram, within: Rectangle) -> Result<Vec<Vec<Point>>> {
    let centres = diagram.centres();
    if centres.cols() != 2 && centres.rows() > 0 {
        let what = "dimension of a diagram that is drawn".to_owned();
        return Err(Error::Size { what, expected: 2, found: centres.cols() });
    }
    let at = |row: usize| [0, 1].map(|axis| f64::from(centres.row(row)[axis]));
    let sites: Vec<(Point, f64)> = (0..centres.rows())
        .map(|row| {
            let [x, y] = at(row);
            ([x, y], x * x + y * y - f64::from(diagram.weights()[row]))
        })
        .collect();
    Ok((0..sites.len()).map(|site| cell(&sites, site, within)).collect())
}

/// The rectangle cut by the half-plane of every other site.
fn cell(sites: &[(Point, f64)], site: usize, within: Rectangle) -> Vec<Point> {
    let ([x, y], offset) = sites[site];
    let mut polygon = within.corners().to_vec();
    for (other, ([u, v], other_offset)) in sites.iter().enumerate() {
        if other == site || polygon.is_empty() {
            continue;
        }
        let (normal, limit) = ([2.0 * (u - x), 2.0 * (v - y)], other_offset - offset);
        if normal == [0.0, 0.0] {
            // one centre twice: the larger weight wins everywhere, then the earlier one
            if limit < 0.0 || limit == 0.0 && other < site {
                polygon.clear();
            }
            continue;
        }
        polygon = cut(&polygon, normal, limit);
    }
    polygon
}

/// The part of a convex polygon where normal·z ≤ limit.
fn cut(polygon: &[Point], normal: Point, limit: f64) -> Vec<Point> {
    let beyond = |point: Point| normal[0] * point[0] + normal[1] * point[1] - limit;
    let mut kept = Vec::with_capacity(polygon.len() + 1);
    for (at, &point) in polygon.iter().enumerate() {
        let next = polygon[(at + 1) % polygon.len()];
        let (here, there) = (beyond(point), beyond(next));
        if here <= 0.0 {
            kept.push(point);
        }
        if here < 0.0 && there > 0.0 || here > 0.0 && there < 0.0 {
            let share = here / (here - there);
            kept.push([0, 1].map(|axis| point[axis] + share * (next[axis] - point[axis])));
        }
    }
    // an edge that merely touches leaves fewer than three corners: no area
    if kept.len() < 3 { Vec::new() } else { kept }
}

/// Area of a polygon whose corners go counter-clockwise.
pub fn area(polygon: &[Point]) -> f64 {
    let corner = |at: usize| polygon[at % polygon.len()];
    let twice = (0..polygon.len()).map(|at| {
        let ([x, y], [u, v]) = (corner(at), corner(at + 1));
        x * v - u * y
    });
    twice.sum::<f64>() / 2.0
}
