//! Arguments that say how data are read.

use std::path::PathBuf;

use clap::Args;
use ivoro::samples::Split;
use ivoro_io::features::{FeatureFile, ReadOptions, SplitOrigin};

use crate::args::images::LookArguments;
use crate::args::settings::SettingArguments;

/// How data are read, for verbs that take photos or features.
#[derive(Debug, Args)]
pub(crate) struct DataArguments {
    #[command(flatten)]
    pub(crate) look: LookArguments,

    #[command(flatten)]
    pub(crate) input: InputArguments,
}

/// Features that are divided into a train and a test part, for verbs that compare methods on them.
#[derive(Debug, Args)]
pub(crate) struct SplitArguments {
    /// Share of each class held out as test samples, where a file has no test part.
    #[arg(long, value_name = "SHARE", default_value_t = 0.2)]
    pub(crate) holdout: f64,

    #[command(flatten)]
    pub(crate) input: InputArguments,

    #[command(flatten)]
    pub(crate) settings: SettingArguments,
}

impl SplitArguments {
    pub(crate) fn options(&self) -> ReadOptions {
        ReadOptions { seed: self.settings.seed, ..self.input.options() }
    }

    /// Both parts of a file, and how they came about.
    pub(crate) fn divide(&self, file: FeatureFile) -> ivoro::Result<(Split, SplitOrigin)> {
        file.into_split(self.holdout, self.settings.seed)
    }
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Features (where the input is a features file)")]
pub(crate) struct InputArguments {
    /// Labels of a lone .npy file, as another .npy file.
    #[arg(long, value_name = "FILE")]
    pub(crate) labels: Option<PathBuf>,

    /// Layers to read, the network's last first (default: all that the file has).
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) layers: Option<Vec<String>>,

    /// Column or array of the labels, where its name is not one of the usual ones.
    #[arg(long, value_name = "NAME")]
    pub(crate) label_column: Option<String>,

    /// Column or array of the features, where its name is not one of the usual ones.
    #[arg(long, value_name = "NAME")]
    pub(crate) feature_column: Option<String>,

    /// Column that says which rows are train and test, where its name is not `split`.
    #[arg(long, value_name = "NAME")]
    pub(crate) split_column: Option<String>,
}

impl InputArguments {
    pub(crate) fn options(&self) -> ReadOptions {
        ReadOptions {
            labels: self.labels.clone(),
            layers: self.layers.clone(),
            label_column: self.label_column.clone(),
            feature_column: self.feature_column.clone(),
            split_column: self.split_column.clone(),
            ..ReadOptions::default()
        }
    }
}
