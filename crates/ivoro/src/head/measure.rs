//! Distances of queries, batch by batch, and the nearest class.

use crate::error::Result;
use crate::head::compose::{Composed, Stage};
use crate::head::diagram_set::{DiagramSet, PairDistances};
use crate::head::{Head, views};
use crate::matrix::Matrix;
use crate::samples::Points;
use crate::vectors::least;

/// Queries handled at once, so that memory does not grow with their number.
const BATCH: usize = 2048;

/// Most queries for which a metric need not be built.
const FEW: usize = 16;

impl Head {
    /// Distances of every query to every class; see `Learner::distances`. Without `absolute`,
    /// whitened distances may be short of a number that is the same for all classes of a query.
    pub fn measure(&self, queries: &Points, absolute: bool) -> Result<Matrix> {
        let mut out = Matrix::zeros(0, self.classes.len());
        self.in_batches(queries, absolute, |set, pairs| {
            out.append(&views::combine(set, pairs, self.variant.views).distances)
        })?;
        Ok(out)
    }

    pub(super) fn in_batches(
        &self,
        queries: &Points,
        absolute: bool,
        mut take: impl FnMut(&DiagramSet, Vec<PairDistances>) -> Result<()>,
    ) -> Result<()> {
        let set = self.diagram_set()?;
        let rows: Vec<usize> = (0..queries.len()).collect();
        for rows in rows.chunks(BATCH) {
            let batch = queries.select(rows);
            let points = self.points(&batch, Stage::Full)?;
            let same = !self.variant.normalise && !self.variant.lift;
            let probed = match &set.probes {
                Some(_) if !same => Some(self.points(&batch, self.probe_stage())?),
                _ => None,
            };
            let probed = set.probes.as_ref().map(|_| probed.as_ref().unwrap_or(&points));
            take(set, set.pair_distances(&points, probed, absolute)?)?;
        }
        Ok(())
    }

    /// The same by the metric of before and what changed since, for a few queries, where a bound proves
    /// that the metric built anew gives these classes.
    fn predict_updated(&self, queries: &Points) -> Result<Option<Vec<u32>>> {
        let Some(updated) = &self.updated else { return Ok(None) };
        let built = self.diagram_set.get().is_some();
        if built || queries.len() > FEW || updated.classes() != self.classes.len() {
            return Ok(None);
        }
        let points = self.points(queries, Stage::Full)?;
        points.blocks[0].iter_rows().map(|query| updated.predict(query)).collect()
    }

    /// The nearest class of every query.
    pub fn predict(&self, queries: &Points) -> Result<Vec<u32>> {
        if let Some(found) = self.predict_updated(queries)? {
            return Ok(found);
        }
        let set = self.diagram_set()?;
        let diagram = match (&set.cross[..], &set.probes) {
            ([metric], None) => metric.diagram(),
            _ => None,
        };
        let Some(diagram) = diagram else {
            let distances = self.measure(queries, false)?;
            return Ok(distances.iter_rows().map(|row| least(row) as u32).collect());
        };
        let nearest = |points: &Composed| diagram.nearest(points.block(0, 0));
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
