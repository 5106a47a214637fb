//! The program `ivoro`: exemplar-free class-incremental learning on the command line.

mod args;
mod commands;
mod engine;
mod failure;
mod grid;
mod output;
mod progress;
mod table;
mod words;

use std::process::ExitCode;

use failure::Failure;

fn main() -> ExitCode {
    let line = std::env::args_os();
    let arguments = args::Arguments::read(line).unwrap_or_else(|error| error.exit());
    if let Some(threads) = arguments.threads {
        // the only error is a second call
        let _ = rayon::ThreadPoolBuilder::new().num_threads(threads.into()).build_global();
    }
    let outcome =
        ivoro::interrupt::catch(|| commands::dispatch(arguments.command, arguments.threads));
    match outcome.unwrap_or(Err(Failure::Interrupted)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
