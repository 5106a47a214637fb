use crate::error::Result;
use crate::features::Features;
use crate::head::cells::{Cells, PairDistances};
use crate::head::points::{Points, Stage};
use crate::head::{Head, views};
use crate::matrix::Matrix;
use crate::vectors::least;

/// Queries handled at once, so that memory does not grow with their number.
const BATCH: usize = 2048;

impl Head {
    /// Distances of every query to every class; see `Learner::distances`. Without `absolute`,
    /// whitened distances may be short of a number that is the same for all classes of a query.
    pub fn measure(&self, queries: &Features, absolute: bool) -> Result<Matrix> {
        let mut out = Matrix::zeros(0, self.classes.len());
        self.in_batches(queries, absolute, |cells, pairs| {
            out.append(&views::combine(cells, pairs, self.variant.views).distances)
        })?;
        Ok(out)
    }

    pub(super) fn in_batches(
        &self,
        queries: &Features,
        absolute: bool,
        mut take: impl FnMut(&Cells, Vec<PairDistances>) -> Result<()>,
    ) -> Result<()> {
        let cells = self.cells()?;
        let rows: Vec<usize> = (0..queries.len()).collect();
        for rows in rows.chunks(BATCH) {
            let batch = queries.select(rows);
            let points = self.points(&batch, Stage::Full)?;
            let same = !self.variant.normalise && !self.variant.lift;
            let probed = match &cells.probes {
                Some(_) if !same => Some(self.points(&batch, self.probe_stage())?),
                _ => None,
            };
            let probed = cells.probes.as_ref().map(|_| probed.as_ref().unwrap_or(&points));
            take(cells, cells.pair_distances(&points, probed, absolute)?)?;
        }
        Ok(())
    }

    /// The nearest class of every query.
    pub fn predict(&self, queries: &Features) -> Result<Vec<u32>> {
        let cells = self.cells()?;
        let diagram = match (&cells.cross[..], &cells.probes) {
            ([metric], None) => metric.diagram(),
            _ => None,
        };
        let Some(diagram) = diagram else {
            let distances = self.measure(queries, false)?;
            return Ok(distances.iter_rows().map(|row| least(row) as u32).collect());
        };
        let nearest = |points: &Points| diagram.nearest(points.block(0, 0));
        if self.variant.takes_features_as_they_are() {
            let nearest = nearest(&self.points(queries, Stage::Full)?)?;
            return Ok(nearest.iter().map(|nearest| nearest.cell).collect());
        }
        let mut out = Vec::with_capacity(queries.len());
        let rows: Vec<usize> = (0..queries.len()).collect();
        for rows in rows.chunks(4 * BATCH) {
            let nearest = nearest(&self.points(&queries.select(rows), Stage::Full)?)?;
            out.extend(nearest.iter().map(|nearest| nearest.cell));
        }
        Ok(out)
    }
}
