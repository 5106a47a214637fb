//! The command line, as text that teaches.

mod baselines;
mod evaluate;
mod few_shot;
pub(crate) mod figures;
pub(crate) mod images;
mod input;
pub(crate) mod networks;
pub(crate) mod photos;
pub(crate) mod reproduce;
pub(crate) mod serve;
mod settings;

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use ivoro::Variant;

use crate::args::baselines::BaselineArguments;
pub(crate) use crate::args::evaluate::{
    CalibrateArguments, EvaluateArguments, RowFormat, WatchArguments,
};
pub(crate) use crate::args::few_shot::FewShotArguments;
pub(crate) use crate::args::figures::{
    FigureArguments, FigureCommand, ReportArguments, SceneArguments, TsneArguments,
};
use crate::args::images::{
    DemoArguments, ExtractArguments, LookArguments, PipelineArguments, TrainArguments,
};
pub(crate) use crate::args::input::{DataArguments, InputArguments, SplitArguments};
use crate::args::networks::NetworksArguments;
use crate::args::photos::{PhotoArguments, SampleArguments};
use crate::args::reproduce::ReproduceArguments;
use crate::args::serve::ServeArguments;
pub(crate) use crate::args::settings::SettingArguments;

/// How to begin, below the list of verbs.
const BEGINNING: &str = "\
To begin, with a folder of photos for each class:
  ivoro learn birds photos/
  ivoro predict birds new.jpg";

/// Teach a running classifier new classes, from photos or features.
///
/// No earlier sample is kept and the network stays frozen. Earlier classes stay, but some accuracy on
/// them is lost as classes are added: 4 to 14 points in our tables. What is known of a class is a few
/// sums; the classifier is a Voronoi diagram of the class means.
#[derive(Debug, Parser)]
#[command(name = "ivoro", version, arg_required_else_help = true, after_help = BEGINNING)]
pub(crate) struct Arguments {
    /// Number of threads (default: all cores). Results do not depend on it.
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,

    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Arguments {
    /// What a command line says, the program's name first.
    pub(crate) fn read(
        line: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    ) -> Result<Self, clap::Error> {
        let mut known = Self::command();
        for name in LEAVING_OUT {
            known = known.mut_subcommand(name, |verb| {
                // what it asked for is the default there
                let verb = verb.mut_arg("skip_broken", |arg| arg.hide(true));
                // its name before, where it means nothing else
                let has = |flag: &str| verb.get_arguments().any(|it| it.get_long() == Some(flag));
                let may_be_json = has("left-out") && !has("json");
                if may_be_json { verb.mut_arg("left_out", |arg| arg.alias("json")) } else { verb }
            });
        }
        let matches = known.try_get_matches_from_mut(line)?;
        let mut arguments = Self::from_arg_matches(&matches)?;
        arguments.command.unescape_classes();
        let Some((_, given)) = matches.subcommand() else { return Ok(arguments) };
        let (look, model) = match &mut arguments.command {
            Command::Run(run) => {
                run.for_images = given_of::<PipelineArguments>(given);
                return Ok(arguments);
            }
            Command::Learn(learn) => (&mut learn.lesson.reading.look, &learn.model),
            Command::Update(update) => (&mut update.lesson.reading.look, &update.model),
            Command::Calibrate(calibrate) => (&mut calibrate.reading.look, &calibrate.model),
            Command::Retract(retract) => (&mut retract.reading.look, &retract.model),
            Command::Relabel(relabel) => (&mut relabel.reading.look, &relabel.model),
            Command::Predict(predict) => (&mut predict.reading.look, &predict.model),
            Command::Evaluate(evaluate) => (&mut evaluate.reading.look, &evaluate.model),
            Command::Watch(watch) => (&mut watch.look, &watch.model),
            _ => return Ok(arguments),
        };
        look.given = given_of::<LookArguments>(given);
        if given.try_contains_id("class_from").is_ok() {
            look.given.extend(given_of::<SampleArguments>(given));
        }
        look.near = model.parent().map(ToOwned::to_owned);
        Ok(arguments)
    }
}

impl Command {
    /// Puts names together that were parted at a comma of their own.
    fn unescape_classes(&mut self) {
        let classes = match self {
            Self::Learn(learn) => &mut learn.lesson.classes,
            Self::Update(update) => &mut update.lesson.classes,
            Self::Calibrate(calibrate) => &mut calibrate.classes,
            Self::Retract(retract) => &mut retract.classes,
            Self::Seal(seal) => &mut seal.classes,
            _ => return,
        };
        if let Some(names) = classes {
            *names = unescaped(&names.join(","));
        }
    }
}

/// Names between commas; `\,` is a comma of a name and `\\` a backslash.
fn unescaped(text: &str) -> Vec<String> {
    let (mut names, mut signs) = (vec![String::new()], text.chars().peekable());
    while let Some(sign) = signs.next() {
        let escaped = signs.next_if(|next| sign == '\\' && [',', '\\'].contains(next));
        match (escaped, names.last_mut()) {
            (None, _) if sign == ',' => names.push(String::new()),
            (sign_of_name, Some(name)) => name.push(sign_of_name.unwrap_or(sign)),
            (_, None) => {}
        }
    }
    names
}

/// Verbs that leave out photos which can't be read, unless they are told otherwise.
const LEAVING_OUT: [&str; 8] =
    ["learn", "predict", "update", "retract", "relabel", "calibrate", "evaluate", "watch"];

/// The flags of one kind among those given.
fn given_of<Kind: Args>(given: &ArgMatches) -> Vec<String> {
    let all = Kind::augment_args(clap::Command::new("kind"));
    let used = |flag: &&clap::Arg| {
        given.value_source(flag.get_id().as_str()) == Some(ValueSource::CommandLine)
    };
    let names = all.get_arguments().filter(used).filter_map(clap::Arg::get_long);
    names.map(|name| format!("--{name}")).collect()
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Teach a model new classes, and more of those it knows; begins the model if there is none.
    Learn(Box<LearnArguments>),
    /// Ask a model about images or features: class, distance, probability, uncertainty, unknown.
    Predict(PredictArguments),
    Evaluate(Box<EvaluateArguments>),
    Watch(Box<WatchArguments>),
    Serve(Box<ServeArguments>),
    /// Add samples to classes the model knows.
    Update(UpdateArguments),
    /// Take samples back: afterwards the model is the one that never saw them.
    Retract(Box<RetractArguments>),
    /// Give samples, or a whole class, another class.
    Relabel(Box<RelabelArguments>),
    /// Give a class another name; nothing else changes.
    Rename(RenameArguments),
    /// Forget a class, exactly.
    Forget(ForgetArguments),
    Calibrate(Box<CalibrateArguments>),
    /// Keep few numbers per class, for devices: it can be asked, and no sample can be added any more.
    Seal(SealArguments),
    /// Merge models learned at different sites into exactly the pooled one.
    Merge(MergeArguments),
    /// Say what a model is: variant, settings, classes, phases.
    Inspect(InspectArguments),
    /// List every number a model keeps, in bytes, and what it does not keep.
    Audit(InspectArguments),
    /// Say when what was done to a model, with how many samples of which classes.
    Log(InspectArguments),
    /// List the networks at hand, and add others.
    Networks(NetworksArguments),
    /// Explain the letters of the variants.
    Variants,
    /// Learn MNIST digits from scratch: training, features, all methods, in under three minutes.
    Demo(DemoArguments),
    /// Compare methods on features or on a data set of images: one table, run.json and CSV.
    Run(Box<RunArguments>),
    /// Try methods on few samples of each class, several draws and orders: mean ± deviation.
    #[command(alias = "fewshot")]
    FewShot(Box<FewShotArguments>),
    /// Run a whole grid – protocols, methods, seeds – as a job that resumes where it was stopped.
    Reproduce(Box<ReproduceArguments>),
    /// Train a network on the images of the base classes.
    Train(Box<TrainArguments>),
    /// Compute the features of a data set of images with a frozen network.
    Extract(Box<ExtractArguments>),
    /// Show records as one page with tables and figures.
    Report(ReportArguments),
    /// Compute what a picture of the report is drawn from.
    #[command(subcommand)]
    Figure(Box<FigureCommand>),
    /// Print a completion script for a shell.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
}

impl RunArguments {
    /// Fills in what depends on the data: the embedded set is small and already in order.
    pub(crate) fn with_defaults(mut self) -> Self {
        let embedded = self.features.is_none();
        let or = |list: &mut Vec<String>, own: &str, other: &str| {
            if list.is_empty() {
                list.push(if embedded { own } else { other }.to_owned());
            }
        };
        or(&mut self.order, "identity", "numpy:1993");
        or(&mut self.variants, "all", "paper");
        if embedded && self.peers.is_none() && !self.tuned_on_test {
            self.peers = Some(vec!["all".to_owned()]);
        }
        self.ranpac_dim = self.ranpac_dim.or(embedded.then_some(2_000));
        self
    }
}

/// What settings are tuned on in place of the base phase.
#[derive(Clone, Debug)]
pub(crate) enum TuneOn {
    /// Held-out images under a network trained on half of the base classes.
    HeldOutClasses,
    /// A features file.
    File(PathBuf),
}

impl From<&str> for TuneOn {
    fn from(text: &str) -> Self {
        match text {
            // `network` is the former word, of --judge
            "held-out-classes" | "network" => Self::HeldOutClasses,
            file => Self::File(file.into()),
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// Features file (.features/.safetensors, .npz, .npy, .parquet or .arrow) or a data set of
    /// images (folder, archive), on whose base classes a network is trained first. Without one,
    /// the small real features that come with the program.
    pub(crate) features: Option<PathBuf>,

    /// Which classes come when: 50+5x10 (50 first, then 5 phases of 10) or a list, 4,3,3.
    /// Default: half of the classes first, the rest in five phases.
    #[arg(long, value_name = "TEXT")]
    pub(crate) protocol: Option<String>,

    /// Class order: identity, a seed, numpy:SEED, or a file with ids or names. Several, separated
    /// by commas, give mean ± deviation. Default: numpy:1993; identity for the embedded set.
    #[arg(long, value_name = "ORDER,…", value_delimiter = ',')]
    pub(crate) order: Vec<String>,

    /// paper (the 21 of the paper), all (also ours), none, default (the variant that suits the base
    /// phase best), or names: iVoro,iVoro-NDAIL. Default: paper; all for the embedded set.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) variants: Vec<String>,

    /// Methods to compare with: all, or ncm, ncm-cosine, slda, fecam, fenec, ranpac, klda, dsal,
    /// loranpac, anacp, joint. They see the upright image and its last layer. With letters behind a
    /// name they see what our variants do: ranpac-FAIL, all-F. F averages mirror images, AI
    /// concatenates rotations and L two layers.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', num_args = 0..=1, default_missing_value = "all", require_equals = false)]
    pub(crate) peers: Option<Vec<String>>,

    /// Choose settings by accuracy on the test samples, as some papers did, and stamp all results
    /// with it. Such accuracies are too high. Other methods have no part in it.
    #[arg(long, conflicts_with_all = ["peers", "baselines"])]
    pub(crate) tuned_on_test: bool,

    /// Tune settings on classes that the network was not trained on. held-out-classes (default)
    /// trains a second network on half of the base classes and tunes on held-out training images of
    /// all base classes. FILE has features of such a network, the classes of its training first.
    #[arg(
        long,
        alias = "judge",
        value_name = "held-out-classes|FILE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "held-out-classes",
        conflicts_with = "tuned_on_test"
    )]
    pub(crate) tune_on: Option<TuneOn>,

    /// Name of the data set for the record, as CIFAR-100; the report compares by it.
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) data_set: Option<String>,

    /// What tells this network from others on the same data set, for the record.
    #[arg(long, value_name = "NAME")]
    pub(crate) network_name: Option<String>,

    /// Random features of the peers that lift: ranpac, klda, dsal, loranpac, anacp. Default: 10000,
    /// 5000, 8192, 10000 and 5000; 2000 each for the embedded set.
    #[arg(long, value_name = "DIM")]
    pub(crate) ranpac_dim: Option<usize>,

    /// Folder for run.json and the CSV files; finished methods found there are not run again.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// Print the record as JSON instead of the table.
    #[arg(long, conflicts_with = "csv")]
    pub(crate) json: bool,

    /// Write the table as CSV to a file, or to standard output with -.
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,

    // What is flattened comes last: its heading is also that of all flags behind it.
    #[command(flatten)]
    pub(crate) split: SplitArguments,

    #[command(flatten)]
    pub(crate) baselines: BaselineArguments,

    #[command(flatten)]
    pub(crate) pipeline: PipelineArguments,

    /// Those of the flags for images that were given.
    #[arg(skip)]
    pub(crate) for_images: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct LearnArguments {
    /// The model file; begun if it does not exist.
    pub(crate) model: PathBuf,

    /// Photos: folders by class, zip archives, photos with --class, and - for a list on standard input (a path a
    /// line, and behind a tab its class). Or a features file.
    #[arg(required = true, value_name = "PHOTOS|FEATURES")]
    pub(crate) features: Vec<PathBuf>,

    /// Variant of a new model; an existing one keeps its own, and its settings. Default: the one that
    /// suits the samples best, within the budget.
    #[arg(long)]
    pub(crate) variant: Option<Variant>,

    /// KB (1,024 bytes) that a class may add to the model where the variant is chosen.
    #[arg(long, value_name = "KB", default_value_t = 200, conflicts_with = "variant")]
    pub(crate) budget: u32,

    /// Seconds on two cores that choosing and learning may take where the variant is chosen.
    #[arg(long, value_name = "S", default_value_t = 60.0, conflicts_with = "variant")]
    pub(crate) budget_seconds: f64,

    #[command(flatten)]
    pub(crate) lesson: LessonArguments,

    #[command(flatten)]
    pub(crate) settings: SettingArguments,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum BurstChoice {
    /// Distances are added.
    Sum,
    /// Each vector votes.
    Vote,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table for people.
    Table,
    /// One line per query, with a header.
    Csv,
    /// One JSON object a line.
    Jsonl,
}

/// What the columns of `predict` say.
const COLUMNS: &str = "\
What is printed for each query:
  class         the nearest class; runner-up the next one
  probability   how sure that is, as measured on samples that were asked before they were learned; of
                ten answers with 90 % about nine are right
  distance      to the class, in units of the model: comparable within one query only
  unknown       with --reject: whether the query is stranger than known ones usually are
  strangeness   (CSV, JSON) how unlike everything known the query is: 1 is usual for a known class
  HV            (uncertainty in CSV and JSON) how much the views or rows of a query disagree: 0 is not at
                all; the table has it only where they do
  burst         with --burst: how many rows the query is made of
  label         (CSV, JSON) the class in the file, where it has one
  approximate   (CSV, JSON) whether an index answered, which can be wrong; --exact compares with all
In CSV a name that begins with = + - @ gets a ' before it, so that no spreadsheet computes it.";

#[derive(Debug, Args)]
#[command(after_long_help = COLUMNS)]
pub(crate) struct PredictArguments {
    /// The model file.
    pub(crate) model: PathBuf,

    /// Photos: files, folders, zip archives, and - for a list on standard input; folders called as classes of
    /// the model are labels. Or features of the queries; labels, if there are any, are used to report the
    /// accuracy.
    #[arg(required = true, value_name = "PHOTOS|FEATURES")]
    pub(crate) features: Vec<PathBuf>,

    /// How many classes to list.
    #[arg(long, value_name = "K", default_value = "3")]
    pub(crate) top: NonZeroUsize,

    /// At most this share of known queries may be called unknown wrongly: 0.001 to 0.999 (--reject=0.1).
    /// Default: 0.05, if the model can tell.
    #[arg(long, value_name = "SHARE", num_args = 0..=1, default_missing_value = "0.05")]
    pub(crate) reject: Option<f64>,

    /// Never say that a query is unknown.
    #[arg(long, conflicts_with = "reject")]
    pub(crate) no_reject: bool,

    /// Burst: this many consecutive rows show one object and are one query.
    #[arg(long, value_name = "M")]
    pub(crate) burst: Option<NonZeroUsize>,

    /// How the rows of a burst are joined.
    #[arg(long, default_value = "sum", requires = "burst")]
    pub(crate) burst_rule: BurstChoice,

    /// Compare every query with every class, also from 100,000 classes on.
    #[arg(long)]
    pub(crate) exact: bool,

    /// How to print.
    #[arg(long, default_value = "table")]
    pub(crate) format: Format,

    #[command(flatten)]
    pub(crate) photos: PhotoArguments,

    #[command(flatten)]
    pub(crate) reading: DataArguments,
}

#[derive(Debug, Args)]
pub(crate) struct UpdateArguments {
    /// The model file.
    pub(crate) model: PathBuf,

    /// Photos of classes that the model knows, as for learn, or a features file.
    #[arg(required = true, value_name = "PHOTOS|FEATURES")]
    pub(crate) features: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) lesson: LessonArguments,
}

/// What samples are given as.
#[derive(Debug, Args)]
pub(crate) struct LessonArguments {
    /// Use only these classes of the data; \, is a comma of a name.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) classes: Option<Vec<String>>,

    /// The class of all photos, whatever their folders are called.
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) class: Option<String>,

    /// Write a receipt: the exact sums that these samples add. It takes them, or a class of them, back
    /// on any machine (`retract`, `forget`). It reveals the features of few samples: keep it where
    /// you would keep the photos. The model keeps nothing of it.
    #[arg(long, value_name = "FILE")]
    pub(crate) receipt: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) photos: SampleArguments,

    #[command(flatten)]
    pub(crate) reading: DataArguments,
}

/// Takes back the same samples that were learned or added: afterwards the model is, bit for bit, the one
/// that never saw them. A class without any sample left is gone.
///
/// With --receipt no sample is needed. Without, the features must be those that were learned, to the
/// last bit. A features file has them. A network does not always compute them alike, on another
/// machine or among other images: then only a whole lesson, given again as it was, can be
/// recognised, and all else is refused unless --inexact says that last digits do not matter.
///
/// More than was given is refused, and nothing changes. A model keeps no list of samples, though: other
/// samples than were given are found out only where the sums that would remain are impossible.
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct RetractArguments {
    /// The model file.
    pub(crate) model: PathBuf,

    /// Photos as they were taught, or features of the samples.
    #[arg(
        required_unless_present = "receipt",
        conflicts_with = "receipt",
        value_name = "PHOTOS|FEATURES"
    )]
    pub(crate) features: Vec<PathBuf>,

    /// Receipts of what is to be taken back, as `learn` and `update` write them.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(crate) receipt: Vec<PathBuf>,

    /// Take back only these classes; \, is a comma of a name.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) classes: Option<Vec<String>>,

    /// The class of all samples, whatever their labels or folders are called. Then images may be
    /// single files.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["classes", "receipt"])]
    pub(crate) from: Option<String>,

    /// A class that has got another name since its receipt was written.
    #[arg(long, value_name = "OLD=NEW", requires = "receipt")]
    pub(crate) renamed: Vec<String>,

    #[command(flatten)]
    pub(crate) giving_up: GivingUpArguments,

    #[command(flatten)]
    pub(crate) photos: SampleArguments,

    #[command(flatten)]
    pub(crate) reading: DataArguments,
}

/// What may be given up where taking back can't be exact.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct GivingUpArguments {
    /// Give up the probes of a phase that were trained on the samples.
    #[arg(long)]
    pub(crate) drop_probes: bool,

    /// Take features that may differ in their last digits from those that were learned. A trace of
    /// that size stays.
    #[arg(long)]
    pub(crate) inexact: bool,
}

/// Samples that were learned as one class become samples of another, which may be new: the model is, bit
/// for bit, the one that learned them so. Without features the whole class --from becomes a part
/// of the class --to, and no sample is needed.
#[derive(Debug, Args)]
pub(crate) struct RelabelArguments {
    /// The model file.
    pub(crate) model: PathBuf,

    /// Photos as they were taught, or features of the samples. Without: all that was learned of the
    /// class --from.
    #[arg(required_unless_present = "from", value_name = "PHOTOS|FEATURES")]
    pub(crate) features: Vec<PathBuf>,

    /// The class that the samples get.
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) to: String,

    /// The class that they were learned as (default: their labels). Then images may be single files.
    #[arg(long, value_name = "NAME")]
    pub(crate) from: Option<String>,

    #[command(flatten)]
    pub(crate) giving_up: GivingUpArguments,

    #[command(flatten)]
    pub(crate) photos: SampleArguments,

    #[command(flatten)]
    pub(crate) reading: DataArguments,
}

#[derive(Debug, Args)]
pub(crate) struct RenameArguments {
    /// The model file.
    pub(crate) model: PathBuf,

    /// The class.
    pub(crate) class: String,

    /// What it is called from now on. To make two classes one, use `relabel`.
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct ForgetArguments {
    /// The model file.
    pub(crate) model: PathBuf,

    /// Names of the classes to forget.
    #[arg(required = true)]
    pub(crate) classes: Vec<String>,

    /// Give up the probes of a phase that were trained on the class together with others.
    #[arg(long)]
    pub(crate) drop_probes: bool,

    /// Receipts of all samples of the classes: needed where W keeps one scatter for all classes.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(crate) receipt: Vec<PathBuf>,

    /// Take the names out of the journal too (`ivoro log`).
    #[arg(long)]
    pub(crate) strike_names: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SealArguments {
    /// The model file, of a variant with Q.
    pub(crate) model: PathBuf,

    /// Seal only these classes (default: all).
    #[arg(long = "class", value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) classes: Option<Vec<String>>,

    /// Directions per class (default: as many as the model asks with).
    #[arg(long, value_name = "R")]
    pub(crate) rank: Option<NonZeroUsize>,

    /// Bits of each number of a direction: 8 or 16 (default: 8).
    #[arg(long, value_name = "BITS")]
    pub(crate) bits: Option<u8>,

    /// Where to write the sealed model; without it, MODEL itself is replaced and its sums are gone.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct MergeArguments {
    /// Models to merge, in this order.
    #[arg(required = true, num_args = 2..)]
    pub(crate) models: Vec<PathBuf>,

    /// Where to write the merged model.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: PathBuf,

    /// The model all of them started from; what they learned there counts once.
    #[arg(long, value_name = "FILE")]
    pub(crate) ancestor: Option<PathBuf>,

    /// Which of the models to take settings from where they differ (default: the first).
    #[arg(long, value_name = "FILE")]
    pub(crate) settings_of: Option<PathBuf>,

    /// Replace the file of --out if it is there already.
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, Args)]
pub(crate) struct InspectArguments {
    /// The model file.
    pub(crate) model: PathBuf,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(test)]
mod tests {
    use super::unescaped;

    #[test]
    fn names_may_have_commas() {
        assert_eq!(unescaped("ant,bee"), ["ant", "bee"]);
        assert_eq!(unescaped(r"rose\, red,bee"), ["rose, red", "bee"]);
        assert_eq!(unescaped(r"a\b,c\\,d"), [r"a\b", r"c\", "d"]);
        assert_eq!(unescaped("a\\"), ["a\\"]);
        assert_eq!(unescaped(""), [""]);
    }
}
