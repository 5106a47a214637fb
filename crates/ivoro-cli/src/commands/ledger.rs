//! The record of a comparison on its way to a file: each finished method is saved at once, and those
//! of an earlier, perhaps interrupted, run are not run again.

use std::path::{Path, PathBuf};

use ivoro_eval::record::{self, MethodRecord, RecordFile, RunRecord};

use crate::failure::Failure;
use crate::output;

/// Records of other comparisons that are kept beside the present one.
const MOST_ASIDE: usize = 1000;

pub(super) struct Ledger {
    pub(super) record: RunRecord,
    /// Methods that the file held and that have not been asked for yet.
    earlier: Vec<MethodRecord>,
    path: Option<PathBuf>,
}

impl Ledger {
    /// Goes on with the file at `path`, if it holds the very same comparison; another one is put aside.
    pub(super) fn open(record: RunRecord, path: Option<PathBuf>) -> Result<Self, Failure> {
        let earlier = path.as_deref().map_or(Ok(Vec::new()), |path| finished(path, &record))?;
        Ok(Self { record, earlier, path })
    }

    /// All that the file holds.
    pub(super) fn whole(&self) -> RunRecord {
        let mut whole = self.record.clone();
        whole.methods.extend(self.earlier.iter().cloned());
        whole
    }

    /// Whether the method was finished earlier and is the `same`; then it is part of the record
    /// again. Another one is forgotten.
    pub(super) fn take_up(&mut self, name: &str, same: impl Fn(&MethodRecord) -> bool) -> bool {
        let Some(at) = self.earlier.iter().position(|method| method.name == name) else {
            return false;
        };
        let method = self.earlier.remove(at);
        let whole = method.is_whole(self.record.phases.len());
        let taken = whole && same(&method);
        if taken {
            self.record.methods.push(method);
        } else if !whole {
            anstream::eprintln!("note: {name} has lost a number; it is run again");
        } else {
            anstream::eprintln!("note: {name} was trained in another way; it is trained again");
        }
        taken
    }

    /// Adds a finished method and saves. What was not asked for this time stays in the file.
    pub(super) fn push(&mut self, method: MethodRecord) -> Result<(), Failure> {
        self.record.methods.push(method);
        let Some(path) = &self.path else { return Ok(()) };
        output::write_whole(path, &(serde_json::to_string(&self.whole())? + "\n"))?;
        // all that a compressed record held is in the new one
        let packed = packed(path);
        if packed.exists() {
            fs_err::remove_file(packed)?;
        }
        Ok(())
    }
}

/// The methods of the file, or of a compressed one in its place.
fn finished(path: &Path, wanted: &RunRecord) -> Result<Vec<MethodRecord>, Failure> {
    let Some(file) = [path.to_owned(), packed(path)].into_iter().find(|file| file.exists()) else {
        return Ok(Vec::new());
    };
    let mut read = record::read(&fs_err::read(&file)?)
        .unwrap_or_else(|error| RecordFile { unread: vec![error], ..RecordFile::default() });
    let found = read.records.pop();
    let why = match read.unread.first().filter(|_| found.is_none()) {
        Some(error) => format!("can't be read ({error})"),
        None => "was of other data, options or another version".to_owned(),
    };
    if let Some(found) = found.filter(|found| is_of(found, wanted)) {
        anstream::eprintln!(
            "note: {} holds {} finished methods; they are not run again",
            file.display(),
            found.methods.len()
        );
        return Ok(found.methods);
    }
    let aside = put_aside(&file)?;
    anstream::eprintln!("note: {} {why}; it is now {}", file.display(), aside.display());
    // pictures of the other comparison do not belong to this one
    for entry in fs_err::read_dir(path.parent().unwrap_or(path))? {
        let picture = entry?.path();
        let name = picture.to_string_lossy();
        if name.ends_with(".scene.json") || name.ends_with(".tsne.json") {
            put_aside(&picture)?;
        }
    }
    Ok(Vec::new())
}

/// The name of a compressed record.
fn packed(path: &Path) -> PathBuf {
    path.with_extension("json.gz")
}

/// Whether a record is of the very comparison that is wanted. Some options were not told by earlier
/// versions: where the record lacks them they are no difference.
fn is_of(found: &RunRecord, wanted: &RunRecord) -> bool {
    let mut wanted = wanted.clone();
    if found.options.layers.is_none() {
        wanted.options.layers = None;
    }
    if found.options.training.is_none() {
        wanted.options.training = None;
    }
    // settings of peers that the earlier version did not have: it ran none of them
    if let (Some(told), Some(asked)) = (&found.options.peers, &mut wanted.options.peers) {
        asked.retain(|name, _| told.contains_key(name));
    }
    RunRecord { methods: Vec::new(), ..found.clone() } == wanted
}

/// Gives a file another name; nothing that was put aside earlier is written over.
fn put_aside(path: &Path) -> Result<PathBuf, Failure> {
    let before = |number: usize| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match number {
            1 => path.with_file_name(format!("{name}.before")),
            _ => path.with_file_name(format!("{name}.before-{number}")),
        }
    };
    let free = (1..=MOST_ASIDE).map(before).find(|aside| !aside.exists());
    let aside = free.ok_or_else(|| {
        Failure::Usage(format!("{}: {MOST_ASIDE} others were put aside here", path.display()))
    })?;
    fs_err::rename(path, &aside)?;
    Ok(aside)
}
