//! A list of photos that were taught, kept beside a model by those who want it.
//!
//! A model keeps nothing of a single photo, and can't say that one comes again. This list can: it has a hash of the
//! pixels of each. Whoever has the list and a photo can tell whether that photo was taught.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;

use ivoro_io::atomic::write_atomically;

use crate::error::{Error, Result};
use crate::shape::{Fit, Shape};

/// The first words of such a file, with its version.
const TITLE: &str = "ivoro photos 1, ";
/// Bytes of a line, at most, and of a file: a list of 100 million photos.
const MOST_LINE: u64 = 256;
const MOST_BYTES: u64 = 100_000_000 * 65;

/// A hash of pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Of an image with this shape.
    pub fn of(shape: Shape, pixels: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new();
        for side in [shape.height, shape.width, shape.channels] {
            hasher.update(&(side as u64).to_le_bytes());
        }
        hasher.update(pixels);
        Self(*hasher.finalize().as_bytes())
    }
}

/// The photos that were taught, as the network saw them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remembered {
    /// What photos were brought to.
    fit: String,
    photos: BTreeSet<Fingerprint>,
}

impl Remembered {
    /// The list at `path`, or an empty one where there is none. Photos brought to another size have other
    /// pixels, so that a list for another one is refused.
    pub fn open(path: &Path, fit: Fit) -> Result<Self> {
        let mut list = Self { fit: fit.to_string(), photos: BTreeSet::new() };
        if !path.exists() {
            return Ok(list);
        }
        let file = fs_err::File::open(path)?;
        let bytes = file.metadata()?.len();
        if bytes > MOST_BYTES {
            let (path, what) = (path.to_owned(), "a list of photos".to_owned());
            return Err(Error::TooLarge { path, what, bytes, most: MOST_BYTES });
        }
        let mut file = BufReader::new(file);
        let mut line = String::new();
        let mut next = |line: &mut String| {
            line.clear();
            let read = Read::by_ref(&mut file).take(MOST_LINE).read_line(line);
            let read = read.map_err(|error| Error::malformed(path, error.to_string()))?;
            line.truncate(line.trim_end().len());
            Ok::<_, Error>(read > 0)
        };
        next(&mut line)?;
        let Some(made_for) = line.strip_prefix(TITLE) else {
            return Err(Error::malformed(path, "expected a list of photos (ivoro photos 1)"));
        };
        if made_for != list.fit {
            let what = format!("a list of photos of {made_for}, expected one of {}", list.fit);
            return Err(Error::malformed(path, what));
        }
        while next(&mut line)? {
            let hash = blake3::Hash::from_hex(&line).map_err(|_| {
                Error::malformed(path, format!("expected 64 hexadecimal digits, found {line:?}"))
            })?;
            list.photos.insert(Fingerprint(*hash.as_bytes()));
        }
        Ok(list)
    }

    /// Whether a photo with these pixels was taught.
    pub fn contains(&self, photo: Fingerprint) -> bool {
        self.photos.contains(&photo)
    }

    /// How many photos there are.
    pub fn len(&self) -> usize {
        self.photos.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.photos.is_empty()
    }

    /// Adds photos that were taught.
    pub fn add(&mut self, photos: &[Fingerprint]) {
        self.photos.extend(photos);
    }

    /// Takes photos out that were taken back.
    pub fn remove(&mut self, photos: &[Fingerprint]) {
        photos.iter().for_each(|photo| {
            self.photos.remove(photo);
        });
    }

    /// Writes the list, sorted: nothing in it says what came when. The file appears whole or not at all.
    pub fn save(&self, path: &Path) -> Result<()> {
        write_atomically(path, |file| {
            writeln!(file, "{TITLE}{}", self.fit)?;
            for photo in &self.photos {
                writeln!(file, "{}", blake3::Hash::from_bytes(photo.0).to_hex())?;
            }
            Ok(())
        })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::How;

    const SHAPE: Shape = Shape { height: 1, width: 2, channels: 1 };
    const FIT: Fit = Fit { shape: SHAPE, how: How::Resize };

    #[test]
    fn a_list_comes_back_and_is_for_one_size() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("birds.photos");
        let mut list = Remembered::open(&path, FIT).unwrap();
        let photos = [[1, 2], [3, 4]].map(|pixels| Fingerprint::of(SHAPE, &pixels));
        list.add(&photos);
        list.save(&path).unwrap();
        let mut again = Remembered::open(&path, FIT).unwrap();
        assert_eq!(again, list);
        assert!(again.contains(photos[1]) && !again.contains(Fingerprint::of(SHAPE, &[1, 1])));
        again.remove(&photos[..1]);
        assert_eq!(again.len(), 1);
        let other = Fit { how: How::Exact, ..FIT };
        let error = Remembered::open(&path, other).unwrap_err().to_string();
        assert!(error.contains("stretch, expected one of 2×1 grey, exact"), "{error}");
    }

    #[test]
    fn what_is_no_list_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        let title = format!("{TITLE}{FIT}\n");
        for (text, said) in [
            ("", "expected a list of photos"),
            ("hello", "expected a list of photos"),
            (&*format!("{title}12"), "expected 64 hexadecimal digits"),
            (&*format!("{title}{}", "a".repeat(1000)), "expected 64 hexadecimal digits"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = Remembered::open(&path, FIT).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
