//! Commands that either succeed or say what failed.

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
