//! Documents name files, functions and places that exist.
//!
//! Looked at are code in backticks and links. A path must lead to something, seen from the document,
//! from the root, or from a crate, its `src` or its `tests`. `A::b` must be defined: by the type,
//! trait or module A. Names that follow a source file, as in `head/points.rs`: `compose`, must be
//! defined in that very file.

mod definitions;
mod markdown;
mod tree;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::crates::{self, Crate};
use definitions::Definitions;
use markdown::Page;
use tree::Tree;

/// Documents in which every name that looks like one of the source must be one.
const STRICT: [&str; 1] = ["docs/method.md"];

/// Everything that documents name and that is not there.
pub(crate) fn findings(root: &Path) -> Vec<String> {
    let read = crates::all(root).and_then(|crates| {
        let definitions = Definitions::read(root, &crates)?;
        Ok(Checker {
            root,
            tree: Tree::new(root, &crates),
            definitions,
            others: others(root)?,
            crates,
        })
    });
    match read {
        Ok(checker) => documents(root, &checker.crates)
            .iter()
            .flat_map(|path| checker.document(path))
            .collect(),
        Err(error) => vec![error],
    }
}

/// Pages about how things are; a diary and the changes tell how they were.
fn documents(root: &Path, crates: &[Crate]) -> Vec<PathBuf> {
    let mut documents = vec![PathBuf::from("README.md"), PathBuf::from("CONTRIBUTING.md")];
    for folder in ["docs", "docs/guide"] {
        let paths = crates::entries(&root.join(folder));
        let pages = paths.iter().filter(|path| path.extension().is_some_and(|end| end == "md"));
        documents.extend(pages.filter_map(|path| crates::below(root, path)));
    }
    documents.extend(crates.iter().map(|one| one.folder.join("README.md")));
    documents.retain(|path| root.join(path).exists());
    documents
}

/// Names of crates that are not ours.
fn others(root: &Path) -> Result<BTreeSet<String>, String> {
    let text = fs::read_to_string(root.join("Cargo.toml"))
        .map_err(|error| format!("Cargo.toml can't be read: {error}"))?;
    let table: toml::Table = text.parse().map_err(|error| format!("Cargo.toml: {error}"))?;
    let list =
        table.get("workspace").and_then(|workspace| workspace.get("dependencies")?.as_table());
    let names = list.into_iter().flat_map(toml::Table::keys).map(|name| name.replace('-', "_"));
    Ok(names.chain(["std", "core", "alloc"].map(str::to_owned)).collect())
}

struct Checker<'a> {
    root: &'a Path,
    tree: Tree,
    definitions: Definitions,
    others: BTreeSet<String>,
    crates: Vec<Crate>,
}

impl Checker<'_> {
    fn document(&self, path: &Path) -> Vec<String> {
        let text = match fs::read_to_string(self.root.join(path)) {
            Ok(text) => text,
            Err(error) => return vec![format!("{}: {error}", path.display())],
        };
        let page = markdown::parse(&text);
        let mut found = self.code(path, &page);
        for (line, target) in &page.links {
            found.extend(self.link(path, target, &page).map(|what| (*line, what)));
        }
        found.sort();
        found.into_iter().map(|(line, what)| format!("{}:{line}: {what}", path.display())).collect()
    }

    fn code(&self, path: &Path, page: &Page) -> Vec<(usize, String)> {
        let strict = STRICT.iter().any(|strict| path == Path::new(strict));
        let mut found = Vec::new();
        // the source files that names in the same list belong to
        let mut files = BTreeSet::new();
        for code in &page.code {
            let text = code.text.as_str();
            if !is_listed(&code.before) {
                files.clear();
            }
            if self.tree.is_path(text) {
                files = self.tree.find(path, text);
                if files.is_empty() {
                    found.push((code.line, format!("no file or folder `{text}`")));
                }
                files.retain(|file| file.extension().is_some_and(|end| end == "rs"));
                continue;
            }
            let Some(name) = name(text) else {
                files.clear();
                continue;
            };
            let must_be = code.is_function || !files.is_empty();
            let looks = strict && looks_defined(&name);
            if name.len() > 1 || must_be || looks {
                found.extend(self.name(&name, &files).map(|what| (code.line, what)));
            }
        }
        found
    }

    /// What is wrong with a name, which must be defined in one of the files, if there are any.
    fn name(&self, parts: &[&str], files: &BTreeSet<PathBuf>) -> Option<String> {
        let text = parts.join("::");
        if parts.len() > 1 && parts.first().is_some_and(|first| self.is_other(first)) {
            return None;
        }
        let mut defined = parts.first().map(|first| self.definitions.files_of_any(first))?;
        for pair in parts.windows(2) {
            if !self.definitions.has_owner(pair[0]) {
                return Some(format!("no type or module `{}` (in `{text}`)", pair[0]));
            }
            defined = self.definitions.files_of(pair[0], pair[1]);
            if defined.is_empty() {
                return Some(format!("`{}` defines no `{}`", pair[0], pair[1]));
            }
        }
        if defined.is_empty() {
            return Some(format!("nothing is called `{text}`"));
        }
        let list = |paths: &BTreeSet<PathBuf>| {
            let paths = paths.iter().map(|path| path.display().to_string());
            paths.collect::<Vec<_>>().join(", ")
        };
        (!files.is_empty() && files.is_disjoint(&defined))
            .then(|| format!("`{text}` is not in {} but in {}", list(files), list(&defined)))
    }

    fn is_other(&self, first: &str) -> bool {
        self.others.contains(first) && !self.definitions.has_owner(first)
    }

    /// What is wrong with a link.
    fn link(&self, path: &Path, target: &str, page: &Page) -> Option<String> {
        let elsewhere = target.contains("://") || target.starts_with("mailto:");
        // rustdoc looks up links to items
        if elsewhere || target.contains("::") || target.contains('@') {
            return None;
        }
        let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
        let place = self.root.join(path).parent().map(|folder| folder.join(file))?;
        if !file.is_empty() && !place.exists() {
            return Some(format!("the link `{target}` leads nowhere"));
        }
        let is_page = file.is_empty() || place.extension().is_some_and(|end| end == "md");
        if anchor.is_empty() || !is_page {
            return None;
        }
        let known = if file.is_empty() {
            page.anchors.iter().any(|known| known == anchor)
        } else {
            let text = fs::read_to_string(&place).unwrap_or_default();
            markdown::parse(&text).anchors.iter().any(|known| known == anchor)
        };
        (!known).then(|| format!("the page of the link `{target}` has no such heading"))
    }
}

/// Whether what stands between two pieces of code makes them one list.
fn is_listed(between: &str) -> bool {
    let between = between.trim();
    [":", ",", "and", ", and"].contains(&between) && !between.is_empty()
}

/// The parts of a name of the source: `a`, `A::b`, `A::b()`.
fn name(text: &str) -> Option<Vec<&str>> {
    let text = text.strip_suffix("()").unwrap_or(text);
    let is_word = |part: &&str| {
        let mut letters = part.chars();
        let first =
            letters.next().is_some_and(|letter| letter.is_ascii_alphabetic() || letter == '_');
        first && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
    };
    let parts: Vec<&str> = text.split("::").collect();
    parts.iter().all(is_word).then_some(parts)
}

/// Whether a word has the form of a name of the source: `TwoWords`, `two_words`, `CONSTANT`.
fn looks_defined(parts: &[&str]) -> bool {
    let Some(word) = parts.first().filter(|word| word.len() > 2) else { return false };
    word.contains('_') || word.starts_with(|letter: char| letter.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found where these documents lie beside a crate of two files.
    fn found(documents: &[(&str, &str)]) -> Vec<String> {
        let place = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = place.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("Cargo.toml", "[workspace.dependencies]\nclap = \"4\"");
        write("crates/one/Cargo.toml", "[package]\nname = \"one\"");
        write("crates/one/src/lib.rs", "pub mod head;\npub use head::Head;");
        write(
            "crates/one/src/head/mod.rs",
            "mod points;\npub struct Head;\nimpl Head { fn learn() {} }",
        );
        write("crates/one/src/head/points.rs", "pub fn compose() {}");
        documents.iter().for_each(|(name, text)| write(name, text));
        findings(place.path())
    }

    #[test]
    fn what_is_there_is_found_in_every_way_of_writing() {
        let text = "# One\n`head/points.rs`: `compose`. `head/{mod,points}.rs`, `Head::learn()`; `points.rs`,\n\
            `crates/one/src`, `crates/NAME/src/lib.rs`, `head/`, `one::head::Head`, `std::fs`,\n\
            `clap::Parser`, `photos/`, `./x.rs`, `.rs`, `../crates/one`, `run.json`, `ivoro learn x/y.rs`. [a](../README.md#two-words)\n\
            [b](#one) [c](https://example.org/no) [d](crate::Head)";
        assert_eq!(found(&[("docs/a.md", text), ("README.md", "## Two words")]), [""; 0]);
    }

    #[test]
    fn each_kind_of_stale_name_is_printed_with_its_line() {
        let text = "`head/gone.rs`\n`Head::gone`\n`Gone::learn`\n`head/mod.rs`: `compose`\n\
            `crates/gone/x`\n[a](gone.md) [b](#gone)\n`head/{mod,gone}.rs`\n`gone/`\n";
        assert_eq!(
            found(&[("docs/a.md", text)]),
            [
                "docs/a.md:1: no file or folder `head/gone.rs`",
                "docs/a.md:2: `Head` defines no `gone`",
                "docs/a.md:3: no type or module `Gone` (in `Gone::learn`)",
                "docs/a.md:4: `compose` is not in crates/one/src/head/mod.rs but in \
                 crates/one/src/head/points.rs",
                "docs/a.md:5: no file or folder `crates/gone/x`",
                "docs/a.md:6: the link `gone.md` leads nowhere",
                "docs/a.md:6: the page of the link `#gone` has no such heading",
                "docs/a.md:7: no file or folder `head/{mod,gone}.rs`",
                "docs/a.md:8: no file or folder `gone/`",
            ]
        );
    }

    #[test]
    fn plain_names_count_in_the_method_and_below_function() {
        let text = "`Gone`, `gone_too`, `word`, `iVoro-ND`, `Head`";
        assert_eq!(
            found(&[("docs/method.md", text), ("docs/other.md", text)]),
            [
                "docs/method.md:1: nothing is called `Gone`",
                "docs/method.md:1: nothing is called `gone_too`"
            ]
        );
        let table = "| Function |\n|---|\n| `compose` |\n| `gone` |";
        assert_eq!(
            found(&[("docs/other.md", table)]),
            ["docs/other.md:4: nothing is called `gone`"]
        );
    }

    #[test]
    fn history_is_left_out() {
        let pages = [("docs/diary/a.md", "`head/gone.rs`"), ("CHANGELOG.md", "`Head::gone`")];
        assert_eq!(found(&pages), [""; 0]);
    }
}
