//! Probes that were fitted already. Many variants of one comparison need the very same ones: D's are
//! those of DR, a rotated class's those of AC and AI. Kept are centres alone, under a hash of all
//! that a fit depends on; no sample can be here.

use std::collections::HashMap;
use std::sync::Mutex;

use crate::error::Result;
use crate::matrix::Matrix;
use crate::regression::{FitOptions, Penalty};

/// Centres by the hash of what they were fitted to.
#[derive(Debug, Default)]
pub struct ProbeCache {
    memory: Mutex<HashMap<blake3::Hash, Matrix>>,
}

/// All that a fit depends on.
pub(crate) struct Fit<'a> {
    pub(crate) points: &'a Matrix,
    pub(crate) labels: &'a [u32],
    pub(crate) start: &'a Matrix,
    pub(crate) penalty: Penalty,
    pub(crate) options: FitOptions,
}

impl Fit<'_> {
    fn key(&self) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new();
        let sizes = [self.points.rows(), self.points.cols(), self.start.rows()];
        hasher.update(format!("{sizes:?} {:?} {:?}", self.penalty, self.options).as_bytes());
        hasher.update_rayon(bytemuck::cast_slice(self.points.as_slice()));
        hasher.update(bytemuck::cast_slice(self.labels));
        hasher.update(bytemuck::cast_slice(self.start.as_slice()));
        hasher.finalize()
    }
}

impl ProbeCache {
    /// The centres of a fit, from memory where it was done before.
    pub(crate) fn get(
        &self,
        fit: &Fit<'_>,
        compute: impl FnOnce() -> Result<Matrix>,
    ) -> Result<Matrix> {
        let key = fit.key();
        let known = self.memory.lock().ok().and_then(|memory| memory.get(&key).cloned());
        if let Some(known) = known {
            return Ok(known);
        }
        let centres = compute()?;
        if let Ok(mut memory) = self.memory.lock() {
            memory.insert(key, centres.clone());
        }
        Ok(centres)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regression::Optimiser;

    #[test]
    fn a_fit_is_done_once_and_another_one_for_itself() {
        let points = Matrix::new(2, 2, vec![1.0, 2.0, 3.0, 4.0]).unwrap();
        let start = Matrix::zeros(2, 2);
        let options = FitOptions { optimiser: Optimiser::Lbfgs, iterations: 5, seed: 1 };
        let fit =
            |penalty| Fit { points: &points, labels: &[0, 1], start: &start, penalty, options };
        let probes = ProbeCache::default();
        let mut fits = 0;
        for penalty in [1e-4, 1e-4, 1e-3].map(Penalty::Decay) {
            let centres = probes.get(&fit(penalty), || {
                fits += 1;
                Ok(start.clone())
            });
            assert_eq!(centres.unwrap(), start);
        }
        assert_eq!(fits, 2);
    }
}
