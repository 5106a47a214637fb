//! Every number a head keeps, in bytes, and what it does not keep.

use serde::Serialize;

use crate::head::Head;

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
pub const NOT_KEPT: [&str; 4] = [
    "no image and no feature vector of any sample",
    "no file name, path or time of any sample",
    "no number per sample: the size of a model does not depend on how many samples it learned",
    "no weight of the network: it stays where it is, frozen",
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
        line(&owner, "sum of features", kept.blocks.iter().map(|block| block.sums.len()).sum(), 8);
        line(&owner, "sum of squared lengths", kept.blocks.len(), 16);
        let second = kept.second.iter().flatten().map(|second| second.bytes() / 8).sum();
        line(&owner, "second moments", second, 8);
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
    let pooled = parts.pooled.iter().copied().flatten().map(|second| second.bytes() / 8).sum();
    line("model", "second moments, all classes together (W)", pooled, 8);
    lines
}
