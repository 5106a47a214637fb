//! What pictures need of a head: its points and the sites of its diagrams.

use crate::diagram::PowerDiagram;
use crate::error::Result;
use crate::head::Head;
use crate::head::compose::Stage;
use crate::head::place::Place;
use crate::matrix::Matrix;
use crate::samples::Points;

impl Head {
    /// Samples as points of the space that the classes' centres live in: one matrix for each
    /// view and layer that is measured by itself, view-major.
    pub fn block_points(&self, features: &Points) -> Result<Vec<Matrix>> {
        let mut points = self.points(features, Stage::Full)?.blocks;
        if let Some(frame) = &self.frame {
            for (block, place) in points.iter_mut().zip(&frame.places) {
                *block = place.back(std::mem::take(block));
            }
        }
        Ok(points)
    }

    /// The diagram between phases of each view and layer that is measured by itself, view-major:
    /// under AC and AI the sister classes of one rotation each.
    pub fn block_diagrams(&self) -> Result<Vec<PowerDiagram>> {
        let places = self.frame.iter().flat_map(|frame| &frame.places);
        let moved = |(diagram, place): (&PowerDiagram, &Place)| {
            if place.is_usual() {
                return Ok(diagram.clone());
            }
            diagram.moved(&place.origin, &place.scales())
        };
        self.diagrams()?.into_iter().zip(places).map(moved).collect()
    }
}
