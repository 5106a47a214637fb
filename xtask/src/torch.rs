//! The libtorch engine compiles, where libtorch is found.

use std::process::Command;

use crate::command::{at, run, succeeds};
use crate::crates::{TORCH, Workspace};
use crate::outcome::{Outcome, passed};

/// The version that the bindings are made for.
const VERSION: &str = "2.11";

/// Compiles the engine, and the program with it.
pub(crate) fn check(workspace: &Workspace) -> Option<Outcome> {
    if !workspace.crates.iter().any(|one| one.name == TORCH) {
        return Some(Outcome::Skipped(format!("there is no crate {TORCH}")));
    }
    let mut command = Command::new(env!("CARGO"));
    command.args(["check", "--all-targets", "--package", TORCH, "--package", "ivoro-cli"]);
    command.args(["--features", "ivoro-torch/libtorch,ivoro-cli/torch"]);
    if std::env::var_os("LIBTORCH").is_none() {
        let script =
            format!("import sys, torch; sys.exit(not torch.__version__.startswith('{VERSION}.'))");
        if !succeeds(at(&workspace.root, "python3").args(["-c", &script])) {
            let reason = format!("neither LIBTORCH is set nor has python3 torch {VERSION}");
            return Some(Outcome::Skipped(reason));
        }
        command.env("LIBTORCH_USE_PYTORCH", "1");
    }
    passed(run(&mut command))
}
