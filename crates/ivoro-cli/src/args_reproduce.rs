//! Arguments of the verb that runs a whole grid.

use std::path::PathBuf;

use clap::Args;
use ivoro_vision::engine::Device;

#[derive(Debug, Args)]
pub(crate) struct ReproduceArguments {
    /// What to run: mnist, cifar100, tinyimagenet, or the path of any data set of images or
    /// features.
    #[arg(value_name = "mnist|cifar100|tinyimagenet|PATH")]
    pub(crate) target: String,

    /// The reduced grid, which ends in minutes on two cores.
    #[arg(long)]
    pub(crate) quick: bool,

    /// Where the data set lies (default: the usual names in this folder; for mnist the part that
    /// comes with the program).
    #[arg(long, value_name = "PATH")]
    pub(crate) data: Option<PathBuf>,

    /// TOML file that describes another grid.
    #[arg(long, value_name = "FILE")]
    pub(crate) grid: Option<PathBuf>,

    /// The network of those runs that take a trained one, instead of the one the grid names.
    #[arg(long, value_name = "FILE")]
    pub(crate) backbone: Option<PathBuf>,

    /// Folder for the records. What is finished there is not computed again.
    #[arg(long, value_name = "DIR", default_value = "runs")]
    pub(crate) out: PathBuf,

    /// Folder for trained networks and features, as for `run`.
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,

    /// Where to compute networks: cpu, cuda or cuda:N.
    #[arg(long)]
    pub(crate) device: Option<Device>,

    /// Print the commands of the grid and run none.
    #[arg(long)]
    pub(crate) list: bool,
}
