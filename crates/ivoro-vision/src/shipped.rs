//! The network that ships: EfficientNet-Lite0, in the crate `ivoro-lite0`.

use std::borrow::Cow;
use std::path::Path;

use crate::error::Result;
use crate::recogniser::{FrozenNetwork, NetworkOptions};

pub use ivoro_lite0::{HASH, LICENCE, NAME, SOURCE};

/// Opens it.
pub fn open(options: &NetworkOptions) -> Result<FrozenNetwork> {
    let bytes = Cow::Borrowed(ivoro_lite0::BYTES);
    // its hash is a constant that a test compares, since it takes time that a first photo waits for
    let network = FrozenNetwork::of_known_hash(Path::new(FILE), bytes, HASH.to_owned(), options)?;
    Ok(network.named(NAME))
}

/// Bytes of its file.
pub(crate) const SIZE: usize = ivoro_lite0::BYTES.len();

/// The name that messages have for its file.
const FILE: &str = "efficientnet-lite0.safetensors";

#[cfg(test)]
mod tests {
    #[test]
    fn the_hash_is_that_of_the_file() {
        assert_eq!(crate::network::fingerprint(ivoro_lite0::BYTES), super::HASH);
    }
}
