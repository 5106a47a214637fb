//! What people run: `cargo xtask test`, `cargo xtask bench` and `cargo xtask soak`.

mod bench;
mod browser;
mod command;
mod crates;
mod cycles;
mod debian;
mod docs;
mod outcome;
mod package;
mod python;
mod ranges;
mod steps;
mod torch;
mod wasm;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["test", names @ ..] => steps::run_steps(names),
        ["bench", words @ ..] => bench::bench(words),
        ["soak", words @ ..] => bench::soak(words),
        _ => {
            eprintln!(
                "cargo xtask test [NAME …]           everything that must pass, or these steps:"
            );
            steps::list();
            eprintln!(
                "cargo xtask bench [--check] [NAME …]  ratios against named peers, in one run;"
            );
            eprintln!(
                "  with --check one below its range in bench/ranges.toml is an error; names:"
            );
            eprintln!("  {}", bench::NAMES.join(", "));
            eprintln!(
                "cargo xtask soak [kills|disk|bombs|connections|minutes]  what the server stands"
            );
            ExitCode::from(2)
        }
    }
}
