//! Writing and reading classes with a compact scatter. Every size is checked against the header before
//! memory is taken for it.

use safetensors::Dtype;

use super::read::Reader;
use super::safetensors_header::{Entry, I8, I16};
use super::target::Tensor;
use crate::error::Result;
use crate::head::{Frame, Head, LearnedClass};
use crate::statistics::{CompactNumbers, CompactScatter, Grid};

/// All tensors of compact scatters.
pub(super) fn tensors(head: &Head) -> Vec<Tensor> {
    let compact: Vec<&Vec<CompactScatter>> =
        head.classes().iter().filter_map(|class| class.statistics.compact.as_ref()).collect();
    let blocks = compact.first().map_or(0, |blocks| blocks.len());
    (0..blocks).flat_map(|block| of_block(block, &compact)).collect()
}

fn of_block(block: usize, classes: &[&Vec<CompactScatter>]) -> [Tensor; 6] {
    let name = |what: &str| format!("compact.{block}.{what}");
    let all = || classes.iter().map(|blocks| &blocks[block]);
    let (count, dim) = (classes.len(), all().next().map_or(0, CompactScatter::dim));
    let total = all().map(CompactScatter::rank).sum();
    let column = |what: &str, values: &mut dyn Iterator<Item = i64>| {
        Tensor::integers(name(what), vec![count], values)
    };
    let factors = all().flat_map(|class| class.numbers().1.iter().copied());
    let directions = all().flat_map(|class| class.numbers().0.iter().copied());
    let variances = all().flat_map(|class| class.numbers().2.iter().copied());
    [
        column("ranks", &mut all().map(|class| class.rank() as i64)),
        column("grids", &mut all().map(|class| class.grid().exponent().into())),
        column("shifts", &mut all().map(|class| class.numbers().3)),
        Tensor::integers(name("factors"), vec![total], factors),
        Tensor {
            entry: Entry { name: name("directions"), kind: I8, shape: vec![total, dim] },
            bytes: directions.flat_map(i8::to_le_bytes).collect(),
        },
        Tensor {
            entry: Entry { name: name("variances"), kind: I16, shape: vec![count, dim] },
            bytes: variances.flat_map(i16::to_le_bytes).collect(),
        },
    ]
}

impl Reader<'_> {
    /// Adds the compact scatter of classes, if that is what the file keeps.
    pub(super) fn add_compact(&self, classes: &mut [LearnedClass], frame: &Frame) -> Result<()> {
        let description = &self.header.description;
        if !description.variant.keeps_compact(description.settings.scatter) {
            return Ok(());
        }
        let mut open: Vec<&mut LearnedClass> =
            classes.iter_mut().filter(|class| !class.is_sealed()).collect();
        if open.is_empty() {
            return Ok(());
        }
        for (block, &dim) in frame.dims.iter().enumerate() {
            let read = self.compact_blocks(block, dim, open.len())?;
            for (class, compact) in open.iter_mut().zip(read) {
                class.statistics.compact.get_or_insert_default().push(compact);
            }
        }
        Ok(())
    }

    fn compact_blocks(
        &self,
        block: usize,
        dim: usize,
        classes: usize,
    ) -> Result<Vec<CompactScatter>> {
        let name = |what: &str| format!("compact.{block}.{what}");
        let bad = |what: &str| self.malformed(format!("tensor {} {what}", name("ranks")));
        let column = |what: &str| -> Result<Vec<i64>> {
            Ok(self.integers(&name(what), &[classes])?.integers(classes))
        };
        let (ranks, grids, shifts) = (column("ranks")?, column("grids")?, column("shifts")?);
        let rank = |&rank: &i64| usize::try_from(rank).ok().filter(|&rank| rank <= dim);
        let ranks: Option<Vec<usize>> = ranks.iter().map(rank).collect();
        let ranks = ranks.ok_or_else(|| bad("holds a number of directions that can't be"))?;
        let total = ranks.iter().try_fold(0usize, |sum, &rank| sum.checked_add(rank));
        let total = total.ok_or_else(|| bad("holds too many directions"))?;
        let mut factors = self.integers(&name("factors"), &[total])?;
        let mut directions = self.tensor(&name("directions"), Dtype::I8, &[total, dim])?;
        let mut variances = self.tensor(&name("variances"), Dtype::I16, &[classes, dim])?;
        let places = ranks.into_iter().zip(grids).zip(shifts);
        let classes = places.map(|((rank, grid), shift)| {
            let grid = i32::try_from(grid).ok().and_then(Grid::from_exponent)?;
            let codes = directions.bytes(rank * dim).into_iter().map(|code| code as i8);
            let numbers = CompactNumbers {
                directions: codes.collect(),
                factors: factors.integers(rank),
                variances: variances.shorts(dim),
                shift,
            };
            CompactScatter::from_numbers(dim, grid, numbers)
        });
        let classes: Option<Vec<CompactScatter>> = classes.collect();
        classes.ok_or_else(|| {
            self.malformed(format!("block {block}: a compact scatter holds a number that can't be"))
        })
    }
}
