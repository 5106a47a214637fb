//! `cargo xtask bench`: builds what is timed, installs the peers, prints ratios.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use crate::command::{cargo, run};
use crate::python::{self, Profile};
use crate::ranges::{self, Ratio};

/// What can be measured.
pub(crate) const NAMES: [&str; 13] = [
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
    "serve",
];

/// The peers, from `PyPI`; `PyTorch` only where it is asked for, since it is large.
const PEERS: [&str; 8] =
    ["numpy", "scipy", "scikit-learn", "faiss-cpu", "safetensors", "onnx", "onnxruntime", "pillow"];

/// What a server in Python is made of, for `serve`.
const SERVING: [&str; 3] = ["fastapi", "uvicorn[standard]", "orjson"];

/// What `onnx` and `serve` can be told besides: a network to measure, and photos to measure with.
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
    let alone = ["python", "serve"];
    let (apart, others): (Vec<&str>, Vec<&str>) =
        names.iter().partition(|name| alone.contains(name));
    let mut ratios = Vec::new();
    let programs = programs();
    if !others.is_empty() {
        let torch = others.iter().any(|name| ["probe", "vision", "baselines"].contains(name));
        let more: &[&str] = if torch { &["torch"] } else { &[] };
        let mut command = Command::new(environment(more)?);
        command.arg("bench/peers.py").args(&programs).args(&others).args(given);
        ratios.extend(told(&mut command)?);
    }
    if apart.contains(&"python") {
        ratios.extend(python_package()?);
    }
    if apart.contains(&"serve") {
        let mut command = Command::new(environment(&SERVING)?);
        ratios.extend(told(command.arg("bench/serve.py").args(&programs).args(given))?);
    }
    Some(ratios)
}

/// What is timed, as it is built here.
fn programs() -> [PathBuf; 2] {
    ["ivoro-bench", "ivoro"].map(|name| python::target().join("release").join(name))
}

/// What the server has to stand; without a word all of it.
const SOAKING: [&str; 5] = ["kills", "disk", "bombs", "connections", "minutes"];

/// Builds the program and the load generator, and runs everything that the server has to stand.
pub(crate) fn soak(words: &[&str]) -> ExitCode {
    let what = match words {
        [] => "all",
        [what] if SOAKING.contains(what) => *what,
        _ => {
            eprintln!("expected nothing or one of {}", SOAKING.join(", "));
            return ExitCode::from(2);
        }
    };
    let [bench, program] = programs();
    let built =
        cargo(&["build", "--release", "--package", "ivoro-bench", "--package", "ivoro-cli"]);
    let mut command = Command::new("python3");
    command.arg(python::root().join("bench/soak.py")).arg(program).arg(what).arg(bench);
    match built.and_then(|()| run(&mut command)) {
        Some(()) => ExitCode::SUCCESS,
        None => ExitCode::FAILURE,
    }
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

/// A virtual environment with the peers in it, and with what else is named.
fn environment(more: &[&str]) -> Option<PathBuf> {
    let folder = python::target().join("bench-peers");
    let python = folder.join("bin/python");
    if !python.exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    }
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    run(install.args(PEERS).args(more))?;
    Some(python)
}
