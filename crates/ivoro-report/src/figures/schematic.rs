//! What a new site changes: drawn from the diagram itself.

use ivoro::Matrix;
use ivoro::diagram::{Point, PowerDiagram, Rectangle, plane_cells};

use crate::figures::Shown;
use crate::figures::scene::{View, labelled};
use crate::plot::canvas::{Canvas, Pen};
use crate::plot::palette;

const SHOWN: Rectangle = Rectangle { low: [0.0, 0.0], high: [10.0, 6.5] };

const BASE: [[f32; 2]; 14] = [
    [1.1, 1.0],
    [3.2, 0.8],
    [5.6, 1.1],
    [8.2, 0.9],
    [0.9, 3.2],
    [2.9, 2.9],
    [5.1, 3.3],
    [7.2, 2.8],
    [9.2, 3.4],
    [1.3, 5.4],
    [3.5, 5.2],
    [5.6, 5.6],
    [7.5, 5.0],
    [9.3, 5.8],
];
const SITE: [[f32; 2]; 1] = [[6.2, 4.3]];
const GROUP: [[f32; 2]; 3] = [[1.9, 4.3], [2.1, 2.0], [4.1, 1.9]];

/// The base diagram, the same with one more site, and with a group of sites.
pub(crate) fn pictures() -> Vec<Shown> {
    let steps: [(&str, &[[f32; 2]]); 3] = [
        ("A: the base classes", &[]),
        ("B: one new site", &SITE),
        ("C: a group of new sites", &GROUP),
    ];
    steps.into_iter().filter_map(|(title, new)| picture(title, new)).collect()
}

fn cells(new: &[[f32; 2]]) -> Option<Vec<Vec<Point>>> {
    let sites: Vec<f32> = BASE.iter().chain(new).flatten().copied().collect();
    let centres = Matrix::new(sites.len() / 2, 2, sites).ok()?;
    plane_cells(&PowerDiagram::voronoi(centres), SHOWN).ok()
}

fn picture(title: &str, new: &[[f32; 2]]) -> Option<Shown> {
    let (before, after) = (cells(&[])?, cells(new)?);
    let mut canvas = Canvas::default();
    let used = canvas.title(title);
    let view = View::new(SHOWN, used + 2.0);
    let mut changed = 0;
    for (at, polygon) in after.iter().enumerate() {
        let fill = match before.get(at) {
            None => palette::area(0),
            Some(old) if old != polygon => {
                changed += 1;
                palette::area(1)
            }
            Some(_) => "none",
        };
        let points: Vec<(f64, f64)> = polygon.iter().map(|&point| view.at(point)).collect();
        canvas.polygon(&points, fill, 0.35, Pen::new("currentColor", 1.0).faint(0.7));
    }
    for (at, site) in BASE.iter().chain(new).enumerate() {
        let (fill, label) = match at.checked_sub(BASE.len()) {
            None => ("currentColor", String::new()),
            Some(_) => (palette::area(0), "new".to_owned()),
        };
        labelled(&mut canvas, view.at(site.map(f64::from)), fill, &label);
    }
    let figure = canvas.finish(&format!("schematic-{title}"), title, view.bottom() + 4.0);
    let caption = match new.len() {
        0 => format!("{} sites, each with its cell.", BASE.len()),
        count => format!(
            "{count} new (blue); {changed} of {} cells give way (orange), the others stay as they \
             were, to the last digit.",
            BASE.len()
        ),
    };
    Some(Shown::new(figure, caption))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_site_changes_some_cells_and_leaves_others() {
        let shown = pictures();
        assert_eq!(shown.len(), 3);
        let before = cells(&[]).unwrap();
        for new in [&SITE[..], &GROUP[..]] {
            let after = cells(new).unwrap();
            let same = before.iter().zip(&after).filter(|(a, b)| a == b).count();
            assert!(same > 2 && same < BASE.len(), "{same}");
        }
    }
}
