//! Arguments of the verbs that measure a model and put it to work: `evaluate` and `watch`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use ivoro_vision::watch::Keep;

use crate::args::images::LookArguments;
use crate::args::input::DataArguments;
use crate::args::photos::{PhotoArguments, SampleArguments};

/// Say how good a model is on labelled samples, and what to label next.
///
/// Asks about all of the data and holds nothing out, so give samples that the model has not learned:
/// others look better than new ones will. Of data divided into a train and a test part, the test part
/// is asked. The model is not changed, and nothing is put into it.
///
/// Samples of classes that the model does not know count as unknown, not as wrong.
#[derive(Debug, Args)]
pub(crate) struct EvaluateArguments {
    /// The model file.
    pub(crate) model: PathBuf,

    /// Labelled samples: a features file, or a folder of photos by class.
    pub(crate) data: PathBuf,

    /// Queries of classes that the model does not know: a features file, or a photo or a folder of
    /// photos, in subfolders or not. Says how well they are told from known ones.
    #[arg(long, value_name = "FILE|FOLDER")]
    pub(crate) unknown: Option<PathBuf>,

    /// Reject as unknown at the threshold where this share of known queries may be rejected wrongly.
    #[arg(long, value_name = "SHARE", default_value_t = 0.05)]
    pub(crate) reject: f64,

    /// Write all numbers as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Write one row per query as CSV.
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,

    /// Write a page with figures, the surest mistakes and what to label next. It shows small copies
    /// of photos: keep it where you would keep the photos.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Queries of each kind that the page shows.
    #[arg(long, value_name = "N", default_value_t = 24)]
    pub(crate) show: usize,

    // What is flattened comes last: its heading is also that of all flags behind it.
    #[command(flatten)]
    pub(crate) photos: PhotoArguments,

    #[command(flatten)]
    pub(crate) reading: DataArguments,
}

/// Calibrate a model on samples it has not learned: probabilities and what is unknown.
///
/// Measures probabilities and thresholds anew, on samples of yours that the model has not learned. Which
/// class is named does not change.
///
/// A model measures both by itself on the samples that it learns. Calibrate where your queries look
/// different from these: another camera, other light, classes more alike. `ivoro evaluate` tells: a
/// calibration error of several percent, or more known queries rejected than promised. Ten samples of each
/// class and 200 in all are a good beginning; fewer than 50 in all say little.
///
/// Do not give samples that were learned: the model is too sure of them; the list of --remember leaves such
/// photos out. And do not evaluate on the same
/// ones afterwards: the figures printed here are measured on fifths of the samples that were kept apart.
#[derive(Debug, Args)]
pub(crate) struct CalibrateArguments {
    /// The model file.
    pub(crate) model: PathBuf,

    /// Samples of classes that the model knows: a features file, or a folder of photos by class. Of data divided into a train and a test part, the train part is used.
    pub(crate) data: PathBuf,

    /// Use only these classes of the data.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) classes: Option<Vec<String>>,

    /// Say what would change, and leave the model as it is.
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) photos: SampleArguments,

    #[command(flatten)]
    pub(crate) reading: DataArguments,
}

/// How answers are written line by line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RowFormat {
    /// One line a photo, with a header.
    Csv,
    /// One JSON object a line.
    Jsonl,
}

/// What happens to a photo that is sorted.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct KeepArguments {
    /// Sort copies; the photos stay (default).
    #[arg(long, requires = "sort_into", conflicts_with_all = ["move_", "link"])]
    copy: bool,

    /// Sort the photos themselves: each is removed when its copy is safe on the disk.
    #[arg(long = "move", requires = "sort_into", conflicts_with = "link")]
    move_: bool,

    /// Sort hard links, which take no room; both folders must be on one file system.
    #[arg(long, requires = "sort_into")]
    link: bool,
}

impl KeepArguments {
    pub(crate) fn keep(self) -> Keep {
        match (self.move_, self.link) {
            (true, _) => Keep::Move,
            (_, true) => Keep::Link,
            _ => Keep::Copy,
        }
    }
}

/// Answer photos as they come into a folder: one row each, or sorted into folders by class.
///
/// Answers photos as they come into a folder, one row each, until Ctrl-C. The folder is looked at again
/// and again, which works on network drives too. A photo counts once its size has stood still; one that
/// can't be read yet is tried again when it has changed.
///
/// With --out or --sort-into a file holds the rows and says at the next start what is done: a stop at any
/// time, even by force, loses no row and repeats none. On standard output every start begins anew.
#[derive(Debug, Args)]
pub(crate) struct WatchArguments {
    /// The model file.
    pub(crate) model: PathBuf,

    /// The folder to watch, with its subfolders.
    pub(crate) folder: PathBuf,

    /// Answer what is there and end.
    #[arg(long)]
    pub(crate) once: bool,

    /// Append the rows to this file, and pass over photos that it has.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,

    /// How rows are written.
    #[arg(long, default_value = "csv")]
    pub(crate) format: RowFormat,

    /// Sort photos into folders named after their classes, unknown ones into `unknown`. Nothing is
    /// overwritten. Rows go to `rows.csv` (or `rows.jsonl`) there, unless --out names another file.
    #[arg(long, value_name = "DIR")]
    pub(crate) sort_into: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) keep: KeepArguments,

    /// Photos of one folder taken within this many seconds of each other, by the camera's clock, show
    /// one object and are one query. Photos without such a time stand alone.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) burst_seconds: Option<f64>,

    /// Reject as unknown at the threshold where this share of known queries may be rejected wrongly.
    #[arg(long, value_name = "SHARE", default_value_t = 0.05)]
    pub(crate) reject: f64,

    /// Seconds between two looks at the folder.
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    pub(crate) every: f64,

    #[command(flatten)]
    pub(crate) look: LookArguments,
}
