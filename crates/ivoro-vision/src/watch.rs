//! Photos answered as they come into a folder.
//!
//! [`Watcher::step`] looks once: photos whose size stands still are asked about, alone or as bursts, sorted
//! if that is wanted, and written down as rows. The order of these steps makes a stop at any time
//! harmless: a copy first, then the row, and a photo is removed last. What a stop leaves undone, the
//! next start does.

mod arrivals;
mod rows;
mod sorting;
mod taken;

use std::path::{Path, PathBuf};
use std::time::Duration;

use ivoro::model::Prediction;
use ivoro::{AskOptions, BurstRule, Model};

pub use arrivals::Photo;
use arrivals::{Arrivals, Burst};
pub use rows::{Format, Row, Rows, header};
pub use sorting::{Keep, Sorter, UNKNOWN, folder_name};

use crate::dataset::{Broken, ImageInput};
use crate::error::{Error, Result};
use crate::recogniser::Recogniser;

/// How a folder is watched.
#[derive(Clone, Debug)]
pub struct WatchOptions {
    /// The folder.
    pub folder: PathBuf,
    /// How long a photo's size and time have to stand still until it counts as whole.
    pub settle: Duration,
    /// Photos taken within so many seconds are one query.
    pub burst_seconds: Option<f64>,
    /// Share of known queries that may be rejected wrongly; none where the model can't reject.
    pub reject: Option<f64>,
}

/// Answers photos as they come.
pub struct Watcher {
    recogniser: Recogniser<Model>,
    arrivals: Arrivals,
    reject: Option<f64>,
    rows: Option<Rows>,
    sorter: Option<Sorter>,
}

/// What one look brought.
#[derive(Debug, Default)]
pub struct Step {
    /// The rows, in the order they were written.
    pub rows: Vec<Row>,
    /// Photos that can't be read yet, each with a sentence that says why. They are tried again when they
    /// have changed.
    pub unreadable: Vec<String>,
    /// Photos that are there and not answered yet.
    pub waiting: usize,
    /// Why the folder could not be looked at, where that may pass.
    pub trouble: Option<String>,
}

impl Watcher {
    /// Watches a folder. `rows` remember what is done; with a `sorter` they are needed, since a photo
    /// must not be sorted twice.
    pub fn new(
        recogniser: Recogniser<Model>,
        options: &WatchOptions,
        rows: Option<Rows>,
        sorter: Option<Sorter>,
    ) -> Result<Self> {
        if sorter.is_some() && rows.is_none() {
            let (name, value) = ("sort-into", "without rows".to_owned());
            let reason = "sorted photos need a file of rows that says what is done";
            return Err(Error::Setting { name, value, reason });
        }
        let folder = options.folder.clone();
        if !folder.is_dir() {
            return Err(Error::Missing { path: folder, expected: "a folder to watch".to_owned() });
        }
        let done = rows.iter().flat_map(Rows::done).cloned().collect();
        let excluded = sorter.as_ref().map(|sorter| sorter.target().to_owned());
        if let (Some(sorter), Some(rows)) = (&sorter, &rows) {
            sorter.finish(&folder, rows)?;
        }
        let arrivals = Arrivals::new(options, excluded, done);
        Ok(Self { recogniser, arrivals, reject: options.reject, rows, sorter })
    }

    /// Looks at the folder, `now` being the time since any fixed moment, and answers what is whole. With
    /// `last` no burst is waited for. Between two queries `go_on` is asked whether to.
    pub fn step(&mut self, now: Duration, last: bool, go_on: &dyn Fn() -> bool) -> Result<Step> {
        let mut step = Step::default();
        let (single, bursts) = match self.arrivals.look(now, last) {
            Ok(ready) => ready.into_iter().partition::<Vec<Burst>, _>(|it| it.photos.len() == 1),
            Err(error) => {
                step.trouble = Some(error.to_string());
                return Ok(step);
            }
        };
        let at_once = self.recogniser.network().batch();
        for some in single.chunks(at_once).chain(bursts.chunks(1)) {
            if !go_on() {
                break;
            }
            self.answer(some, &mut step)?;
        }
        step.waiting = self.arrivals.waiting();
        Ok(step)
    }

    /// Answers single photos, or one burst.
    fn answer(&mut self, bursts: &[Burst], step: &mut Step) -> Result<()> {
        let photos: Vec<&Photo> = bursts.iter().flat_map(|burst| &burst.photos).collect();
        let inputs: Vec<ImageInput<'_>> =
            photos.iter().map(|photo| ImageInput::Path(&photo.path)).collect();
        let size = if bursts.len() == 1 { photos.len() } else { 1 };
        let options = AskOptions {
            top: 2,
            false_rejection: self.reject,
            burst: (size > 1).then_some((size, BurstRule::Sum)),
            ..AskOptions::default()
        };
        let seen = self.recogniser.ask_readable(&inputs, options, Broken::Skip)?;
        for (at, why) in &seen.broken {
            self.arrivals.unreadable(photos[*at]);
            step.unreadable.push(why.to_string());
        }
        let answers = seen.of.unwrap_or_default();
        for (prediction, members) in answers.iter().zip(seen.rows.chunks(size)) {
            let members: Vec<&Photo> = members.iter().map(|&at| photos[at]).collect();
            self.keep(&members, prediction, step)?;
        }
        Ok(())
    }

    /// Sorts the photos of one query and writes their rows.
    fn keep(&mut self, photos: &[&Photo], prediction: &Prediction, step: &mut Step) -> Result<()> {
        let mut rows = Vec::with_capacity(photos.len());
        for photo in photos {
            let mut row = Row::new(photo, photos, prediction);
            if let Some(sorter) = &self.sorter {
                row.to = Some(sorter.place(&photo.path, row.unknown, &row.class)?);
            }
            rows.push(row);
        }
        if let Some(file) = &mut self.rows {
            file.append(&rows)?;
        }
        if let Some(sorter) = &self.sorter {
            for photo in photos {
                sorter.release(&photo.path)?;
            }
        }
        photos.iter().for_each(|photo| self.arrivals.done(photo));
        step.rows.extend(rows);
        Ok(())
    }
}

/// A path below a folder, with slashes; what is not Unicode or steers a terminal is written out.
fn relative(folder: &Path, path: &Path) -> String {
    let below = path.strip_prefix(folder).unwrap_or(path);
    let parts = below.components().map(|part| part.as_os_str().to_string_lossy().into_owned());
    visible(&parts.collect::<Vec<_>>().join("/"))
}

/// A text on one line.
fn visible(text: &str) -> String {
    let shown = |sign: char| match sign {
        sign if sign.is_control() => sign.escape_default().to_string(),
        sign => sign.to_string(),
    };
    text.chars().map(shown).collect()
}
