//! What a report is made of: records, scenes and embeddings, and what could not be read.

use std::collections::BTreeMap;

use ivoro_eval::picture::{self, Embedding, Scene};
use ivoro_eval::plan::Plan;
use ivoro_eval::record::{self, MethodRecord, ReadError, RunRecord};

/// A file and what is wrong with it.
#[derive(Debug)]
pub struct Problem {
    /// The file, as it was named.
    pub file: String,
    /// What is wrong.
    pub error: ReadError,
}

/// Something read, and where it stood.
#[derive(Clone, Debug)]
pub struct Found<T> {
    /// The file, as it was named.
    pub file: String,
    /// What it holds.
    pub content: T,
}

/// Everything that a report is made of.
#[derive(Debug, Default)]
pub struct Inputs {
    /// Results of runs.
    pub records: Vec<Found<RunRecord>>,
    /// Diagrams in the plane.
    pub scenes: Vec<Found<Scene>>,
    /// Features brought to the plane.
    pub embeddings: Vec<Found<Embedding>>,
    /// What jobs were to run.
    pub plans: Vec<Found<Plan>>,
    /// Files that say a cell is finished.
    pub completions: Vec<String>,
    /// Files that are not in the report.
    pub problems: Vec<Problem>,
    /// The revision that each baseline has now; results of an earlier one are marked.
    pub revisions: BTreeMap<String, u64>,
}

/// What a file holds, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// `run.json`, `run-ORDER.json`.
    Record,
    /// `NAME.scene.json`.
    Scene,
    /// `NAME.tsne.json`.
    Embedding,
    /// `grid.json`.
    Plan,
    /// `cell.json`.
    Completion,
}

impl FileKind {
    /// By the name of a file, with or without `.gz` at its end; `None` for other files.
    pub fn of(name: &str) -> Option<Self> {
        let plain = name.strip_suffix(".gz").unwrap_or(name);
        let base = plain.rsplit(['/', '\\']).next().unwrap_or(plain);
        let stem = base.strip_suffix(".json")?;
        match stem.rsplit_once('.') {
            Some((_, "scene")) => Some(Self::Scene),
            Some((_, "tsne")) => Some(Self::Embedding),
            _ if stem == "grid" => Some(Self::Plan),
            _ if stem == "cell" => Some(Self::Completion),
            _ if stem == "run" || stem.starts_with("run-") => Some(Self::Record),
            _ => None,
        }
    }
}

impl Inputs {
    /// Whether a baseline has changed since it was trained.
    pub fn is_outdated(&self, method: &MethodRecord) -> bool {
        method.is_outdated(&self.revisions)
    }

    /// Takes in one file. What can't be read becomes a problem that the report names.
    pub fn add(&mut self, file: &str, bytes: &[u8]) {
        let Some(kind) = FileKind::of(file) else { return };
        if let Err(error) = self.try_add(kind, file, bytes) {
            self.problems.push(Problem { file: file.to_owned(), error });
        }
    }

    /// Tells of a file that could not even be opened.
    pub fn unread(&mut self, file: &str, error: std::io::Error) {
        self.problems.push(Problem { file: file.to_owned(), error: ReadError::Io(error) });
    }

    fn try_add(&mut self, kind: FileKind, file: &str, bytes: &[u8]) -> Result<(), ReadError> {
        let name = file.to_owned();
        match kind {
            FileKind::Record => {
                let read = record::read(bytes)?;
                let problem = |error| Problem { file: name.clone(), error };
                self.problems.extend(read.unread.into_iter().map(problem));
                let found = |content| Found { file: name.clone(), content };
                self.records.extend(read.records.into_iter().map(found));
            }
            FileKind::Scene => {
                let content = record::read_versioned(bytes, picture::VERSION)?;
                self.scenes.push(Found { file: name, content });
            }
            FileKind::Embedding => {
                let content = record::read_versioned(bytes, picture::VERSION)?;
                self.embeddings.push(Found { file: name, content });
            }
            FileKind::Plan => {
                let content = record::read_versioned(bytes, Plan::VERSION)?;
                self.plans.push(Found { file: name, content });
            }
            FileKind::Completion => {
                record::read_json(bytes)?;
                self.completions.push(name);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_their_names() {
        let kind = FileKind::of;
        assert_eq!(kind("runs/a/run.json"), Some(FileKind::Record));
        assert_eq!(kind("runs/a/run-numpy-1993.json.gz"), Some(FileKind::Record));
        assert_eq!(kind("mnist.scene.json"), Some(FileKind::Scene));
        assert_eq!(kind("mnist.tsne.json.gz"), Some(FileKind::Embedding));
        assert_eq!(kind("runs/grid.json"), Some(FileKind::Plan));
        assert_eq!(kind("runs/a/cell.json"), Some(FileKind::Completion));
        assert_eq!(kind("settings.json"), None);
        assert_eq!(kind("run.json.zst"), None);
    }

    #[test]
    fn a_damaged_archive_is_named() {
        let mut inputs = Inputs::default();
        inputs.add("run.json.gz", &[0x1f, 0x8b, 8, 0, 0]);
        inputs.add("run-a.json", b"{\"version\": 7}");
        inputs.add("run-b.json", b"[1, 2");
        inputs.add("run-c.json", b"{}");
        let texts: Vec<String> = inputs.problems.iter().map(|p| p.error.to_string()).collect();
        assert!(texts[0].contains("gzip"), "{texts:?}");
        assert_eq!(texts[1], "format version 7, this program reads version 1");
        assert!(texts[2].contains("EOF"), "{texts:?}");
        assert_eq!(texts[3], "format version none, this program reads version 1");
        assert!(inputs.records.is_empty());
    }
}
