//! The tensors of sealed classes.

use super::SealedShape;
use super::safetensors_header::{Entry, F32, I8, I16};
use super::target::Tensor;
use crate::head::{Codes, Head, SealedBlock};

/// What the description says of sealed classes.
pub(super) fn shape(head: &Head) -> Option<SealedShape> {
    let frozen = head.parts().frozen?;
    let classes = head.classes().iter().enumerate().filter(|(_, class)| class.is_sealed());
    Some(SealedShape {
        bits: frozen.bits,
        metrics: frozen.blocks.iter().map(|block| (block.share, block.floor)).collect(),
        usual: frozen.usual.clone(),
        classes: classes.map(|(at, _)| at).collect(),
    })
}

/// All tensors of sealed classes and of their metric.
pub(super) fn tensors(head: &Head) -> Vec<Tensor> {
    let Some(frozen) = head.parts().frozen else { return Vec::new() };
    let mut tensors = Vec::new();
    for (block, shared) in frozen.blocks.iter().enumerate() {
        let name = |what: &str| format!("sealed.{block}.{what}");
        let dim = shared.origin.len();
        let triangle = shared.whitener.iter_rows().enumerate();
        let triangle = triangle.flat_map(|(at, row)| row[..=at].iter().copied());
        tensors.push(floats(name("origin"), vec![dim], shared.origin.iter().copied()));
        tensors.push(floats(name("whitener"), vec![dim * (dim + 1) / 2], triangle));
        let classes: Vec<&SealedBlock> = head
            .classes()
            .iter()
            .filter_map(|class| class.sealed.as_ref().map(|blocks| &blocks[block]))
            .collect();
        let all = || classes.iter().copied();
        let ranks: Vec<usize> = all().map(|class| class.directions.rows()).collect();
        let total: usize = ranks.iter().sum();
        let ranks = ranks.iter().map(|&rank| rank as i64);
        tensors.push(Tensor::integers(name("ranks"), vec![classes.len()], ranks));
        let centres: Vec<&Codes> = all().map(|class| &class.centre).collect();
        let directions: Vec<&Codes> = all().map(|class| &class.directions).collect();
        tensors.push(codes(name("centres"), (classes.len(), dim), &centres, 16));
        tensors.push(scales(name("centre_scales"), classes.len(), &centres));
        tensors.push(codes(name("directions"), (total, dim), &directions, frozen.bits));
        tensors.push(scales(name("direction_scales"), total, &directions));
        let variances = all().flat_map(SealedBlock::variances);
        tensors.push(floats(name("variances"), vec![total], variances));
        let rests = all().map(SealedBlock::rest);
        tensors.push(floats(name("rests"), vec![classes.len()], rests));
    }
    tensors
}

fn floats(name: String, shape: Vec<usize>, values: impl Iterator<Item = f32>) -> Tensor {
    let bytes = values.flat_map(f32::to_le_bytes).collect();
    Tensor { entry: Entry { name, kind: F32, shape }, bytes }
}

fn scales(name: String, rows: usize, codes: &[&Codes]) -> Tensor {
    floats(name, vec![rows], codes.iter().flat_map(|codes| codes.scales()))
}

fn codes(name: String, (rows, cols): (usize, usize), codes: &[&Codes], bits: u8) -> Tensor {
    let values = codes.iter().flat_map(|codes| codes.whole.iter().copied());
    let (kind, bytes) = if bits == 8 {
        (I8, values.flat_map(|code| (code as i8).to_le_bytes()).collect())
    } else {
        (I16, values.flat_map(i16::to_le_bytes).collect())
    };
    Tensor { entry: Entry { name, kind, shape: vec![rows, cols] }, bytes }
}
