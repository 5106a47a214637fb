//! `cargo xtask bench`: builds what is timed, installs the peers, prints ratios.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::command::{cargo, run};
use crate::python::{self, Profile};

/// What can be measured.
pub(crate) const NAMES: [&str; 10] = [
    "nearest",
    "index",
    "means",
    "probe",
    "ablation",
    "memory",
    "onnx",
    "vision",
    "baselines",
    "python",
];

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
    let steps = || -> Option<()> {
        cargo(&["build", "--release", "--package", "ivoro-bench", "--package", "ivoro-cli"])?;
        let (package, others): (Vec<&str>, Vec<&str>) =
            names.iter().partition(|name| **name == "python");
        if !others.is_empty() {
            let target = python::target();
            let torch = others.iter().any(|name| ["probe", "vision", "baselines"].contains(name));
            let mut command = Command::new(environment(&target.join("bench-peers"), torch)?);
            let programs = ["ivoro-bench", "ivoro"].map(|name| target.join("release").join(name));
            run(command.arg("bench/peers.py").args(programs).args(&others))?;
        }
        if package.is_empty() { Some(()) } else { python_package() }
    };
    steps().map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS)
}

/// The Python package against the Rust call and against scikit-learn.
fn python_package() -> Option<()> {
    let interpreter = python::environment()?;
    python::install_wheel(&interpreter, Profile::Release)?;
    let program = python::target().join("release/ivoro-bench");
    run(Command::new(interpreter).arg(python::root().join("bench/python.py")).arg(program))
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
