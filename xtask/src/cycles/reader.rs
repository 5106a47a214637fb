//! The modules of a crate, read from its root on as the compiler does.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::Graph;
use super::paths::{Found, behind_item, ident, is_colons, is_ident, is_punct, is_test, paths};

/// The graph of a crate, or what can't be read of it.
pub(super) fn read(root: &Path, start: &Path) -> Result<Graph, Vec<String>> {
    let mut reader = Reader { root, ..Reader::default() };
    let Some(tokens) = reader.tokens(start) else { return Err(reader.errors) };
    reader.survey(&tokens);
    let folder = start.parent().unwrap_or(start).to_owned();
    reader.walk(&tokens, &File { path: start.to_owned(), folder, module: Vec::new() });
    if reader.errors.is_empty() { Ok(reader.graph) } else { Err(reader.errors) }
}

/// Where the reader is.
struct File {
    path: PathBuf,
    /// Where the files of its modules lie.
    folder: PathBuf,
    /// The names of the modules around it, the top-level one first.
    module: Vec<String>,
}

struct Reader<'a> {
    root: &'a Path,
    /// Top-level modules.
    modules: BTreeSet<String>,
    /// Names that the root imports, with the module each comes from.
    imported: BTreeMap<String, String>,
    /// Modules of which the root imports everything.
    globs: BTreeSet<String>,
    graph: Graph,
    errors: Vec<String>,
}

impl Default for Reader<'_> {
    fn default() -> Self {
        Self {
            root: Path::new(""),
            modules: BTreeSet::new(),
            imported: BTreeMap::new(),
            globs: BTreeSet::new(),
            graph: Graph::new(),
            errors: Vec::new(),
        }
    }
}

impl Reader<'_> {
    fn tokens(&mut self, path: &Path) -> Option<Vec<TokenTree>> {
        let text = fs::read_to_string(self.root.join(path)).map_err(|error| error.to_string());
        let tokens =
            text.and_then(|text| TokenStream::from_str(&text).map_err(|error| error.to_string()));
        match tokens {
            Ok(tokens) => Some(tokens.into_iter().collect()),
            Err(error) => {
                self.errors.push(format!("{}: {error}", path.display()));
                None
            }
        }
    }

    /// What the root names: its modules, and where the names come from that it imports.
    fn survey(&mut self, tokens: &[TokenTree]) {
        for at in 0..tokens.len() {
            if is_ident(tokens.get(at), "mod") {
                self.modules.extend(ident(tokens.get(at + 1)));
            }
        }
        for at in 0..tokens.len() {
            if !is_ident(tokens.get(at), "use") {
                continue;
            }
            let end = behind_statement(tokens, at);
            for (mut parts, name) in leaves(&tokens[at + 1..end]) {
                parts.retain(|part| part != "crate" && part != "self");
                let Some(module) = parts.first().filter(|first| self.modules.contains(*first))
                else {
                    continue;
                };
                if name == "*" {
                    self.globs.insert(module.clone());
                } else {
                    self.imported.insert(name, module.clone());
                }
            }
        }
    }

    fn walk(&mut self, tokens: &[TokenTree], file: &File) {
        let mut at = 0;
        let mut elsewhere = None;
        while let Some(token) = tokens.get(at) {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == '#' => {
                    let inner = is_punct(tokens.get(at + 1), '!');
                    let place = at + 1 + usize::from(inner);
                    if let Some(TokenTree::Group(group)) = tokens.get(place) {
                        let attribute: Vec<TokenTree> = group.stream().into_iter().collect();
                        if is_test(&attribute) {
                            at = if inner { tokens.len() } else { behind_item(tokens, place + 1) };
                            continue;
                        }
                        elsewhere = path_of(&attribute).or(elsewhere);
                    }
                    at += 1;
                }
                TokenTree::Ident(word) if word == "pub" => {
                    at += 1 + usize::from(is_visibility(tokens.get(at + 1)));
                }
                TokenTree::Ident(word) if word == "mod" => {
                    self.module(tokens, at, file, elsewhere.take().as_deref());
                    at += 3;
                }
                TokenTree::Ident(word) if is_start(&word.to_string()) => {
                    let (found, end) = paths(tokens, at);
                    found.iter().for_each(|path| self.path(path, file));
                    at = end;
                }
                TokenTree::Group(group) => {
                    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                    self.walk(&inner, file);
                    at += 1;
                }
                _ => at += 1,
            }
        }
    }

    /// A module that is declared here, in braces or in a file of its own.
    fn module(&mut self, tokens: &[TokenTree], at: usize, file: &File, elsewhere: Option<&str>) {
        let Some(name) = ident(tokens.get(at + 1)) else { return };
        let module = [file.module.clone(), vec![name.clone()]].concat();
        let folder = file.folder.join(&name);
        if let Some(TokenTree::Group(group)) = tokens.get(at + 2) {
            let inner: Vec<TokenTree> = group.stream().into_iter().collect();
            self.walk(&inner, &File { path: file.path.clone(), folder, module });
            return;
        }
        let beside = |name| file.path.parent().unwrap_or(&file.path).join(name);
        let places = match elsewhere {
            Some(path) => vec![beside(path)],
            None => vec![folder.with_file_name(format!("{name}.rs")), folder.join("mod.rs")],
        };
        let Some(path) = places.into_iter().find(|path| self.root.join(path).exists()) else {
            let line = tokens[at].span().start().line;
            let place = format!("{}:{line}", file.path.display());
            self.errors.push(format!("{place}: no file of module {name}"));
            return;
        };
        if let Some(tokens) = self.tokens(&path) {
            self.walk(&tokens, &File { path, folder, module });
        }
    }

    /// An edge, if the path leads to another top-level module.
    fn path(&mut self, found: &Found, file: &File) {
        let Some(from) = file.module.first() else { return };
        let mut depth = file.module.len();
        let mut parts = found.parts.iter();
        let first = loop {
            match parts.next().map(String::as_str) {
                Some("crate") => depth = 0,
                Some("super") => depth = depth.saturating_sub(1),
                Some("self") => {}
                other => break other,
            }
        };
        let Some(name) = first.filter(|_| depth == 0) else { return };
        let place = format!("{}:{}", file.path.display(), found.span.start().line);
        if name == "*" {
            self.errors.push(format!("{place}: a glob of the root hides what is used"));
            return;
        }
        let module = self.modules.get(name).or_else(|| self.imported.get(name));
        let targets: Vec<String> = match module {
            Some(module) => vec![module.clone()],
            None => self.globs.iter().cloned().collect(),
        };
        for to in targets.into_iter().filter(|to| to != from) {
            self.graph.entry(from.clone()).or_default().entry(to).or_insert_with(|| place.clone());
        }
    }
}

fn is_start(word: &str) -> bool {
    ["crate", "self", "super"].contains(&word)
}

/// Whether this is what may follow `pub`.
fn is_visibility(token: Option<&TokenTree>) -> bool {
    let Some(TokenTree::Group(group)) = token else { return false };
    let first = ident(group.stream().into_iter().next().as_ref());
    group.delimiter() == Delimiter::Parenthesis
        && first.is_some_and(|word| word == "in" || is_start(&word))
}

/// The file that `#[path = "…"]` names.
fn path_of(attribute: &[TokenTree]) -> Option<String> {
    let [TokenTree::Ident(name), TokenTree::Punct(_), TokenTree::Literal(text)] = attribute else {
        return None;
    };
    (name == "path").then(|| text.to_string().trim_matches('"').to_owned())
}

/// Where the statement ends that begins here.
fn behind_statement(tokens: &[TokenTree], start: usize) -> usize {
    let end = (start..tokens.len()).find(|&at| is_punct(tokens.get(at), ';'));
    end.unwrap_or(tokens.len())
}

/// Paths that `use` imports, each with the name that it gets.
fn leaves(tokens: &[TokenTree]) -> Vec<(Vec<String>, String)> {
    let mut at = if is_colons(tokens, 0) { 2 } else { 0 };
    let mut parts = Vec::new();
    loop {
        match tokens.get(at) {
            Some(TokenTree::Group(group)) => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                let trees = inner.split(|token| is_punct(Some(token), ','));
                let below = trees.filter(|tree| !tree.is_empty()).flat_map(leaves);
                return below.map(|(rest, name)| ([parts.clone(), rest].concat(), name)).collect();
            }
            Some(token) => parts.push(token.to_string()),
            None => return Vec::new(),
        }
        at += 1;
        if !is_colons(tokens, at) {
            break;
        }
        at += 2;
    }
    let alias = is_ident(tokens.get(at), "as").then(|| ident(tokens.get(at + 1))).flatten();
    let own = parts.last().cloned().unwrap_or_default();
    vec![(parts, alias.unwrap_or(own))]
}
