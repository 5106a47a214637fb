//! Which photos of a folder are whole and not answered yet, and which of them are one query.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use super::taken::Taken;
use super::{WatchOptions, relative};
use crate::dataset::{Broken, Photos};
use crate::error::Result;

/// Photos of a burst; a camera that never stops is answered in parts.
const MOST: usize = 64;

/// A photo is told from a later one of the same name by its size and the time it was changed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) file: String,
    pub(super) bytes: u64,
    /// Nanoseconds since 1970.
    pub(super) modified: u128,
}

/// A photo that is whole.
#[derive(Clone, Debug)]
pub struct Photo {
    /// Where it lies.
    pub path: PathBuf,
    pub(super) key: Key,
    pub(super) taken: Option<Taken>,
}

/// Photos that are one query.
#[derive(Clone, Debug)]
pub(super) struct Burst {
    pub(super) photos: Vec<Photo>,
}

/// A file that was seen at the last look.
struct Seen {
    key: Key,
    /// When it was first seen like this.
    since: Duration,
    /// When it was taken, once it stands still.
    taken: OnceCell<Option<Taken>>,
}

/// Photos that come.
pub(super) struct Arrivals {
    folder: PathBuf,
    excluded: Option<PathBuf>,
    settle: Duration,
    burst_seconds: Option<f64>,
    done: HashSet<Key>,
    /// Files that could not be read as they are now.
    unreadable: HashSet<Key>,
    seen: HashMap<PathBuf, Seen>,
}

impl Arrivals {
    pub(super) fn new(
        options: &WatchOptions,
        excluded: Option<PathBuf>,
        done: HashSet<Key>,
    ) -> Self {
        Self {
            folder: options.folder.clone(),
            excluded: excluded.and_then(|path| path.canonicalize().ok()),
            settle: options.settle,
            burst_seconds: options.burst_seconds,
            done,
            unreadable: HashSet::new(),
            seen: HashMap::new(),
        }
    }

    /// Photos there that are not answered.
    pub(super) fn waiting(&self) -> usize {
        let open =
            |seen: &&Seen| !self.done.contains(&seen.key) && !self.unreadable.contains(&seen.key);
        self.seen.values().filter(open).count()
    }

    /// It is answered.
    pub(super) fn done(&mut self, photo: &Photo) {
        self.done.insert(photo.key.clone());
    }

    /// It can't be read as it is.
    pub(super) fn unreadable(&mut self, photo: &Photo) {
        self.unreadable.insert(photo.key.clone());
    }

    /// Photos that are whole and not answered; bursts once no further photo of them is to come, or
    /// `last` says so.
    pub(super) fn look(&mut self, now: Duration, last: bool) -> Result<Vec<Burst>> {
        let mut before = std::mem::take(&mut self.seen);
        let found = Photos::find(std::slice::from_ref(&self.folder), Broken::Skip)?;
        // what can't be read yet may be one that is still being written
        let unread = found.unread.into_iter().map(|(path, _)| path);
        let paths = found.photos.iter().filter(|photo| !photo.is_zipped());
        for path in paths.map(|photo| photo.name().to_owned()).chain(unread) {
            if self.is_excluded(&path) {
                continue;
            }
            let Some(key) = self.key(&path) else { continue };
            let seen = match before.remove(&path) {
                Some(seen) if seen.key == key => seen,
                _ => Seen { key, since: now, taken: OnceCell::new() },
            };
            self.seen.insert(path, seen);
        }
        Ok(self.ready(now, last))
    }

    fn is_excluded(&self, path: &Path) -> bool {
        let Some(excluded) = &self.excluded else { return false };
        path.parent()
            .and_then(|it| it.canonicalize().ok())
            .is_some_and(|it| it.starts_with(excluded))
    }

    /// None of a file that has gone, that is empty, or that is no file.
    fn key(&self, path: &Path) -> Option<Key> {
        let found = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
        let modified = found.modified().ok()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        let key = Key {
            file: relative(&self.folder, path),
            bytes: found.len(),
            modified: modified.as_nanos(),
        };
        (key.bytes > 0).then_some(key)
    }

    fn ready(&self, now: Duration, last: bool) -> Vec<Burst> {
        let mut alone = Vec::new();
        let mut by_folder: BTreeMap<PathBuf, Vec<(Taken, Duration, Photo)>> = BTreeMap::new();
        for (path, seen) in &self.seen {
            let is_open = !self.done.contains(&seen.key) && !self.unreadable.contains(&seen.key);
            if !is_open || now.saturating_sub(seen.since) < self.settle {
                continue;
            }
            let taken = *seen.taken.get_or_init(|| Taken::of(path));
            let photo = Photo { path: path.clone(), key: seen.key.clone(), taken };
            match (taken, path.parent()) {
                (Some(taken), Some(folder)) if self.burst_seconds.is_some() => {
                    by_folder
                        .entry(folder.to_owned())
                        .or_default()
                        .push((taken, seen.since, photo));
                }
                _ => alone.push(Burst { photos: vec![photo] }),
            }
        }
        let seconds = self.burst_seconds.unwrap_or(0.0).max(0.0);
        let quiet =
            self.settle.saturating_add(Duration::try_from_secs_f64(seconds).unwrap_or_default());
        for photos in by_folder.into_values() {
            let closed = |since: Duration| last || now.saturating_sub(since) >= self.settle + quiet;
            alone.extend(bursts(photos, seconds, closed));
        }
        alone.sort_by(|a, b| a.photos[0].path.cmp(&b.photos[0].path));
        alone
    }
}

/// Photos of one folder in bursts, those that are closed: the last photo of each was seen long ago.
fn bursts(
    mut photos: Vec<(Taken, Duration, Photo)>,
    seconds: f64,
    closed: impl Fn(Duration) -> bool,
) -> Vec<Burst> {
    photos.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| a.2.path.cmp(&b.2.path)));
    let follows = |a: &(Taken, Duration, Photo), b: &(Taken, Duration, Photo)| {
        b.0.seconds() - a.0.seconds() <= seconds
    };
    let mut found = Vec::new();
    for chain in photos.chunk_by(follows) {
        for part in chain.chunks(MOST) {
            let newest = part.iter().map(|(_, since, _)| *since).max().unwrap_or_default();
            if part.len() == MOST || closed(newest) {
                let photos = part.iter().map(|(.., photo)| photo.clone()).collect();
                found.push(Burst { photos });
            }
        }
    }
    found
}
