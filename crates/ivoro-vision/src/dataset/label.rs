//! Labels that come as numbers.

use std::collections::BTreeSet;
use std::path::Path;

use crate::error::{Error, Result};

/// Checks that every label names one of `classes`.
pub(super) fn check(path: &Path, labels: &[u32], classes: usize) -> Result<()> {
    match labels.iter().position(|&label| label as usize >= classes) {
        None => Ok(()),
        Some(row) => {
            let (path, label) = (path.to_owned(), i64::from(labels[row]));
            Err(Error::LabelRange { path, row, label, classes })
        }
    }
}

/// Checks that there are as many labels as images.
pub(super) fn check_count(path: &Path, labels: usize, images: usize) -> Result<()> {
    let path = path.to_owned();
    if labels == images { Ok(()) } else { Err(Error::LabelCount { path, labels, images }) }
}

/// Numbers the labels that occur in any part from 0 on, and returns which they were, in order.
pub(super) fn close_up(parts: &mut [Vec<u32>]) -> Vec<u32> {
    let used: BTreeSet<u32> = parts.iter().flatten().copied().collect();
    let used: Vec<u32> = used.into_iter().collect();
    for label in parts.iter_mut().flatten() {
        *label = used.partition_point(|known| known < label) as u32;
    }
    used
}
