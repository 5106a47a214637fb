//! Arguments that say how a features file is read.

use std::path::PathBuf;

use clap::Args;
use ivoro_io::features::ReadOptions;

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
