//! One verb a file.

mod baselines;
mod calibrate;
mod completion;
mod demo;
mod evaluate;
mod extract;
mod few_shot;
mod figure;
mod images;
mod ledger;
mod model;
mod networks;
mod photos;
mod predict;
mod report;
mod reproduce;
mod run;
mod seal;
mod serve;
mod source;
mod taking_back;
mod train;
mod variants;
mod watch;

use std::path::Path;

use clap::CommandFactory;
use ivoro::Model;
use ivoro_io::FileLock;

use crate::args::{Arguments, Command};
use crate::failure::Failure;
use crate::{output, progress};

/// Runs a command with so many threads.
pub(crate) fn dispatch(command: Command, threads: Option<u16>) -> Result<(), Failure> {
    if is_about_a_model(&command) {
        progress::catch_interrupts_until_written();
    }
    match command {
        Command::Run(arguments) => run::run(&arguments.with_defaults()),
        Command::FewShot(arguments) => few_shot::few_shot(&arguments),
        Command::Reproduce(arguments) => reproduce::reproduce(&arguments),
        Command::Train(arguments) => train::train(&arguments),
        Command::Extract(arguments) => extract::extract_features(&arguments),
        Command::Demo(arguments) => demo::demo(&arguments),
        Command::Report(arguments) => report::report(&arguments),
        Command::Figure(command) => figure::figure(&command),
        Command::Networks(arguments) => networks::networks(&arguments),
        Command::Variants => variants::variants(),
        Command::Learn(arguments) => model::learn(&arguments),
        Command::Predict(arguments) => predict::predict(&arguments),
        Command::Evaluate(arguments) => evaluate::evaluate(&arguments),
        Command::Watch(arguments) => watch::watch(&arguments),
        Command::Serve(arguments) => serve::serve(&arguments, threads),
        Command::Update(arguments) => model::update(&arguments),
        Command::Calibrate(arguments) => calibrate::calibrate(&arguments),
        Command::Retract(arguments) => taking_back::retract(&arguments),
        Command::Relabel(arguments) => taking_back::relabel(&arguments),
        Command::Rename(arguments) => taking_back::rename(&arguments),
        Command::Forget(arguments) => taking_back::forget(&arguments),
        Command::Seal(arguments) => seal::seal(&arguments),
        Command::Merge(arguments) => model::merge(&arguments),
        Command::Inspect(arguments) => model::inspect(&arguments),
        Command::Audit(arguments) => model::audit(&arguments),
        Command::Log(arguments) => taking_back::log(&arguments),
        Command::Completions { shell } => {
            // in memory first: writing to a closed pipe is no panic
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "ivoro", &mut script);
            Ok(output::print(&String::from_utf8_lossy(&script))?)
        }
    }
}

/// Whether a command reads a model and at most replaces it at its end.
fn is_about_a_model(command: &Command) -> bool {
    matches!(
        command,
        Command::Learn(_)
            | Command::Predict(_)
            | Command::Update(_)
            | Command::Calibrate(_)
            | Command::Retract(_)
            | Command::Relabel(_)
            | Command::Rename(_)
            | Command::Forget(_)
            | Command::Seal(_)
            | Command::Merge(_)
    )
}

/// Saves a model as the last step of a command: from here on Ctrl-C comes too late.
fn save(model: &Model, path: &Path) -> Result<(), Failure> {
    progress::begin_writing()?;
    Ok(ivoro_io::save(model, path)?)
}

/// Holds `what` for writing, so that no second process does the same work at `place`.
fn hold(what: &Path, place: &Path) -> Result<FileLock, Failure> {
    FileLock::acquire(what).map_err(|error| match error {
        ivoro::Error::Locked { .. } => Failure::Usage(format!(
            "{}: another ivoro is writing here; wait for it, or name another --out",
            place.display()
        )),
        error => error.into(),
    })
}
