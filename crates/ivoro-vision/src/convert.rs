//! ONNX networks as lists of operations.

use std::collections::BTreeMap;
use std::path::Path;

use crate::engine::onnx::{OnnxOptions, operations};
use crate::error::{Error, Result};
use crate::network::{Normalisation, OperationNetwork, Operations, fingerprint};
use crate::recogniser::{NetworkOptions, centre};

/// A network as the bytes of a file of operations.
#[derive(Clone, Debug)]
pub struct Converted {
    /// The file.
    pub bytes: Vec<u8>,
    /// Its hash.
    pub hash: String,
    /// Network, size, fit and normalisation in one line.
    pub description: String,
}

/// Converts an ONNX network of convolutions, sums and limits. Its layers get the names in `layers`; without
/// any, the first is `last` and the others keep theirs. The same network gives the same bytes.
pub fn convert(
    file: &Path,
    name: &str,
    layers: &[String],
    options: &NetworkOptions,
) -> Result<Converted> {
    let bytes = fs_err::read(file)?;
    let onnx = OnnxOptions {
        outputs: options.onnx_outputs.clone(),
        height: options.fitting.size,
        width: options.fitting.size,
        normalisation: options.normalisation.clone(),
        ..OnnxOptions::default()
    };
    let (listed, shape, values) = operations(file, &bytes, &onnx)?;
    let names: Vec<String> = if layers.is_empty() {
        let rest = values.into_iter().skip(1);
        std::iter::once("last".to_owned()).chain(rest).collect()
    } else {
        layers.to_vec()
    };
    if names.len() != listed.wanted.len() {
        let (found, expected) = (names.len(), listed.wanted.len());
        let what = format!("{expected} values are features, {found} names of layers were given");
        return Err(Error::malformed(file, what));
    }
    let normalisation = options.normalisation.clone();
    let layers = names.into_iter().zip(listed.wanted).collect();
    let network = OperationNetwork {
        operations: Operations::new(shape.channels, listed.steps, layers),
        kernels: listed.kernels,
        normalisation: normalisation.unwrap_or_else(|| Normalisation::imagenet(shape.channels)),
        fit: options.fitting.fit(shape, Some(centre(shape))),
        metadata: BTreeMap::from([("name".to_owned(), name.to_owned())]),
    };
    let bytes = network.to_bytes(file)?;
    let description = format!("{name}, {}, {}", network.fit, network.normalisation);
    Ok(Converted { hash: fingerprint(&bytes), bytes, description })
}
