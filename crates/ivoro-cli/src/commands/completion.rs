//! Which cells of a grid are finished, by a manifest of what each has read and left.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anstream::eprintln;
use ivoro_eval::record;
use ivoro_vision::network::fingerprint;
use serde::{Deserialize, Serialize};

use super::baselines;
use crate::args::{RunArguments, TuneOn};
use crate::failure::Failure;
use crate::grid::Cell;
use crate::output;

/// The file beside a record that says which command made it.
const MANIFEST: &str = "cell.json";
/// Manifests of versions up to this one hold the same.
const VERSION: u32 = 4;

/// What the command of a cell has read and left.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CellManifest {
    version: u32,
    arguments: Vec<String>,
    /// What the record held at the end; variants that the features do not allow are not in it.
    methods: Vec<String>,
    /// A hash of names, sizes and times of what was read.
    #[serde(default)]
    inputs: Option<String>,
    /// Tables and pictures beside the record.
    #[serde(default)]
    files: Vec<String>,
}

impl CellManifest {
    /// That of a cell whose run has come to its end. What was there before and is not made again is
    /// named.
    pub(super) fn new(cell: &Cell, inputs: Option<String>, folder: &Path) -> Result<Self, Failure> {
        let (methods, files) = (recorded(folder).unwrap_or_default(), made(folder)?);
        let before = Self::read(folder).map_or(Vec::new(), |manifest| manifest.files);
        for lost in before.iter().filter(|file| !files.contains(file)) {
            eprintln!(
                "note: {} is gone and is made in training alone; remove run.json there to train again",
                folder.join(lost).display()
            );
        }
        let arguments = cell.words.clone();
        Ok(Self { version: VERSION, arguments, methods, inputs, files })
    }

    fn read(folder: &Path) -> Option<Self> {
        serde_json::from_str(&std::fs::read_to_string(folder.join(MANIFEST)).ok()?).ok()
    }

    pub(super) fn write(&self, folder: &Path) -> Result<(), Failure> {
        Ok(output::write_whole(&folder.join(MANIFEST), &(serde_json::to_string(self)? + "\n"))?)
    }
}

/// Whether the same command came to its end here, has read what is there now, and has all that it
/// left: then nothing is to be done. Where something has changed the run itself sees what to do.
pub(super) fn is_finished(out: &Path, cell: &Cell, inputs: Option<&str>) -> bool {
    let folder = out.join(&cell.folder);
    let Some(manifest) = CellManifest::read(&folder).filter(|known| known.version <= VERSION)
    else {
        return false;
    };
    // the record is read last, for it is large
    let holds_all = || {
        let held = recorded(&folder).unwrap_or_default();
        manifest.methods.iter().all(|method| held.contains(method))
    };
    same_words(&manifest.arguments, &cell.words)
        && !manifest.methods.is_empty()
        && manifest.inputs.as_deref().is_none_or(|before| Some(before) == inputs)
        && manifest.files.iter().all(|file| {
            let path = folder.join(file);
            path.exists() || folder.join(format!("{file}.gz")).exists()
        })
        && holds_all()
}

/// Whether two commands are the same; manifests of earlier versions call --tune-on --judge.
fn same_words(before: &[String], now: &[String]) -> bool {
    let present = |word: &String| match word.strip_prefix("--judge") {
        Some(value) if value.is_empty() || value.starts_with('=') => format!("--tune-on{value}"),
        _ => word.clone(),
    };
    before.iter().map(present).eq(now.iter().map(present))
}

/// The methods in the record of a folder that went through all phases and are as they are now.
fn recorded(folder: &Path) -> Option<Vec<String>> {
    let bytes = ["run.json", "run.json.gz"]
        .into_iter()
        .find_map(|name| std::fs::read(folder.join(name)).ok())?;
    let read = record::read(&bytes).ok()?;
    let record = read.records.first()?;
    let revisions = baselines::revisions();
    let whole = record.methods.iter().filter(|method| method.is_whole(record.phases.len()));
    let present = whole.filter(|method| !method.is_outdated(&revisions));
    Some(present.map(|method| method.name.clone()).collect())
}

/// Names of the files that a run has left in a folder.
fn made(folder: &Path) -> Result<Vec<String>, Failure> {
    let mut names = Vec::new();
    for entry in fs_err::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if [".csv", ".scene.json", ".tsne.json"].iter().any(|end| name.ends_with(end)) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// The files besides the data that a run reads.
pub(super) fn named_files(arguments: &RunArguments) -> impl Iterator<Item = &Path> {
    let pipeline = &arguments.pipeline;
    let lists = arguments.order.iter().map(Path::new).filter(|order| order.exists());
    let tuned_on = match &arguments.tune_on {
        Some(TuneOn::File(path)) => Some(path),
        _ => None,
    };
    let labels = &arguments.split.input.labels;
    let named =
        pipeline.backbone.iter().chain(&pipeline.training.recipe).chain(tuned_on).chain(labels);
    named.map(PathBuf::as_path).chain(lists)
}

/// All that a run reads.
pub(super) fn read_by(arguments: &RunArguments) -> impl Iterator<Item = &Path> {
    arguments.features.iter().map(PathBuf::as_path).chain(named_files(arguments))
}

/// Names, sizes and times of files, and of all files in folders but hidden ones and those that are
/// written, in one hash.
pub(super) fn fingerprint_of(paths: &[&Path], written: &[PathBuf]) -> String {
    // each folder once, wherever links lead
    let mut seen: HashSet<PathBuf> = written.iter().cloned().collect();
    let mut left: Vec<PathBuf> = paths.iter().map(|path| path.to_path_buf()).collect();
    // names of classes may stand beside an archive
    left.extend(paths.iter().map(|path| path.with_extension("classes.txt")));
    let mut lines = Vec::new();
    while let Some(path) = left.pop() {
        let Ok(about) = std::fs::metadata(&path) else { continue };
        if about.is_dir() {
            if path.canonicalize().is_ok_and(|real| seen.insert(real)) {
                let inside = std::fs::read_dir(&path).into_iter().flatten().flatten();
                let shown =
                    inside.filter(|one| !one.file_name().to_string_lossy().starts_with('.'));
                left.extend(shown.map(|one| one.path()));
            }
            continue;
        }
        let since = about.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        lines.push(format!("{} {} {since:?}", path.display(), about.len()));
    }
    lines.sort();
    fingerprint(lines.join("\n").as_bytes())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_flag_of_an_earlier_version_is_the_same_command() {
        let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        let now = words(&["run", "--tune-on", "--tune-on=a.features"]);
        assert!(same_words(&words(&["run", "--judge", "--judge=a.features"]), &now));
        assert!(!same_words(&words(&["run", "--judge", "--judged"]), &now));
    }

    #[test]
    fn a_fingerprint_sees_what_is_read_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(path("class/runs")).unwrap();
        std::fs::write(path("class/1.png"), "a picture").unwrap();
        // every one of them doubles the ways that lead round
        for name in ["a", "b", "c", "d"] {
            std::os::unix::fs::symlink(".", path(name)).unwrap();
        }
        let written = [path("class/runs").canonicalize().unwrap()];
        let present = || fingerprint_of(&[folder.path()], &written);
        let first = present();
        std::fs::write(path("class/runs/run.json"), "{}").unwrap();
        std::fs::write(path("class/.hidden"), "").unwrap();
        assert_eq!(present(), first);
        std::fs::write(path("class/1.png"), "another picture").unwrap();
        assert_ne!(present(), first);
    }
}
