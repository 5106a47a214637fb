use std::path::{Path, PathBuf};

use indicatif::ProgressBar;
use ivoro::head::{EXTENDED, PAPER};
use ivoro::input::{self, SplitOrigin};
use ivoro::peers::{Peer, PeerSettings};
use ivoro::record::{Kind, MethodRecord, RunRecord, Summary, VERSION};
use ivoro::{ClassOrder, Learner, Model, ModelOptions, Protocol, Run, Split, Stream, Variant};
use serde_json::json;

use crate::args::RunArguments;
use crate::failure::Failure;
use crate::{output, progress};

/// The small real set that comes with the program.
const EMBEDDED: &[u8] = include_bytes!("../../data/cifar100-small.features");
const EMBEDDED_NAME: &str = "cifar100-small.features (embedded)";

/// A method that was asked for.
#[derive(Clone, Debug)]
enum Method {
    /// `grouped`: it came with paper or all, so it may be left out where the features can't do it.
    Variant {
        name: String,
        variant: Variant,
        grouped: bool,
    },
    Peer {
        name: String,
        peer: Peer,
    },
}

impl Method {
    fn name(&self) -> &str {
        match self {
            Self::Variant { name, .. } | Self::Peer { name, .. } => name,
        }
    }
}

/// Compares methods on one data set.
pub(crate) fn run(arguments: &RunArguments) -> Result<(), Failure> {
    let methods = methods(arguments)?;
    let (split, origin, name) = data(arguments)?;
    let methods = suitable(methods, &split)?;
    let protocol = match &arguments.protocol {
        Some(text) => text.parse()?,
        None => Protocol::default_for(split.train.classes().len())?,
    };
    protocol.check(split.train.classes().len())?;
    let orders = orders(arguments, &split)?;
    if let Some(folder) = &arguments.out {
        fs_err::create_dir_all(folder)?;
    }
    progress::catch_interrupts();
    let phases = protocol.sizes().len();
    let bar = progress::bar(orders.len() * methods.len() * phases);
    let mut records = Vec::new();
    for order in &orders {
        let stream = Stream::new(&split, protocol.clone(), order)?;
        let mut record = begin(arguments, &stream, order, &origin, &name);
        let path = record_path(arguments, orders.len(), order);
        let finished = path.as_deref().map_or(Vec::new(), |path| finished(path, &record));
        let result =
            go_through(arguments, &stream, &methods, finished, &mut record, path.as_deref(), &bar);
        records.push(record);
        if let Err(failure) = result {
            bar.finish_and_clear();
            if matches!(failure, Failure::Interrupted) {
                report(arguments, &records)?;
            }
            return Err(failure);
        }
    }
    bar.finish_and_clear();
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
    let (mut learner, kind, exemplar_free): (Box<dyn Learner>, _, _) = match method {
        Method::Variant { variant, .. } => {
            (Box::new(Model::new(*variant, options.clone())), Kind::Variant, true)
        }
        Method::Peer { peer, .. } => {
            (peer.learner(&peer_settings(arguments)), Kind::Peer, peer.is_exemplar_free())
        }
    };
    let mut phases = Vec::new();
    for outcome in Run::new(stream, learner.as_mut()) {
        phases.push(outcome?);
        bar.inc(1);
        if progress::interrupted() {
            return Err(Failure::Interrupted);
        }
    }
    let settings = match method {
        Method::Variant { .. } => learner.settings(),
        Method::Peer { .. } => serde_json::to_value(peer_settings(arguments))?,
    };
    Ok(MethodRecord {
        name: method.name().to_owned(),
        kind,
        exemplar_free,
        settings,
        choices: learner.choices().to_vec(),
        summary: Summary::of(&phases),
        phases,
        ..MethodRecord::default()
    })
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
    let mut methods: Vec<Method> = Vec::new();
    for name in &arguments.variants {
        let names: Vec<&str> = match name.as_str() {
            "paper" => PAPER.to_vec(),
            "all" => PAPER.iter().chain(&EXTENDED).copied().collect(),
            "none" | "" => Vec::new(),
            name => vec![name],
        };
        let grouped = names.len() > 1;
        for name in names {
            methods.push(Method::Variant {
                name: name.to_owned(),
                variant: name.parse()?,
                grouped,
            });
        }
    }
    for name in arguments.peers.iter().flatten() {
        let peers = if name == "all" { Peer::ALL.to_vec() } else { vec![name.parse()?] };
        methods.extend(peers.into_iter().map(|peer| Method::Peer { name: peer.to_string(), peer }));
    }
    let mut seen = std::collections::HashSet::new();
    methods.retain(|method| seen.insert(method.name().to_owned()));
    if methods.is_empty() {
        return Err(Failure::Usage("no method to run: name variants or peers".to_owned()));
    }
    Ok(methods)
}

/// Leaves out variants of a group that need views or layers the features do not have.
fn suitable(methods: Vec<Method>, split: &Split) -> Result<Vec<Method>, Failure> {
    let (mut fit, mut left_out) = (Vec::new(), Vec::new());
    for method in methods {
        match &method {
            Method::Variant { variant, grouped, name } => {
                match variant.check_features(&split.train) {
                    Err(_) if *grouped => left_out.push(name.clone()),
                    Err(error) => return Err(error.into()),
                    Ok(()) => fit.push(method),
                }
            }
            Method::Peer { .. } => fit.push(method),
        }
    }
    if !left_out.is_empty() {
        let names = left_out.join(", ");
        anstream::eprintln!("note: left out for want of rotated views or a second layer: {names}");
    }
    Ok(fit)
}

fn data(arguments: &RunArguments) -> Result<(Split, String, String), Failure> {
    let mut options = arguments.input.options();
    options.seed = arguments.settings.seed;
    let (file, name) = match &arguments.features {
        Some(path) => {
            let spinner = progress::spinner(&format!("reading {}", path.display()));
            let file = input::read(path, &options)?;
            spinner.finish_and_clear();
            let name =
                path.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
            (file, name)
        }
        None => (input::read_bytes(EMBEDDED_NAME, EMBEDDED, &options)?, EMBEDDED_NAME.to_owned()),
    };
    let (split, origin) = file.into_split(arguments.holdout, options.seed)?;
    let origin = match origin {
        SplitOrigin::File => "the file's own training and test parts".to_owned(),
        SplitOrigin::HeldOut { fraction, seed } => {
            let text = format!("{fraction} of each class held out as test, seed {seed}");
            anstream::eprintln!("note: the file has no test part: {text}");
            text
        }
    };
    Ok((split, origin, name))
}

fn orders(arguments: &RunArguments, split: &Split) -> Result<Vec<ClassOrder>, Failure> {
    arguments.order.iter().map(|text| parse_order(text, split)).collect()
}

/// A class order by its name, or out of a file.
pub(crate) fn parse_order(text: &str, split: &Split) -> Result<ClassOrder, Failure> {
    let parsed = text.parse::<ClassOrder>();
    if parsed.is_err() && Path::new(text).is_file() {
        let list = fs_err::read_to_string(text)?;
        return Ok(ClassOrder::from_list_text(&list, split.train.classes())?);
    }
    Ok(parsed?)
}

fn begin(
    arguments: &RunArguments,
    stream: &Stream,
    order: &ClassOrder,
    origin: &str,
    name: &str,
) -> RunRecord {
    let options = arguments.settings.options();
    RunRecord {
        version: VERSION,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        features: name.to_owned(),
        data_set: arguments.data_set.clone(),
        network: arguments.network.clone(),
        split: origin.to_owned(),
        protocol: stream.protocol().to_string(),
        phases: stream.protocol().sizes().to_vec(),
        order: order.to_string(),
        classes: stream.classes().to_vec(),
        options: json!({
            "given": options.given,
            "settings": options.settings,
            "peers": peer_settings(arguments),
            "data": fingerprint(stream),
        }),
        ..RunRecord::default()
    }
}

/// Tells a record of other data apart: sizes and the first numbers.
fn fingerprint(stream: &Stream) -> serde_json::Value {
    let test = stream.test();
    let first =
        test.block(0, test.views()[0]).map(|block| block.row(0)[..4.min(block.cols())].to_vec());
    json!([test.len(), test.layers(), test.dim(0), first])
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
