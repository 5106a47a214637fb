//! `ivoro run`: compares methods on one data set.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use indicatif::ProgressBar;
use ivoro::ModelOptions;
use ivoro::samples::Split;
use ivoro_eval::comparison::{self, Method, Provenance};
use ivoro_eval::peers::PeerSettings;
use ivoro_eval::picture::Picture;
use ivoro_eval::record::{MethodRecord, NamedValues, RunRecord};
use ivoro_eval::{ClassOrder, Protocol, Run, Stream};
use ivoro_vision::baselines::Baseline;

use super::baselines::{self, Baselines};
use super::figure;
use super::ledger::Ledger;
use super::source::{Source, TuningSet};
use crate::args::RunArguments;
use crate::args::figures::{SAMPLES, STEPS};
use crate::args::images::class_order;
use crate::failure::Failure;
use crate::{output, progress};

/// Compares methods on one data set.
pub(crate) fn run(arguments: &RunArguments) -> Result<(), Failure> {
    let (methods, baselines) = (methods(arguments)?, baselines::named(arguments)?);
    if methods.is_empty() && baselines.is_empty() {
        return Err(Failure::Usage(
            "no method to run: name variants, peers or baselines".to_owned(),
        ));
    }
    let source = Source::open(arguments)?;
    let classes = source.classes();
    let protocol = match &arguments.protocol {
        Some(text) => text.parse()?,
        None => Protocol::default_for(classes.len())?,
    };
    protocol.check(classes.len())?;
    let orders: Vec<ClassOrder> = arguments
        .order
        .iter()
        .map(|text| class_order(text, classes))
        .collect::<Result<_, Failure>>()?;
    if let Some(at) = (1..orders.len()).find(|&at| orders[..at].contains(&orders[at])) {
        return Err(Failure::Usage(format!("order {} is given twice", orders[at])));
    }
    let _lock = match &arguments.out {
        Some(folder) => {
            output::make_folder(folder)?;
            Some(super::hold(&folder.join("run"), folder)?)
        }
        None => None,
    };
    progress::catch_interrupts();
    let (mut records, mut files) = (Vec::new(), Vec::new());
    for order in &orders {
        let path = record_path(arguments, orders.len(), order);
        let job = Job { arguments, methods: &methods, baselines: &baselines, protocol: &protocol };
        let (ledger, result) = job.go(&source, order, path)?;
        files.push(ledger.whole());
        records.push(ledger.record);
        if let Err(failure) = result {
            if matches!(failure, Failure::Interrupted) {
                report(arguments, &records, &files)?;
            }
            return Err(failure);
        }
    }
    report(arguments, &records, &files)?;
    if arguments.features.is_none() {
        next_steps();
    }
    Ok(())
}

/// What is compared, in whatever class order.
struct Job<'a> {
    arguments: &'a RunArguments,
    methods: &'a [Method],
    baselines: &'a [Baseline],
    protocol: &'a Protocol,
}

impl Job<'_> {
    /// The comparison in one class order: what was finished, and why it was not all.
    fn go(
        &self,
        source: &Source,
        order: &ClassOrder,
        path: Option<PathBuf>,
    ) -> Result<(Ledger, Result<(), Failure>), Failure> {
        let Self { arguments, methods, baselines, protocol } = self;
        let heads = match methods {
            [] => None,
            methods => Some(Heads::new(arguments, methods, source, protocol, order)?),
        };
        let trained = if baselines.is_empty() {
            None
        } else {
            let trained = source.network(arguments, protocol, order)?;
            Some(Baselines::new(arguments, trained, protocol, order)?)
        };
        let mut record = match (&heads, &trained) {
            (Some(heads), _) => heads.outline(arguments, order),
            (None, Some(trained)) => trained.outline()?,
            (None, None) => RunRecord::default(),
        };
        record.options.training = match (&heads, &trained) {
            (Some(heads), _) => heads.training.clone(),
            (None, Some(trained)) => trained.training(),
            (None, None) => None,
        };
        record.data_set.clone_from(&arguments.data_set);
        record.network.clone_from(&arguments.network_name);
        record.tuned_on_test = arguments.tuned_on_test;
        record.tuned_on =
            heads.as_ref().and_then(|heads| Some(heads.tuning_set.as_ref()?.name.clone()));
        let mut ledger = Ledger::open(record, path)?;
        let mut result = heads.map_or(Ok(()), |heads| heads.go_through(arguments, &mut ledger));
        if let (Ok(()), Some(trained)) = (&result, &trained) {
            result = trained.train(baselines, &mut ledger);
        }
        Ok((ledger, result))
    }
}

/// The variants that the paper shows in pictures.
const PICTURED: [&str; 4] = ["iVoro", "iVoro-N", "iVoro-AC", "iVoro-NAC"];

/// Methods on frozen features.
struct Heads {
    stream: Stream,
    methods: Vec<Method>,
    provenance: Provenance,
    /// What settings are chosen on, where that is not the base phase itself.
    tuning_set: Option<TuningSet>,
    /// How the network behind the features was trained, where that is known.
    training: Option<NamedValues>,
}

impl Heads {
    fn new(
        arguments: &RunArguments,
        methods: &[Method],
        source: &Source,
        protocol: &Protocol,
        order: &ClassOrder,
    ) -> Result<Self, Failure> {
        let found = source.features(arguments, protocol, order)?;
        let methods = suitable(methods.to_vec(), &found.split)?;
        if methods.is_empty() {
            return Err(Failure::Usage(format!("{}: no method fits these features", found.name)));
        }
        let stream = Stream::new(&found.split, protocol.clone(), order)?;
        let provenance = Provenance { features: found.name, split: found.origin };
        let tuning_set = if methods.iter().any(Method::is_variant) {
            source.tuning_set(arguments, protocol, order)?
        } else {
            None
        };
        if let Some(tuning_set) = &tuning_set {
            let (fit, left_out) = comparison::suitable(methods.clone(), &tuning_set.split)?;
            if fit.len() < methods.len() {
                let names = left_out.join(", ");
                let text = format!("{} lacks the views or the layer for {names}", tuning_set.name);
                return Err(Failure::Usage(text));
            }
        }
        Ok(Self { stream, methods, provenance, tuning_set, training: found.training })
    }

    fn outline(&self, arguments: &RunArguments, order: &ClassOrder) -> RunRecord {
        let (options, peers) = (arguments.split.settings.options(), peer_settings(arguments));
        comparison::begin(&self.stream, order, &self.provenance, &options, &peers)
    }

    /// Runs every method; each finished one is saved at once.
    fn go_through(&self, arguments: &RunArguments, ledger: &mut Ledger) -> Result<(), Failure> {
        let mut options = arguments.split.settings.options();
        if arguments.tuned_on_test {
            options.tuner = Arc::new(self.stream.tuner().with_the_variant_itself());
        } else if let Some(tuning_set) = &self.tuning_set {
            options.tuner = Arc::new(tuning_set.stream.tuner());
        }
        let phases = self.stream.protocol().sizes().len();
        let bar = progress::bar(self.methods.len() * phases);
        let run = |method: &Method, ledger: &mut Ledger| -> Result<(), Failure> {
            bar.set_message(method.name().to_owned());
            if ledger.take_up(method.name(), |_| true) {
                bar.inc(phases as u64);
                return Ok(());
            }
            ledger.push(one(arguments, &self.stream, method, &options, &bar)?)
        };
        let result = self.methods.iter().try_for_each(|method| run(method, ledger));
        bar.finish_and_clear();
        result?;
        match &arguments.out {
            Some(folder) if arguments.baselines.pictures => {
                self.pictures(arguments, &options, folder)
            }
            _ => Ok(()),
        }
    }

    /// What pictures of the variants are drawn from, as far as it is not there yet.
    fn pictures(
        &self,
        arguments: &RunArguments,
        options: &ModelOptions,
        folder: &Path,
    ) -> Result<(), Failure> {
        let data_set = arguments.data_set.clone().unwrap_or(self.provenance.features.clone());
        let picture = Picture { stream: &self.stream, data_set, options };
        let flat = self.stream.test().dim(0) == 2;
        for name in self.methods.iter().map(Method::name).filter(|name| PICTURED.contains(name)) {
            let kind = if flat { "scene" } else { "tsne" };
            let path = folder.join(format!("{}.{kind}.json", name.to_lowercase()));
            if path.exists() {
                continue;
            }
            if progress::interrupted() {
                return Err(Failure::Interrupted);
            }
            let variant = name.parse()?;
            if flat {
                figure::write(&path, kind, &picture.scene(variant, SAMPLES)?)?;
            } else if let Some(perplexity) = figure::perplexity(self.stream.test().len()) {
                let spinner = progress::spinner(&format!("t-SNE of {variant}"));
                let placed = picture.embedding(variant, SAMPLES, perplexity, STEPS)?;
                spinner.finish_and_clear();
                figure::write(&path, kind, &placed)?;
            }
        }
        Ok(())
    }
}

fn one(
    arguments: &RunArguments,
    stream: &Stream,
    method: &Method,
    options: &ModelOptions,
    bar: &ProgressBar,
) -> Result<MethodRecord, Failure> {
    let peers = peer_settings(arguments);
    let mut learner = method.learner(options, &peers);
    let mut phases = Vec::new();
    for outcome in Run::new(stream, learner.as_mut()) {
        phases.push(outcome?);
        bar.inc(1);
        if progress::interrupted() {
            return Err(Failure::Interrupted);
        }
    }
    Ok(method.record(learner.as_ref(), &peers, phases))
}

fn peer_settings(arguments: &RunArguments) -> PeerSettings {
    let settings = PeerSettings { seed: arguments.split.settings.seed, ..PeerSettings::default() };
    arguments.ranpac_dim.map_or(settings, |dim| settings.with_lifts(dim))
}

fn methods(arguments: &RunArguments) -> Result<Vec<Method>, Failure> {
    let peers = arguments.peers.iter().flatten().map(String::as_str);
    Ok(Method::named(arguments.variants.iter().map(String::as_str), peers)?)
}

/// Leaves out methods of a group that need views or layers the features do not have.
fn suitable(methods: Vec<Method>, split: &Split) -> Result<Vec<Method>, Failure> {
    let (fit, left_out) = comparison::suitable(methods, split)?;
    if !left_out.is_empty() {
        let names = left_out.join(", ");
        anstream::eprintln!(
            "note: left out for want of rotated or mirrored views or a second layer: {names}"
        );
    }
    Ok(fit)
}

/// Where the record goes: run.json, or one file an order.
fn record_path(arguments: &RunArguments, orders: usize, order: &ClassOrder) -> Option<PathBuf> {
    let name = match orders {
        1 => "run.json".to_owned(),
        _ => format!("run-{}.json", order.to_string().replace([':', ' '], "-")),
    };
    arguments.out.as_ref().map(|folder| folder.join(name))
}

/// Prints the records that were asked for; the tables of a folder have all that its files hold.
fn report(
    arguments: &RunArguments,
    records: &[RunRecord],
    files: &[RunRecord],
) -> Result<(), Failure> {
    if let Some(folder) = &arguments.out {
        output::write_whole(&folder.join("summary.csv"), &output::csv(files))?;
        output::write_whole(&folder.join("phases.csv"), &output::phases_csv(files))?;
    }
    match &arguments.csv {
        Some(path) if path.as_os_str() == "-" => {
            return Ok(output::print(&output::csv(records))?);
        }
        Some(path) => output::write_whole(path, &output::csv(records))?,
        None => {}
    }
    if arguments.json {
        let text = match records {
            [one] => serde_json::to_string(one)?,
            several => serde_json::to_string(several)?,
        };
        return Ok(output::print(&(text + "\n"))?);
    }
    if let Some(record) = records.first() {
        let orders: Vec<&str> = records.iter().map(|record| record.order.as_str()).collect();
        output::print(&format!(
            "{}  protocol {}  order {}  one test image is one query{}{}\n\n{}",
            record.features,
            record.protocol,
            orders.join(", "),
            if record.tuned_on_test { "\nSETTINGS CHOSEN ON THE TEST SAMPLES" } else { "" },
            record
                .tuned_on
                .as_ref()
                .map_or(String::new(), |set| format!("\nsettings chosen with {set}")),
            output::table(records)
        ))?;
    }
    Ok(())
}

fn next_steps() {
    anstream::eprintln!(
        "\nThat was the small set that comes with the program. Next:\n  \
         ivoro run FEATURES --protocol 50+5x10 --variants all --peers --out results   your own features\n  \
         ivoro learn model.ivoro FEATURES                                             teach a model\n  \
         ivoro predict model.ivoro FEATURES --reject                                  ask it\n  \
         ivoro variants                                                               what the letters mean"
    );
}
