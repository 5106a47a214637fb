//! What people run: `cargo xtask test` and `cargo xtask bench`.

mod bench;
mod command;
mod python;

use std::process::{Command, ExitCode};

use command::run;

/// Every feature but `torch`, which needs a library of several hundred megabytes to build.
const FEATURES: &str = "ivoro/tables,ivoro-vision/onnxruntime";

/// Everything that must pass, in the order of what fails fastest.
const CHECKS: [&[&str]; 4] = [
    &["fmt", "--all", "--check"],
    &["clippy", "--workspace", "--all-targets", "--features", FEATURES, "--", "-D", "warnings"],
    &["test", "--workspace", "--features", FEATURES, "--quiet"],
    &["doc", "--workspace", "--no-deps", "--features", FEATURES],
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["test"] => test(),
        ["test", "python"] => {
            finish(python::environment().and_then(|python| python::test(&python)))
        }
        ["bench", rest @ ..] => bench::bench(rest),
        _ => {
            eprintln!("cargo xtask test          everything that must pass");
            eprintln!("cargo xtask test python   the Python package alone");
            eprintln!("cargo xtask bench [NAME]  ratios against named peers, in one run");
            eprintln!("                          names: {}", bench::NAMES.join(", "));
            ExitCode::from(2)
        }
    }
}

fn test() -> ExitCode {
    let steps = || {
        // first, since it may have to be installed and then fails fastest
        let python = python::environment()?;
        for check in CHECKS {
            println!("$ cargo {}", check.join(" "));
            run(Command::new(env!("CARGO")).args(check).env("RUSTDOCFLAGS", "-D warnings"))?;
        }
        python::test(&python)
    };
    finish(steps())
}

fn finish(outcome: Option<()>) -> ExitCode {
    if outcome.is_none() {
        return ExitCode::FAILURE;
    }
    println!("all checks passed");
    ExitCode::SUCCESS
}
