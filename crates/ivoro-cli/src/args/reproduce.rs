//! Arguments of the verb that runs a whole grid.

use std::path::PathBuf;

use clap::Args;
use ivoro_vision::engine::Device;

use crate::args::images::FitArguments;

/// What `--help` says besides: how a job is begun, gone on with and looked at.
pub(crate) const MORE: &str = "\
Examples:
  ivoro reproduce mnist --quick                    minutes, on images that come with the program
  ivoro reproduce cifar100 --data cifar-100-binary --device cuda
  ivoro reproduce photos/ --size 64 --skip-broken  any folder of images by class
  ivoro reproduce features.npz                     any file of features
  ivoro reproduce cifar100 --list                  the commands alone
  ivoro report runs --out report                   then: all that is finished, as one page

A cell is one command `ivoro run`: a protocol, a class order, a seed and some methods. It leaves
run.json, the CSV files and cell.json in a folder of its own. The same command again resumes where a
job was stopped: what is finished is not computed again, unless the data, the recipe or the network
have changed. A cell that fails does not stop the others; it is named at the end, and the exit code
is 1.

Another grid is a TOML file (docs/format.md has its keys):
  [[run]]
  protocols = [\"50+5x10\"]
  variants = [\"paper\"]
  baselines = [\"pass\"]
  arguments = [\"--holdout\", \"0.3\"]  # further words for `ivoro run`";

#[derive(Debug, Args)]
#[command(after_long_help = MORE)]
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

    #[command(flatten)]
    pub(crate) fitting: FitArguments,
}
