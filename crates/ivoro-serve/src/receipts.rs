//! Receipts of samples: their features and their class, for whoever taught them. The server keeps none.
//!
//! A receipt is a text, `r1.` and base64 of: 16 random bytes that tell receipts apart; how many entries the
//! journal of the model had then, so that names can be followed since; the class;
//! the features, block by block; a checksum.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ivoro::{Matrix, Points, Samples};

use crate::features::assembled;
use crate::problem::Problem;

/// What tells receipts apart.
pub(crate) type ReceiptId = [u8; 16];

const MAGIC: &str = "r1.";
/// Bytes of the checksum.
const SUM: usize = 16;
/// Blocks of a receipt, at most: views and layers.
const MOST_BLOCKS: usize = 64;

/// What a lesson added of one sample.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Receipt {
    pub(crate) id: ReceiptId,
    /// Entries of the journal when it was given.
    pub(crate) position: u64,
    pub(crate) class: String,
    pub(crate) blocks: Vec<Vec<f32>>,
}

impl Receipt {
    pub(crate) fn encode(&self) -> String {
        let mut bytes = Vec::new();
        bytes.extend(self.id);
        bytes.extend(self.position.to_le_bytes());
        bytes.extend((self.class.len() as u16).to_le_bytes());
        bytes.extend(self.class.as_bytes());
        bytes.push(self.blocks.len() as u8);
        for block in &self.blocks {
            bytes.extend((block.len() as u32).to_le_bytes());
            block.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
        }
        let sum = blake3::hash(&bytes);
        bytes.extend(&sum.as_bytes()[..SUM]);
        format!("{MAGIC}{}", BASE64.encode(bytes))
    }

    pub(crate) fn decode(text: &str) -> Result<Self, Problem> {
        let no_receipt = |what: &str| Problem::unprocessable(format!("no receipt: {what}"));
        let text = text.strip_prefix(MAGIC).ok_or_else(|| no_receipt("it begins with r1."))?;
        let bytes = BASE64.decode(text).map_err(|_| no_receipt("it is not base64"))?;
        let at = bytes.len().checked_sub(SUM).ok_or_else(|| no_receipt("it is cut off"))?;
        let (body, sum) = bytes.split_at(at);
        if blake3::hash(body).as_bytes()[..SUM] != *sum {
            return Err(no_receipt("its checksum is another; it was changed or cut off"));
        }
        Self::of_body(body).ok_or_else(|| no_receipt("it is cut off"))
    }

    fn of_body(mut rest: &[u8]) -> Option<Self> {
        let id = take(&mut rest)?;
        let position = u64::from_le_bytes(take(&mut rest)?);
        let length = usize::from(u16::from_le_bytes(take(&mut rest)?));
        let class = String::from_utf8(rest.split_off(..length)?.to_vec()).ok()?;
        let [count] = take(&mut rest)?;
        if usize::from(count) > MOST_BLOCKS {
            return None;
        }
        let mut blocks = Vec::with_capacity(count.into());
        for _ in 0..count {
            let dim = u32::from_le_bytes(take(&mut rest)?) as usize;
            let numbers = rest.split_off(..dim.checked_mul(4)?)?;
            blocks.push(numbers.as_chunks().0.iter().map(|it| f32::from_le_bytes(*it)).collect());
        }
        rest.is_empty().then_some(Self { id, position, class, blocks })
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    rest.split_off(..N)?.try_into().ok()
}

/// Receipts for all samples of a lesson.
pub(crate) fn give(samples: &Samples, position: u64) -> Result<Vec<Receipt>, Problem> {
    let mut lesson = [0; 16];
    getrandom::fill(&mut lesson).map_err(|_| Problem::internal())?;
    let views = samples.views().to_vec();
    let row = |row: usize| {
        let mut id = blake3::Hasher::new();
        id.update(&lesson).update(&(row as u64).to_le_bytes());
        let mut short = [0; 16];
        short.copy_from_slice(&id.finalize().as_bytes()[..16]);
        let layers = 0..samples.layers().len();
        let blocks = layers.flat_map(|layer| views.iter().map(move |&view| (layer, view)));
        let blocks = blocks.filter_map(|(layer, view)| samples.block(layer, view));
        Receipt {
            id: short,
            position,
            class: samples.classes()[samples.labels()[row] as usize].clone(),
            blocks: blocks.map(|block| block.row(row).to_vec()).collect(),
        }
    };
    Ok((0..samples.len()).map(row).collect())
}

/// The samples of receipts, each with the name that `class` finds for it.
pub(crate) fn samples(
    receipts: &[Receipt],
    variant: ivoro::Variant,
    mut class: impl FnMut(&Receipt) -> Result<String, Problem>,
) -> Result<Samples, Problem> {
    let first = receipts.first().ok_or_else(|| Problem::unprocessable("no receipt was given"))?;
    let mut blocks = Vec::with_capacity(first.blocks.len());
    for at in 0..first.blocks.len() {
        let dim = first.blocks[at].len();
        let mut numbers = Vec::with_capacity(dim * receipts.len());
        for receipt in receipts {
            match receipt.blocks.get(at) {
                Some(block) if block.len() == dim && receipt.blocks.len() == first.blocks.len() => {
                    numbers.extend_from_slice(block);
                }
                _ => {
                    let text = "these receipts are of models of different kinds";
                    return Err(Problem::unprocessable(text));
                }
            }
        }
        blocks.push(Matrix::new(receipts.len(), dim, numbers)?);
    }
    let points: Points = assembled("receipts", variant, blocks)?;
    let mut names: Vec<String> = Vec::new();
    let mut labels = Vec::with_capacity(receipts.len());
    for receipt in receipts {
        let name = class(receipt)?;
        let known = names.iter().position(|other| *other == name);
        labels.push(known.unwrap_or(names.len()) as u32);
        if known.is_none() {
            names.push(name);
        }
    }
    Ok(Samples::new(points, labels, names.into())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_comes_back_and_a_changed_one_does_not() {
        let receipt = Receipt {
            id: [7; 16],
            position: 17,
            class: "Käfer".to_owned(),
            blocks: vec![vec![1.5, -0.0, f32::MIN_POSITIVE], vec![]],
        };
        let text = receipt.encode();
        assert_eq!(Receipt::decode(&text).unwrap(), receipt);
        for bad in
            ["", "r1.", "r1.!!!!", "r2.AAAA", &text[..text.len() - 4], &text.replace('A', "B")]
        {
            assert!(Receipt::decode(bad).is_err(), "{bad}");
        }
    }
}
