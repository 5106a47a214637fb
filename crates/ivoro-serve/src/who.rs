//! Who taught and forgot what and when: names of tokens, beside the model.

use std::io::Write;
use std::path::PathBuf;

use ivoro_io::atomic::write_atomically;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Bytes of the file; the older half goes when it is longer.
const MOST: usize = 1 << 20;
/// Names of classes in an entry.
const NAMES: usize = 20;

/// One change and who made it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub(crate) struct WhoEntry {
    /// Seconds since 1970 began (UTC).
    pub(crate) time: u64,
    /// The name of the token.
    pub(crate) token: String,
    /// What was done.
    pub(crate) verb: String,
    /// The first classes that it was done to.
    pub(crate) classes: Vec<String>,
    /// Samples that came, went or changed their class.
    pub(crate) samples: u64,
    /// The hash of the model afterwards.
    pub(crate) hash: String,
}

/// The file with these entries.
pub(crate) struct Who {
    path: PathBuf,
}

impl Who {
    pub(crate) fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Adds entries. The changes are on disk already, so that a full disk loses nothing but these lines.
    pub(crate) fn add(&self, entries: Vec<WhoEntry>) -> std::io::Result<()> {
        let mut text = Vec::new();
        for mut entry in entries {
            entry.classes.truncate(NAMES);
            serde_json::to_writer(&mut text, &entry)?;
            text.push(b'\n');
        }
        let mut file = fs_err::OpenOptions::new().create(true).append(true).open(&self.path)?;
        file.write_all(&text)?;
        if file.metadata()?.len() > MOST as u64 {
            self.shorten().map_err(std::io::Error::other)?;
        }
        Ok(())
    }

    fn shorten(&self) -> ivoro::Result<()> {
        let text = fs_err::read(&self.path)?;
        let half = &text[text.len() / 2..];
        let from = half.iter().position(|&byte| byte == b'\n').map_or(half.len(), |at| at + 1);
        write_atomically(&self.path, |file| Ok(file.write_all(&half[from..])?))
    }

    /// Takes the name of a class out.
    pub(crate) fn strike(&self, class: &str) -> ivoro::Result<()> {
        let mut entries = self.entries()?;
        entries.iter_mut().for_each(|entry| entry.classes.retain(|name| name != class));
        write_atomically(&self.path, |file| {
            for entry in &entries {
                serde_json::to_writer(&mut *file, entry).map_err(std::io::Error::from)?;
                file.write_all(b"\n")?;
            }
            Ok(())
        })
    }

    /// All entries, oldest first; a line that is none is passed over.
    pub(crate) fn entries(&self) -> std::io::Result<Vec<WhoEntry>> {
        if !self.path.exists() {
            return Ok(Vec::new());
        }
        let text = fs_err::read(&self.path)?;
        Ok(text
            .split(|&byte| byte == b'\n')
            .filter_map(|it| serde_json::from_slice(it).ok())
            .collect())
    }
}
