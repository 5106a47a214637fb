//! Which annotation taught what: Label Studio names an annotation when it is changed or deleted, and brings neither
//! its old class nor, when it is deleted, its image. So receipts of its lessons are kept, in a file beside the model.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::held::hold;
use crate::hosted::Hosted;
use crate::keys::beside;
use crate::names::ModelName;
use crate::problem::Problem;

/// The ending of the file.
pub(crate) const ENDING: &str = "annotations";
/// A line is not longer.
const LONGEST: u64 = 64 << 20;

/// An annotation: of a project, with its number.
pub(crate) type Id = (u64, u64);

/// A line of the file: the last one of an annotation counts.
#[derive(Serialize, Deserialize)]
struct Line {
    project: u64,
    annotation: u64,
    /// None once it is taken back.
    receipt: Option<String>,
}

/// Where a line lies in the file.
#[derive(Clone, Copy)]
struct Place {
    from: u64,
    length: u64,
}

/// The annotations of a model.
pub(crate) struct Ledger {
    file: fs_err::File,
    /// Bytes of whole lines.
    length: u64,
    places: HashMap<Id, Place>,
}

/// The annotations of all models, each opened with its first event.
#[derive(Default)]
pub(crate) struct Ledgers(
    std::sync::Mutex<HashMap<ModelName, Arc<tokio::sync::Mutex<Option<Ledger>>>>>,
);

impl Ledgers {
    /// The annotations of a model. Whoever holds them changes them alone.
    pub(crate) fn of(&self, hosted: &Hosted) -> Arc<tokio::sync::Mutex<Option<Ledger>>> {
        let mut ledgers = hold(&self.0);
        Arc::clone(ledgers.entry(hosted.name.clone()).or_default())
    }
}

impl Ledger {
    /// The file beside a model.
    pub(crate) fn open(hosted: &Hosted) -> Result<Self, Problem> {
        Self::read(beside(&hosted.path, ENDING)).map_err(unkept)
    }

    fn read(path: PathBuf) -> std::io::Result<Self> {
        let options = fs_err::OpenOptions::new().create(true).read(true).append(true).open(path)?;
        let mut ledger = Self { file: options, length: 0, places: HashMap::new() };
        let mut reader = BufReader::new(ledger.file.try_clone()?);
        let mut line = Vec::new();
        loop {
            line.clear();
            let length = reader.by_ref().take(LONGEST).read_until(b'\n', &mut line)? as u64;
            // a crash cuts the last line off: who sent it was not answered
            if line.last() != Some(&b'\n') {
                break;
            }
            let read: Line = serde_json::from_slice(&line)?;
            ledger.note((read.project, read.annotation), read.receipt.is_some(), length);
        }
        ledger.file.set_len(ledger.length)?;
        Ok(ledger)
    }

    fn note(&mut self, id: Id, is_taught: bool, length: u64) {
        if is_taught {
            self.places.insert(id, Place { from: self.length, length });
        } else {
            self.places.remove(&id);
        }
        self.length += length;
    }

    /// The receipt of an annotation's lesson.
    pub(crate) fn receipt(&mut self, id: Id) -> Result<Option<String>, Problem> {
        let Some(place) = self.places.get(&id).copied() else { return Ok(None) };
        self.line_at(place).map(|line| line.receipt).map_err(unkept)
    }

    fn line_at(&mut self, place: Place) -> std::io::Result<Line> {
        let mut line = Vec::new();
        self.file.seek(SeekFrom::Start(place.from))?;
        Read::by_ref(&mut self.file).take(place.length).read_to_end(&mut line)?;
        Ok(serde_json::from_slice(&line)?)
    }

    /// Keeps the receipt of an annotation's lesson, or that there is none any more.
    pub(crate) fn keep(&mut self, id: Id, receipt: Option<String>) -> Result<(), Problem> {
        let is_taught = receipt.is_some();
        let line = Line { project: id.0, annotation: id.1, receipt };
        let mut text = serde_json::to_vec(&line).map_err(|error| unkept(error.into()))?;
        text.push(b'\n');
        let written = self.file.write_all(&text).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // half a line would make the next one unreadable
            let _ = self.file.set_len(self.length);
            return Err(unkept(error));
        }
        self.note(id, is_taught, text.len() as u64);
        Ok(())
    }
}

fn unkept(error: std::io::Error) -> Problem {
    ivoro::Error::from(error).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_an_annotation_counts_and_a_cut_one_never_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.ivoro.annotations");
        let mut ledger = Ledger::read(path.clone()).unwrap();
        ledger.keep((1, 7), Some("r1.a".to_owned())).unwrap();
        ledger.keep((2, 7), Some("r1.b".to_owned())).unwrap();
        ledger.keep((1, 7), Some("r1.c".to_owned())).unwrap();
        ledger.keep((2, 7), None).unwrap();
        drop(ledger);
        let mut text = std::fs::read(&path).unwrap();
        text.extend(b"{\"project\":1,\"ann");
        std::fs::write(&path, text).unwrap();
        let mut ledger = Ledger::read(path.clone()).unwrap();
        assert_eq!(ledger.receipt((1, 7)).unwrap().unwrap(), "r1.c");
        assert_eq!(ledger.receipt((2, 7)).unwrap(), None);
        ledger.keep((3, 1), Some("r1.d".to_owned())).unwrap();
        let mut ledger = Ledger::read(path).unwrap();
        assert_eq!(ledger.receipt((3, 1)).unwrap().unwrap(), "r1.d");
    }
}
