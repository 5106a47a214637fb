//! How a check ends.

/// How a check ended that did not fail.
pub(crate) enum Outcome {
    /// It was checked.
    Passed,
    /// It can't be checked here, for this reason.
    Skipped(String),
}

/// What a command that ended well means.
pub(crate) fn passed(end: Option<()>) -> Option<Outcome> {
    end.map(|()| Outcome::Passed)
}

/// Passes where nothing was found; else prints all of it.
pub(crate) fn none_of(findings: &[String]) -> Option<Outcome> {
    for finding in findings {
        eprintln!("{finding}");
    }
    if findings.is_empty() {
        return Some(Outcome::Passed);
    }
    eprintln!("{} found", findings.len());
    None
}
