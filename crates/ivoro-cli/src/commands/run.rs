use std::path::{Path, PathBuf};

use indicatif::ProgressBar;
use ivoro::comparison::{self, Method, Provenance};
use ivoro::peers::PeerSettings;
use ivoro::record::{MethodRecord, RunRecord};
use ivoro::{ClassOrder, ModelOptions, Protocol, Run, Split, Stream};

use super::source::Source;
use crate::args::RunArguments;
use crate::failure::Failure;
use crate::image_args::class_order;
use crate::{output, progress};

/// Compares methods on one data set.
pub(crate) fn run(arguments: &RunArguments) -> Result<(), Failure> {
    let methods = methods(arguments)?;
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
    if let Some(folder) = &arguments.out {
        fs_err::create_dir_all(folder)?;
    }
    progress::catch_interrupts();
    let mut records = Vec::new();
    for order in &orders {
        let found = source.features(arguments, &protocol, order)?;
        let methods = suitable(methods.clone(), &found.split)?;
        let stream = Stream::new(&found.split, protocol.clone(), order)?;
        let provenance = Provenance { features: found.name.clone(), split: found.origin.clone() };
        let (options, peers) = (arguments.settings.options(), peer_settings(arguments));
        let mut record = comparison::begin(&stream, order, &provenance, &options, &peers);
        record.data_set.clone_from(&arguments.data_set);
        record.network.clone_from(&arguments.network_name);
        let path = record_path(arguments, orders.len(), order);
        let finished = path.as_deref().map_or(Vec::new(), |path| finished(path, &record));
        let bar = progress::bar(methods.len() * protocol.sizes().len());
        let result =
            go_through(arguments, &stream, &methods, finished, &mut record, path.as_deref(), &bar);
        bar.finish_and_clear();
        records.push(record);
        if let Err(failure) = result {
            if matches!(failure, Failure::Interrupted) {
                report(arguments, &records)?;
            }
            return Err(failure);
        }
    }
    report(arguments, &records)?;
    if arguments.features.is_none() {
        next_steps();
    }
    Ok(())
}

/// Runs every method on one stream; each finished one is saved at once.
fn go_through(
    arguments: &RunArguments,
    stream: &Stream,
    methods: &[Method],
    finished: Vec<MethodRecord>,
    record: &mut RunRecord,
    path: Option<&Path>,
    bar: &ProgressBar,
) -> Result<(), Failure> {
    let options = arguments.settings.options();
    let asked = |done: &MethodRecord| methods.iter().any(|method| method.name() == done.name);
    let (finished, others): (Vec<_>, Vec<_>) = finished.into_iter().partition(asked);
    for method in methods {
        bar.set_message(method.name().to_owned());
        if let Some(done) = finished.iter().find(|done| done.name == method.name()) {
            bar.inc(stream.protocol().sizes().len() as u64);
            record.methods.push(done.clone());
            continue;
        }
        record.methods.push(one(arguments, stream, method, &options, bar)?);
        if let Some(path) = path {
            // what was not asked for this time stays in the file
            let mut whole = record.clone();
            whole.methods.extend(finished.iter().filter(|f| !has(record, f)).cloned());
            whole.methods.extend(others.iter().cloned());
            output::write_whole(path, &(serde_json::to_string(&whole)? + "\n"))?;
        }
    }
    Ok(())
}

fn has(record: &RunRecord, method: &MethodRecord) -> bool {
    record.methods.iter().any(|other| other.name == method.name)
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
    let defaults = PeerSettings::default();
    PeerSettings {
        seed: arguments.settings.seed,
        ranpac_dim: arguments.ranpac_dim.unwrap_or(defaults.ranpac_dim),
        ..defaults
    }
}

fn methods(arguments: &RunArguments) -> Result<Vec<Method>, Failure> {
    let peers = arguments.peers.iter().flatten().map(String::as_str);
    let methods = Method::named(arguments.variants.iter().map(String::as_str), peers)?;
    if methods.is_empty() {
        return Err(Failure::Usage("no method to run: name variants or peers".to_owned()));
    }
    Ok(methods)
}

/// Leaves out variants of a group that need views or layers the features do not have.
fn suitable(methods: Vec<Method>, split: &Split) -> Result<Vec<Method>, Failure> {
    let (fit, left_out) = comparison::suitable(methods, split)?;
    if !left_out.is_empty() {
        let names = left_out.join(", ");
        anstream::eprintln!("note: left out for want of rotated views or a second layer: {names}");
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

/// Methods of an earlier, perhaps interrupted, run of the very same comparison.
fn finished(path: &Path, wanted: &RunRecord) -> Vec<MethodRecord> {
    let read =
        || -> Option<RunRecord> { serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok() };
    let same = |found: &RunRecord| RunRecord { methods: Vec::new(), ..found.clone() } == *wanted;
    read().filter(same).map_or(Vec::new(), |found| {
        anstream::eprintln!(
            "note: {} holds {} finished methods; they are not run again",
            path.display(),
            found.methods.len()
        );
        found.methods
    })
}

fn report(arguments: &RunArguments, records: &[RunRecord]) -> Result<(), Failure> {
    if let Some(folder) = &arguments.out {
        output::write_whole(&folder.join("summary.csv"), &output::csv(records))?;
        output::write_whole(&folder.join("phases.csv"), &output::phases_csv(records))?;
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
            "{}  protocol {}  order {}  one test image is one query\n\n{}",
            record.features,
            record.protocol,
            orders.join(", "),
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
