//! What pictures need of a head: its points and the sites of its diagrams.

use crate::diagram::PowerDiagram;
use crate::error::Result;
use crate::head::Head;
use crate::head::compose::Stage;
use crate::matrix::Matrix;
use crate::samples::Points;

impl Head {
    /// Samples as points of the space that the classes' centres live in: one matrix for each
    /// view and layer that is measured by itself, view-major.
    pub fn block_points(&self, features: &Points) -> Result<Vec<Matrix>> {
        Ok(self.points(features, Stage::Full)?.blocks)
    }

    /// The diagram between phases of each view and layer that is measured by itself, view-major:
    /// under AC and AI the sister classes of one rotation each.
    pub fn block_diagrams(&self) -> Result<Vec<PowerDiagram>> {
        Ok(self.diagrams()?.into_iter().cloned().collect())
    }
}
