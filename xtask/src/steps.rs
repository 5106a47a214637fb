//! Everything that must pass, in the order of what fails fastest.

use std::process::{Command, ExitCode};
use std::time::Instant;

use crate::command::{cargo, run};
use crate::crates::{self, Workspace};
use crate::outcome::{Outcome, none_of, passed};
use crate::{browser, cycles, docs, package, python, torch, wasm};

/// One check.
struct Step {
    name: &'static str,
    about: &'static str,
    run: fn(&Workspace) -> Option<Outcome>,
}

const STEPS: [Step; 12] = [
    Step { name: "fmt", about: "the formatting", run: format },
    Step {
        name: "cycles",
        about: "no modules of a crate import each other in a circle",
        run: cycles,
    },
    Step { name: "docs", about: "paths, names and links in the documents exist", run: docs },
    // early, since Python may have to be installed and then fails fastest
    Step { name: "environment", about: "an environment for the Python package", run: environment },
    Step { name: "browser", about: "Chromium, which the tests of the page drive", run: browser },
    Step { name: "clippy", about: "lints of all targets, as errors", run: clippy },
    Step { name: "test", about: "tests and examples in the documentation", run: test },
    Step { name: "doc", about: "the documentation, warnings as errors", run: doc },
    Step { name: "wasm", about: "the library compiles for WebAssembly", run: wasm::check },
    Step {
        name: "torch",
        about: "the libtorch engine compiles, where libtorch is found",
        run: torch::check,
    },
    Step {
        name: "package",
        about: "every crate packages, and the packages compile",
        run: package::check,
    },
    Step { name: "python", about: "the wheel and its tests", run: python },
    Step { name: "kills", about: "the server keeps what it acknowledged when killed", run: kills },
];

/// Prints the steps, one a line.
pub(crate) fn list() {
    for step in &STEPS {
        eprintln!("  {:<12} {}", step.name, step.about);
    }
}

/// Runs the steps named, or all of them, up to the first that fails.
pub(crate) fn run_steps(names: &[&str]) -> ExitCode {
    if let Some(unknown) = names.iter().find(|name| STEPS.iter().all(|step| step.name != **name)) {
        eprintln!("no step {unknown}; there are");
        list();
        return ExitCode::from(2);
    }
    let workspace = match Workspace::read(python::root()) {
        Ok(workspace) => workspace,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let mut rows = Vec::new();
    for step in STEPS.iter().filter(|step| names.is_empty() || names.contains(&step.name)) {
        println!("== {}", step.name);
        let start = Instant::now();
        let outcome = (step.run)(&workspace);
        let seconds = start.elapsed().as_secs_f64();
        let (word, failed) = match outcome {
            Some(Outcome::Passed) => ("passed", false),
            Some(Outcome::Skipped(reason)) => {
                println!("skipped: {reason}");
                ("skipped", false)
            }
            None => ("FAILED", true),
        };
        println!("== {} {word} after {seconds:.1} s", step.name);
        rows.push((step.name, seconds, word));
        if failed {
            table(&rows);
            return ExitCode::FAILURE;
        }
    }
    table(&rows);
    ExitCode::SUCCESS
}

fn table(rows: &[(&str, f64, &str)]) {
    println!("\n{:<12} {:>8}", "step", "seconds");
    for (name, seconds, word) in rows {
        println!("{name:<12} {seconds:>8.1}  {word}");
    }
    println!("{:<12} {:>8.1}", "all", rows.iter().map(|(_, seconds, _)| seconds).sum::<f64>());
}

fn format(_: &Workspace) -> Option<Outcome> {
    passed(cargo(&["fmt", "--all", "--check"]))
}

fn cycles(workspace: &Workspace) -> Option<Outcome> {
    none_of(&cycles::findings(&workspace.root))
}

fn docs(workspace: &Workspace) -> Option<Outcome> {
    none_of(&docs::findings(&workspace.root))
}

fn environment(_: &Workspace) -> Option<Outcome> {
    passed(python::environment().map(|_| ()))
}

fn browser(_: &Workspace) -> Option<Outcome> {
    passed(browser::environment())
}

fn clippy(workspace: &Workspace) -> Option<Outcome> {
    on_all(workspace, "clippy", &["--all-targets"], &["--", "-D", "warnings"])
}

fn test(workspace: &Workspace) -> Option<Outcome> {
    on_all(workspace, "test", &["--quiet"], &[])
}

fn doc(workspace: &Workspace) -> Option<Outcome> {
    on_all(workspace, "doc", &["--no-deps"], &[])
}

fn python(workspace: &Workspace) -> Option<Outcome> {
    let python = python::environment()?;
    passed(python::test(&python, &crates::selection(workspace.crates.iter())))
}

fn kills(workspace: &Workspace) -> Option<Outcome> {
    passed(python::kills(&crates::selection(workspace.crates.iter())))
}

/// A command of cargo on everything that is built without libtorch, with all features.
fn on_all(workspace: &Workspace, verb: &str, before: &[&str], after: &[&str]) -> Option<Outcome> {
    let selection = crates::selection(workspace.crates.iter());
    let words = [verb].into_iter().chain(before.iter().copied());
    let words = words.chain(selection.iter().map(String::as_str)).chain(after.iter().copied());
    let words: Vec<&str> = words.collect();
    println!("$ cargo {}", words.join(" "));
    passed(run(Command::new(env!("CARGO")).args(words).env("RUSTDOCFLAGS", "-D warnings")))
}
