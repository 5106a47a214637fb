//! What of a Markdown file can be wrong: code in backticks, links, and what they lead to.

/// A piece of code in backticks.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Code {
    pub(super) line: usize,
    pub(super) text: String,
    /// What stands between it and the piece before it.
    pub(super) before: String,
    /// Whether it stands in the column "Function" of a table.
    pub(super) is_function: bool,
}

/// What a page holds.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) code: Vec<Code>,
    /// Lines and targets of links.
    pub(super) links: Vec<(usize, String)>,
    /// What a link to a place in the page may name.
    pub(super) anchors: Vec<String>,
}

/// The header of a column whose code is names of functions.
const FUNCTION: &str = "Function";

/// Reads a page.
pub(super) fn parse(text: &str) -> Page {
    let lines = prose(text);
    let mut page = Page::default();
    for heading in lines.iter().filter(|line| is_heading(line)) {
        let slug = slug(heading.trim_start_matches('#').trim());
        let same = page.anchors.iter().filter(|anchor| is_repeated(anchor, &slug)).count();
        page.anchors.push(if same == 0 { slug } else { format!("{slug}-{same}") });
    }
    let functions = function_cells(&lines);
    let mut text = lines.join("\n");
    for piece in code(&text) {
        let is_function = functions.iter().any(|(line, range)| {
            *line == piece.line && range.contains(&(piece.start - line_start(&text, piece.start)))
        });
        let Piece { line, before, text, .. } = piece;
        page.code.push(Code { line, text, before, is_function });
    }
    for piece in code(&text) {
        let blank = text[piece.start..piece.end].replace(|letter: char| letter != '\n', " ");
        // as many bytes as before, so that the other places stay true
        let fill = " ".repeat(piece.end - piece.start - blank.len());
        text.replace_range(piece.start..piece.end, &(blank + &fill));
    }
    page.links = links(&text);
    page.anchors.extend(attributes(&text, "id=\"").map(|(_, id)| id));
    page
}

/// The lines, those of code blocks empty.
fn prose(text: &str) -> Vec<&str> {
    let mut fence: Option<&str> = None;
    let outside = |line| {
        let start = str::trim_start(line);
        let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        match (fence, mark) {
            (None, None) => return line,
            (None, mark) => fence = mark,
            (Some(open), Some(mark)) if open == mark => fence = None,
            _ => {}
        }
        ""
    };
    text.lines().map(outside).collect()
}

fn is_heading(line: &str) -> bool {
    let rest = line.trim_start_matches('#');
    (1..=6).contains(&(line.len() - rest.len())) && rest.starts_with(' ')
}

fn is_repeated(anchor: &str, slug: &str) -> bool {
    let rest = anchor.strip_prefix(slug);
    rest.is_some_and(|rest| {
        rest.is_empty() || rest.strip_prefix('-').is_some_and(|n| n.parse::<u16>().is_ok())
    })
}

/// A heading as GitHub names it in links.
fn slug(heading: &str) -> String {
    let kept = heading.chars().filter_map(|letter| match letter {
        ' ' => Some('-'),
        '-' | '_' => Some(letter),
        _ => letter.is_alphanumeric().then_some(letter),
    });
    kept.flat_map(char::to_lowercase).collect()
}

/// Code in backticks: the place of all of it, and what is inside.
struct Piece {
    start: usize,
    end: usize,
    line: usize,
    before: String,
    text: String,
}

fn code(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut last = 0;
    let mut at = 0;
    while let Some(start) = text[at..].find('`').map(|found| at + found) {
        let ticks = text[start..].bytes().take_while(|&byte| byte == b'`').count();
        let inside = start + ticks;
        let Some(length) = closing(&text[inside..], ticks) else {
            at = inside;
            continue;
        };
        let end = inside + length + ticks;
        pieces.push(Piece {
            start,
            end,
            line: text[..start].matches('\n').count() + 1,
            before: text[last..start].to_owned(),
            text: text[inside..inside + length].trim().replace('\n', " "),
        });
        (last, at) = (end, end);
    }
    pieces
}

/// Where as many backticks stand as opened the piece, before the paragraph ends.
fn closing(text: &str, ticks: usize) -> Option<usize> {
    let text = &text[..text.find("\n\n").unwrap_or(text.len())];
    let mut at = 0;
    while let Some(found) = text[at..].find('`').map(|found| at + found) {
        let count = text[found..].bytes().take_while(|&byte| byte == b'`').count();
        if count == ticks {
            return Some(found);
        }
        at = found + count;
    }
    None
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |found| found + 1)
}

/// Lines of tables, with the bytes of the cell that holds functions.
fn function_cells(lines: &[&str]) -> Vec<(usize, std::ops::Range<usize>)> {
    let mut column = None;
    let mut cells = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if !line.starts_with('|') {
            column = None;
            continue;
        }
        let bars: Vec<usize> = line.match_indices('|').map(|(place, _)| place).collect();
        let ranges: Vec<_> = bars.windows(2).map(|pair| pair[0] + 1..pair[1]).collect();
        column = column
            .or_else(|| ranges.iter().position(|range| line[range.clone()].trim() == FUNCTION));
        // cells may hold bars, as |x| in a formula does: the last column is counted from the end
        let header = at.checked_sub(1).is_none_or(|above| !lines[above].starts_with('|'));
        if let Some(range) = column.filter(|_| !header).and_then(|column| ranges.get(column)) {
            cells.push((at + 1, range.clone()));
        }
    }
    cells
}

fn links(text: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for (at, _) in text.match_indices("](") {
        let rest = &text[at + 2..];
        let target = rest[..rest.find(')').unwrap_or(0)].split_whitespace().next();
        let line = text[..at].matches('\n').count() + 1;
        links.extend(target.map(|target| (line, target.trim_matches(['<', '>']).to_owned())));
    }
    for (at, line) in text.lines().enumerate() {
        let target = line.strip_prefix('[').and_then(|line| line.split_once("]: "));
        links.extend(target.map(|(_, target)| (at + 1, target.trim().to_owned())));
    }
    links.extend(attributes(text, "src=\""));
    links.extend(attributes(text, "href=\""));
    links
}

/// Values of attributes in HTML.
fn attributes<'a>(text: &'a str, start: &'a str) -> impl Iterator<Item = (usize, String)> + 'a {
    text.match_indices(start).filter_map(move |(at, _)| {
        let rest = &text[at + start.len()..];
        let value = &rest[..rest.find('"')?];
        Some((text[..at].matches('\n').count() + 1, value.to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_has_its_line_and_what_stands_before_it() {
        let page = parse("One `a.rs`: `b`\n\n```sh\n`not this`\n```\nand ``c ` d``, `e\nf`.");
        let code = |line, text: &str, before: &str| {
            let (text, before) = (text.to_owned(), before.to_owned());
            Code { line, text, before, is_function: false }
        };
        let expected = [
            code(1, "a.rs", "One "),
            code(1, "b", ": "),
            code(6, "c ` d", "\n\n\n\n\nand "),
            code(6, "e f", ", "),
        ];
        assert_eq!(page.code, expected);
    }

    #[test]
    fn a_backtick_alone_takes_nothing_with_it() {
        let page = parse("a ` b\n\nc `d`");
        let texts: Vec<&str> = page.code.iter().map(|code| code.text.as_str()).collect();
        assert_eq!(texts, ["d"]);
    }

    #[test]
    fn cells_below_function_are_functions() {
        let page = parse("| A | Function |\n|---|---|\n| `x` | `average` |\n\n| `y` | `z` |");
        let functions = page.code.iter().filter(|code| code.is_function);
        assert_eq!(functions.map(|code| code.text.as_str()).collect::<Vec<_>>(), ["average"]);
    }

    #[test]
    fn links_of_all_kinds_are_found_and_those_in_code_are_not() {
        let page = parse(
            "[a](b.md) ![c](d.svg \"title\")\n[`e`](f.md#g) `[no](no.md)`\n\n[h]: i.md\n<img src=\"j.svg\">",
        );
        let expected = [(1, "b.md"), (1, "d.svg"), (2, "f.md#g"), (4, "i.md"), (5, "j.svg")];
        let expected = expected.map(|(line, target)| (line, target.to_owned()));
        assert_eq!(page.links, expected);
    }

    #[test]
    fn anchors_are_those_of_github() {
        let page = parse("# The `method`, in full – now\n## A_b\n## A_b\n\n```\n# no\n```\n#no\n");
        assert_eq!(page.anchors, ["the-method-in-full--now", "a_b", "a_b-1"]);
    }
}
