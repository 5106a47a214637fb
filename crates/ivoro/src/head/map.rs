//! A map of the classes: their centres in the two directions that tell them apart most.

use rayon::prelude::*;

use crate::diagram::{Point, PowerDiagram, Rectangle, plane_cells};
use crate::error::Result;
use crate::head::Head;
use crate::matrix::Matrix;
use crate::samples::Points;

/// Products after which the two directions have long settled.
const STEPS: usize = 60;
/// Air around the sites, as a share of the longer side.
const AIR: f64 = 0.15;

/// The centres of all classes in a plane, and their cells there.
///
/// The plane is that in which the centres lie furthest apart, measured as the model measures: under W
/// relative to how samples spread. Cells are those of the centres in the plane; what lies beyond it, they
/// can't show. Of several views and layers the map is that of the first.
///
/// ```
/// use ivoro::{Matrix, Model, Samples, Variant};
/// let points = Matrix::new(4, 2, vec![0.0, 0.1, 0.1, 0.0, 5.0, 5.1, 5.1, 5.0])?;
/// let monday = Samples::single("monday", points, vec![0, 0, 1, 1], 2)?;
/// let mut model = Model::new("iVoro".parse::<Variant>()?, Default::default());
/// model.learn(&monday)?;
/// let map = model.head().class_map()?.unwrap();
/// let at = map.place(model.head(), &monday)?;
/// assert!((at[0][0] - map.sites()[0][0]).abs() < 0.2);
/// assert!(map.share() > 0.99);
/// # Ok::<(), ivoro::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ClassMap {
    sites: Vec<Point>,
    mean: Vec<f64>,
    axes: [Vec<f64>; 2],
    share: f64,
}

impl ClassMap {
    /// Where the centre of each class lies.
    pub fn sites(&self) -> &[Point] {
        &self.sites
    }

    /// How much of what lies between the centres the plane shows, from 0 to 1.
    pub fn share(&self) -> f64 {
        self.share
    }

    /// Where queries lie.
    pub fn place(&self, head: &Head, queries: &Points) -> Result<Vec<Point>> {
        let blocks = head.block_points(queries)?;
        let rows = blocks.first().map(|block| block.iter_rows().map(|row| self.at(row)).collect());
        Ok(rows.unwrap_or_default())
    }

    fn at(&self, point: &[f32]) -> Point {
        let along = |axis: &Vec<f64>| {
            let parts = point.iter().zip(&self.mean).zip(axis);
            parts.map(|((value, mean), axis)| (f64::from(*value) - mean) * axis).sum()
        };
        [along(&self.axes[0]), along(&self.axes[1])]
    }

    /// What a picture of all sites shows.
    pub fn whole(&self) -> Option<Rectangle> {
        Rectangle::around(self.sites.iter().copied(), AIR)
    }

    /// The cell of each class in a rectangle; see [`plane_cells`].
    pub fn cells(&self, within: Rectangle) -> Result<Vec<Vec<Point>>> {
        let numbers = self.sites.iter().flatten().map(|&value| value as f32).collect();
        let centres = Matrix::new(self.sites.len(), 2, numbers)?;
        plane_cells(&PowerDiagram::voronoi(centres), within)
    }
}

/// Rows less their mean, in 64 bits.
struct Centred {
    rows: Vec<Vec<f64>>,
    mean: Vec<f64>,
}

impl Centred {
    fn of(matrix: &Matrix) -> Self {
        let mut mean = vec![0.0; matrix.cols()];
        for row in matrix.iter_rows() {
            mean.iter_mut().zip(row).for_each(|(sum, value)| *sum += f64::from(*value));
        }
        let count = matrix.rows().max(1) as f64;
        mean.iter_mut().for_each(|sum| *sum /= count);
        let less = |row: &[f32]| {
            row.iter().zip(&mean).map(|(value, mean)| f64::from(*value) - mean).collect()
        };
        Self { rows: matrix.iter_rows().map(less).collect(), mean }
    }

    /// The sum of the rows with these weights.
    fn sum(&self, weights: &[f64]) -> Vec<f64> {
        let mut sum = vec![0.0; self.mean.len()];
        for (row, weight) in self.rows.iter().zip(weights) {
            sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += weight * value);
        }
        sum
    }

    /// The product of each row with a vector.
    fn times(&self, vector: &[f64]) -> Vec<f64> {
        self.rows.par_iter().map(|row| dot(row, vector)).collect()
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

impl Head {
    /// The map of the classes; none where there is no class.
    pub fn class_map(&self) -> Result<Option<ClassMap>> {
        let centres = self.centroids()?;
        let Some(centres) = centres.first().filter(|centres| centres.rows() > 0) else {
            return Ok(None);
        };
        // what a query is multiplied by: under W the centres as the metric sees them; classes with
        // metrics of their own have none that all share
        let weights = match self.block_diagrams() {
            Ok(diagrams) => diagrams.first().map(|diagram| diagram.to_linear().0),
            Err(_) => None,
        };
        let fits =
            |weights: &Matrix| (weights.rows(), weights.cols()) == (centres.rows(), centres.cols());
        let weights = weights.filter(fits);
        let (centres, weights) =
            (Centred::of(centres), Centred::of(weights.as_ref().unwrap_or(centres)));
        Ok(Some(plane(centres, &weights)))
    }
}

/// The plane in which the products of centres with weights are largest.
fn plane(centres: Centred, weights: &Centred) -> ClassMap {
    let count = centres.rows.len();
    // any two that are not alike will do to begin with
    let start = |turn: f64| (0..count).map(|at| ((at as f64 + 1.0) * turn).sin()).collect();
    let mut pair: [Vec<f64>; 2] = [start(1.0), start(2.3)];
    let mut sizes = [0.0; 2];
    for _ in 0..STEPS {
        for (vector, size) in pair.iter_mut().zip(&mut sizes) {
            let next = centres.times(&weights.sum(vector));
            *size = dot(&next, vector);
            *vector = next;
        }
        normalise(&mut pair);
    }
    let total: f64 = centres.rows.iter().zip(&weights.rows).map(|(a, b)| dot(a, b)).sum();
    let share = if total > 0.0 { (sizes.iter().sum::<f64>() / total).clamp(0.0, 1.0) } else { 1.0 };
    let axes = [0, 1].map(|at| {
        let scale = if sizes[at] > 1e-12 * total.max(f64::MIN_POSITIVE) {
            sizes[at].sqrt().recip()
        } else {
            0.0
        };
        let mut axis = weights.sum(&pair[at]);
        axis.iter_mut().for_each(|value| *value *= scale);
        axis
    });
    let along = axes.each_ref().map(|axis| centres.times(axis));
    let sites = (0..count).map(|at| [along[0][at], along[1][at]]).collect();
    ClassMap { sites, mean: centres.mean, axes, share }
}

/// Makes two vectors orthonormal, with a sign that is always the same.
fn normalise(pair: &mut [Vec<f64>; 2]) {
    let [first, second] = pair;
    unit(first);
    let shared = dot(first, second);
    second.iter_mut().zip(first.iter()).for_each(|(value, other)| *value -= shared * other);
    unit(second);
}

fn unit(vector: &mut [f64]) {
    let length = dot(vector, vector).sqrt();
    let largest =
        vector.iter().copied().fold(0.0, |a: f64, b| if b.abs() > a.abs() { b } else { a });
    let scale = if length > 0.0 { largest.signum() / length } else { 0.0 };
    vector.iter_mut().for_each(|value| *value *= scale);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Model, Samples, Variant};

    #[test]
    fn the_plane_is_that_of_the_centres() {
        // four centres in a plane of five dimensions, and a query beside it
        let centres = [[0.0, 0.0], [10.0, 0.0], [0.0, 4.0], [10.0, 4.0]];
        let row = |[x, y]: [f32; 2], more: f32| [x, 1.0, y, more, 7.0];
        let numbers = centres.iter().flat_map(|&at| row(at, 0.0)).collect();
        let samples =
            Samples::single("centres", Matrix::new(4, 5, numbers).unwrap(), vec![0, 1, 2, 3], 4);
        let samples = samples.unwrap();
        let mut model = Model::new("iVoro".parse::<Variant>().unwrap(), Default::default());
        model.learn(&samples).unwrap();
        let map = model.head().class_map().unwrap().unwrap();
        assert!((map.share() - 1.0).abs() < 1e-9);
        let sites = map.sites();
        let distance = |a: Point, b: Point| ((a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2)).sqrt();
        let ratio = distance(sites[0], sites[1]) / distance(sites[0], sites[2]);
        assert!((ratio - 2.5).abs() < 1e-6, "{ratio}");
        let query = Points::single("q", Matrix::new(1, 5, row([0.0, 0.0], 3.0).to_vec()).unwrap());
        let at = map.place(model.head(), &query.unwrap()).unwrap()[0];
        assert!(distance(at, sites[0]) < 1e-6);
        let cells = map.cells(map.whole().unwrap()).unwrap();
        assert!(cells.iter().all(|cell| cell.len() >= 4));
    }

    #[test]
    fn one_class_is_a_point() {
        let points = Matrix::new(2, 3, vec![1.0, 2.0, 3.0, 1.5, 2.0, 3.0]).unwrap();
        let samples = Samples::single("one", points, vec![0, 0], 1).unwrap();
        let mut model = Model::new("iVoro".parse::<Variant>().unwrap(), Default::default());
        assert!(model.head().class_map().unwrap().is_none());
        model.learn(&samples).unwrap();
        let map = model.head().class_map().unwrap().unwrap();
        assert_eq!(map.sites(), [[0.0, 0.0]]);
        assert_eq!(map.cells(map.whole().unwrap()).unwrap()[0].len(), 4);
    }
}
