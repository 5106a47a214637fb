//! Every crate packages, and the packages compile without what lies around them.
//!
//! `cargo package` can compile them itself, but with the settings of no workspace, so that all
//! dependencies are compiled once more. Here the packages are unpacked into a workspace of their
//! own with this one's profiles and lock file, and checked in the same target folder: what clippy
//! compiled serves for all but the packages.

use std::fs;
use std::path::Path;
use std::process::Command;

use toml::{Table, Value};

use crate::command::run;
use crate::crates::{self, Crate, Workspace};
use crate::outcome::{Outcome, none_of, passed};
use crate::python;

/// What a registry asks of a manifest, or shows of it.
const FIELDS: [&str; 3] = ["description", "license", "repository"];

/// Packages all crates that are published, and compiles the packages.
pub(crate) fn check(workspace: &Workspace) -> Option<Outcome> {
    let root = read(&workspace.root.join("Cargo.toml"))?;
    let found = workspace.crates.iter().filter(|one| one.is_published());
    none_of(&found.flat_map(|one| missing(&workspace.root, &root, one)).collect::<Vec<_>>())?;
    let mut pack = Command::new(env!("CARGO"));
    pack.args(["package", "--workspace", "--no-verify", "--allow-dirty", "--quiet"]);
    for one in workspace.crates.iter().filter(|one| !one.is_published()) {
        pack.args(["--exclude", &one.name]);
    }
    println!("$ cargo package --workspace --no-verify");
    run(pack.arg("--target-dir").arg(python::target()))?;
    let folder = python::target().join("packages");
    unpack(workspace, &root, &folder)?;
    let selection = crates::selection(workspace.crates.iter().filter(|one| one.is_published()));
    println!("$ cargo check {}", selection.join(" "));
    let mut build = Command::new(env!("CARGO"));
    build.current_dir(&folder).arg("check").args(selection);
    passed(run(build.arg("--target-dir").arg(python::target())))
}

/// What a manifest lacks.
fn missing(root: &Path, workspace: &Table, one: &Crate) -> Vec<String> {
    let manifest = one.folder.join("Cargo.toml").display().to_string();
    let own = one.manifest.get("package");
    let inherited = workspace.get("workspace").and_then(|workspace| workspace.get("package"));
    let is_set = |field: &str| match own.and_then(|own| own.get(field)) {
        Some(Value::Table(_)) => inherited.is_some_and(|package| package.get(field).is_some()),
        other => other.is_some(),
    };
    let fields = FIELDS.iter().filter(|field| !is_set(field));
    let mut found: Vec<String> = fields.map(|field| format!("{manifest}: no {field}")).collect();
    let readme = match own.and_then(|own| own.get("readme")) {
        None => Some("README.md"),
        Some(Value::String(path)) => Some(path.as_str()),
        // that of the workspace lies outside
        Some(_) => None,
    };
    let folder = root.join(&one.folder);
    if !readme.is_some_and(|path| !path.contains("..") && folder.join(path).is_file()) {
        found.push(format!("{manifest}: no readme in the crate's own folder"));
    }
    found
}

/// Makes the folder a workspace of the packages.
fn unpack(workspace: &Workspace, root: &Table, folder: &Path) -> Option<()> {
    if let Err(error) = fs::remove_dir_all(folder)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        eprintln!("{} can't be removed: {error}", folder.display());
        return None;
    }
    say(folder, fs::create_dir_all(folder))?;
    let mut packages = Vec::new();
    for one in workspace.crates.iter().filter(|one| one.is_published()) {
        let package = format!("{}-{}", one.name, version(root, one)?);
        let file = python::target().join("package").join(format!("{package}.crate"));
        run(Command::new("tar").arg("-xzf").arg(&file).arg("-C").arg(folder))?;
        packages.push((one.name.as_str(), package));
    }
    let path = folder.join("Cargo.toml");
    say(&path, fs::write(&path, manifest(root, &packages)))?;
    let lock = folder.join("Cargo.lock");
    say(&lock, fs::copy(workspace.root.join("Cargo.lock"), &lock).map(|_| ()))
}

/// The version of a crate, its own or the workspace's.
fn version<'a>(root: &'a Table, one: &'a Crate) -> Option<&'a str> {
    let own = one.manifest.get("package")?.get("version").and_then(Value::as_str);
    own.or_else(|| root.get("workspace")?.get("package")?.get("version")?.as_str())
}

/// The manifest of a workspace of packages, which stand for those of the registry.
fn manifest(root: &Table, packages: &[(&str, String)]) -> String {
    let table = |entries: Vec<(&str, Value)>| {
        let entries = entries.into_iter().map(|(key, value)| (key.to_owned(), value));
        entries.collect::<Table>()
    };
    let of = |entries: Vec<(&str, Value)>| Value::Table(table(entries));
    let members = packages.iter().map(|(_, package)| Value::from(package.clone())).collect();
    let mut own = vec![("members", Value::Array(members))];
    let resolver = root.get("workspace").and_then(|workspace| workspace.get("resolver"));
    own.extend(resolver.map(|resolver| ("resolver", resolver.clone())));
    let patches = packages
        .iter()
        .map(|(name, package)| (*name, of(vec![("path", Value::from(package.clone()))])));
    let patches = of(patches.collect());
    let mut all = vec![("workspace", of(own)), ("patch", of(vec![("crates-io", patches)]))];
    all.extend(root.get("profile").map(|profile| ("profile", profile.clone())));
    table(all).to_string()
}

fn read(path: &Path) -> Option<Table> {
    let text = fs::read_to_string(path).map_err(|error| error.to_string());
    match text.and_then(|text| text.parse().map_err(|error: toml::de::Error| error.to_string())) {
        Ok(table) => Some(table),
        Err(error) => {
            eprintln!("{}: {error}", path.display());
            None
        }
    }
}

fn say(path: &Path, result: std::io::Result<()>) -> Option<()> {
    result.map_err(|error| eprintln!("{} can't be written: {error}", path.display())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_stand_for_those_of_the_registry() {
        let root = "[workspace]\nresolver = \"3\"\n[profile.dev]\nopt-level = 1".parse().unwrap();
        let text = manifest(&root, &[("one", "one-0.1.0".to_owned())]);
        let expected = "[workspace]\nmembers = [\"one-0.1.0\"]\nresolver = \"3\"\n\
            [patch.crates-io]\none.path = \"one-0.1.0\"\n[profile.dev]\nopt-level = 1";
        assert_eq!(text.parse::<Table>(), expected.parse::<Table>(), "{text}");
    }

    fn lacks(manifest: &str, with_readme: bool) -> Vec<String> {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir_all(place.path().join("crates/one")).unwrap();
        if with_readme {
            fs::write(place.path().join("crates/one/README.md"), "").unwrap();
        }
        let workspace = "[workspace.package]\nlicense = \"MIT\"".parse().unwrap();
        let one = Crate {
            name: "one".to_owned(),
            folder: "crates/one".into(),
            manifest: manifest.parse().unwrap(),
        };
        missing(place.path(), &workspace, &one)
    }

    #[test]
    fn a_manifest_names_what_a_registry_asks_for() {
        let good = "[package]\nlicense.workspace = true\ndescription = \"d\"\nrepository = \"r\"";
        assert_eq!(lacks(good, true), [""; 0]);
        assert_eq!(
            lacks(good, false),
            ["crates/one/Cargo.toml: no readme in the crate's own folder"]
        );
        let outside = format!("{good}\nreadme = \"../../README.md\"");
        assert_eq!(lacks(&outside, true).len(), 1);
        let inherited = "[package]\nlicense.workspace = true\nrepository.workspace = true\nreadme.workspace = true";
        assert_eq!(
            lacks(inherited, true),
            ["description", "repository", "readme in the crate's own folder"]
                .map(|what| format!("crates/one/Cargo.toml: no {what}"))
        );
    }
}
