//! The record of a comparison on its way to a file: each finished method is saved at once, and those
//! of an earlier, perhaps interrupted, run are not run again.

use std::path::{Path, PathBuf};

use ivoro::record::{MethodRecord, RunRecord};
use ivoro_web::is_whole;

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
        let taken = same(&method);
        if taken {
            self.record.methods.push(method);
        } else {
            anstream::eprintln!("note: {name} was trained in another way; it is trained again");
        }
        taken
    }

    /// Adds a finished method and saves. What was not asked for this time stays in the file.
    pub(super) fn push(&mut self, method: MethodRecord) -> Result<(), Failure> {
        self.record.methods.push(method);
        let Some(path) = &self.path else { return Ok(()) };
        Ok(output::write_whole(path, &(serde_json::to_string(&self.whole())? + "\n"))?)
    }
}

fn finished(path: &Path, wanted: &RunRecord) -> Result<Vec<MethodRecord>, Failure> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = fs_err::read_to_string(path)?;
    let read: Result<RunRecord, _> = serde_json::from_str(&text);
    let why = match &read {
        Ok(_) => "was of other data, options or another version".to_owned(),
        Err(error) => format!("can't be read ({error})"),
    };
    let found = read.ok().map(RunRecord::with_revisions);
    let same = |found: &RunRecord| RunRecord { methods: Vec::new(), ..found.clone() } == *wanted;
    if let Some(mut found) = found.filter(same) {
        // one that lost a number is run again
        found.methods.retain(|method| is_whole(method, wanted.phases.len()));
        anstream::eprintln!(
            "note: {} holds {} finished methods; they are not run again",
            path.display(),
            found.methods.len()
        );
        return Ok(found.methods);
    }
    let before = |number: usize| match number {
        1 => path.with_extension("json.before"),
        _ => path.with_extension(format!("json.before-{number}")),
    };
    // nothing that was put aside earlier is written over
    let free = (1..=MOST_ASIDE).map(before).find(|aside| !aside.exists());
    let aside = free.ok_or_else(|| {
        Failure::Usage(format!("{}: {MOST_ASIDE} others were put aside here", path.display()))
    })?;
    fs_err::rename(path, &aside)?;
    anstream::eprintln!("note: {} {why}; it is now {}", path.display(), aside.display());
    Ok(Vec::new())
}
