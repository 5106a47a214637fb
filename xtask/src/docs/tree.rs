//! Paths as documents write them, looked up in the tree.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::crates::{self, Crate};

/// Extensions of this repository's own files. A name without a folder that ends in another one is
/// the reader's.
const OWN: [&str; 3] = ["rs", "md", "cu"];
/// The same for names that stand in a folder.
const OWN_IN_FOLDER: [&str; 1] = ["py"];
/// Folders that examples write or read, and what is built.
const EXAMPLES: [&str; 7] =
    ["photos", "pictures", "report", "runs", "target", "torch", "ivoro-demo"];

/// Where paths begin.
pub(super) struct Tree {
    root: PathBuf,
    /// Folders below which a path may be written, besides the document's own.
    bases: Vec<PathBuf>,
    /// Files of the crates, for names without a folder.
    files: Vec<PathBuf>,
}

impl Tree {
    pub(super) fn new(root: &Path, crates: &[Crate]) -> Self {
        let mut bases = vec![root.to_owned()];
        for one in crates {
            let folder = root.join(&one.folder);
            bases.extend([folder.join("src"), folder.join("tests"), folder]);
        }
        let mut files = Vec::new();
        for one in crates {
            for extension in OWN {
                files.extend(crates::files(&root.join(&one.folder), extension));
            }
        }
        Self { root: root.to_owned(), bases, files }
    }

    /// Whether this piece of code names a file or a folder of the repository.
    pub(super) fn is_path(&self, text: &str) -> bool {
        let odd = |letter: char| !(letter.is_alphanumeric() || "/._-*{},".contains(letter));
        if text.contains(odd) || text.starts_with(['/', '-', '*']) {
            return false;
        }
        let extension = text.rsplit_once('.').map_or("", |(_, extension)| extension);
        let Some((first, _)) = text.split_once('/') else {
            return OWN.contains(&extension) && text.len() > extension.len() + 1;
        };
        if first == "." || EXAMPLES.contains(&first) || is_placeholder(first) {
            return false;
        }
        OWN.contains(&extension)
            || OWN_IN_FOLDER.contains(&extension)
            || text.ends_with('/')
            || self.root.join(first).is_dir()
    }

    /// The files and folders that a path leads to, seen from a document: none, if one of those that
    /// it names is missing.
    pub(super) fn find(&self, document: &Path, text: &str) -> BTreeSet<PathBuf> {
        let mut all = BTreeSet::new();
        for path in alternatives(text) {
            let found = self.find_one(document, path.trim_end_matches('/'));
            if found.is_empty() {
                return BTreeSet::new();
            }
            all.extend(found);
        }
        all
    }

    fn find_one(&self, document: &Path, path: &str) -> BTreeSet<PathBuf> {
        let own = self.root.join(document.parent().unwrap_or(document));
        let parts: Vec<&str> = path.split('/').collect();
        let bases = self.bases.iter().chain([&own]);
        let mut found: BTreeSet<PathBuf> = bases.flat_map(|base| matches(base, &parts)).collect();
        if parts.len() == 1 {
            let named = |file: &&PathBuf| file.file_name().is_some_and(|name| name == path);
            found.extend(self.files.iter().filter(named).cloned());
        }
        found.iter().filter_map(|path| crates::below(&self.root, path)).collect()
    }
}

/// `a/{b,c}.rs` is `a/b.rs` and `a/c.rs`.
fn alternatives(text: &str) -> Vec<String> {
    let parts = text.split_once('{').and_then(|(before, rest)| {
        let (inside, after) = rest.split_once('}')?;
        Some((before, inside, after))
    });
    match parts {
        Some((before, inside, after)) => {
            inside.split(',').map(|one| format!("{before}{}{after}", one.trim())).collect()
        }
        None => vec![text.to_owned()],
    }
}

/// Whether a word stands for whatever the reader has: `NAME`, `TARGET`.
fn is_placeholder(word: &str) -> bool {
    word.len() > 1 && word.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_')
}

/// What lies below the base under these names, some of which stand for any.
fn matches(base: &Path, parts: &[&str]) -> Vec<PathBuf> {
    let Some((first, rest)) = parts.split_first() else { return vec![base.to_owned()] };
    let stem = first.split('.').next().unwrap_or(first);
    let pattern =
        if is_placeholder(stem) { first.replacen(stem, "*", 1) } else { (*first).to_owned() };
    let Some((start, end)) = pattern.split_once('*') else {
        let path = base.join(first);
        return if path.exists() { matches(&path, rest) } else { Vec::new() };
    };
    let fits = |path: &&PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
    };
    crates::entries(base).iter().filter(fits).flat_map(|path| matches(path, rest)).collect()
}
