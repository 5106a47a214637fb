//! What every target does: read the bytes, then use what was read the way callers do.

use std::path::Path;
use std::sync::Once;

use ivoro_io::features::{ReadOptions, read_bytes};
use ivoro_vision::dataset::cifar::{Cifar, parse_binary, parse_pickle};
use ivoro_vision::dataset::{Broken, Fit, How, Split, idx as idx_files, npz};

/// Reads `bytes` as a file called `name`.
pub fn read(name: &str, bytes: &[u8]) {
    // libFuzzer's hook aborts on every panic, also on those of a third-party decoder that the
    // library catches and reports. A panic that leaves the library still ends the run.
    static HOOK: Once = Once::new();
    HOOK.call_once(|| std::panic::set_hook(Box::new(|_| ())));
    let Ok(file) = read_bytes(name, bytes, &ReadOptions::default()) else { return };
    let _ = file.clone().asking();
    let _ = file.clone().learning();
    let _ = file.into_split(0.2, 0);
}

/// Reads the images of a part back, as training does, where there are not too many to be quick.
fn look(split: &Split) {
    let Some(shape) = split.shape() else { return };
    let rows: Vec<usize> = (0..split.len().min(4)).collect();
    if shape.len() <= 1 << 16 {
        let exact = split.read(&rows, Fit { shape, how: How::Exact }, Broken::Fail);
        assert!(exact.is_ok_and(|images| images.rows == rows));
    }
}

/// Reads `bytes` as idx images and as idx labels.
pub fn idx(bytes: &[u8]) {
    let path = Path::new("fuzz-idx-ubyte");
    if let Ok((shape, pixels)) = idx_files::parse_images(path, bytes.to_vec()) {
        assert_eq!(pixels.len() % shape.len(), 0);
    }
    let _ = idx_files::parse_labels(path, bytes);
}

/// Reads `bytes` as a binary file of both CIFAR sets.
pub fn cifar_binary(bytes: &[u8]) {
    for set in [Cifar::Ten, Cifar::Hundred] {
        let _ = parse_binary(Path::new("fuzz.bin"), bytes, set).as_ref().map(look);
    }
}

/// Reads `bytes` as a pickle of both CIFAR sets.
pub fn cifar_pickle(bytes: &[u8]) {
    for set in [Cifar::Ten, Cifar::Hundred] {
        let _ = parse_pickle(Path::new("fuzz"), bytes, set).as_ref().map(look);
    }
}

/// Reads `bytes` as a NumPy archive of images.
pub fn npz_images(bytes: &[u8]) {
    if let Ok(set) = npz::parse("fuzz.npz", bytes) {
        look(&set.train);
        look(&set.test);
    }
}

/// Sends `bytes` as the body of a request to a server, which must not fail.
pub fn request(method: &str, path: &str, kind: &str, bytes: &[u8]) {
    let status = ivoro_serve::fuzzing::answer(method, path, kind, bytes);
    assert!(status.is_some_and(|status| status != 500), "{status:?}");
}
