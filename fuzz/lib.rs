//! What every target does: read the bytes, then use what was read the way callers do.

use std::sync::Once;

use ivoro::input::{ReadOptions, read_bytes};

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
