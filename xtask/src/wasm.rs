//! The library compiles for WebAssembly, where there are no files and no clock.

use std::path::Path;

use crate::command::{at, cargo, succeeds};
use crate::crates::Workspace;
use crate::outcome::{Outcome, passed};

const TARGET: &str = "wasm32-unknown-unknown";

/// Compiles the library for WebAssembly; adds the target first, where it is missing.
pub(crate) fn check(workspace: &Workspace) -> Option<Outcome> {
    let add = || succeeds(at(&workspace.root, "rustup").args(["target", "add", TARGET]));
    if !is_there(&workspace.root) && !add() {
        let reason = format!("the target {TARGET} is not installed, and rustup can't add it");
        return Some(Outcome::Skipped(reason));
    }
    passed(cargo(&["check", "--target", TARGET, "--package", "ivoro"]))
}

/// Whether the compiler has the standard library for the target.
fn is_there(root: &Path) -> bool {
    let output = at(root, "rustc").args(["--print", "target-libdir", "--target", TARGET]).output();
    output.is_ok_and(|output| {
        let path = String::from_utf8_lossy(&output.stdout);
        output.status.success() && Path::new(path.trim()).is_dir()
    })
}
