//! `cargo xtask bench`: builds what is timed, installs the peers, prints ratios.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use crate::command::{cargo, run};
use crate::python::{self, Profile};
use crate::ranges::{self, Ratio};

/// What can be measured.
pub(crate) const NAMES: [&str; 12] = [
    "nearest",
    "index",
    "means",
    "quadrics",
    "probe",
    "ablation",
    "memory",
    "live",
    "onnx",
    "vision",
    "baselines",
    "python",
];

/// The peers, from `PyPI`; `PyTorch` only where it is asked for, since it is large.
const PEERS: [&str; 8] =
    ["numpy", "scipy", "scikit-learn", "faiss-cpu", "safetensors", "onnx", "onnxruntime", "pillow"];

/// What `onnx` can be told besides: a network to measure, and photos to measure with.
const GIVEN: [&str; 2] = ["--network=", "--photos="];

/// Runs the benchmarks named, or all of them, and compares their ratios with the ranges.
pub(crate) fn bench(words: &[&str]) -> ExitCode {
    let check = words.contains(&"--check");
    let words = words.iter().copied().filter(|word| *word != "--check");
    let (given, names): (Vec<&str>, Vec<&str>) =
        words.partition(|word| GIVEN.iter().any(|known| word.starts_with(known)));
    if let Some(unknown) = names.iter().find(|name| !NAMES.contains(name)) {
        eprintln!("no benchmark {unknown}; there are {}", NAMES.join(", "));
        return ExitCode::from(2);
    }
    let names = if names.is_empty() { NAMES.to_vec() } else { names };
    // before the benchmarks, which take long
    let ranges = match ranges::read(&python::root().join("bench/ranges.toml")) {
        Ok(ranges) => ranges,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let Some(ratios) = measure(&names, &given) else { return ExitCode::FAILURE };
    let (table, good) = ranges::compare(&ranges, &names, &ratios);
    println!("{table}");
    if check && !good { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// The ratios of these benchmarks.
fn measure(names: &[&str], given: &[&str]) -> Option<Vec<Ratio>> {
    cargo(&["build", "--release", "--package", "ivoro-bench", "--package", "ivoro-cli"])?;
    let (package, others): (Vec<&str>, Vec<&str>) =
        names.iter().partition(|name| **name == "python");
    let mut ratios = Vec::new();
    if !others.is_empty() {
        let target = python::target();
        let torch = others.iter().any(|name| ["probe", "vision", "baselines"].contains(name));
        let mut command = Command::new(environment(&target.join("bench-peers"), torch)?);
        let programs = ["ivoro-bench", "ivoro"].map(|name| target.join("release").join(name));
        ratios
            .extend(told(command.arg("bench/peers.py").args(programs).args(&others).args(given))?);
    }
    if !package.is_empty() {
        ratios.extend(python_package()?);
    }
    Some(ratios)
}

/// The Python package against the Rust call and against scikit-learn.
fn python_package() -> Option<Vec<Ratio>> {
    let interpreter = python::environment()?;
    python::install_wheel(&interpreter, Profile::Release)?;
    let program = python::target().join("release/ivoro-bench");
    told(Command::new(interpreter).arg(python::root().join("bench/python.py")).arg(program))
}

/// Runs a command, hands on what it prints, and keeps the ratios.
fn told(command: &mut Command) -> Option<Vec<Ratio>> {
    let started = command.env("PYTHONUNBUFFERED", "1").stdout(Stdio::piped()).spawn();
    let mut child =
        started.map_err(|error| eprintln!("{command:?} can't be started: {error}")).ok()?;
    let mut ratios = Vec::new();
    for line in BufReader::new(child.stdout.take()?).lines().map_while(Result::ok) {
        match Ratio::parse(&line) {
            Some(ratio) => ratios.push(ratio),
            None => println!("{line}"),
        }
    }
    let status = child.wait().ok()?;
    if !status.success() {
        eprintln!("{command:?} failed: {status}");
        return None;
    }
    Some(ratios)
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
