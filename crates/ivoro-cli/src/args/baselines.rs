//! Arguments of methods that train the network on.

use clap::Args;

/// Methods that train the network on in every phase.
#[derive(Debug, Args)]
#[command(next_help_heading = "Baselines (where the input is a data set of images)")]
pub(crate) struct BaselineArguments {
    /// Methods that train the network on in every phase: all, or fine-tuning,ewc,lwf,lwf-mc,lwm,
    /// muc,pass, with 20 images kept of each class icarl-cnn,icarl-nme,eeil,ucir, with a learned
    /// split of the memory rmm-icarl-cnn,rmm-icarl-nme,rmm-ucir, and with all images of all
    /// classes joint-training.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) baselines: Vec<String>,

    /// Epochs of each phase after the base phase (default: as many as the base phase has).
    #[arg(long, value_name = "N")]
    pub(crate) phase_epochs: Option<usize>,

    /// Also write what the paper's pictures are drawn from, of all baselines and of iVoro, iVoro-N,
    /// iVoro-AC and iVoro-NAC where they run: diagrams where features are two-dimensional, else
    /// t-SNE of the features.
    #[arg(long, requires = "out")]
    pub(crate) pictures: bool,
}
