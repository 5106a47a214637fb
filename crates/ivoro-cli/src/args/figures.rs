//! Arguments of the verbs that show results.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use ivoro::Variant;

use crate::args::input::SplitArguments;

/// Samples of a picture at most, and how t-SNE goes where nothing else is said.
pub(crate) const SAMPLES: usize = 3_000;
pub(crate) const PERPLEXITY: f32 = 30.0;
pub(crate) const STEPS: usize = 1_000;

#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// Folder with records: run.json, run-*.json, *.scene.json, *.tsne.json, also as .gz.
    pub(crate) runs: PathBuf,

    /// Folder for index.html, tables.csv and figures/.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FigureCommand {
    /// A diagram of two-dimensional features, phase after phase.
    Scene(SceneArguments),
    /// Features brought to the plane by t-SNE (Barnes–Hut).
    Tsne(TsneArguments),
}

#[derive(Debug, Args)]
pub(crate) struct SceneArguments {
    /// Most samples that are drawn in a phase.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) samples: usize,

    #[command(flatten)]
    pub(crate) common: FigureArguments,
}

#[derive(Debug, Args)]
pub(crate) struct TsneArguments {
    /// Most samples, each rotation of AC and AI counted.
    #[arg(long, value_name = "N", default_value_t = SAMPLES)]
    pub(crate) samples: usize,

    /// Perplexity: about how many neighbours a sample has.
    #[arg(long, default_value_t = PERPLEXITY)]
    pub(crate) perplexity: f32,

    /// Steps of the optimisation.
    #[arg(long, value_name = "N", default_value_t = STEPS)]
    pub(crate) epochs: usize,

    #[command(flatten)]
    pub(crate) common: FigureArguments,
}

#[derive(Debug, Args)]
pub(crate) struct FigureArguments {
    /// Features file.
    pub(crate) features: PathBuf,

    /// Whose features and sites.
    #[arg(long, default_value = "iVoro")]
    pub(crate) variant: Variant,

    /// Which classes come when, as for `run`.
    #[arg(long, value_name = "TEXT")]
    pub(crate) protocol: Option<String>,

    /// Class order, as for `run`.
    #[arg(long, default_value = "numpy:1993")]
    pub(crate) order: String,

    /// Name of the data set (default: name of the file).
    #[arg(long, value_name = "NAME")]
    pub(crate) data_set: Option<String>,

    /// File to write: NAME.scene.json or NAME.tsne.json, below the folder of the records.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,

    #[command(flatten)]
    pub(crate) split: SplitArguments,
}
