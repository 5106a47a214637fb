//! What is kept of one class.

use super::compact::CompactScatter;
use super::moments::SecondMoments;
use super::sums::Sums;
use crate::error::{Error, Result};

/// What is kept of one class: no sample, and no more numbers for more samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassStatistics {
    /// Samples learned.
    pub count: u64,
    /// Sums, one entry a block.
    pub blocks: Vec<Sums>,
    /// Second moments, one entry a block, where the model keeps them per class.
    pub second: Option<Vec<SecondMoments>>,
    /// How the class spreads in few numbers, one entry a block, where the model keeps no more of it.
    pub compact: Option<Vec<CompactScatter>>,
}

impl ClassStatistics {
    /// Of no sample.
    pub fn empty(dims: &[usize], second: bool) -> Self {
        let blocks = dims.iter().map(|&dim| Sums::zeros(dim)).collect();
        let second = second.then(|| dims.iter().map(|&dim| SecondMoments::zeros(dim)).collect());
        Self { count: 0, blocks, second, compact: None }
    }

    /// Adds (`sign` = 1) or takes away (−1) another statistic of the same shape.
    pub(crate) fn combine(&mut self, other: &Self, sign: i64, class: &str) -> Result<()> {
        let overflow = || Error::CountOverflow { class: class.to_owned(), count: self.count };
        let change = i64::try_from(other.count).ok().and_then(|count| count.checked_mul(sign));
        // files hold signed numbers
        let count = change.and_then(|change| self.count.checked_add_signed(change));
        let count = count.filter(|&count| i64::try_from(count).is_ok()).ok_or_else(overflow)?;
        for (sums, other) in self.blocks.iter_mut().zip(&other.blocks) {
            sums.combine(other, sign).ok_or_else(overflow)?;
        }
        if let (Some(second), Some(other)) = (&mut self.second, &other.second) {
            for (moments, other) in second.iter_mut().zip(other) {
                moments.combine(other, sign).ok_or_else(overflow)?;
            }
        }
        self.count = count;
        Ok(())
    }

    /// The same statistics where the unit of a block is so many bits finer.
    pub(crate) fn refine(&mut self, bits: &[u32], class: &str) -> Result<()> {
        let overflow = || Error::CountOverflow { class: class.to_owned(), count: self.count };
        for (sums, &bits) in self.blocks.iter_mut().zip(bits).filter(|(_, bits)| **bits > 0) {
            sums.refine(bits).ok_or_else(overflow)?;
        }
        for (moments, &bits) in self.second.iter_mut().flatten().zip(bits) {
            moments.refine(bits).ok_or_else(overflow)?;
        }
        Ok(())
    }
}
