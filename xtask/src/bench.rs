//! `cargo xtask bench`: builds what is timed, installs the peers, prints ratios.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// What can be measured.
pub(crate) const NAMES: [&str; 8] =
    ["nearest", "index", "means", "probe", "ablation", "memory", "onnx", "vision"];

/// The peers, from `PyPI`; `PyTorch` only where it is asked for, since it is large.
const PEERS: [&str; 7] =
    ["numpy", "scipy", "scikit-learn", "faiss-cpu", "safetensors", "onnx", "onnxruntime"];

/// Runs the benchmarks named, or all of them.
pub(crate) fn bench(names: &[&str]) -> ExitCode {
    if let Some(unknown) = names.iter().find(|name| !NAMES.contains(name)) {
        eprintln!("no benchmark {unknown}; there are {}", NAMES.join(", "));
        return ExitCode::from(2);
    }
    let names = if names.is_empty() { NAMES.to_vec() } else { names.to_vec() };
    let steps = || -> Option<bool> {
        cargo(&["build", "--release", "--package", "ivoro-bench", "--package", "ivoro-cli"])?;
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
        let torch = names.contains(&"probe") || names.contains(&"vision");
        let python = environment(&target.join("bench-peers"), torch)?;
        let mut command = Command::new(python);
        let programs = ["ivoro-bench", "ivoro"].map(|name| target.join("release").join(name));
        run(command.arg("bench/peers.py").args(programs).args(&names))
    };
    steps().map_or(ExitCode::FAILURE, |_| ExitCode::SUCCESS)
}

fn cargo(arguments: &[&str]) -> Option<bool> {
    run(Command::new(env!("CARGO")).args(arguments))
}

/// Runs a command; `None`, with a sentence on standard error, if it fails.
fn run(command: &mut Command) -> Option<bool> {
    match command.status() {
        Ok(status) if status.success() => Some(true),
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

/// A virtual environment in the folder with the peers in it.
fn environment(folder: &Path, torch: bool) -> Option<PathBuf> {
    let python = folder.join("bin/python");
    if !python.exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
    }
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(PEERS);
    run(if torch { install.arg("torch") } else { &mut install })?;
    Some(python)
}
