//! Every crate packages, and the packages compile without what lies around them.
//!
//! `cargo package` can compile them itself, but without the profiles of the workspace, so that all
//! dependencies are compiled once more. Here the packages are unpacked into a workspace like this
//! one and checked in the same target folder: what `cargo doc` looked at before serves for all but
//! the packages.

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

/// Bytes of a package that a registry refuses.
const LARGEST: u64 = 10_000_000;

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
    none_of(&too_large(&python::target().join("package")))?;
    let folder = python::target().join("packages");
    unpack(workspace, root, &folder)?;
    let selection = crates::selection(workspace.crates.iter());
    println!("$ cargo check {}", selection.join(" "));
    let mut build = Command::new(env!("CARGO"));
    build.current_dir(&folder).arg("check").args(selection);
    passed(run(build.arg("--target-dir").arg(python::target())))
}

/// Packages beyond what a registry takes.
fn too_large(folder: &Path) -> Vec<String> {
    let packages = crates::entries(folder)
        .into_iter()
        .filter(|path| path.extension().is_some_and(|end| end == "crate"));
    let sizes = packages.filter_map(|path| Some((fs::metadata(&path).ok()?.len(), path)));
    let large = sizes.filter(|(bytes, _)| *bytes >= LARGEST);
    large
        .map(|(bytes, path)| format!("{}: {bytes} bytes, {LARGEST} are too many", path.display()))
        .collect()
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

/// Makes the folder a workspace like this one, with packages in place of the crates. The crates that
/// are not published come along as they are: without them dependencies had other features.
fn unpack(workspace: &Workspace, root: Table, folder: &Path) -> Option<()> {
    if let Err(error) = fs::remove_dir_all(folder)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        eprintln!("{} can't be removed: {error}", folder.display());
        return None;
    }
    say(folder, fs::create_dir_all(folder))?;
    let mut members = Vec::new();
    for one in &workspace.crates {
        if one.is_published() {
            let package = format!("{}-{}", one.name, version(&root, one)?);
            let file = python::target().join("package").join(format!("{package}.crate"));
            run(Command::new("tar").arg("-xzf").arg(&file).arg("-C").arg(folder))?;
            members.push((one.name.as_str(), package));
        } else {
            let place = folder.join(&one.name);
            for part in ["Cargo.toml", "src"] {
                let from = workspace.root.join(&one.folder).join(part);
                say(&place, copy(&from, &place.join(part)))?;
            }
            members.push((one.name.as_str(), one.name.clone()));
        }
    }
    let path = folder.join("Cargo.toml");
    say(&path, fs::write(&path, manifest(root, &members)?.to_string()))?;
    say(folder, copy(&workspace.root.join("Cargo.lock"), &folder.join("Cargo.lock")))
}

/// Copies a file or a folder.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    if from.is_dir() {
        for path in crates::entries(from) {
            copy(&path, &to.join(path.file_name().unwrap_or_default()))?;
        }
        return Ok(());
    }
    to.parent().map_or(Ok(()), fs::create_dir_all)?;
    fs::copy(from, to).map(|_| ())
}

/// The version of a crate, its own or the workspace's.
fn version<'a>(root: &'a Table, one: &'a Crate) -> Option<&'a str> {
    let own = one.manifest.get("package")?.get("version").and_then(Value::as_str);
    own.or_else(|| root.get("workspace")?.get("package")?.get("version")?.as_str())
}

/// The manifest of this workspace with members in other folders, which also stand for those of the
/// registry that packages ask for.
fn manifest(mut root: Table, members: &[(&str, String)]) -> Option<Table> {
    let path = |folder: &String| Table::from_iter([("path".to_owned(), folder.clone().into())]);
    let patches: Table =
        members.iter().map(|(name, folder)| ((*name).to_owned(), path(folder).into())).collect();
    root.insert(
        "patch".to_owned(),
        Table::from_iter([("crates-io".to_owned(), patches.into())]).into(),
    );
    let workspace = root.get_mut("workspace")?.as_table_mut()?;
    let list: Vec<Value> = members.iter().map(|(_, folder)| folder.clone().into()).collect();
    workspace.insert("members".to_owned(), list.into());
    workspace.remove("default-members");
    workspace.remove("exclude");
    let dependencies = workspace.get_mut("dependencies").and_then(Value::as_table_mut);
    for (name, dependency) in dependencies.into_iter().flatten() {
        let folder = members.iter().find(|(member, _)| member == name);
        if let (Some((_, folder)), Some(own)) = (folder, dependency.as_table_mut()) {
            own.insert("path".to_owned(), folder.clone().into());
        }
    }
    Some(root)
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
    fn a_package_that_is_too_large_is_named() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("large-0.1.0.crate");
        let file = fs::File::create(&path).unwrap();
        file.set_len(LARGEST - 1).unwrap();
        assert!(too_large(place.path()).is_empty());
        file.set_len(LARGEST).unwrap();
        let found = too_large(place.path());
        assert!(found.len() == 1 && found[0].contains("large-0.1.0.crate"), "{found:?}");
    }

    #[test]
    fn packages_stand_for_those_of_the_registry_and_of_the_workspace() {
        let root = "[workspace]\nresolver = \"3\"\nmembers = [\"crates/one\"]\nexclude = [\"fuzz\"]\n\
            [workspace.dependencies]\none = { path = \"crates/one\", version = \"0.1.0\" }\nclap = \"4\"\n\
            [profile.dev]\nopt-level = 1";
        let expected = "[workspace]\nresolver = \"3\"\nmembers = [\"one-0.1.0\", \"xtask\"]\n\
            [workspace.dependencies]\none = { path = \"one-0.1.0\", version = \"0.1.0\" }\nclap = \"4\"\n\
            [profile.dev]\nopt-level = 1\n\
            [patch.crates-io]\none.path = \"one-0.1.0\"\nxtask.path = \"xtask\"";
        let members = [("one", "one-0.1.0".to_owned()), ("xtask", "xtask".to_owned())];
        assert_eq!(manifest(root.parse().unwrap(), &members), expected.parse().ok());
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
