//! The crates of this repository, found by their manifests.

use std::fs;
use std::path::{Path, PathBuf};

use toml::Table;

/// Folders of crates beside those below `crates/`.
const OTHERS: [&str; 3] = ["bindings/python", "bench", "xtask"];
/// Empty but for its feature, which needs libtorch: few machines have it. The step `torch` checks it.
pub(crate) const TORCH: &str = "ivoro-torch";

/// The repository.
pub(crate) struct Workspace {
    /// Where it lies.
    pub(crate) root: PathBuf,
    /// Its crates.
    pub(crate) crates: Vec<Crate>,
}

impl Workspace {
    /// Finds all crates.
    pub(crate) fn read(root: PathBuf) -> Result<Self, String> {
        let crates = all(&root)?;
        Ok(Self { root, crates })
    }
}

/// One crate.
pub(crate) struct Crate {
    /// Its name.
    pub(crate) name: String,
    /// Where it lies, below the root of the repository.
    pub(crate) folder: PathBuf,
    /// What its manifest says.
    pub(crate) manifest: Table,
}

impl Crate {
    /// Whether it goes to a registry.
    pub(crate) fn is_published(&self) -> bool {
        let publish = self.manifest.get("package").and_then(|package| package.get("publish"));
        publish.and_then(toml::Value::as_bool) != Some(false)
    }
}

/// All crates, by folder.
pub(crate) fn all(root: &Path) -> Result<Vec<Crate>, String> {
    let mut folders: Vec<PathBuf> =
        entries(&root.join("crates")).iter().filter_map(|path| below(root, path)).collect();
    folders.extend(OTHERS.map(PathBuf::from));
    folders.retain(|folder| root.join(folder).join("Cargo.toml").exists());
    folders.into_iter().map(|folder| read(root, folder)).collect()
}

/// Every feature but `torch`, as cargo takes them, and nothing that needs libtorch.
pub(crate) fn selection<'a>(crates: impl Iterator<Item = &'a Crate> + Clone) -> Vec<String> {
    let mut words = vec!["--workspace".to_owned()];
    if crates.clone().any(|one| one.name == TORCH) {
        words.extend(["--exclude".to_owned(), TORCH.to_owned()]);
    }
    let mut features = Vec::new();
    for one in crates.filter(|one| one.name != TORCH) {
        let Some(table) = one.manifest.get("features").and_then(toml::Value::as_table) else {
            continue;
        };
        let wanted = table.keys().filter(|name| !["default", "torch"].contains(&name.as_str()));
        features.extend(wanted.map(|name| format!("{}/{name}", one.name)));
    }
    if !features.is_empty() {
        words.extend(["--features".to_owned(), features.join(",")]);
    }
    words
}

/// What lies in a folder, sorted; nothing, if there is no such folder.
pub(crate) fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(list) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = list.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths
}

/// All files below a folder with this extension, sorted.
pub(crate) fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in entries(folder) {
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|own| own == extension) {
            found.push(path);
        }
    }
    found
}

/// A path as it is written from the root of the repository.
pub(crate) fn below(root: &Path, path: &Path) -> Option<PathBuf> {
    path.strip_prefix(root).ok().map(Path::to_owned)
}

fn read(root: &Path, folder: PathBuf) -> Result<Crate, String> {
    let path = folder.join("Cargo.toml");
    let text = fs::read_to_string(root.join(&path))
        .map_err(|error| format!("{} can't be read: {error}", path.display()))?;
    let manifest: Table = text.parse().map_err(|error| format!("{}: {error}", path.display()))?;
    let name = manifest.get("package").and_then(|package| package.get("name")?.as_str());
    let name = name.ok_or_else(|| format!("{}: no package.name", path.display()))?.to_owned();
    Ok(Crate { name, folder, manifest })
}
