//! Arguments of trials with few samples of each class.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

use crate::args::SplitArguments;

#[derive(Debug, Args)]
pub(crate) struct FewShotArguments {
    /// Features file (.features/.safetensors, .npz, .npy, .parquet or .arrow).
    pub(crate) features: PathBuf,

    /// Samples of each class to learn: numbers, and all.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1,5,10,20,all")]
    pub(crate) shots: Vec<String>,

    /// How often samples are drawn for each number of shots; all samples are drawn once.
    #[arg(long, value_name = "N", default_value = "5")]
    pub(crate) draws: NonZeroUsize,

    /// In how many orders the rows of each draw are learned.
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) orders: NonZeroUsize,

    /// default (the variant that suits the samples best), paper (the 21 of the paper), all (also
    /// ours), none, or names: iVoro-N,iVoro-NW.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', default_value = "default")]
    pub(crate) variants: Vec<String>,

    /// Methods to compare with: all, or names as of ivoro run.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', num_args = 0..=1, default_missing_value = "all")]
    pub(crate) peers: Option<Vec<String>>,

    /// Random features of the peer ranpac. Default: 10000.
    #[arg(long, value_name = "DIM")]
    pub(crate) ranpac_dim: Option<usize>,

    /// Folder for few-shot.json and few-shot.csv; finished trials found there are not run again.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// Print the record as JSON instead of the table.
    #[arg(long, conflicts_with = "csv")]
    pub(crate) json: bool,

    /// Print all trials as CSV instead of the table.
    #[arg(long)]
    pub(crate) csv: bool,

    #[command(flatten)]
    pub(crate) split: SplitArguments,
}
