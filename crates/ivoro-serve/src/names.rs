//! Names of models and classes: neither is ever a path, and neither brings control characters.

use std::fmt;

use crate::problem::Problem;

/// The ending of a model file.
pub(crate) const ENDING: &str = "ivoro";
/// Letters of the name of a model.
const LONGEST: usize = 64;

/// The name of a served model: letters, digits, `-`, `_` and `.`, which is never the first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ModelName(String);

impl ModelName {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let fine = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let is_name = (1..=LONGEST).contains(&text.len())
            && text.chars().all(fine)
            && !text.starts_with(['.', '-'])
            && !text.ends_with('.');
        is_name.then(|| Self(text.to_owned()))
    }

    /// The name of a file's model, whatever the file is called.
    pub(crate) fn of_file(stem: &str) -> Self {
        let fine = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
        let name: String = stem.chars().map(fine).take(LONGEST).collect();
        let name = name.trim_start_matches(['.', '-']).trim_end_matches('.');
        Self(if name.is_empty() { "model".to_owned() } else { name.to_owned() })
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Refuses a name that no class can have here.
pub(crate) fn check_class(name: &str, most: usize) -> Result<(), Problem> {
    if name.is_empty() || name.len() > most {
        let found = name.len();
        let text = format!("the name of a class has 1 to {most} bytes, found {found}");
        return Err(Problem::unprocessable(text));
    }
    if name.chars().any(char::is_control) {
        return Err(Problem::unprocessable("the name of a class has no control characters"));
    }
    Ok(())
}

/// A text that can stand in a line of a log: no control character, not too long.
pub(crate) fn visible(text: &str) -> String {
    text.chars().take(200).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_name_is_no_path() {
        for bad in
            ["", ".", "..", "a/b", "a\\b", "/etc/passwd", "-x", ".hidden", "a\0", "ü", "a.", "C:"]
        {
            assert!(ModelName::parse(bad).is_none(), "{bad}");
        }
        for good in ["pets", "pets-2.v1", "A_b"] {
            assert_eq!(ModelName::parse(good).unwrap().as_str(), good);
        }
        assert_eq!(ModelName::of_file("Meine Vögel").as_str(), "Meine-V-gel");
        assert_eq!(ModelName::of_file("...").as_str(), "model");
    }

    #[test]
    fn a_class_name_has_no_control_characters() {
        assert!(check_class("a\u{7}", 256).is_err() && check_class("", 256).is_err());
        assert!(check_class("Käfer / 甲虫", 256).is_ok());
        assert_eq!(visible("a\nb\u{1b}[31m"), "a\u{fffd}b\u{fffd}[31m");
    }
}
