//! Labels: what may stand in one, and how wide it is.

use std::sync::OnceLock;

use ttf_parser::Face;

/// The font of the figures: a subset of Noto Sans, see `data/OFL.txt`.
pub(crate) const FONT: &[u8] = include_bytes!("../../data/NotoSans-subset.ttf");
/// What the font calls itself.
pub(crate) const FAMILY: &str = "Noto Sans";
/// Size of labels.
pub(crate) const SIZE: f64 = 12.0;

fn face() -> Option<&'static Face<'static>> {
    static FACE: OnceLock<Option<Face<'static>>> = OnceLock::new();
    FACE.get_or_init(|| Face::parse(FONT, 0).ok()).as_ref()
}

/// Width of a text of this size. A letter that the font does not have counts as a full square.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    let Some(face) = face() else { return 0.6 * size * text.chars().count() as f64 };
    let unit = size / f64::from(face.units_per_em());
    let advance = |letter: char| {
        if letter == LEFT_TO_RIGHT {
            return 0.0;
        }
        let glyph = face.glyph_index(letter).and_then(|glyph| face.glyph_hor_advance(glyph));
        glyph.map_or(size, |advance| f64::from(advance) * unit)
    };
    text.chars().map(advance).sum()
}

/// Whether the font has every letter of a text.
pub(crate) fn is_covered(text: &str) -> bool {
    let has = |letter: char| face().is_some_and(|face| face.glyph_index(letter).is_some());
    // a figure is nearly all ASCII, which the font has
    text.chars().all(|letter| letter.is_ascii() || letter == LEFT_TO_RIGHT || has(letter))
}

/// An invisible letter that is written from left to right.
const LEFT_TO_RIGHT: char = '\u{200e}';

/// A name and what follows it: behind a name that is written from right to left numbers would turn
/// with it.
pub(crate) fn joined(name: &str, rest: &str) -> String {
    let name = clean(name);
    let turned = |c: char| matches!(c, '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefe}' | '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}');
    let mark = name.contains(turned).then_some(LEFT_TO_RIGHT);
    name.chars().chain(mark).chain(rest.chars()).collect()
}

/// A name as it may stand in a label: without control characters, which XML forbids, and without
/// marks that turn the direction of what follows.
pub(crate) fn clean(text: &str) -> String {
    let turns = |c: char| matches!(c, '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{061c}');
    let forbidden = |c: char| matches!(c, '\u{fffe}' | '\u{ffff}' | '\u{feff}');
    let kept = text.chars().map(|c| if c.is_whitespace() { ' ' } else { c });
    kept.filter(|&c| !c.is_control() && !turns(c) && !forbidden(c)).collect()
}

/// A clean label that is no wider than `most`, shortened with … where it must be.
pub(crate) fn fitted(text: &str, size: f64, most: f64) -> String {
    let text = clean(text);
    if width(&text, size) <= most {
        return text;
    }
    let mut kept = String::new();
    let mut used = width("…", size);
    for letter in text.chars() {
        used += width(letter.encode_utf8(&mut [0; 4]), size);
        if used > most {
            break;
        }
        kept.push(letter);
    }
    kept.push('…');
    kept
}

/// A text in lines no wider than `most`.
pub(crate) fn wrapped(text: &str, size: f64, most: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in clean(text).split(' ').filter(|word| !word.is_empty()) {
        let word = fitted(word, size, most);
        match lines.last_mut() {
            Some(line) if width(&format!("{line} {word}"), size) <= most => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

/// The same with lines of nearly one length: no word is left alone where there is room for two.
pub(crate) fn balanced(text: &str, size: f64, most: f64) -> Vec<String> {
    let widest = wrapped(text, size, most);
    let narrower = (1..12).map(|step| most * (1.0 - 0.04 * f64::from(step)));
    let fits = |lines: &Vec<String>| {
        lines.len() == widest.len() && !lines.iter().any(|line| line.contains('…'))
    };
    let last = narrower.map(|most| wrapped(text, size, most)).take_while(fits).last();
    last.unwrap_or(widest)
}

/// A number with so many digits behind the point; the font has no minus sign, so a dash stands
/// for it.
pub(crate) fn number(value: f64, digits: usize) -> String {
    let text = format!("{:.digits$}", value.abs());
    let zero = text.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    if value < 0.0 && !zero { format!("–{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_font_is_there_and_measures() {
        assert!(face().is_some());
        assert!(width("iiii", 12.0) < width("mmmm", 12.0));
        assert!((width("accuracy", 24.0) - 2.0 * width("accuracy", 12.0)).abs() < 1e-9);
        assert_eq!(width("漢", 12.0), 12.0);
        let graphic =
            (' '..='~').filter(|&c| face().is_some_and(|face| face.glyph_index(c).is_some()));
        assert_eq!(graphic.count(), 95);
        assert!(is_covered("PASS †: λ ± 0.5\n") && !is_covered("漢字") && !is_covered("שלום"));
    }

    #[test]
    fn what_turns_or_breaks_is_taken_out() {
        assert_eq!(clean("a\u{202e}b\0c\td\u{2067}"), "abc d");
        assert_eq!(clean("שלום <script>"), "שלום <script>");
    }

    #[test]
    fn labels_fit() {
        let long = "a class with a name that does not end";
        let short = fitted(long, 12.0, 80.0);
        assert!(short.ends_with('…') && width(&short, 12.0) <= 80.0);
        assert_eq!(fitted("cat", 12.0, 80.0), "cat");
        assert!(wrapped(long, 12.0, 90.0).iter().all(|line| width(line, 12.0) <= 90.0));
    }

    #[test]
    fn no_word_of_a_title_is_left_alone() {
        let lines = balanced("a title that is a little longer than its line", 12.0, 180.0);
        let [one, two] = lines.as_slice() else { panic!("{lines:?}") };
        let (one, two) = (width(one, 12.0), width(two, 12.0));
        assert!((one - two).abs() < 80.0 && one <= 180.0, "{lines:?}");
        assert_eq!(balanced("short", 12.0, 240.0), ["short"]);
        assert_eq!(balanced("", 12.0, 240.0), [""; 0]);
    }

    #[test]
    fn numbers_have_a_sign_that_the_font_has() {
        assert_eq!(number(-1.25, 1), "–1.2");
        assert_eq!(number(-0.01, 1), "0.0");
        assert_eq!(number(3.0, 0), "3");
    }
}
