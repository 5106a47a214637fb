//! Rows of answers in a file that also says what is done.
//!
//! All rows of a query are written at once. A stop may leave the last line, or the last query, in part:
//! that part is cut off when the file is opened again, and its photos are asked once more.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use fs_err::File;
use ivoro::model::Prediction;
use ivoro_eval::csv::quoted;
use serde::{Deserialize, Serialize};

use super::arrivals::{Key, Photo};
use super::visible;
use crate::error::{Error, Result};

const COLUMNS: [&str; 13] = [
    "file",
    "bytes",
    "modified",
    "taken",
    "burst",
    "burst_size",
    "class",
    "probability",
    "unknown",
    "strangeness",
    "runner_up",
    "runner_up_probability",
    "to",
];

/// How rows are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated, with a header.
    Csv,
    /// One JSON object a line.
    Jsonl,
}

/// What was said of a photo.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The photo below the folder that is watched.
    pub file: String,
    /// Its size.
    pub bytes: u64,
    /// When it was changed, in nanoseconds since 1970, as text: too long for some readers' numbers.
    pub modified: String,
    /// When it was taken, by the camera's clock.
    pub taken: Option<String>,
    /// The first photo of its burst; itself, where it was asked alone.
    pub burst: String,
    /// How many photos were asked together.
    pub burst_size: usize,
    /// The nearest class.
    pub class: String,
    /// Its probability.
    pub probability: Option<f64>,
    /// Whether it is rejected; none where the model can't reject.
    pub unknown: Option<bool>,
    /// How unlike everything known it is.
    pub strangeness: Option<f64>,
    /// The class after it.
    pub runner_up: Option<String>,
    /// The probability of that.
    pub runner_up_probability: Option<f64>,
    /// Where it was sorted, below the folder for that.
    pub to: Option<String>,
}

impl Row {
    pub(super) fn new(photo: &Photo, burst: &[&Photo], prediction: &Prediction) -> Self {
        let (first, second) = (prediction.top.first(), prediction.top.get(1));
        let Key { file, bytes, modified } = photo.key.clone();
        Self {
            file,
            bytes,
            modified: modified.to_string(),
            taken: photo.taken.map(|taken| taken.to_string()),
            burst: burst.first().map_or_else(String::new, |it| it.key.file.clone()),
            burst_size: burst.len(),
            class: first.map_or_else(String::new, |it| visible(&it.class)),
            probability: first.and_then(|it| it.probability),
            unknown: prediction.unknown,
            strangeness: prediction.strangeness,
            runner_up: second.map(|it| visible(&it.class)),
            runner_up_probability: second.and_then(|it| it.probability),
            to: None,
        }
    }

    fn key(&self) -> Option<Key> {
        let modified = self.modified.parse().ok()?;
        Some(Key { file: self.file.clone(), bytes: self.bytes, modified })
    }

    /// The row as a line, with its end.
    pub fn line(&self, format: Format) -> String {
        match format {
            Format::Csv => self.csv(),
            // no field of a row can fail to be written
            Format::Jsonl => serde_json::to_string(self).unwrap_or_default() + "\n",
        }
    }

    fn csv(&self) -> String {
        let number =
            |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.6}"));
        let mut line = String::new();
        let _ = writeln!(
            line,
            "{},{},{},{},{},{},{},{},{},{},{},{},{}",
            quoted(&self.file),
            self.bytes,
            self.modified,
            self.taken.as_deref().unwrap_or(""),
            quoted(&self.burst),
            self.burst_size,
            quoted(&self.class),
            number(self.probability),
            self.unknown.map_or(String::new(), |it| it.to_string()),
            number(self.strangeness),
            quoted(self.runner_up.as_deref().unwrap_or("")),
            number(self.runner_up_probability),
            quoted(self.to.as_deref().unwrap_or("")),
        );
        line
    }

    fn read(line: &str, format: Format) -> Option<Self> {
        if format == Format::Jsonl {
            return serde_json::from_str(line).ok();
        }
        let fields: [String; 13] = fields(line).try_into().ok()?;
        let [
            file,
            bytes,
            modified,
            taken,
            burst,
            size,
            class,
            probability,
            unknown,
            strangeness,
            ..,
        ] = &fields;
        let text = |field: &str| (!field.is_empty()).then(|| field.to_owned());
        Some(Self {
            file: file.clone(),
            bytes: bytes.parse().ok()?,
            modified: modified.clone(),
            taken: text(taken),
            burst: burst.clone(),
            burst_size: size.parse().ok()?,
            class: class.clone(),
            probability: probability.parse().ok(),
            unknown: unknown.parse().ok(),
            strangeness: strangeness.parse().ok(),
            runner_up: text(&fields[10]),
            runner_up_probability: fields[11].parse().ok(),
            to: text(&fields[12]),
        })
    }
}

/// The fields of a CSV line.
fn fields(line: &str) -> Vec<String> {
    let (mut out, mut field, mut inside) = (Vec::new(), String::new(), false);
    let mut signs = line.chars().peekable();
    while let Some(sign) = signs.next() {
        match sign {
            '"' if inside && signs.peek() == Some(&'"') => {
                field.push('"');
                signs.next();
            }
            '"' => inside = !inside,
            ',' if !inside => out.push(std::mem::take(&mut field)),
            sign => field.push(sign),
        }
    }
    out.push(field);
    out
}

/// The first line of a CSV file.
pub fn header() -> String {
    COLUMNS.join(",") + "\n"
}

/// A file of rows.
pub struct Rows {
    file: File,
    format: Format,
    done: HashSet<Key>,
    sorted: Vec<(Key, String)>,
}

impl Rows {
    /// Opens a file of rows, or begins it. What a stop left half written is cut off.
    pub fn open(path: &Path, format: Format) -> Result<Self> {
        let mut file = fs_err::OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let rows = whole(path, &bytes, format)?;
        let length: usize = rows.iter().map(|(length, _)| length).sum();
        let rows: Vec<Row> = rows.into_iter().filter_map(|(_, row)| row).collect();
        file.set_len(length as u64)?;
        file.seek(SeekFrom::End(0))?;
        if length == 0 && format == Format::Csv {
            file.write_all(header().as_bytes())?;
        }
        let keys: Vec<(Key, Option<String>)> =
            rows.into_iter().filter_map(|row| Some((row.key()?, row.to))).collect();
        let sorted = keys.iter().filter_map(|(key, to)| Some((key.clone(), to.clone()?)));
        let sorted = sorted.collect();
        let done = keys.into_iter().map(|(key, _)| key).collect();
        Ok(Self { file, format, done, sorted })
    }

    pub(super) fn done(&self) -> impl Iterator<Item = &Key> {
        self.done.iter()
    }

    /// Photos that were sorted, and where.
    pub(super) fn sorted(&self) -> &[(Key, String)] {
        &self.sorted
    }

    /// Adds the rows of one query. They are on the disk when this returns.
    pub(super) fn append(&mut self, rows: &[Row]) -> Result<()> {
        let lines: String = rows.iter().map(|row| row.line(self.format)).collect();
        self.file.write_all(lines.as_bytes())?;
        Ok(self.file.sync_data()?)
    }
}

/// The whole lines of a file with their lengths, up to the last query that has all its rows.
fn whole(path: &Path, bytes: &[u8], format: Format) -> Result<Vec<(usize, Option<Row>)>> {
    let mut lines = Vec::new();
    let complete = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
    for (at, line) in bytes[..complete].split_inclusive(|&byte| byte == b'\n').enumerate() {
        let text = std::str::from_utf8(line).ok().map(|line| line.trim_end_matches(['\n', '\r']));
        if at == 0 && format == Format::Csv {
            if text != Some(header().trim_end()) {
                let what = "expected the rows of `ivoro watch`, found another first line";
                return Err(Error::malformed(path, what));
            }
            lines.push((line.len(), None));
            continue;
        }
        let row = text.and_then(|text| Row::read(text, format)).ok_or_else(|| {
            Error::malformed(path, format!("expected a row of `ivoro watch` in line {}", at + 1))
        })?;
        lines.push((line.len(), Some(row)));
    }
    // the last query may lack rows
    let last = lines.iter().rev().map_while(|(_, row)| row.as_ref());
    let Some(first) = last.clone().next() else { return Ok(lines) };
    let there = last.take_while(|row| row.burst == first.burst).count() % first.burst_size.max(1);
    lines.truncate(lines.len() - there);
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(file: &str, burst: &str, size: usize) -> Row {
        Row {
            file: file.to_owned(),
            bytes: 7,
            modified: "1000000000000000001".to_owned(),
            taken: None,
            burst: burst.to_owned(),
            burst_size: size,
            class: "a \"class\", quoted".to_owned(),
            probability: Some(0.5),
            unknown: Some(true),
            strangeness: None,
            runner_up: None,
            runner_up_probability: None,
            to: Some("unknown/x.jpg".to_owned()),
        }
    }

    #[test]
    fn rows_are_read_as_they_were_written() {
        for format in [Format::Csv, Format::Jsonl] {
            let written = row("with, comma \"and\" quotes.jpg", "b", 1);
            let line = written.line(format);
            assert_eq!(Row::read(line.trim_end(), format), Some(written));
        }
    }

    /// Cut at every byte, a file keeps whole queries alone, and goes on where it was.
    #[test]
    fn a_file_cut_anywhere_keeps_whole_queries() {
        let folder = tempfile::tempdir().unwrap();
        for format in [Format::Csv, Format::Jsonl] {
            let path = folder.path().join("rows");
            let _ = std::fs::remove_file(&path);
            let queries = [vec![row("a", "a", 1)], vec![row("b", "b", 2), row("c", "b", 2)]];
            let mut rows = Rows::open(&path, format).unwrap();
            queries.iter().for_each(|rows_of| rows.append(rows_of).unwrap());
            let whole = std::fs::read(&path).unwrap();
            for length in 0..whole.len() {
                std::fs::write(&path, &whole[..length]).unwrap();
                let mut rows = match Rows::open(&path, format) {
                    Ok(rows) => rows,
                    Err(error) => panic!("{length}: {error}"),
                };
                let done = rows.done.len();
                assert!(done <= 1, "{length}: {done}");
                for query in &queries[done..] {
                    rows.append(query).unwrap();
                }
                assert_eq!(std::fs::read(&path).unwrap(), whole, "{length}");
            }
        }
    }

    #[test]
    fn another_file_is_not_touched() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.txt");
        std::fs::write(&path, "my notes\nmore of them, unfinished").unwrap();
        for format in [Format::Csv, Format::Jsonl] {
            assert!(Rows::open(&path, format).is_err());
            assert_eq!(std::fs::read(&path).unwrap(), b"my notes\nmore of them, unfinished");
        }
    }
}
