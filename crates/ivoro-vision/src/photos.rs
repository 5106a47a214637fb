//! What a network sees in photos: a batch at a time, those that can't be read left out, the same pixels once.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use ivoro::{Points, Samples, Variant};
use serde_json::{Value, json};

use crate::ahead::look_at_parts;
use crate::dataset::{Decoding, ImageInput, Images, Photo, Photos, Unread, decode_all, measure};
use crate::error::Result;
use crate::recogniser::{FrozenNetwork, Gathered};
use crate::remembered::{Fingerprint, Remembered};
use crate::shape::{Fit, Shape};

/// How photos are looked at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Looking<'a> {
    /// What to do about photos that can't be read, or end too early.
    pub decoding: Decoding,
    /// Whether the same pixels count as often as they come.
    pub keep_duplicates: bool,
    /// Photos taught before, which count as duplicates.
    pub remembered: Option<&'a Remembered>,
}

/// A photo with the pixels of another of the same class, or of one taught before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duplicate {
    /// Which photo.
    pub photo: usize,
    /// The first with these pixels; none where it was taught before.
    pub of: Option<usize>,
}

/// What a network saw in photos.
#[derive(Clone, Debug)]
pub struct SeenPhotos<T> {
    /// What it saw; none where no photo could be read.
    pub of: Option<T>,
    /// For each row its photo.
    pub rows: Vec<usize>,
    /// Photos that were left out, each with a sentence that says why.
    pub unread: Vec<(usize, Unread)>,
    /// Photos that end too early and were taken.
    pub truncated: Vec<usize>,
    /// Photos that were left out because their pixels had come before.
    pub duplicates: Vec<Duplicate>,
    /// Pairs of photos with the same pixels in two classes.
    pub contradictions: Vec<(usize, usize)>,
    /// A hash of the pixels of each row, as the network was to see them.
    pub fingerprints: Vec<Fingerprint>,
}

/// What became of photos: how many were taken, and each that was left out.
#[derive(Clone, Debug, Default)]
pub struct PhotoReport {
    /// How many were taught, or answered.
    pub done: usize,
    /// Those that could not be read.
    pub unread: Vec<(PathBuf, Unread)>,
    /// Those that end too early and were taken.
    pub truncated: Vec<PathBuf>,
    /// Those left out because of their pixels, each with the one that has them, if that came with it.
    pub duplicates: Vec<(PathBuf, Option<PathBuf>)>,
    /// Pairs with the same pixels in two classes.
    pub contradictions: Vec<(PathBuf, PathBuf)>,
    /// Files beside photos.
    pub others: Vec<PathBuf>,
    /// Class folders without a photo.
    pub empty: Vec<String>,
}

impl PhotoReport {
    /// Begins with what was found beside photos that may be read.
    pub fn of(found: &mut Photos) -> Self {
        Self {
            unread: std::mem::take(&mut found.unread),
            others: std::mem::take(&mut found.others),
            ..Self::default()
        }
    }

    /// Adds photos that turned out to be unreadable, by their places.
    pub fn add_unread(&mut self, photos: &[Photo], unread: Vec<(usize, Unread)>) {
        let named = |(at, unread): (usize, Unread)| (photos[at].name().to_owned(), unread);
        self.unread.extend(unread.into_iter().map(named));
    }

    /// Adds photos that end too early and were taken, by their places.
    pub fn add_truncated(&mut self, photos: &[Photo], truncated: &[usize]) {
        self.truncated.extend(truncated.iter().map(|&at| photos[at].name().to_owned()));
    }

    /// Adds what a network saw in photos; gives that, and hashes of their pixels.
    pub fn add_seen<T>(
        &mut self,
        photos: &[Photo],
        seen: SeenPhotos<T>,
    ) -> (Option<T>, Vec<Fingerprint>) {
        let name = |at: usize| photos[at].name().to_owned();
        self.done += seen.rows.len();
        self.add_unread(photos, seen.unread);
        self.add_truncated(photos, &seen.truncated);
        self.duplicates.extend(seen.duplicates.iter().map(|it| (name(it.photo), it.of.map(name))));
        let pairs = seen.contradictions.iter().map(|&(one, other)| (name(one), name(other)));
        self.contradictions.extend(pairs);
        (seen.of, seen.fingerprints)
    }

    /// How many of which kind could not be read: `AVIF 12, truncated 2`.
    pub fn kinds(&self) -> String {
        Photos::tell(&self.unread.iter().map(|(_, unread)| unread).collect::<Vec<_>>())
    }

    /// All of it as JSON, where `done` says what was done with those taken.
    pub fn to_json(&self, done: &str) -> Value {
        let name = |path: &Path| path.display().to_string();
        let names = |paths: &[PathBuf]| paths.iter().map(|it| name(it)).collect::<Vec<_>>();
        let skipped = self.unread.iter().map(
            |(path, unread)| json!({"file": name(path), "kind": unread.kind, "why": unread.why}),
        );
        let duplicates = self
            .duplicates
            .iter()
            .map(|(path, of)| json!({"file": name(path), "of": of.as_deref().map(name)}));
        let two = self.contradictions.iter().map(|(one, other)| [name(one), name(other)]);
        json!({
            (done): self.done,
            "skipped": skipped.collect::<Vec<_>>(),
            "duplicates": duplicates.collect::<Vec<_>>(),
            "in_two_classes": two.collect::<Vec<_>>(),
            "end_too_early": names(&self.truncated),
            "other_files": names(&self.others),
            "empty_folders": self.empty,
        })
    }
}

impl FrozenNetwork {
    /// What photos are brought to, where the first of them may decide about it.
    pub fn photo_fit(&self, photos: &[Photo]) -> Result<Fit> {
        let needs_own = self.trained_fit().shape.height == 0;
        let first = photos.iter().filter(|_| needs_own).find_map(|it| measure(it.input()).ok());
        let any = Shape { height: 0, width: 0, channels: 3 };
        match first {
            Some(own) => Ok(self.fit(own)),
            None if needs_own => Ok(self.fit(any)),
            None => Ok(self.fit(self.trained_fit().shape)),
        }
    }

    /// What a model of this variant learns from photos whose classes are known. `each_batch` is told how many are done.
    pub fn photo_samples(
        &self,
        variant: Variant,
        photos: &[Photo],
        looking: Looking<'_>,
        each_batch: &mut dyn FnMut(usize),
    ) -> Result<SeenPhotos<Samples>> {
        let fit = self.photo_fit(photos)?;
        let mut sieve = Sieve { photos, looking, ..Sieve::default() };
        let mut gathered = Gathered::default();
        let inputs: Vec<ImageInput<'_>> = photos.iter().map(Photo::input).collect();
        look_at_parts(
            &inputs,
            self.batch(),
            |part| decode_all(part, fit, looking.decoding),
            |images| self.look(images, variant),
            |images, first| sieve.sift(images, first),
            |images, first, seen| {
                gathered.add(images, first, seen)?;
                each_batch((first + self.batch()).min(photos.len()));
                Ok(())
            },
        )?;
        let Gathered { blocks, rows, broken, truncated } = gathered;
        let Sieve { duplicates, contradictions, fingerprints, .. } = sieve;
        let points =
            if rows.is_empty() { None } else { Some(self.assemble("photos", variant, blocks)?) };
        let of = points.map(|points| labelled(photos, &rows, points)).transpose()?;
        Ok(SeenPhotos {
            of,
            rows,
            unread: broken,
            truncated,
            duplicates,
            contradictions,
            fingerprints,
        })
    }
}

/// Points with the classes of their photos.
fn labelled(photos: &[Photo], rows: &[usize], points: Points) -> Result<Samples> {
    let class = |row: &usize| photos[*row].class().unwrap_or_default().to_owned();
    let mut classes: Vec<String> = rows.iter().map(class).collect();
    classes.sort();
    classes.dedup();
    let label = |row: &usize| classes.partition_point(|name| *name < class(row)) as u32;
    let labels = rows.iter().map(label).collect();
    Ok(Samples::new(points, labels, classes.into())?)
}

/// Finds pixels that come again.
#[derive(Default)]
struct Sieve<'a> {
    photos: &'a [Photo],
    looking: Looking<'a>,
    /// The photos with these pixels, one for each class.
    known: HashMap<Fingerprint, Vec<usize>>,
    duplicates: Vec<Duplicate>,
    contradictions: Vec<(usize, usize)>,
    fingerprints: Vec<Fingerprint>,
}

impl Sieve<'_> {
    /// Takes images out of a batch whose pixels came before; its first photo is the `first` of all.
    fn sift(&mut self, images: &mut Images, first: usize) {
        let length = images.shape.len().max(1);
        let mut kept = 0;
        for at in 0..images.rows.len() {
            let pixels = &images.pixels[at * length..(at + 1) * length];
            let fingerprint = Fingerprint::of(images.shape, pixels);
            let photo = first + images.rows[at];
            if self.is_known(fingerprint, photo) {
                continue;
            }
            self.fingerprints.push(fingerprint);
            images.pixels.copy_within(at * length..(at + 1) * length, kept * length);
            images.rows[kept] = images.rows[at];
            kept += 1;
        }
        images.rows.truncate(kept);
        images.pixels.truncate(kept * length);
    }

    fn is_known(&mut self, fingerprint: Fingerprint, photo: usize) -> bool {
        if self.looking.remembered.is_some_and(|list| list.contains(fingerprint)) {
            self.duplicates.push(Duplicate { photo, of: None });
            return true;
        }
        if self.looking.keep_duplicates {
            return false;
        }
        let class = self.photos[photo].class();
        let same = self.known.entry(fingerprint).or_default();
        let of = same.iter().copied().find(|&other| self.photos[other].class() == class);
        if let Some(of) = of {
            self.duplicates.push(Duplicate { photo, of: Some(of) });
            return true;
        }
        if let Some(&other) = same.first() {
            self.contradictions.push((other, photo));
        }
        same.push(photo);
        false
    }
}
