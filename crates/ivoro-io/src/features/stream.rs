//! Writing a `.features` file batch by batch, so that it never has to fit in memory, and going on
//! where a stopped program left off.

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use fs_err::{File, OpenOptions};
use half::f16;

use super::write::{LABEL, described, number};
use ivoro::Matrix;
use ivoro::codec::safetensors_header::{self, Entry};
use ivoro::samples::View;
use ivoro::{Error, Result};

/// What a file will hold.
#[derive(Clone, Debug)]
pub struct Outline {
    /// Names of its parts, `train` and `test`, with the label of every row.
    pub parts: Vec<(String, Vec<u32>)>,
    /// Layers, the last one first, with their dimensions.
    pub layers: Vec<(String, usize)>,
    /// The views.
    pub views: Vec<View>,
    /// Class names.
    pub classes: Vec<String>,
    /// Whether numbers are stored in half precision.
    pub half_precision: bool,
    /// What else is known.
    pub metadata: BTreeMap<String, String>,
}

/// A `.features` file that is being written. Until [`finish`](Self::finish) it is called
/// `NAME.partial`, and the rows that are done are counted in its last eight bytes.
#[derive(Debug)]
pub struct FeatureWriter {
    outline: Outline,
    path: PathBuf,
    partial: PathBuf,
    file: File,
    /// Where each part's layers begin in the file, part after part.
    starts: Vec<u64>,
    /// Where the data end.
    end: u64,
    done: usize,
}

impl FeatureWriter {
    /// Begins the file, or goes on with one whose outline is the same to the byte.
    pub fn open(path: &Path, outline: Outline) -> Result<Self> {
        let (head, starts, end) = plan(path, &outline)?;
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".partial");
        let partial = path.with_file_name(name);
        let done = resumable(&partial, &head, end)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(&partial)?;
        if file.file().try_lock().is_err() {
            return Err(Error::Locked { path: partial });
        }
        let path = path.to_owned();
        let mut writer =
            Self { outline, path, partial, file, starts, end, done: done.unwrap_or(0) };
        if done.is_none() {
            writer.file.set_len(0)?;
            writer.file.write_all(&head)?;
            writer.write_labels()?;
            writer.file.set_len(end + 8)?;
            writer.mark()?;
        }
        Ok(writer)
    }

    /// Rows written so far, counted over all parts.
    pub fn done(&self) -> usize {
        self.done
    }

    /// Rows there are, counted over all parts.
    pub fn rows(&self) -> usize {
        self.outline.parts.iter().map(|(_, labels)| labels.len()).sum()
    }

    /// The next rows, which must lie in one part: `blocks[l · views + v]`, as in
    /// [`Samples::new`](ivoro::Samples::new).
    pub fn append(&mut self, blocks: &[Matrix]) -> Result<()> {
        let (part, row) = self.position();
        let rows = blocks.first().map_or(0, Matrix::rows);
        let expected = self.outline.layers.len() * self.outline.views.len();
        if blocks.len() != expected || blocks.iter().any(|block| block.rows() != rows) {
            let what = "matrices of layers × views to append".to_owned();
            return Err(Error::Size { what, expected, found: blocks.len() });
        }
        let left = self.outline.parts.get(part).map_or(0, |(_, labels)| labels.len() - row);
        if rows > left {
            let what = "rows to append to a part".to_owned();
            return Err(Error::Size { what, expected: left, found: rows });
        }
        let views = self.outline.views.len();
        for (layer, blocks) in blocks.chunks_exact(views).enumerate() {
            self.write_layer(part, row, layer, blocks)?;
        }
        self.done += rows;
        self.mark()
    }

    /// The part and the row in it that come next.
    fn position(&self) -> (usize, usize) {
        let mut row = self.done;
        for (part, (_, labels)) in self.outline.parts.iter().enumerate() {
            if row < labels.len() {
                return (part, row);
            }
            row -= labels.len();
        }
        (self.outline.parts.len(), 0)
    }

    fn write_layer(
        &mut self,
        part: usize,
        row: usize,
        layer: usize,
        blocks: &[Matrix],
    ) -> Result<()> {
        let (name, dim) = &self.outline.layers[layer];
        let width = number(self.outline.half_precision).1;
        let mut bytes = Vec::with_capacity(blocks[0].rows() * blocks.len() * dim * width);
        for at in 0..blocks[0].rows() {
            for block in blocks {
                if block.cols() != *dim {
                    let what = format!("values of layer {name}");
                    return Err(Error::Size { what, expected: *dim, found: block.cols() });
                }
                push(&mut bytes, block.row(at), self.outline.half_precision);
            }
        }
        let start = self.starts[part * self.outline.layers.len() + layer];
        let offset = start + (row * blocks.len() * dim * width) as u64;
        self.file.seek(SeekFrom::Start(offset))?;
        self.file.write_all(&bytes)?;
        Ok(())
    }

    fn write_labels(&mut self) -> Result<()> {
        for (_, labels) in &self.outline.parts {
            let bytes: Vec<u8> =
                labels.iter().flat_map(|&label| i64::from(label).to_le_bytes()).collect();
            self.file.write_all(&bytes)?;
        }
        Ok(())
    }

    /// Notes how many rows are done, after their data are on the disk.
    fn mark(&mut self) -> Result<()> {
        self.file.sync_data()?;
        self.file.seek(SeekFrom::Start(self.end))?;
        self.file.write_all(&(self.done as u64).to_le_bytes())?;
        Ok(())
    }

    /// Gives the file its name, if every row is there.
    pub fn finish(self) -> Result<()> {
        let (expected, found) = (self.rows(), self.done);
        if found != expected {
            return Err(Error::Size {
                what: "rows of a features file".to_owned(),
                expected,
                found,
            });
        }
        self.file.set_len(self.end)?;
        self.file.sync_all()?;
        fs_err::rename(&self.partial, &self.path)?;
        Ok(())
    }
}

fn push(bytes: &mut Vec<u8>, values: &[f32], half_precision: bool) {
    if half_precision {
        // A value beyond the largest half is stored as that: features are not that precise.
        let halves = values.iter().map(|&value| f16::from_f32(value.clamp(-65504.0, 65504.0)));
        bytes.extend(halves.flat_map(f16::to_le_bytes));
    } else {
        bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    }
}

/// The head of the file (length, header), where each layer begins, and where the data end.
fn plan(path: &Path, outline: &Outline) -> Result<(Vec<u8>, Vec<u64>, u64)> {
    let empty = outline.parts.iter().find(|(_, labels)| labels.is_empty());
    if let Some((name, _)) = empty {
        return Err(Error::malformed(path, format!("the {name} part has no sample to write")));
    }
    let mut entries = Vec::new();
    for (part, labels) in &outline.parts {
        entries.push(Entry {
            name: format!("{part}.labels"),
            kind: LABEL,
            shape: vec![labels.len()],
        });
    }
    let kind = number(outline.half_precision);
    for (part, labels) in &outline.parts {
        for (layer, dim) in &outline.layers {
            let shape = vec![labels.len(), outline.views.len(), *dim];
            entries.push(Entry { name: format!("{part}.{layer}"), kind, shape });
        }
    }
    let names: Vec<String> = outline.layers.iter().map(|(name, _)| name.clone()).collect();
    let metadata = described(path, &names, &outline.views, &outline.classes, &outline.metadata)?;
    let head = safetensors_header::encode(path, &metadata, &entries)?;
    let mut at = head.len() as u64;
    let mut starts = Vec::new();
    for entry in &entries {
        if entry.kind != LABEL {
            starts.push(at);
        }
        at += entry.bytes() as u64;
    }
    Ok((head, starts, at))
}

/// How many rows of a file that was begun are done, if it is the same file.
fn resumable(partial: &Path, head: &[u8], end: u64) -> Result<Option<usize>> {
    if !partial.exists() {
        return Ok(None);
    }
    let mut file = File::open(partial)?;
    let mut found = vec![0; head.len()];
    if file.metadata()?.len() != end + 8 || file.read_exact(&mut found).is_err() || found != head {
        return Ok(None);
    }
    let mut count = [0; 8];
    file.seek(SeekFrom::Start(end))?;
    file.read_exact(&mut count)?;
    Ok(Some(u64::from_le_bytes(count) as usize))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::{ReadOptions, read, write_features};

    fn outline() -> Outline {
        Outline {
            parts: vec![("train".to_owned(), vec![0, 1, 0, 1]), ("test".to_owned(), vec![1, 0])],
            layers: vec![("last".to_owned(), 2), ("block1".to_owned(), 1)],
            views: View::ROTATIONS.to_vec(),
            classes: vec!["cat".to_owned(), "dog".to_owned()],
            half_precision: false,
            metadata: BTreeMap::from([("weights".to_owned(), "abc".to_owned())]),
        }
    }

    /// Blocks of some rows whose values say where they belong.
    fn blocks(first: usize, rows: usize) -> Vec<Matrix> {
        let mut blocks = Vec::new();
        for dim in [2, 1] {
            for view in 0..4 {
                let values = (0..rows * dim).map(|at| (1000 * view + 10 * first + at) as f32);
                blocks.push(Matrix::new(rows, dim, values.collect()).unwrap());
            }
        }
        blocks
    }

    #[test]
    fn a_file_written_in_two_sittings_is_the_file_written_in_one() {
        let folder = tempfile::tempdir().unwrap();
        let (whole, halved) = (folder.path().join("a.features"), folder.path().join("b.features"));
        let mut writer = FeatureWriter::open(&whole, outline()).unwrap();
        for (first, rows) in [(0, 3), (3, 1), (4, 2)] {
            writer.append(&blocks(first, rows)).unwrap();
        }
        writer.finish().unwrap();
        let mut writer = FeatureWriter::open(&halved, outline()).unwrap();
        writer.append(&blocks(0, 3)).unwrap();
        drop(writer);
        assert!(!halved.exists());
        let mut writer = FeatureWriter::open(&halved, outline()).unwrap();
        assert_eq!(writer.done(), 3);
        writer.append(&blocks(3, 1)).unwrap();
        writer.append(&blocks(4, 2)).unwrap();
        writer.finish().unwrap();
        assert_eq!(std::fs::read(&whole).unwrap(), std::fs::read(&halved).unwrap());
        let (split, _) = read(&whole, &ReadOptions::default()).unwrap().into_split(0.2, 0).unwrap();
        let turned = split.train.block(0, View::ROTATIONS[1]).unwrap();
        assert_eq!(turned.row(1), [1002.0, 1003.0]);
        assert_eq!(split.test.labels(), [1, 0]);
        assert_eq!(split.test.classes()[1], "dog");
    }

    #[test]
    fn a_file_begins_as_it_always_did_whichever_way_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        for (half_precision, kind, ends) in [
            (false, "F32", [32, 48, 176, 240, 304, 336]),
            (true, "F16", [32, 48, 112, 144, 176, 192]),
        ] {
            let path = folder.path().join(kind);
            let outline = Outline { half_precision, ..outline() };
            let mut writer = FeatureWriter::open(&path, outline.clone()).unwrap();
            writer.append(&blocks(0, 4)).unwrap();
            writer.append(&blocks(4, 2)).unwrap();
            writer.finish().unwrap();
            let written = std::fs::read(&path).unwrap();
            let [a, b, c, d, e, f] = ends;
            let header = [
                r#"{"__metadata__":{"classes":"[\"cat\",\"dog\"]","format":"ivoro-features","#,
                r#""layers":"last,block1","version":"1","views":"0,90,180,270","weights":"abc"},"#,
                &format!(r#""test.block1":{{"data_offsets":[{e},{f}],"dtype":"{kind}","#),
                r#""shape":[2,4,1]},"#,
                &format!(r#""test.labels":{{"data_offsets":[{a},{b}],"dtype":"I64","#),
                r#""shape":[2]},"#,
                &format!(r#""test.last":{{"data_offsets":[{d},{e}],"dtype":"{kind}","#),
                r#""shape":[2,4,2]},"#,
                &format!(r#""train.block1":{{"data_offsets":[{c},{d}],"dtype":"{kind}","#),
                r#""shape":[4,4,1]},"#,
                &format!(r#""train.labels":{{"data_offsets":[0,{a}],"dtype":"I64","#),
                r#""shape":[4]},"#,
                &format!(r#""train.last":{{"data_offsets":[{b},{c}],"dtype":"{kind}","#),
                r#""shape":[4,4,2]}}"#,
            ];
            let header = header.concat();
            let length = header.len().next_multiple_of(8);
            assert_eq!(written[..8], (length as u64).to_le_bytes());
            let text = String::from_utf8_lossy(&written[8..written.len() - f]);
            assert_eq!(text, format!("{header:length$}"));
            let (found, _) =
                read(&path, &ReadOptions::default()).unwrap().into_split(0.2, 0).unwrap();
            let parts = [&found.train, &found.test].map(Some);
            let metadata = &outline.metadata;
            write_features(&path, parts[0], parts[1], half_precision, metadata).unwrap();
            assert!(std::fs::read(&path).unwrap() == written);
        }
    }

    #[test]
    fn another_outline_begins_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.features");
        let mut writer = FeatureWriter::open(&path, outline()).unwrap();
        writer.append(&blocks(0, 3)).unwrap();
        drop(writer);
        let other = Outline { half_precision: true, ..outline() };
        assert_eq!(FeatureWriter::open(&path, other).unwrap().done(), 0);
    }

    #[test]
    fn too_many_rows_and_an_early_end_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.features");
        let mut writer = FeatureWriter::open(&path, outline()).unwrap();
        let error = writer.append(&blocks(0, 5)).unwrap_err();
        assert!(error.to_string().contains('5'), "{error}");
        writer.append(&blocks(0, 4)).unwrap();
        assert!(writer.finish().is_err());
        assert!(!path.exists());
    }

    #[test]
    fn two_writers_of_one_file_are_one_too_many() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.features");
        let _first = FeatureWriter::open(&path, outline()).unwrap();
        let error = FeatureWriter::open(&path, outline()).unwrap_err();
        assert!(matches!(error, Error::Locked { .. }), "{error}");
    }
}
