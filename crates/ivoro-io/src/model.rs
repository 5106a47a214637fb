//! Model files, and receipts.

use std::path::Path;

use ivoro::model::Predictor;
use ivoro::{Model, Receipt, Result, codec};

use crate::atomic::write_atomically;
use crate::map::map;

/// Loads a model.
pub fn load(path: &Path) -> Result<Model> {
    codec::decode(path, &map(path)?)
}

/// Loads a model that is only to be asked; see [`codec::decode_predictor`].
pub fn load_predictor(path: &Path) -> Result<Predictor> {
    codec::decode_predictor(path, &map(path)?)
}

/// Saves a model: the file appears whole or not at all.
pub fn save(model: &Model, path: &Path) -> Result<()> {
    write_atomically(path, |file| codec::write(model, path, file))
}

/// Loads a receipt.
pub fn load_receipt(path: &Path) -> Result<Receipt> {
    codec::decode_receipt(path, &map(path)?)
}

/// Saves a receipt: the file appears whole or not at all.
pub fn save_receipt(receipt: &Receipt, path: &Path) -> Result<()> {
    write_atomically(path, |file| codec::write_receipt(receipt, path, file))
}
