//! Photos that a verb was given: found, counted, and what was left out of them told.

use std::io::Read;
use std::path::{Path, PathBuf};

use anstream::eprintln;
use ivoro_vision::dataset::{Broken, Photos};
use ivoro_vision::photos::PhotoReport;

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

/// What became of photos, to be told.
pub(super) struct Tale {
    /// What was done with those that count: taught, answered.
    verb: &'static str,
    pub(super) report: PhotoReport,
}

impl Tale {
    /// Begins with what was found.
    pub(super) fn of(verb: &'static str, found: &mut Photos) -> Self {
        Self { verb, report: PhotoReport::of(found) }
    }

    /// The error where there is nothing to do anything with.
    pub(super) fn nothing(&self, paths: &[PathBuf]) -> Failure {
        let report = &self.report;
        let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        if report.duplicates.iter().any(|(_, of)| of.is_none()) {
            let text = format!("{}: nothing new, all photos were taught before", paths.join(", "));
            return Failure::Usage(text);
        }
        if !report.unread.is_empty()
            && report.unread.iter().all(|(_, it)| it.kind == "without a class")
        {
            let text = "no class is known: put the photos into a folder named after it, or name it with --class";
            return Failure::Usage(format!("{}: {text}", paths.join(", ")));
        }
        if let ([(_, one)], []) = (&report.unread[..], &report.others[..]) {
            return Failure::Usage(one.why.clone());
        }
        let all = counted(report.unread.len() + report.others.len(), "file", "files");
        let kinds = report.kinds();
        let kinds = if kinds.is_empty() { kinds } else { format!(": {kinds}") };
        Failure::Usage(format!(
            "{}: {all}, none is a photo that this program reads{kinds}",
            paths.join(", ")
        ))
    }

    /// Says how many photos were taken and left out, and writes the list that was asked for.
    pub(super) fn tell(&self, arguments: &PhotoArguments) -> Result<(), Failure> {
        self.say(arguments);
        let Some(path) = &arguments.left_out else { return Ok(()) };
        let text = self.report.to_json(self.verb);
        Ok(output::write_whole(path, &format!("{text:#}\n"))?)
    }

    /// Says on standard error how many photos were taken and left out.
    pub(super) fn say(&self, arguments: &PhotoArguments) {
        let report = &self.report;
        if arguments.verbose {
            self.list();
        }
        for (one, other) in &report.contradictions {
            eprintln!(
                "note: {} and {} are the same photo, in two classes",
                shown(one),
                shown(other)
            );
        }
        let count = counted(report.done, "photo", "photos");
        let mut notes = vec![format!("{} {count}", self.verb)];
        if !report.unread.is_empty() {
            notes.push(format!("skipped {} ({})", report.unread.len(), report.kinds()));
        }
        if !report.duplicates.is_empty() {
            let count = report.duplicates.len();
            let before = report.duplicates.iter().filter(|(_, of)| of.is_none()).count();
            let before = if before > 0 {
                format!(", {before} of them taught before")
            } else {
                String::new()
            };
            notes.push(format!("left out {}{before}", counted(count, "duplicate", "duplicates")));
        }
        if !report.truncated.is_empty() {
            notes.push(format!("{} of them end too early", report.truncated.len()));
        }
        if !report.others.is_empty() {
            notes.push(format!(
                "passed over {}",
                counted(report.others.len(), "other file", "other files")
            ));
        }
        let more = if report.unread.is_empty() && report.duplicates.is_empty() || arguments.verbose
        {
            ""
        } else {
            "; -v lists them"
        };
        eprintln!("{}{more}", notes.join(", "));
        if !report.empty.is_empty() {
            let names: Vec<String> = report.empty.iter().map(|name| visible(name)).collect();
            eprintln!("note: no photo in {}", names.join(", "));
        }
    }

    fn list(&self) {
        let report = &self.report;
        report.unread.iter().for_each(|(_, unread)| eprintln!("skipped: {}", visible(&unread.why)));
        for (path, of) in &report.duplicates {
            let of = of.as_deref().map_or("a photo taught before".to_owned(), shown);
            eprintln!("duplicate: {} has the pixels of {of}", shown(path));
        }
        report.truncated.iter().for_each(|path| eprintln!("ends too early: {}", shown(path)));
        report.others.iter().for_each(|path| eprintln!("passed over: {}", shown(path)));
    }
}

fn shown(path: &Path) -> String {
    visible(&path.display().to_string())
}
