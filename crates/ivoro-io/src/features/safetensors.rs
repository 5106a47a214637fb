//! `.features` and other safetensors files.

use std::borrow::Cow;
use std::path::Path;

use safetensors::{Dtype, SafeTensors};

use super::array::{Array, Element, Order};
use super::assemble::Parts;
use super::keys::{Role, asked_for, missing, own};
use super::{FeatureFile, ReadOptions};
use ivoro::codec::shortage;
use ivoro::{Error, Result};

pub(super) fn read(path: &Path, bytes: &[u8], options: &ReadOptions) -> Result<FeatureFile> {
    let header = |error| Error::malformed(path, format!("not a valid safetensors file: {error}"));
    let cut_off =
        |error| shortage(bytes).map_or_else(|| header(error), |what| Error::malformed(path, what));
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(cut_off)?;
    let tensors = SafeTensors::deserialize(bytes).map_err(header)?;
    let mut parts = Parts::new(path, options);
    parts.metadata.extend(metadata.metadata().clone().unwrap_or_default());
    let mut names: Vec<String> = tensors.names().into_iter().map(str::to_owned).collect();
    names.sort_unstable();
    if let Some(missing) = missing(&names, options) {
        let found = names.join(", ");
        return Err(Error::malformed(
            path,
            format!("there is no tensor {missing}; the tensors are {found}"),
        ));
    }
    for name in &names {
        let tensor = tensors.tensor(name).map_err(header)?;
        let Some(key) = asked_for(name, own(name), options) else { continue };
        if matches!(&key.1, Role::Layer(layer) if !parts.wants(layer)) {
            continue;
        }
        let Some(element) = element(tensor.dtype()) else {
            let what = format!("{name}: elements of type {:?} are not read", tensor.dtype());
            return Err(Error::malformed(path, what));
        };
        let (shape, data) = (tensor.shape().to_vec(), Cow::Borrowed(tensor.data()));
        parts.add(key, &Array::new(path, name, shape, element, Order::default(), data)?)?;
    }
    parts.finish()
}

fn element(dtype: Dtype) -> Option<Element> {
    let integer = |bytes, signed| Some(Element::Integer { bytes, signed });
    match dtype {
        Dtype::F16 => Some(Element::F16),
        Dtype::BF16 => Some(Element::BF16),
        Dtype::F32 => Some(Element::F32),
        Dtype::F64 => Some(Element::F64),
        Dtype::BOOL | Dtype::U8 => integer(1, false),
        Dtype::I8 => integer(1, true),
        Dtype::U16 => integer(2, false),
        Dtype::I16 => integer(2, true),
        Dtype::U32 => integer(4, false),
        Dtype::I32 => integer(4, true),
        Dtype::U64 => integer(8, false),
        Dtype::I64 => integer(8, true),
        _ => None,
    }
}
