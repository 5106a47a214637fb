//! The guide's tables of settings are those of the table in the code.

use std::fmt::Write as _;

use ivoro::head::settings::{SettingInfo, TABLE};

/// The rows of the guide for some settings.
fn rows(settings: &[&SettingInfo], candidates: bool) -> String {
    let mut text = String::new();
    for info in settings {
        let letters = if info.letters.is_empty() { "all" } else { info.letters };
        let (name, meaning, range) = (info.name, info.meaning, info.range);
        let _ =
            write!(text, "| `--{name}` | {letters} | {meaning} | {range} | {} |", info.default());
        if candidates {
            let _ = write!(text, " {} |", info.candidates.unwrap_or_default());
        }
        text.push('\n');
    }
    text
}

#[test]
fn the_guide_has_a_row_for_each_setting() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/settings.md");
    let guide = std::fs::read_to_string(path).unwrap();
    let (chosen, fixed): (Vec<_>, Vec<_>) = TABLE.iter().partition(|it| it.candidates.is_some());
    let head = "| Setting | Letters | Meaning | Range | Default |";
    let tables = [
        format!("{head} Candidates |\n|---|---|---|---|---|---|\n{}", rows(&chosen, true)),
        format!("{head}\n|---|---|---|---|---|\n{}", rows(&fixed, false)),
    ];
    for table in tables {
        assert!(guide.contains(&table), "docs/guide/settings.md should contain\n\n{table}");
    }
}
