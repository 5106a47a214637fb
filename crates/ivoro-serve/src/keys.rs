//! Repeated requests count once: what was answered to each `Idempotency-Key`, and which receipts were used.
//!
//! The file beside the model has a line for each commit that answered such keys, written before the model is. A
//! line says from which hash of the model file to which the commit led, so that after a crash it is known whether it
//! happened.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ivoro_io::atomic::write_atomically;
use serde::{Deserialize, Serialize};

use crate::problem::Problem;
use crate::receipts::ReceiptId;

/// How long an answer is kept.
const FOR: u64 = 24 * 60 * 60;
/// Answers kept.
const MOST: usize = 10_000;
/// Bytes of an answer; of a longer one its receipts are left out.
pub(crate) const MOST_BODY: usize = 1 << 20;
/// Bytes of all answers.
const MOST_BYTES: usize = 64 << 20;
/// Used receipts that are remembered.
const MOST_SPENT: usize = 1_000_000;
/// A file that is longer is none of ours.
const MOST_FILE: u64 = 512 << 20;
/// Characters of a key.
const LONGEST: usize = 128;

/// The key of a request, and a hash of all that it asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) text: String,
    pub(crate) request: String,
}

impl Key {
    pub(crate) fn check(text: &str) -> Result<(), Problem> {
        let fine = text.bytes().all(|byte| byte.is_ascii_graphic());
        if text.is_empty() || text.len() > LONGEST || !fine {
            let detail =
                format!("an Idempotency-Key has 1 to {LONGEST} visible characters of ASCII");
            return Err(Problem::bad(detail));
        }
        Ok(())
    }
}

/// What was answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Answered {
    key: String,
    request: String,
    time: u64,
    status: u16,
    body: String,
}

impl Answered {
    pub(crate) fn new(key: &Key, time: u64, status: u16, body: &str) -> Self {
        let Key { text, request } = key.clone();
        Self { key: text, request, time, status, body: body.to_owned() }
    }

    pub(crate) fn status(&self) -> u16 {
        self.status
    }

    pub(crate) fn body(&self) -> Arc<str> {
        self.body.as_str().into()
    }
}

/// A commit, as a line.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Line {
    before: String,
    after: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    keys: Vec<Answered>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    spent: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unspent: Vec<String>,
}

impl Line {
    fn says_something(&self) -> bool {
        !(self.keys.is_empty() && self.spent.is_empty() && self.unspent.is_empty())
    }
}

/// What one commit adds.
#[derive(Debug, Default)]
pub(crate) struct Addition {
    pub(crate) keys: Vec<Answered>,
    pub(crate) spent: Vec<ReceiptId>,
    pub(crate) unspent: Vec<ReceiptId>,
}

/// The answers and used receipts of a model.
pub(crate) struct Keys {
    path: PathBuf,
    file: Option<fs_err::File>,
    /// Bytes of the file that count.
    length: u64,
    /// Whether the last line says something and no other follows.
    open: bool,
    /// Whether the file is to be written anew.
    stale: bool,
    answers: HashMap<String, Answered>,
    order: VecDeque<String>,
    bytes: usize,
    /// Keys of a commit of which nobody knows whether it happened.
    doubtful: HashSet<String>,
    spent: HashSet<ReceiptId>,
}

/// What is known of a key.
pub(crate) enum Known {
    Nothing,
    Answer(Answered),
}

impl Keys {
    /// Of a model that is not changed.
    pub(crate) fn none(path: PathBuf) -> Self {
        Self {
            path,
            file: None,
            length: 0,
            open: false,
            stale: false,
            answers: HashMap::new(),
            order: VecDeque::new(),
            bytes: 0,
            doubtful: HashSet::new(),
            spent: HashSet::new(),
        }
    }

    /// The file beside a model that has this hash now.
    pub(crate) fn open(path: PathBuf, hash: &str, now: u64) -> std::io::Result<Self> {
        let mut keys = Self::none(path);
        if keys.path.exists() {
            keys.read(hash)?;
            keys.expire(now);
            keys.rewrite(hash).map_err(std::io::Error::other)?;
        }
        Ok(keys)
    }

    fn read(&mut self, hash: &str) -> std::io::Result<()> {
        let file = fs_err::File::open(&self.path)?;
        if file.metadata()?.len() > MOST_FILE {
            return Err(std::io::Error::other(format!("{}: too long", self.path.display())));
        }
        let mut lines: Vec<Line> = Vec::new();
        let mut reader = BufReader::new(file);
        let mut line = Vec::new();
        while reader.by_ref().take(MOST_FILE).read_until(b'\n', &mut line)? > 0 {
            // a crash cuts the last line off: its commit never began
            if line.last() != Some(&b'\n') {
                break;
            }
            match serde_json::from_slice(&line) {
                Ok(read) => lines.push(read),
                Err(error) => {
                    let what =
                        format!("{}: line {}: {error}", self.path.display(), lines.len() + 1);
                    return Err(std::io::Error::other(what));
                }
            }
            line.clear();
        }
        let last = lines.pop();
        lines.into_iter().for_each(|line| self.take(line));
        let Some(last) = last else { return Ok(()) };
        if last.after == hash {
            self.take(last);
        } else if last.before != hash {
            self.doubtful.extend(last.keys.iter().map(|answered| answered.key.clone()));
            self.spent.extend(last.spent.iter().filter_map(|text| id_of(text)));
        }
        Ok(())
    }

    fn take(&mut self, line: Line) {
        for answered in line.keys {
            self.keep(answered);
        }
        line.unspent.iter().filter_map(|text| id_of(text)).for_each(|id| {
            self.spent.remove(&id);
        });
        self.spent.extend(line.spent.iter().filter_map(|text| id_of(text)));
    }

    fn keep(&mut self, answered: Answered) {
        self.bytes += answered.body.len();
        self.order.push_back(answered.key.clone());
        if let Some(old) = self.answers.insert(answered.key.clone(), answered) {
            self.bytes -= old.body.len();
        }
    }

    fn expire(&mut self, now: u64) {
        while let Some(key) = self.order.front() {
            let old = self.answers.get(key).is_none_or(|it| it.time + FOR < now);
            if !old && self.answers.len() <= MOST && self.bytes <= MOST_BYTES {
                return;
            }
            if let Some(key) = self.order.pop_front()
                && let Some(gone) = self.answers.remove(&key)
            {
                self.bytes -= gone.body.len();
            }
        }
    }

    /// What was answered to a request with this key; another request with it is refused.
    pub(crate) fn known(&self, key: &Key) -> Result<Known, Problem> {
        if self.doubtful.contains(&key.text) {
            let detail = "the server was stopped while it did this, and then another program changed the model: \
                          whether it counted is not known; look at the model, and use another key";
            return Err(Problem::conflict("doubtful-key", detail));
        }
        match self.answers.get(&key.text) {
            None => Ok(Known::Nothing),
            Some(answered) if answered.request == key.request => {
                Ok(Known::Answer(answered.clone()))
            }
            Some(_) => {
                let detail = "this Idempotency-Key came with another request before";
                Err(Problem::new(
                    axum::http::StatusCode::UNPROCESSABLE_ENTITY,
                    "key-reused",
                    detail,
                ))
            }
        }
    }

    pub(crate) fn is_spent(&self, id: &ReceiptId) -> bool {
        self.spent.contains(id)
    }

    /// Writes down what a commit is about to answer; it counts once the model is written.
    pub(crate) fn prepare(
        &mut self,
        before: &str,
        after: &str,
        addition: &Addition,
    ) -> ivoro::Result<()> {
        if self.stale {
            self.rewrite(before)?;
        }
        let line = Line {
            before: before.to_owned(),
            after: after.to_owned(),
            keys: addition.keys.clone(),
            spent: addition.spent.iter().map(hex).collect(),
            unspent: addition.unspent.iter().map(hex).collect(),
        };
        if !line.says_something() && !self.open {
            return Ok(());
        }
        let mut text = serde_json::to_vec(&line).map_err(std::io::Error::from)?;
        text.push(b'\n');
        let written = self.append(&text);
        if written.is_err() {
            self.take_back();
        }
        written?;
        Ok(())
    }

    fn append(&mut self, text: &[u8]) -> std::io::Result<()> {
        if self.file.is_none() {
            let open = fs_err::OpenOptions::new().create(true).append(true).open(&self.path)?;
            self.file = Some(open);
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        file.write_all(text)?;
        file.sync_data()
    }

    /// The commit did not happen: neither did its line.
    pub(crate) fn take_back(&mut self) {
        let Some(file) = &mut self.file else { return };
        let cut = file.set_len(self.length).and_then(|()| file.seek(SeekFrom::End(0)));
        self.stale |= cut.is_err();
    }

    /// The commit happened.
    pub(crate) fn done(&mut self, hash: &str, addition: Addition, now: u64) {
        self.open =
            !(addition.keys.is_empty() && addition.spent.is_empty() && addition.unspent.is_empty());
        if let Some(file) = &self.file {
            self.length = file.metadata().map_or(self.length, |it| it.len());
        }
        addition.unspent.iter().for_each(|id| {
            self.spent.remove(id);
        });
        self.spent.extend(addition.spent);
        if self.spent.len() > MOST_SPENT {
            let gone: Vec<ReceiptId> = self.spent.iter().take(MOST_SPENT / 10).copied().collect();
            gone.iter().for_each(|id| {
                self.spent.remove(id);
            });
        }
        addition.keys.into_iter().for_each(|answered| self.keep(answered));
        self.expire(now);
        // written anew where most of it is old
        if self.length > 4 * (self.bytes as u64 + 40 * self.spent.len() as u64) + (1 << 20) {
            self.stale = self.rewrite(hash).is_err();
        }
    }

    /// Says that the last commit happened: after this another program may change the model.
    pub(crate) fn close(&mut self, hash: &str) {
        if self.open && self.prepare(hash, hash, &Addition::default()).is_ok() {
            self.open = false;
        }
    }

    fn rewrite(&mut self, hash: &str) -> ivoro::Result<()> {
        let keys = self.order.iter().filter_map(|key| self.answers.get(key)).cloned().collect();
        let (before, after) = (hash.to_owned(), hash.to_owned());
        let line = Line {
            before,
            after,
            keys,
            spent: self.spent.iter().map(hex).collect(),
            unspent: Vec::new(),
        };
        let mut text = Vec::new();
        for line in
            [line, Line { before: hash.to_owned(), after: hash.to_owned(), ..Line::default() }]
        {
            serde_json::to_writer(&mut text, &line).map_err(std::io::Error::from)?;
            text.push(b'\n');
        }
        self.file = None;
        write_atomically(&self.path, |file| Ok(file.write_all(&text)?))?;
        (self.length, self.open, self.stale) = (text.len() as u64, false, false);
        Ok(())
    }

    pub(crate) fn path_of(model: &Path) -> PathBuf {
        beside(model, "keys")
    }
}

/// A file beside a model: its name with another ending behind it.
pub(crate) fn beside(model: &Path, ending: &str) -> PathBuf {
    let mut name = model.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}

fn hex(id: &ReceiptId) -> String {
    let mut text = String::with_capacity(32);
    for byte in id {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn id_of(text: &str) -> Option<ReceiptId> {
    let mut id = [0; 16];
    if text.len() != 32 || !text.is_ascii() {
        return None;
    }
    for (at, byte) in id.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Key {
        Key { text: text.to_owned(), request: format!("request {text}") }
    }

    fn addition(text: &str, spent: u8) -> Addition {
        let keys = vec![Answered::new(&key(text), 100, 200, "{}")];
        Addition { keys, spent: vec![[spent; 16]], unspent: Vec::new() }
    }

    fn knows(keys: &Keys, text: &str) -> bool {
        matches!(keys.known(&key(text)), Ok(Known::Answer(_)))
    }

    #[test]
    fn a_commit_counts_once_the_model_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.ivoro.keys");
        let mut keys = Keys::open(path.clone(), "a", 100).unwrap();
        keys.prepare("a", "b", &addition("one", 1)).unwrap();
        keys.done("b", addition("one", 1), 100);
        keys.prepare("b", "c", &addition("two", 2)).unwrap();
        drop(keys);
        // the model was not written
        let keys = Keys::open(path.clone(), "b", 100).unwrap();
        assert!(knows(&keys, "one") && !knows(&keys, "two"));
        assert!(keys.is_spent(&[1; 16]) && !keys.is_spent(&[2; 16]));
        // it was, and the server stopped before it could say so
        let mut keys = Keys::open(path.clone(), "b", 100).unwrap();
        keys.prepare("b", "c", &addition("two", 2)).unwrap();
        drop(keys);
        let text = std::fs::read(&path).unwrap();
        let keys = Keys::open(path.clone(), "c", 100).unwrap();
        assert!(knows(&keys, "one") && knows(&keys, "two") && keys.is_spent(&[2; 16]));
        // another program came between
        std::fs::write(&path, text).unwrap();
        let keys = Keys::open(path.clone(), "z", 100).unwrap();
        assert!(knows(&keys, "one"));
        assert!(keys.known(&key("two")).err().unwrap().detail().contains("not known"));
    }

    #[test]
    fn a_key_is_for_one_request_and_for_a_day() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.ivoro.keys");
        let mut keys = Keys::open(path.clone(), "a", 100).unwrap();
        keys.prepare("a", "b", &addition("one", 1)).unwrap();
        keys.done("b", addition("one", 1), 100);
        let other = Key { request: "another".to_owned(), ..key("one") };
        assert!(keys.known(&other).is_err());
        keys.close("b");
        drop(keys);
        // another program changed the model after a clean end
        let keys = Keys::open(path.clone(), "z", 100).unwrap();
        assert!(knows(&keys, "one"));
        let keys = Keys::open(path, "z", 101 + FOR).unwrap();
        assert!(!knows(&keys, "one") && keys.is_spent(&[1; 16]));
    }

    #[test]
    fn a_line_that_is_cut_off_never_happened_and_a_failed_one_is_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.ivoro.keys");
        let mut keys = Keys::open(path.clone(), "a", 100).unwrap();
        keys.prepare("a", "b", &addition("one", 1)).unwrap();
        keys.take_back();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
        keys.prepare("a", "c", &addition("two", 2)).unwrap();
        keys.done("c", addition("two", 2), 100);
        drop(keys);
        let mut text = std::fs::read(&path).unwrap();
        text.extend(b"{\"before\":\"c\",\"af");
        std::fs::write(&path, text).unwrap();
        let keys = Keys::open(path, "c", 100).unwrap();
        assert!(knows(&keys, "two") && !knows(&keys, "one"));
    }
}
