//! Files that are not what they say: one sentence, never a panic.

use ivoro_vision::Error;
use ivoro_vision::dataset::Shape;
use ivoro_vision::engine::Backbone;
use ivoro_vision::engine::onnx::{OnnxError, OnnxOptions};

use super::build::{field, model, node, single, small, value};
use super::{TINY, open, options, refusal};

#[test]
fn every_truncation_is_refused() {
    for length in 0..TINY.len() {
        let error = refusal(&TINY[..length], &options(&[]));
        assert!(matches!(error, OnnxError::Malformed { .. }), "{length}: {error}");
    }
}

#[test]
fn every_changed_bit_gives_a_network_or_an_error() {
    let mut loaded = 0;
    for at in 0..TINY.len() {
        for bit in 0..8 {
            let mut bytes = TINY.to_vec();
            bytes[at] ^= 1 << bit;
            loaded += usize::from(open(&bytes, &options(&["active"])).is_ok());
        }
    }
    // Most bits are those of weights.
    assert!(loaded > TINY.len() * 4, "{loaded}");
}
