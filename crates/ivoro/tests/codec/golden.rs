//! What stands before the numbers of a model file, byte for byte.

use ivoro::{Model, ModelOptions};
use serde_json::json;

use crate::file::{Parts, bytes_of, features};

#[test]
fn a_model_file_begins_as_it_always_did() {
    let mut model = Model::new("iVoro".parse().unwrap(), ModelOptions::default());
    for first in [0, 2] {
        model.learn(&features(first)).unwrap();
    }
    let bytes = bytes_of(&model);
    let mut parts = Parts::of(&bytes);
    let [checksum, description] =
        ["checksum", "model"].map(|key| parts.metadata()[key].to_string());
    let program = json!(env!("CARGO_PKG_VERSION"));
    let header = [
        format!(r#"{{"__metadata__":{{"checksum":{checksum},"format":"ivoro-model","model":"#),
        format!(r#"{description},"program":{program},"version":"2"}},"#),
        r#""counts":{"data_offsets":[0,32],"dtype":"I64","shape":[4]},"#.to_owned(),
        r#""squares.0":{"data_offsets":[32,96],"dtype":"I64","shape":[4,2]},"#.to_owned(),
        r#""sums.0":{"data_offsets":[96,192],"dtype":"I64","shape":[4,3]}}"#.to_owned(),
    ];
    let mut header = header.concat();
    while header.len() % 8 != 0 {
        header.push(' ');
    }
    assert_eq!(bytes[..8], (header.len() as u64).to_le_bytes());
    assert_eq!(String::from_utf8_lossy(&bytes[8..bytes.len() - 192]), header);
}
