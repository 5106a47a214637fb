//! Why a photo was left out.

use std::fmt;
use std::path::Path;

use crate::error::Error;

/// Why a photo was left out: a word to count by, and a sentence that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unread {
    /// `HEIC`, `truncated`, `unreadable`: photos are counted by it.
    pub kind: &'static str,
    /// A sentence with the name of the photo.
    pub why: String,
}

impl Unread {
    pub(super) fn new(kind: &'static str, path: &Path, what: &str) -> Self {
        Self { kind, why: format!("{}: {what}", path.display()) }
    }
}

impl From<&Error> for Unread {
    fn from(error: &Error) -> Self {
        let kind = match error {
            Error::TruncatedImage { .. } => "truncated",
            Error::OtherFormat { found, .. } => found,
            Error::NoFile { .. } => "no file",
            Error::Missing { .. } => "missing",
            Error::NoClass { .. } => "without a class",
            Error::TooLarge { .. } => "too large",
            _ => "unreadable",
        };
        Self { kind, why: error.to_string() }
    }
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}
