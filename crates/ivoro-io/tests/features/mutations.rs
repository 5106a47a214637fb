//! Valid files with bytes changed at random: read or refused, never a panic.

use proptest::prelude::*;
use zip::CompressionMethod::{Deflated, Stored};

use super::fixtures::*;

/// Bytes to overwrite, and how many to cut off the end.
fn damage() -> impl Strategy<Value = (Vec<(prop::sample::Index, u8)>, prop::sample::Index)> {
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8);
    (changes, any::<prop::sample::Index>())
}

fn survives(name: &str, whole: &[u8], changes: &[(prop::sample::Index, u8)], cut: usize) {
    let mut bytes = whole.to_vec();
    for (index, value) in changes {
        let at = index.index(bytes.len());
        bytes[at] = *value;
    }
    // Half of the files keep their length, so that more than the truncation is tried.
    bytes.truncate(if cut.is_multiple_of(2) { bytes.len() } else { cut });
    if let Ok(file) = read(name, &bytes) {
        let _ = file.clone().learning();
        let _ = file.clone().asking();
        let _ = file.into_split(0.2, 0);
    }
}

fn samples() -> Vec<(&'static str, Vec<u8>)> {
    let array = || npy("<f4", false, &[ROWS, VIEWS, DIM], &singles(&values()));
    let labels = || npy("<U2", false, &[ROWS], &[97, 0, 0, 0, 98, 0, 0, 0].repeat(ROWS));
    let members = || [("X_train", array()), ("y_train", labels())];
    let mut samples = vec![
        ("a.features", small_features()),
        ("a.npy", array()),
        ("a.npz", npz(Stored, &members())),
        ("a.npz", npz(Deflated, &members())),
    ];
    #[cfg(feature = "tables")]
    samples.extend(super::tables::samples());
    samples.truncate(7);
    samples
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_file_never_panics((changes, cut) in damage()) {
        for (name, whole) in samples() {
            survives(name, &whole, &changes, cut.index(whole.len()));
        }
    }
}
