//! Modules of a crate that import each other in a circle.
//!
//! A crate is a graph of its top-level modules. An edge is a path in the code that begins with
//! `crate::`, or with as many `super::` as lead to the root. What stands under `#[cfg(test)]` is
//! left out. `lib.rs` and `main.rs` are no modules: what they re-export counts for the module that
//! it comes from.

mod paths;
mod reader;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

use crate::crates;

/// From a module to those it names, each with one place where it does.
type Graph = BTreeMap<String, BTreeMap<String, String>>;

/// What is wrong with the modules of each crate.
pub(crate) fn findings(root: &Path) -> Vec<String> {
    let crates = match crates::all(root) {
        Ok(crates) => crates,
        Err(error) => return vec![error],
    };
    let mut findings = Vec::new();
    for one in &crates {
        for start in ["src/lib.rs", "src/main.rs"] {
            let start = one.folder.join(start);
            if !root.join(&start).exists() {
                continue;
            }
            match reader::read(root, &start) {
                Ok(graph) => {
                    let texts = cycles(&graph).into_iter().map(|cycle| describe(&graph, &cycle));
                    findings.extend(texts.map(|text| format!("{}: {text}", one.name)));
                }
                Err(errors) => findings.extend(errors),
            }
        }
    }
    findings
}

/// The shortest cycle through each module that is in one, the first name of the alphabet first.
fn cycles(graph: &Graph) -> BTreeSet<Vec<String>> {
    let shortest = graph.keys().filter_map(|module| shortest_cycle(graph, module));
    shortest
        .map(|mut cycle| {
            let first = (0..cycle.len()).min_by_key(|&at| &cycle[at]).unwrap_or(0);
            cycle.rotate_left(first);
            cycle
        })
        .collect()
}

fn shortest_cycle(graph: &Graph, start: &str) -> Option<Vec<String>> {
    let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(module) = queue.pop_front() {
        for next in graph.get(module).into_iter().flat_map(BTreeMap::keys) {
            if next == start {
                let mut cycle = vec![module.to_owned()];
                let mut at = module;
                while at != start {
                    at = came_from.get(at)?;
                    cycle.push(at.to_owned());
                }
                cycle.reverse();
                return Some(cycle);
            }
            if !came_from.contains_key(next.as_str()) {
                came_from.insert(next, module);
                queue.push_back(next);
            }
        }
    }
    None
}

fn describe(graph: &Graph, cycle: &[String]) -> String {
    let Some(first) = cycle.first() else { return String::new() };
    let mut lines = vec![cycle.join(" -> ") + " -> " + first];
    for (from, to) in cycle.iter().zip(cycle.iter().skip(1).chain([first])) {
        let place = graph.get(from).and_then(|edges| edges.get(to)).map_or("", String::as_str);
        lines.push(format!("    {from} -> {to}  {place}"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// What is found in a crate of these files.
    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("crates/one");
        fs::create_dir_all(folder.join("src/a")).unwrap();
        fs::write(folder.join("Cargo.toml"), "[package]\nname = \"one\"").unwrap();
        for (name, text) in files {
            fs::write(folder.join("src").join(name), text).unwrap();
        }
        findings(place.path())
    }

    #[test]
    fn a_cycle_is_printed_with_a_place_for_each_edge() {
        let found = found(&[
            ("lib.rs", "mod a; mod b; mod c;"),
            ("a.rs", "//! A.\nuse crate::b::B;"),
            ("b.rs", "pub struct B;\n\nfn f() -> super::c::C { super::c::C }"),
            ("c.rs", "pub struct C;\nfn f() { println!(\"{}\", crate::a::g()) }"),
        ]);
        assert_eq!(
            found,
            ["one: a -> b -> c -> a\n    a -> b  crates/one/src/a.rs:2\n    \
              b -> c  crates/one/src/b.rs:3\n    c -> a  crates/one/src/c.rs:2"]
        );
    }

    #[test]
    fn groups_and_nested_modules_count_for_the_module_on_top() {
        let found = found(&[
            ("lib.rs", "mod a; mod b;"),
            ("a/mod.rs", "mod deep { fn f() { super::super::b::g() } }\nmod file;"),
            ("a/file.rs", "use super::deep; use self::deep as other;"),
            ("b.rs", "use crate::{a::{deep, file}};"),
        ]);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("one: a -> b -> a\n"), "{found:?}");
    }

    #[test]
    fn what_the_root_re_exports_counts_for_where_it_comes_from() {
        let library = ("lib.rs", "mod a; mod b; pub use b::{B, Other as Renamed};");
        let (a, b) = (("a.rs", "use crate::Renamed;"), ("b.rs", "use crate::a;"));
        assert_eq!(found(&[library, a, b]).len(), 1);
        assert_eq!(found(&[library, ("a.rs", "use crate::Elsewhere;"), b]), [""; 0]);
        let glob = ("lib.rs", "mod a; mod b; pub use b::*;");
        assert_eq!(found(&[glob, a, b]).len(), 1);
    }

    #[test]
    fn tests_comments_strings_and_visibilities_are_no_imports() {
        let found = found(&[
            ("lib.rs", "mod a; mod b; #[cfg(test)] mod c;"),
            ("a.rs", "use crate::b;"),
            (
                "b.rs",
                "/// [`crate::a`]\npub(in crate::a) const A: &str = \"crate::a::A\"; // crate::a\n\
                 #[cfg(test)] use crate::a::A;\n#[cfg(all(test, unix))] mod tests { use crate::a; }",
            ),
        ]);
        assert_eq!(found, [""; 0]);
    }

    #[test]
    fn code_without_tests_is_looked_at() {
        let found = found(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b;"),
            ("b.rs", "#[cfg(not(test))] use crate::a;"),
        ]);
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn everything_at_once_from_the_root_is_refused() {
        let found = found(&[("lib.rs", "mod a;"), ("a.rs", "use crate::*;")]);
        assert_eq!(found, ["crates/one/src/a.rs:1: a glob of the root hides what is used"]);
    }

    #[test]
    fn a_file_that_is_missing_or_no_rust_is_named() {
        let found = found(&[("lib.rs", "mod a; mod b;"), ("a.rs", "fn f( {")]);
        assert!(found[0].starts_with("crates/one/src/a.rs: "), "{found:?}");
        assert!(found[1].starts_with("crates/one/src/lib.rs:1: no file of module b"), "{found:?}");
    }
}
