//! What the source defines, so that a document can be asked whether it names something real.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::{Fields, ImplItem, Item, TraitItem, Type, UseTree};

use crate::crates::{self, Crate};

/// Who defines what, and in which file. An owner is a module, a crate, or a type.
#[derive(Default)]
pub(super) struct Definitions {
    owners: BTreeMap<String, BTreeMap<String, BTreeSet<PathBuf>>>,
    /// Traits of a type, and modules of which a module exports everything.
    inherited: BTreeMap<String, BTreeSet<String>>,
}

impl Definitions {
    /// Reads the source of all crates.
    pub(super) fn read(root: &Path, crates: &[Crate]) -> Result<Self, String> {
        let mut definitions = Self::default();
        for one in crates {
            let name = one.name.replace('-', "_");
            definitions.owners.entry(name.clone()).or_default();
            for path in crates::files(&root.join(&one.folder).join("src"), "rs") {
                let file = crates::below(root, &path).unwrap_or(path.clone());
                let text = fs::read_to_string(&path);
                let text = text.map_err(|error| format!("{}: {error}", file.display()))?;
                definitions
                    .add(&text, &file, &name)
                    .map_err(|error| format!("{}: {error}", file.display()))?;
            }
        }
        Ok(definitions)
    }

    /// Adds what a file defines.
    pub(super) fn add(&mut self, text: &str, file: &Path, krate: &str) -> syn::Result<()> {
        let stem = |path: &Path| path.file_stem()?.to_str().map(str::to_owned);
        let module = match stem(file).unwrap_or_default().as_str() {
            "lib" | "main" => krate.to_owned(),
            "mod" => file.parent().and_then(stem).unwrap_or_default(),
            name => name.to_owned(),
        };
        self.items(&syn::parse_file(text)?.items, &module, file);
        Ok(())
    }

    /// Whether the owner is known at all.
    pub(super) fn has_owner(&self, owner: &str) -> bool {
        self.owners.contains_key(owner)
    }

    /// The files in which an owner defines a name.
    pub(super) fn files_of(&self, owner: &str, name: &str) -> BTreeSet<PathBuf> {
        let own = self.owners.get(owner).and_then(|names| names.get(name));
        let others = self.inherited.get(owner).into_iter().flatten();
        let inherited = others.filter_map(|other| self.owners.get(other)?.get(name));
        own.into_iter().chain(inherited).flatten().cloned().collect()
    }

    /// The files in which anyone defines a name.
    pub(super) fn files_of_any(&self, name: &str) -> BTreeSet<PathBuf> {
        let everywhere = self.owners.values().filter_map(|names| names.get(name));
        everywhere.flatten().cloned().collect()
    }

    fn define(&mut self, owner: &str, name: &syn::Ident, file: &Path) {
        self.define_text(owner, &name.to_string(), file);
    }

    fn define_text(&mut self, owner: &str, name: &str, file: &Path) {
        let names = self.owners.entry(owner.to_owned()).or_default();
        names.entry(name.to_owned()).or_default().insert(file.to_owned());
    }

    fn inherit(&mut self, owner: &str, from: &syn::Ident) {
        self.inherited.entry(owner.to_owned()).or_default().insert(from.to_string());
    }

    fn items(&mut self, items: &[Item], module: &str, file: &Path) {
        // also when it defines nothing
        self.owners.entry(module.to_owned()).or_default();
        items.iter().for_each(|item| self.item(item, module, file));
    }

    fn item(&mut self, item: &Item, module: &str, file: &Path) {
        match item {
            Item::Fn(item) => self.define(module, &item.sig.ident, file),
            Item::Const(item) => self.define(module, &item.ident, file),
            Item::Static(item) => self.define(module, &item.ident, file),
            Item::Type(item) => self.define(module, &item.ident, file),
            Item::Struct(item) => {
                self.define(module, &item.ident, file);
                self.fields(&item.ident.to_string(), &item.fields, file);
            }
            Item::Union(item) => self.define(module, &item.ident, file),
            Item::Enum(item) => {
                self.define(module, &item.ident, file);
                let owner = item.ident.to_string();
                for variant in &item.variants {
                    self.define(&owner, &variant.ident, file);
                    self.fields(&variant.ident.to_string(), &variant.fields, file);
                }
            }
            Item::Trait(item) => {
                self.define(module, &item.ident, file);
                let owner = item.ident.to_string();
                for part in &item.items {
                    match part {
                        TraitItem::Fn(part) => self.define(&owner, &part.sig.ident, file),
                        TraitItem::Const(part) => self.define(&owner, &part.ident, file),
                        TraitItem::Type(part) => self.define(&owner, &part.ident, file),
                        _ => {}
                    }
                }
            }
            Item::Impl(item) => self.implementation(item, file),
            Item::Mod(item) if !is_test(&item.attrs) => {
                self.define(module, &item.ident, file);
                if let Some((_, items)) = &item.content {
                    self.items(items, &item.ident.to_string(), file);
                }
            }
            Item::Macro(item) => {
                item.ident.iter().for_each(|name| self.define(module, name, file));
            }
            Item::Use(item) if !matches!(item.vis, syn::Visibility::Inherited) => {
                self.import(&item.tree, None, module, file);
            }
            _ => {}
        }
    }

    fn fields(&mut self, owner: &str, fields: &Fields, file: &Path) {
        self.owners.entry(owner.to_owned()).or_default();
        let names = fields.iter().filter_map(|field| field.ident.as_ref());
        names.for_each(|name| self.define(owner, name, file));
    }

    fn implementation(&mut self, item: &syn::ItemImpl, file: &Path) {
        let Type::Path(path) = &*item.self_ty else { return };
        let Some(last) = path.path.segments.last() else { return };
        let owner = last.ident.to_string();
        for part in &item.items {
            match part {
                ImplItem::Fn(part) => self.define(&owner, &part.sig.ident, file),
                ImplItem::Const(part) => self.define(&owner, &part.ident, file),
                ImplItem::Type(part) => self.define(&owner, &part.ident, file),
                _ => {}
            }
        }
        if let Some(last) =
            item.trait_.as_ref().and_then(|implemented| implemented.0.segments.last())
        {
            self.inherit(&owner, &last.ident);
        }
    }

    /// What a module exports besides its own.
    fn import(&mut self, tree: &UseTree, from: Option<&syn::Ident>, module: &str, file: &Path) {
        match tree {
            UseTree::Path(path) => self.import(&path.tree, Some(&path.ident), module, file),
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.import(tree, from, module, file));
            }
            UseTree::Name(name) if name.ident == "self" => {
                from.into_iter().for_each(|from| self.define(module, from, file));
            }
            UseTree::Name(name) => self.define(module, &name.ident, file),
            UseTree::Rename(rename) => self.define(module, &rename.rename, file),
            UseTree::Glob(_) => from.into_iter().for_each(|from| self.inherit(module, from)),
        }
    }
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let test = || attribute.parse_args::<syn::Ident>().is_ok_and(|word| word == "test");
        attribute.path().is_ident("cfg") && test()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
        pub mod inner { pub const LIMIT: usize = 1; }
        pub struct Head { pub size: usize }
        impl Head { fn learn() {} }
        pub enum Search { Exact, Index { families: usize } }
        pub trait Learner { fn bytes() {} }
        impl Learner for Head {}
        pub use elsewhere::{Model as Kept, taken, all::*};
        use elsewhere::Private;
        #[cfg(test)] mod tests { fn hidden() {} }
    ";

    #[test]
    fn a_name_belongs_to_its_owner_and_to_no_other() {
        let mut all = Definitions::default();
        all.add(TEXT, Path::new("src/head/mod.rs"), "one").unwrap();
        all.add("pub fn far() {}", Path::new("src/all.rs"), "one").unwrap();
        all.add("pub fn top() {}", Path::new("src/lib.rs"), "one").unwrap();
        let known = |owner, name| !all.files_of(owner, name).is_empty();
        for (owner, name) in [
            ("head", "Head"),
            ("head", "inner"),
            ("inner", "LIMIT"),
            ("Head", "size"),
            ("Head", "learn"),
            ("Head", "bytes"),
            ("Search", "Exact"),
            ("Index", "families"),
            ("head", "Kept"),
            ("head", "taken"),
            ("head", "far"),
            ("one", "top"),
        ] {
            assert!(known(owner, name), "{owner}::{name}");
        }
        for (owner, name) in [
            ("head", "LIMIT"),
            ("Head", "lear"),
            ("head", "learn"),
            ("head", "Private"),
            ("head", "Model"),
            ("tests", "hidden"),
        ] {
            assert!(!known(owner, name), "{owner}::{name}");
        }
        assert!(all.has_owner("Learner") && !all.has_owner("Private"));
        assert_eq!(all.files_of_any("far").len(), 1);
    }
}
