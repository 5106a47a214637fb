//! `ivoro few-shot`: few samples per class, in several draws and orders.

use std::path::Path;

use ivoro::samples::Split;
use ivoro_eval::comparison::{self, Method};
use ivoro_eval::few_shot::{Design, FewShotRecord, Shots, Summary, Trial};
use ivoro_eval::metrics::mean_deviation;
use ivoro_eval::peers::PeerSettings;
use ivoro_io::features;

use crate::args::FewShotArguments;
use crate::failure::Failure;
use crate::table::Table;
use crate::{output, progress};

/// The record in the folder of `--out`, and the trials as CSV.
const RECORD: &str = "few-shot.json";
const TRIALS: &str = "few-shot.csv";

/// Learns few samples of each class, drawn and ordered at random, with every method.
pub(crate) fn few_shot(arguments: &FewShotArguments) -> Result<(), Failure> {
    let (split, origin) = read(arguments)?;
    let methods = methods(arguments, &split)?;
    let design = design(arguments)?;
    let (options, peers) = (arguments.split.settings.options(), peer_settings(arguments));
    let name = arguments.features.file_name().unwrap_or_default().to_string_lossy();
    let begun = FewShotRecord::begin(&split, (&name, &origin), design.seed, &options, &peers);
    let _lock = match &arguments.out {
        Some(folder) => {
            output::make_folder(folder)?;
            Some(super::hold(&folder.join("few-shot"), folder)?)
        }
        None => None,
    };
    let mut earlier = match &arguments.out {
        Some(folder) => finished(&folder.join(RECORD), &begun)?,
        None => Vec::new(),
    };
    progress::catch_interrupts();
    let cells = design.cells();
    let bar = progress::bar(cells.len() * methods.len());
    let mut record = begun;
    let mut stopped = false;
    for method in &methods {
        for &cell in &cells {
            stopped |= progress::interrupted();
            let known = earlier.iter().position(|trial| trial.is_of(method.name(), cell));
            if let Some(at) = known {
                record.trials.push(earlier.remove(at));
            } else if !stopped {
                bar.set_message(format!("{} {} shots", method.name(), cell.shots));
                let trial = Trial::run(&split, method, (&design, cell), &options, &peers)?;
                record.trials.push(trial);
                save(arguments.out.as_deref(), &record, &earlier)?;
            }
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    save(arguments.out.as_deref(), &record, &earlier)?;
    print(arguments, &record)?;
    if stopped { Err(Failure::Interrupted) } else { Ok(()) }
}

fn read(arguments: &FewShotArguments) -> Result<(Split, String), Failure> {
    let path = &arguments.features;
    let spinner = progress::spinner(&format!("reading {}", path.display()));
    let file = features::read(path, &arguments.split.options())?;
    let (split, how) = arguments.split.divide(file)?;
    spinner.finish_and_clear();
    Ok((split, how.to_string()))
}

fn methods(arguments: &FewShotArguments, split: &Split) -> Result<Vec<Method>, Failure> {
    let peers = arguments.peers.iter().flatten().map(String::as_str);
    let methods = Method::named(arguments.variants.iter().map(String::as_str), peers)?;
    if methods.is_empty() {
        return Err(Failure::Usage("no method to try: name variants or peers".to_owned()));
    }
    let (fit, left_out) = comparison::suitable(methods, split)?;
    if !left_out.is_empty() {
        let names = left_out.join(", ");
        anstream::eprintln!("note: left out for want of views or of a second layer: {names}");
    }
    Ok(fit)
}

fn design(arguments: &FewShotArguments) -> Result<Design, Failure> {
    let shots = arguments.shots.iter().map(|text| text.parse());
    let shots = shots.collect::<Result<Vec<Shots>, _>>()?;
    let mut once = shots.clone();
    once.sort_unstable();
    once.dedup();
    if once.len() < shots.len() {
        return Err(Failure::Usage("--shots: a number is given twice".to_owned()));
    }
    let (draws, orders) = (arguments.draws.get(), arguments.orders.get());
    Ok(Design { shots, draws, orders, seed: arguments.split.settings.seed })
}

fn peer_settings(arguments: &FewShotArguments) -> PeerSettings {
    let defaults = PeerSettings::default();
    let ranpac_dim = arguments.ranpac_dim.unwrap_or(defaults.ranpac_dim);
    PeerSettings { seed: arguments.split.settings.seed, ranpac_dim, ..defaults }
}

/// The trials of a file, if they are of the same data and settings.
fn finished(path: &Path, wanted: &FewShotRecord) -> Result<Vec<Trial>, Failure> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let read = serde_json::from_slice::<FewShotRecord>(&fs_err::read(path)?);
    match read {
        Ok(found) if found.is_alike(wanted) => Ok(found.trials),
        Ok(_) => Err(Failure::Usage(format!(
            "{}: trials of other data, settings or another version; name another --out",
            path.display()
        ))),
        Err(error) => Err(Failure::Usage(format!("{}: {error}", path.display()))),
    }
}

/// Saves what was finished now, and what was finished earlier and not asked for this time.
fn save(folder: Option<&Path>, record: &FewShotRecord, earlier: &[Trial]) -> Result<(), Failure> {
    let Some(folder) = folder else { return Ok(()) };
    let mut whole = record.clone();
    whole.trials.extend(earlier.iter().cloned());
    output::write_whole(&folder.join(RECORD), &(serde_json::to_string(&whole)? + "\n"))?;
    Ok(output::write_whole(&folder.join(TRIALS), &whole.csv())?)
}

fn print(arguments: &FewShotArguments, record: &FewShotRecord) -> Result<(), Failure> {
    if arguments.json {
        return Ok(output::print(&(serde_json::to_string(record)? + "\n"))?);
    }
    if arguments.csv {
        return Ok(output::print(&record.csv())?);
    }
    let header = ["shots", "method", "accuracy", "orders", "ECE", "bytes/class", "seconds"];
    let mut table = Table::new(&header, 2);
    let mut settings = Table::new(&["shots", "method", "chosen (share of the trials)"], 3);
    for summary in record.summaries() {
        table.row(row(&summary, arguments.orders.get()));
        settings.row(chosen(&summary));
    }
    Ok(output::print(&format!(
        "{}  {} classes, {} test samples, one image is one query\naccuracy: mean ± deviation over \
         draws; orders: largest less smallest over orders of the same rows, mean (most) over \
         draws\n\n{table}\n{settings}",
        record.features, record.classes, record.tested
    ))?)
}

fn row(summary: &Summary, orders: usize) -> Vec<String> {
    let (mean, deviation) = mean_deviation(&summary.accuracies);
    let several = summary.accuracies.len() > 1;
    let accuracy =
        if several { format!("{mean:.2} ± {deviation:.2}") } else { format!("{mean:.2}") };
    let spread = mean_deviation(&summary.spreads).0;
    let most = summary.spreads.iter().copied().fold(0.0, f64::max);
    let error = mean_deviation(&summary.calibration_errors).0;
    vec![
        summary.shots.clone(),
        summary.method.clone(),
        accuracy,
        if orders > 1 { format!("{spread:.2} ({most:.2})") } else { "–".to_owned() },
        if summary.calibration_errors.is_empty() {
            "–".to_owned()
        } else {
            format!("{error:.3}")
        },
        format!("{:.0}", summary.bytes_per_class),
        format!("{:.2}", summary.seconds),
    ]
}

/// The commonest value of each setting.
fn chosen(summary: &Summary) -> Vec<String> {
    let chosen = summary.chosen.iter().map(|(setting, value, share)| match 100.0 * share {
        all if all > 99.5 => format!("{setting} {value}"),
        some => format!("{setting} {value} ({some:.0} %)"),
    });
    let chosen = chosen.collect::<Vec<_>>().join(", ");
    vec![summary.shots.clone(), summary.method.clone(), chosen]
}
