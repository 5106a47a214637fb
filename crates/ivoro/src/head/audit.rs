//! Every number a head keeps, in bytes, and what it does not keep.

use serde::Serialize;

use crate::head::{Head, SealedBlock};

/// One kind of number kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuditLine {
    /// Whose it is: a class, a phase, or the model.
    pub owner: String,
    /// What it is.
    pub what: &'static str,
    /// How many numbers.
    pub numbers: usize,
    /// How many bytes.
    pub bytes: usize,
}

/// What no model of this kind holds.
pub const NOT_KEPT: [&str; 5] = [
    "no image and no feature vector of any sample",
    "no file name or path of any sample; of time, in the journal, only when each lesson was given",
    "no number per sample: the size of a model does not depend on how many samples it learned",
    "no weight of the network: it stays where it is, frozen",
    "no receipt: it goes to whoever gave the samples, and the receipt of few samples reveals their features",
];

/// All numbers kept, class by class, then phase by phase, then of the model.
pub fn audit(head: &Head) -> Vec<AuditLine> {
    let mut lines = Vec::new();
    let mut line = |owner: &str, what, numbers: usize, width: usize| {
        if numbers > 0 {
            lines.push(AuditLine {
                owner: owner.to_owned(),
                what,
                numbers,
                bytes: numbers * width,
            });
        }
    };
    for class in head.classes() {
        let kept = &class.statistics;
        let owner = format!("class {}", class.name);
        line(&owner, "count of samples", 1, 8);
        let sums = kept.blocks.iter().map(|block| block.sums.len() + block.high.len()).sum();
        line(&owner, "sum of features", sums, 8);
        line(&owner, "sum of squared lengths", kept.blocks.len(), 16);
        let second = kept.second.iter().flatten().map(|second| second.bytes() / 8).sum();
        line(&owner, "second moments", second, 8);
        for block in kept.compact.iter().flatten() {
            let what = directions(block.rank(), kept.count);
            line(&owner, what, block.rank() * block.dim(), 1);
            line(&owner, "scales of directions, and what was rounded to", block.rank() + 3, 8);
            line(&owner, "variances beyond these directions", block.dim(), 2);
        }
        for block in class.sealed.iter().flatten() {
            sealed(&mut line, &owner, block, class.statistics.count, head);
        }
    }
    let parts = head.parts();
    for (phase, learned) in parts.phases.iter().enumerate() {
        let owner = format!("phase {phase}");
        let numbers = |blocks: &Option<Vec<crate::Matrix>>| {
            blocks.iter().flatten().map(|block| block.as_slice().len()).sum()
        };
        line(&owner, "probe centres (D)", numbers(&learned.probe), 4);
        line(&owner, "displacements of centres (R)", numbers(&learned.residual), 4);
    }
    let origins = parts.frame.iter().flat_map(|frame| &frame.places);
    let origins = origins.map(|place| place.origin.len()).sum();
    line("model", "origin: a mean of the first samples, far from zero", origins, 4);
    let pooled = parts.pooled.iter().copied().flatten().map(|second| second.bytes() / 8).sum();
    line("model", "second moments, all classes together (W)", pooled, 8);
    for block in parts.frozen.iter().flat_map(|frozen| &frozen.blocks) {
        let dim = block.origin.len();
        line("model", "metric that sealed classes share", dim * (dim + 1) / 2 + dim, 4);
    }
    lines
}

/// What directions of a class say. Those of few samples are made of these samples and nothing else.
fn directions(rank: usize, count: u64) -> &'static str {
    if rank as u64 + 1 >= count {
        "directions of spread: with the centre they say between which points its samples lie"
    } else {
        "directions of spread, each a mixture of its samples"
    }
}

/// What a sealed class keeps.
fn sealed(
    line: &mut impl FnMut(&str, &'static str, usize, usize),
    owner: &str,
    block: &SealedBlock,
    count: u64,
    head: &Head,
) {
    let (rank, dim) = (block.directions.rows(), block.centre.cols);
    let what = directions(rank, count);
    let bits = head.parts().frozen.map_or(16, |frozen| frozen.bits);
    line(owner, "centre, whitened", dim, 2);
    line(owner, what, rank * dim, usize::from(bits) / 8);
    line(owner, "scales and variances of directions", 2 * rank + 2, 4);
}
