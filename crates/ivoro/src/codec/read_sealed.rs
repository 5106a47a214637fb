//! Reading sealed classes. Every size is checked against the header before memory is taken for it.

use safetensors::Dtype;

use super::read::Reader;
use crate::error::Result;
use crate::head::{Codes, Frame, Frozen, LearnedClass, Rank, SealedBlock, SharedMetric};
use crate::matrix::Matrix;

impl Reader<'_> {
    /// The metric that classes were sealed in.
    pub(super) fn frozen(&self) -> Result<Option<Frozen>> {
        let description = &self.header.description;
        let Some(sealed) = &description.sealed else { return Ok(None) };
        let mut blocks = Vec::new();
        for (block, (&dim, &(share, floor))) in
            description.dims.iter().zip(&sealed.metrics).enumerate()
        {
            let origin = self.vector(&format!("sealed.{block}.origin"), dim)?;
            let triangle = dim.saturating_mul(dim + 1) / 2;
            let triangle = self.vector(&format!("sealed.{block}.whitener"), triangle)?;
            let mut whitener = Matrix::zeros(dim, dim);
            let mut rest = &triangle[..];
            for at in 0..dim {
                let (row, left) = rest.split_at(at + 1);
                whitener.row_mut(at)[..=at].copy_from_slice(row);
                rest = left;
                if !(row[at].is_normal() && row[at] > 0.0) {
                    let what = format!("tensor sealed.{block}.whitener is not that of a metric");
                    return Err(self.malformed(what));
                }
            }
            blocks.push(SharedMetric { origin, whitener, share, floor });
        }
        Ok(Some(Frozen { bits: sealed.bits, blocks, usual: sealed.usual.clone() }))
    }

    /// Adds what sealed classes keep.
    pub(super) fn add_sealed(&self, classes: &mut [LearnedClass], frame: &Frame) -> Result<()> {
        let description = &self.header.description;
        let Some(sealed) = &description.sealed else { return Ok(()) };
        let finite = |&(share, floor): &(f64, f64)| {
            (0.0..=1.0).contains(&share) && floor.is_finite() && floor >= 0.0
        };
        let sensible = description.variant.per_class_metric
            && matches!(description.settings.rank, Rank::Directions(_))
            && [8, 16].contains(&sealed.bits)
            && sealed.metrics.len() == frame.dims.len()
            && sealed.metrics.iter().all(finite)
            && sealed.usual.len() == frame.dims.len()
            && sealed.usual.iter().all(|usual| usual.is_finite() && *usual >= 0.0)
            && sealed.classes.is_sorted_by(|a, b| a < b)
            && sealed.classes.last().is_none_or(|&last| last < classes.len());
        if !sensible {
            return Err(self.malformed("what is said of sealed classes contradicts itself".into()));
        }
        for (block, &dim) in frame.dims.iter().enumerate() {
            let read = self.sealed_blocks(block, dim, sealed.classes.len(), sealed.bits)?;
            for (&at, sealed) in sealed.classes.iter().zip(read) {
                classes[at].sealed.get_or_insert_default().push(sealed);
            }
        }
        Ok(())
    }

    fn sealed_blocks(
        &self,
        block: usize,
        dim: usize,
        classes: usize,
        bits: u8,
    ) -> Result<Vec<SealedBlock>> {
        let name = |what: &str| format!("sealed.{block}.{what}");
        let bad = |what: &str| self.malformed(format!("tensor {} {what}", name("ranks")));
        let ranks = self.integers(&name("ranks"), &[classes])?.integers(classes);
        let rank = |&rank: &i64| usize::try_from(rank).ok().filter(|&rank| rank <= dim);
        let ranks: Option<Vec<usize>> = ranks.iter().map(rank).collect();
        let ranks = ranks.ok_or_else(|| bad("holds a number of directions that can't be"))?;
        let total = ranks.iter().try_fold(0usize, |sum, &rank| sum.checked_add(rank));
        let total = total.ok_or_else(|| bad("holds too many directions"))?;
        let mut centres = self.tensor(&name("centres"), Dtype::I16, &[classes, dim])?;
        let kind = if bits == 8 { Dtype::I8 } else { Dtype::I16 };
        let mut directions = self.tensor(&name("directions"), kind, &[total, dim])?;
        let centre_scales = self.vector(&name("centre_scales"), classes)?;
        let scales = self.vector(&name("direction_scales"), total)?;
        let variances = self.vector(&name("variances"), total)?;
        let rests = self.vector(&name("rests"), classes)?;
        let fits = |&scale: &f32| scale >= 0.0 && (scale * f32::from(i16::MAX)).is_finite();
        if !centre_scales.iter().chain(&scales).all(fits) {
            return Err(bad("belongs to a scale that can't be"));
        }
        if variances.iter().chain(&rests).any(|value| !(value.is_normal() && *value > 0.0)) {
            return Err(self.malformed(format!("block {block}: a sealed variance is not positive")));
        }
        let mut first = 0;
        let mut blocks = Vec::with_capacity(classes);
        for (at, rank) in ranks.into_iter().enumerate() {
            let rows = first..first + rank;
            first = rows.end;
            let centre = Codes::from_parts(dim, &centre_scales[at..=at], centres.shorts(dim));
            let codes = match bits {
                8 => directions.bytes(rank * dim),
                _ => directions.shorts(rank * dim),
            };
            let codes = Codes::from_parts(dim, &scales[rows.clone()], codes);
            blocks.push(SealedBlock::from_parts(centre, codes, &variances[rows], rests[at]));
        }
        Ok(blocks)
    }

    /// Finite numbers in one row.
    fn vector(&self, name: &str, length: usize) -> Result<Vec<f32>> {
        let numbers = self.tensor(name, Dtype::F32, &[length])?.floats(length);
        if numbers.iter().any(|number| !number.is_finite()) {
            return Err(self.malformed(format!("tensor {name} holds a number that is not finite")));
        }
        Ok(numbers)
    }
}
