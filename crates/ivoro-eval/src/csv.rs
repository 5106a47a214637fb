//! Fields of CSV files.

use std::borrow::Cow;

/// A field, quoted where it must be.
///
/// ```
/// use ivoro_eval::csv::quoted;
/// assert_eq!(quoted("iVoro-N"), "iVoro-N");
/// assert_eq!(quoted("a \"b\", c"), "\"a \"\"b\"\", c\"");
/// ```
pub fn quoted(field: &str) -> Cow<'_, str> {
    if field.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\"")).into()
    } else {
        field.into()
    }
}
