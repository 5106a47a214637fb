use ivoro::Matrix;
use ivoro::diagram::{ClusterDiagram, Point, PowerDiagram, Rectangle, area, plane_cells};
use proptest::prelude::*;

const WITHIN: Rectangle = Rectangle { low: [-10.0, -6.0], high: [10.0, 6.0] };
const AREA: f64 = 240.0;
const STEPS: usize = 23;

fn sites() -> impl Strategy<Value = PowerDiagram> {
    let site = ((-9f32..9.0), (-9f32..9.0), (0f32..12.0));
    proptest::collection::vec(site, 1..30).prop_map(|sites| {
        let centres = sites.iter().flat_map(|&(x, y, _)| [x, y]).collect();
        let weights = sites.iter().map(|&(_, _, weight)| weight).collect();
        PowerDiagram::new(Matrix::new(sites.len(), 2, centres).unwrap(), weights).unwrap()
    })
}

/// A grid of points, none on the border.
fn grid() -> Vec<Point> {
    let at = |step: usize, axis: usize| {
        let side = WITHIN.high[axis] - WITHIN.low[axis];
        WITHIN.low[axis] + side * (step as f64 + 0.437) / STEPS as f64
    };
    (0..STEPS * STEPS).map(|step| [at(step % STEPS, 0), at(step / STEPS, 1)]).collect()
}

/// How deep a point lies inside a counter-clockwise polygon; negative outside.
fn depth(polygon: &[Point], [x, y]: Point) -> f64 {
    let side = |at: usize| {
        let ([a, b], [c, d]) = (polygon[at], polygon[(at + 1) % polygon.len()]);
        ((c - a) * (y - b) - (d - b) * (x - a)) / (c - a).hypot(d - b).max(1e-12)
    };
    (0..polygon.len()).map(side).fold(f64::INFINITY, f64::min)
}

fn powers(diagram: &PowerDiagram, [x, y]: Point) -> Vec<f64> {
    let power = |row: usize| {
        let centre = diagram.centres().row(row);
        (x - f64::from(centre[0])).powi(2) + (y - f64::from(centre[1])).powi(2)
            - f64::from(diagram.weights()[row])
    };
    (0..diagram.centres().rows()).map(power).collect()
}

fn least(values: &[f64]) -> usize {
    (0..values.len()).min_by(|&a, &b| values[a].total_cmp(&values[b])).unwrap()
}

proptest! {
    #[test]
    fn every_point_of_a_grid_lies_in_the_polygon_of_its_nearest_site(diagram in sites()) {
        let cells = plane_cells(&diagram, WITHIN).unwrap();
        for point in grid() {
            let powers = powers(&diagram, point);
            let nearest = least(&powers);
            for (site, polygon) in cells.iter().enumerate() {
                let inside = !polygon.is_empty() && depth(polygon, point) > 1e-6;
                // well inside a polygon means nearest; nearest means not well outside
                prop_assert!(!inside || powers[site] - powers[nearest] < 1e-6, "{point:?} {site}");
                if site == nearest {
                    prop_assert!(!polygon.is_empty() && depth(polygon, point) > -1e-6);
                }
            }
        }
    }

    #[test]
    fn the_polygons_fill_the_rectangle_once(diagram in sites()) {
        let cells = plane_cells(&diagram, WITHIN).unwrap();
        prop_assert!(cells.iter().all(|polygon| area(polygon) >= 0.0));
        let total: f64 = cells.iter().map(|polygon| area(polygon)).sum();
        prop_assert!((total - AREA).abs() < 1e-6 * AREA, "{total}");
    }

    #[test]
    fn one_point_in_a_cluster_diagram_sees_a_power_diagram(
        first in sites(), moves in proptest::collection::vec(-3f32..3.0, 60), share in 0.1f32..2.0,
    ) {
        let mut moved = first.centres().clone();
        moved.as_mut_slice().iter_mut().zip(moves).for_each(|(value, by)| *value += by);
        let layers = vec![
            PowerDiagram::voronoi(first.centres().clone()), PowerDiagram::voronoi(moved),
        ];
        let cluster = ClusterDiagram::new(layers, vec![1.0, share], 1.0).unwrap();
        let power = cluster.of_one_point().unwrap();
        for point in grid().into_iter().step_by(7) {
            let query = Matrix::new(1, 2, point.map(|c| c as f32).to_vec()).unwrap();
            let direct = cluster.distances(&[&query, &query]).unwrap();
            let powers = power.distances(&query).unwrap();
            for (&d, &p) in direct.row(0).iter().zip(powers.row(0)) {
                prop_assert!((d - p * (1.0 + share)).abs() < 1e-2, "{d} {p}");
            }
        }
    }
}

#[test]
fn a_site_that_comes_twice_has_one_cell() {
    let centres = Matrix::new(3, 2, vec![1.0, 1.0, 1.0, 1.0, -3.0, 0.0]).unwrap();
    let cells = plane_cells(&PowerDiagram::voronoi(centres), WITHIN).unwrap();
    assert!(!cells[0].is_empty() && cells[1].is_empty());
    assert!((area(&cells[0]) + area(&cells[2]) - AREA).abs() < 1e-9);
}

#[test]
fn a_site_that_others_outweigh_has_no_cell() {
    let centres = Matrix::new(2, 2, vec![0.0, 0.0, 1.0, 0.0]).unwrap();
    let diagram = PowerDiagram::new(centres, vec![0.0, 1e6]).unwrap();
    let cells = plane_cells(&diagram, WITHIN).unwrap();
    assert!(cells[0].is_empty());
    assert_eq!(area(&cells[1]), AREA);
}

#[test]
fn only_the_plane_is_drawn() {
    let solid = PowerDiagram::voronoi(Matrix::zeros(2, 3));
    assert!(plane_cells(&solid, WITHIN).unwrap_err().to_string().contains("expected 2, found 3"));
}

#[test]
fn a_rectangle_around_nothing_finite_is_none() {
    assert_eq!(Rectangle::around([[f64::NAN, 0.0]], 0.1), None);
    let one = Rectangle::around([[2.0, 3.0]], 0.1).unwrap();
    assert_eq!((one.low, one.high), ([1.0, 2.0], [3.0, 4.0]));
}
