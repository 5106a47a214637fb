//! Commands that either succeed or say what failed.

use std::path::Path;
use std::process::Command;

/// Runs a command; `None`, with a sentence on standard error, if it fails.
pub(crate) fn run(command: &mut Command) -> Option<()> {
    match command.status() {
        Ok(status) if status.success() => Some(()),
        Ok(status) => {
            eprintln!("{command:?} failed: {status}");
            None
        }
        Err(error) => {
            eprintln!("{command:?} can't be started: {error}");
            None
        }
    }
}

/// Runs cargo.
pub(crate) fn cargo(arguments: &[&str]) -> Option<()> {
    run(Command::new(env!("CARGO")).args(arguments))
}

/// A command that begins in this folder.
pub(crate) fn at(folder: &Path, program: &str) -> Command {
    let mut command = Command::new(program);
    command.current_dir(folder);
    command
}

/// Whether a command can be started and succeeds; it prints nothing.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}
