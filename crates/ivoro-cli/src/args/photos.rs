//! Arguments that say which photos count.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use ivoro_vision::dataset::{Broken, ClassFrom, Decoding, Truncated};

/// What is done about photos that can't be read.
#[derive(Debug, Args)]
#[command(next_help_heading = "Photos")]
pub(crate) struct PhotoArguments {
    /// Stop at the first photo that can't be read. Without it such photos are left out and counted.
    #[arg(long, conflicts_with = "skip_broken")]
    pub(crate) strict: bool,

    /// What to do about a JPEG that ends too early: refuse, or take what there is, with grey for the
    /// rest.
    #[arg(long, value_name = "HOW", default_value = "refuse")]
    pub(crate) truncated: TruncatedChoice,

    /// List the photos that were left out, with the reasons.
    #[arg(long, short)]
    pub(crate) verbose: bool,

    /// Write how many photos were taken, and what was left out, to this file, as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) left_out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TruncatedChoice {
    /// It is left out.
    Refuse,
    /// What there is of it counts.
    Take,
}

impl PhotoArguments {
    pub(crate) fn broken(&self) -> Broken {
        if self.strict { Broken::Fail } else { Broken::Skip }
    }

    pub(crate) fn decoding(&self) -> Decoding {
        let truncated = match self.truncated {
            TruncatedChoice::Refuse => Truncated::Refuse,
            TruncatedChoice::Take => Truncated::Take,
        };
        Decoding { broken: self.broken(), truncated }
    }
}

/// Which photos become samples of which class.
#[derive(Debug, Args)]
#[command(next_help_heading = "Photos")]
pub(crate) struct SampleArguments {
    /// Which folder names the class: the first below the one that is named, the last, or the whole path
    /// (default: first; in a zip archive the first that is not around all photos; if several folders with
    /// photos are named, as by photos/*, each of them is a class).
    #[arg(long, value_name = "WHICH")]
    pub(crate) class_from: Option<ClassFromChoice>,

    /// Count photos with the same pixels as often as they come (default: once in a class).
    #[arg(long)]
    pub(crate) keep_duplicates: bool,

    /// Keep a list of the photos that were taught, as hashes of their pixels, and leave out those that are in
    /// it. Whoever has the list and a photo can tell whether that photo was taught.
    #[arg(long, value_name = "FILE")]
    pub(crate) remember: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) photos: PhotoArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClassFromChoice {
    /// The first folder below the one that is named.
    First,
    /// The folder that the photo lies in.
    Last,
    /// All folders between, with / between.
    Path,
}

impl From<ClassFromChoice> for ClassFrom {
    fn from(choice: ClassFromChoice) -> Self {
        match choice {
            ClassFromChoice::First => Self::First,
            ClassFromChoice::Last => Self::Last,
            ClassFromChoice::Path => Self::Path,
        }
    }
}
