//! The Python package: an environment under the target folder, the wheel in it, and its tests.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::command::run;
use crate::debian;

/// The package, below the root of the repository.
const PACKAGE: &str = "bindings/python";
/// What the interpreter must be able to do.
const PROBE: &str = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))";

/// How the wheel is compiled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    /// As the tests of the library are, so that little is compiled twice.
    Test,
    /// As users get it.
    Release,
}

/// Builds the wheel, installs it, and runs all of its tests.
///
/// The program is built with the selection of all other checks: what they compiled is not compiled
/// again.
pub(crate) fn test(python: &Path, selection: &[String]) -> Option<()> {
    println!("$ pytest {PACKAGE}");
    install_wheel(python, Profile::Test)?;
    run(Command::new(env!("CARGO")).args(["build", "--quiet"]).args(selection))?;
    let tests = root().join(PACKAGE).join("tests");
    let mut command = Command::new(python);
    // not in the package's own folder, whose sources would stand in for what was installed
    command.current_dir(folder()).env("MPLBACKEND", "Agg");
    command.env("IVORO_PROGRAM", target().join("debug/ivoro")).env("IVORO_ROOT", root());
    command.args(["-m", "pytest", "--quiet", "-p", "no:cacheprovider", "--doctest-modules"]);
    run(command.arg("--rootdir").arg(&tests).arg(&tests).args(["--pyargs", "ivoro"]))
}

/// Kills a server of the program again and again, and looks whether all that it acknowledged is there.
pub(crate) fn kills(selection: &[String]) -> Option<()> {
    interpreter()?;
    run(Command::new(env!("CARGO")).args(["build", "--quiet"]).args(selection))?;
    let mut command = Command::new("python3");
    command.arg(root().join("bench/soak.py")).arg(target().join("debug/ivoro"));
    run(command.args(["kills", "20"]))
}

/// An environment with everything the tests need, made again when the list of that changes.
pub(crate) fn environment() -> Option<PathBuf> {
    let version = interpreter()?;
    let requirements = root().join(PACKAGE).join("requirements-test.txt");
    let list = match std::fs::read(&requirements) {
        Ok(list) => list,
        Err(error) => {
            eprintln!("{} can't be read: {error}", requirements.display());
            return None;
        }
    };
    let mut hasher = DefaultHasher::new();
    (version, list).hash(&mut hasher);
    let environment = folder().join(format!("environment-{:016x}", hasher.finish()));
    let python = environment.join("bin/python");
    let finished = environment.join("finished");
    if !finished.exists() {
        println!("$ pip install --requirement {PACKAGE}/requirements-test.txt");
        // an environment that was only begun is made anew
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))?;
        run(pip(&python).arg("--requirement").arg(&requirements))?;
        if let Err(error) = std::fs::write(&finished, "") {
            eprintln!("{} can't be written: {error}", finished.display());
            return None;
        }
    }
    Some(python)
}

/// Builds the wheel and installs it.
pub(crate) fn install_wheel(python: &Path, profile: Profile) -> Option<()> {
    let wheels = folder().join("wheels");
    if let Err(error) = std::fs::remove_dir_all(&wheels)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        eprintln!("{} can't be removed: {error}", wheels.display());
        return None;
    }
    let mut build = Command::new(python);
    build.current_dir(root().join(PACKAGE)).args(["-m", "maturin", "build", "--quiet"]);
    build.args(["--profile", if profile == Profile::Test { "dev" } else { "release" }]);
    build.arg("--target-dir").arg(target()).arg("--out").arg(&wheels);
    run(build.arg("--interpreter").arg(python))?;
    let wheel = std::fs::read_dir(&wheels).ok()?.find_map(|entry| Some(entry.ok()?.path()));
    run(pip(python).args(["--force-reinstall", "--no-deps"]).arg(wheel?))
}

fn pip(python: &Path) -> Command {
    let mut command = Command::new(python);
    command.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    command
}

/// The version of an interpreter that can make virtual environments; installs one where that is
/// possible.
fn interpreter() -> Option<Vec<u8>> {
    if probe().is_none() && debian::may_install() {
        debian::install(&["python3", "python3-venv"])?;
    }
    if probe().is_none() {
        eprintln!(
            "the Python package needs Python 3.10 or newer with its module venv: install python3 \
             and python3-venv"
        );
        return None;
    }
    Some(Command::new("python3").arg("--version").output().ok()?.stdout)
}

fn probe() -> Option<Output> {
    let output = Command::new("python3").args(["-c", PROBE]).output().ok()?;
    output.status.success().then_some(output)
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// Where cargo puts what it builds.
pub(crate) fn target() -> PathBuf {
    let chosen = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    root().join(chosen.unwrap_or_else(|| PathBuf::from("target")))
}

fn folder() -> PathBuf {
    target().join("python")
}
