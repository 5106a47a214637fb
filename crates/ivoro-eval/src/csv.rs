//! Fields of CSV files.

use std::borrow::Cow;

/// A text as a field: quoted where it must be, and with a ' before signs at which a spreadsheet would take
/// it for a formula.
///
/// ```
/// use ivoro_eval::csv::quoted;
/// assert_eq!(quoted("iVoro-N"), "iVoro-N");
/// assert_eq!(quoted("a \"b\", c"), "\"a \"\"b\"\", c\"");
/// assert_eq!(quoted("=1+1"), "'=1+1");
/// ```
pub fn quoted(text: &str) -> Cow<'_, str> {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let field: Cow<'_, str> = if formula { format!("'{text}").into() } else { text.into() };
    if field.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\"")).into()
    } else {
        field
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn no_field_begins_a_formula() {
        for sign in ["=", "+", "-", "@", "\t", "\r"] {
            let field = quoted(&format!("{sign}cmd(\"x\")")).into_owned();
            assert_eq!(field, format!("\"'{sign}cmd(\"\"x\"\")\""));
        }
        assert_eq!(quoted("\r"), "\"'\r\"");
        assert_eq!(quoted("a=b"), "a=b");
        assert_eq!(quoted(""), "");
    }
}
