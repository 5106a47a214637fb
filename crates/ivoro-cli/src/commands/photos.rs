//! Photos that a verb was given: found, counted, and what was left out of them told.

use std::io::Read;
use std::path::{Path, PathBuf};

use anstream::eprintln;
use ivoro_vision::dataset::{Broken, Photo, Photos, Unread};
use ivoro_vision::photos::Duplicate;
use serde_json::json;

use crate::args::photos::PhotoArguments;
use crate::failure::Failure;
use crate::output;
use crate::table::visible;
use crate::words::counted;

/// The longest list that is read from standard input.
const MOST_LIST: u64 = 1 << 28;

/// The photos that the arguments name; `-` stands for a list on standard input.
pub(super) fn find(paths: &[PathBuf], broken: Broken) -> Result<Photos, Failure> {
    let is_list = |path: &&PathBuf| path.as_os_str() == "-";
    let named: Vec<PathBuf> = paths.iter().filter(|path| !is_list(path)).cloned().collect();
    let mut photos = Photos::find(&named, broken)?;
    if paths.iter().any(|path| is_list(&path)) {
        let mut list = String::new();
        std::io::stdin().lock().take(MOST_LIST).read_to_string(&mut list)?;
        photos.add_list(&list, broken)?;
    }
    Ok(photos)
}

/// What became of photos.
#[derive(Default)]
pub(super) struct Tale {
    /// What was done with those that count: taught, answered.
    pub(super) verb: &'static str,
    pub(super) done: usize,
    pub(super) unread: Vec<(PathBuf, Unread)>,
    pub(super) truncated: Vec<PathBuf>,
    /// Photos left out, each with the one that has its pixels, if that came in the same command.
    pub(super) duplicates: Vec<(PathBuf, Option<PathBuf>)>,
    pub(super) contradictions: Vec<(PathBuf, PathBuf)>,
    pub(super) others: Vec<PathBuf>,
    pub(super) empty: Vec<String>,
}

impl Tale {
    /// Begins with what was found.
    pub(super) fn of(verb: &'static str, found: &mut Photos) -> Self {
        Self {
            verb,
            unread: std::mem::take(&mut found.unread),
            others: std::mem::take(&mut found.others),
            ..Self::default()
        }
    }

    /// Adds photos that turned out to be unreadable, where the first of them is the `first` of all.
    pub(super) fn add_unread(&mut self, photos: &[Photo], unread: Vec<(usize, Unread)>) {
        let named = |(at, unread): (usize, Unread)| (photos[at].name().to_owned(), unread);
        self.unread.extend(unread.into_iter().map(named));
    }

    pub(super) fn add_truncated(&mut self, photos: &[Photo], truncated: &[usize]) {
        self.truncated.extend(truncated.iter().map(|&at| photos[at].name().to_owned()));
    }

    pub(super) fn add_duplicates(
        &mut self,
        photos: &[Photo],
        duplicates: &[Duplicate],
        contradictions: &[(usize, usize)],
    ) {
        let name = |at: usize| photos[at].name().to_owned();
        self.duplicates.extend(duplicates.iter().map(|it| (name(it.photo), it.of.map(name))));
        self.contradictions.extend(contradictions.iter().map(|&(a, b)| (name(a), name(b))));
    }

    /// The error where there is nothing to do anything with.
    pub(super) fn nothing(&self, paths: &[PathBuf]) -> Failure {
        let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        if self.duplicates.iter().any(|(_, of)| of.is_none()) {
            let text = format!("{}: nothing new, all photos were taught before", paths.join(", "));
            return Failure::Usage(text);
        }
        if !self.unread.is_empty() && self.unread.iter().all(|(_, it)| it.kind == "without a class")
        {
            let text = "no class is known: put the photos into a folder named after it, or name it with --class";
            return Failure::Usage(format!("{}: {text}", paths.join(", ")));
        }
        let all = counted(self.unread.len() + self.others.len(), "file", "files");
        let kinds = self.kinds();
        let kinds = if kinds.is_empty() { kinds } else { format!(": {kinds}") };
        Failure::Usage(format!(
            "{}: {all}, none is a photo that this program reads{kinds}",
            paths.join(", ")
        ))
    }

    fn kinds(&self) -> String {
        Photos::tell(&self.unread.iter().map(|(_, unread)| unread).collect::<Vec<_>>())
    }

    /// Says on standard error how many photos were taken and left out, and writes the list that was asked for.
    pub(super) fn tell(&self, arguments: &PhotoArguments) -> Result<(), Failure> {
        if arguments.verbose {
            self.list();
        }
        for (one, other) in &self.contradictions {
            eprintln!(
                "note: {} and {} are the same photo, in two classes",
                shown(one),
                shown(other)
            );
        }
        let count = counted(self.done, "photo", "photos");
        let mut notes = vec![format!("{} {count}", self.verb)];
        if !self.unread.is_empty() {
            notes.push(format!("skipped {} ({})", self.unread.len(), self.kinds()));
        }
        if !self.duplicates.is_empty() {
            let count = self.duplicates.len();
            let before = self.duplicates.iter().filter(|(_, of)| of.is_none()).count();
            let before = if before > 0 {
                format!(", {before} of them taught before")
            } else {
                String::new()
            };
            notes.push(format!("left out {}{before}", counted(count, "duplicate", "duplicates")));
        }
        if !self.truncated.is_empty() {
            notes.push(format!("{} of them end too early", self.truncated.len()));
        }
        if !self.others.is_empty() {
            notes.push(format!(
                "passed over {}",
                counted(self.others.len(), "other file", "other files")
            ));
        }
        let more = if self.unread.is_empty() && self.duplicates.is_empty() || arguments.verbose {
            ""
        } else {
            "; -v lists them"
        };
        eprintln!("{}{more}", notes.join(", "));
        if !self.empty.is_empty() {
            let names: Vec<String> = self.empty.iter().map(|name| visible(name)).collect();
            eprintln!("note: no photo in {}", names.join(", "));
        }
        arguments.json.as_deref().map_or(Ok(()), |path| self.write(path))
    }

    fn list(&self) {
        self.unread.iter().for_each(|(_, unread)| eprintln!("skipped: {}", visible(&unread.why)));
        for (path, of) in &self.duplicates {
            let of = of.as_deref().map_or("a photo taught before".to_owned(), shown);
            eprintln!("duplicate: {} has the pixels of {of}", shown(path));
        }
        self.truncated.iter().for_each(|path| eprintln!("ends too early: {}", shown(path)));
        self.others.iter().for_each(|path| eprintln!("passed over: {}", shown(path)));
    }

    fn write(&self, path: &Path) -> Result<(), Failure> {
        let names = |paths: &[PathBuf]| paths.iter().map(|it| name(it)).collect::<Vec<_>>();
        let skipped = self.unread.iter().map(
            |(path, unread)| json!({"file": name(path), "kind": unread.kind, "why": unread.why}),
        );
        let duplicates = self
            .duplicates
            .iter()
            .map(|(path, of)| json!({"file": name(path), "of": of.as_deref().map(name)}));
        let two = self.contradictions.iter().map(|(one, other)| [name(one), name(other)]);
        let text = json!({
            (self.verb): self.done,
            "skipped": skipped.collect::<Vec<_>>(),
            "duplicates": duplicates.collect::<Vec<_>>(),
            "in_two_classes": two.collect::<Vec<_>>(),
            "end_too_early": names(&self.truncated),
            "other_files": names(&self.others),
            "empty_folders": self.empty,
        });
        Ok(output::write_whole(path, &format!("{text:#}\n"))?)
    }
}

fn name(path: &Path) -> String {
    path.display().to_string()
}

fn shown(path: &Path) -> String {
    visible(&name(path))
}
