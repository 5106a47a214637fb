//! The verbs that take back: retract, relabel, rename, forget; and the journal of all verbs.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use ivoro::head::Forgetting;
use ivoro::journal::{Entry, NAMES};
use ivoro::{Model, Receipt, Retracted, Retraction, Samples};
use ivoro_io::features::Set;
use ivoro_io::{FileLock, load, load_receipt};
use ivoro_vision::dataset::{ImageInput, collect_images};
use ivoro_vision::recogniser::Classifier as _;
use serde_json::json;

use super::images::say_left_out;
use super::model::{counted, load_to_change, network_of, read, samples};
use super::save;
use crate::args::images::LookArguments;
use crate::args::{
    ForgetArguments, GivingUpArguments, InputArguments, InspectArguments, RelabelArguments,
    RenameArguments, RetractArguments,
};
use crate::failure::Failure;
use crate::output;
use crate::table::{Table, visible};

impl GivingUpArguments {
    fn retraction(self, look: &LookArguments, paths: &[PathBuf]) -> Result<Retraction, Failure> {
        let probes = if self.drop_probes { Forgetting::DropProbes } else { Forgetting::Exact };
        let recomputed = holds_images(look, paths)?;
        Ok(Retraction { probes, inexact: self.inexact, recomputed })
    }
}

/// Whether any of the paths holds images.
fn holds_images(look: &LookArguments, paths: &[PathBuf]) -> Result<bool, Failure> {
    paths.iter().try_fold(false, |any, path| Ok(any | look.takes_images(path)?))
}

/// Takes samples back.
pub(crate) fn retract(arguments: &RetractArguments) -> Result<(), Failure> {
    let _lock = FileLock::acquire(&arguments.model)?;
    let mut model = load_to_change(&arguments.model)?;
    let RetractArguments { features, receipt, classes, look, input, from, .. } = arguments;
    let how = arguments.giving_up.retraction(look, features)?;
    let mut text = String::new();
    let place = arguments.model.display();
    for path in receipt {
        let receipt = opened(path, &arguments.renamed, classes.as_ref())?;
        say(&mut text, &model.retract_receipt(&receipt, how)?);
    }
    for given in lessons(&mut model, features, from.as_deref(), classes.as_ref(), look, input)? {
        say(&mut text, &model.retract(&given, how)?);
    }
    refuse_empty(&model)?;
    save(&model, &arguments.model)?;
    let known = counted(model.head().classes().len(), "class", "classes");
    Ok(output::print(&format!("{text}{place}: {known}\n"))?)
}

/// A receipt, under the names that its classes have now; of some of them.
fn opened(
    path: &Path,
    renamed: &[String],
    classes: Option<&Vec<String>>,
) -> Result<Receipt, Failure> {
    let mut receipt = load_receipt(path)?;
    for pair in renamed {
        let Some((old, new)) = pair.split_once('=') else {
            return Err(Failure::Usage(format!("--renamed {pair}: expected OLD=NEW")));
        };
        // a class may be in some of the receipts only
        if receipt.classes().any(|(class, _)| class == old) {
            receipt.rename(old, new)?;
        }
    }
    Ok(match classes {
        Some(classes) => receipt.of_classes(classes)?,
        None => receipt,
    })
}

/// The samples of each file or folder; of single images where all are of one class.
fn lessons(
    model: &mut Model,
    paths: &[PathBuf],
    from: Option<&str>,
    classes: Option<&Vec<String>>,
    look: &LookArguments,
    input: &InputArguments,
) -> Result<Vec<Samples>, Failure> {
    let Some(class) = from else {
        let one = |path: &PathBuf| samples(model, path, input, look, classes);
        return paths.iter().map(one).collect();
    };
    let names = [class.to_owned()];
    let of_class = |points: ivoro::Points| {
        let labels = vec![0; points.len()];
        Ok::<_, Failure>(Samples::new(points, labels, names.clone().into())?)
    };
    if !holds_images(look, paths)? {
        let one = |path: &PathBuf| {
            let file = read(path, input)?;
            if let Some(described) = network_of(&file, path, model.taught())? {
                model.check_described_network(&described)?;
            }
            let set: Option<Set> = file.train.or(file.all);
            let none = || Failure::Usage(format!("{}: has no samples to take", path.display()));
            of_class(set.ok_or_else(none)?.points().clone())
        };
        return paths.iter().map(one).collect();
    }
    if paths.is_empty() {
        return Ok(Vec::new());
    }
    let network = look.open(model.taught())?;
    model.use_described_network(&network.describe_queries()?)?;
    let files = collect_images(paths)?;
    let images: Vec<ImageInput<'_>> = files.iter().map(|path| ImageInput::Path(path)).collect();
    let seen = network.points(model.head().variant(), &images, look.fitting.broken())?;
    say_left_out(&seen);
    let none = || Failure::Usage("there is no image to take".to_owned());
    Ok(vec![of_class(seen.of.ok_or_else(none)?)?])
}

fn say(text: &mut String, retracted: &Retracted) {
    for (class, count) in &retracted.samples {
        let gone = if retracted.emptied.contains(class) {
            "; none is left, the class is gone"
        } else {
            ""
        };
        let count = counted(*count as usize, "sample", "samples");
        let _ = writeln!(text, "{}: {count} taken back{gone}", visible(class));
    }
}

/// A model file has a class at least.
fn refuse_empty(model: &Model) -> Result<(), Failure> {
    if model.head().classes().is_empty() {
        let text = "these are all classes of the model; delete the file instead";
        return Err(Failure::Usage(text.to_owned()));
    }
    Ok(())
}

/// Gives samples another class.
pub(crate) fn relabel(arguments: &RelabelArguments) -> Result<(), Failure> {
    let _lock = FileLock::acquire(&arguments.model)?;
    let mut model = load_to_change(&arguments.model)?;
    let RelabelArguments { features, to, from, look, input, .. } = arguments;
    let how = arguments.giving_up.retraction(look, features)?;
    let mut text = String::new();
    let name = visible(to);
    if let (Some(from), []) = (from, &features[..]) {
        model.join(from, to, how.probes)?;
        let _ = writeln!(text, "{}: all of it is {name} now", visible(from));
    }
    for given in lessons(&mut model, features, from.as_deref(), None, look, input)? {
        let retracted = model.relabel(&given, to, how)?;
        for (class, count) in &retracted.samples {
            let gone = retracted.emptied.contains(class);
            let gone = if gone { "; none is left, the class is gone" } else { "" };
            let count = counted(*count as usize, "sample is", "samples are");
            let _ = writeln!(text, "{}: {count} {name} now{gone}", visible(class));
        }
    }
    save(&model, &arguments.model)?;
    Ok(output::print(&text)?)
}

/// Gives a class another name.
pub(crate) fn rename(arguments: &RenameArguments) -> Result<(), Failure> {
    let _lock = FileLock::acquire(&arguments.model)?;
    let mut model = load_to_change(&arguments.model)?;
    let RenameArguments { class, name, .. } = arguments;
    model.rename(class, name)?;
    save(&model, &arguments.model)?;
    Ok(output::print(&format!("{} is called {} now\n", visible(class), visible(name)))?)
}

/// Forgets classes.
pub(crate) fn forget(arguments: &ForgetArguments) -> Result<(), Failure> {
    let _lock = FileLock::acquire(&arguments.model)?;
    let mut model = load_to_change(&arguments.model)?;
    let how = if arguments.drop_probes { Forgetting::DropProbes } else { Forgetting::Exact };
    let classes: BTreeSet<&String> = arguments.classes.iter().collect();
    let receipts = arguments.receipt.iter().map(|path| load_receipt(path));
    let receipts = receipts.collect::<Result<Vec<_>, _>>()?;
    for class in &classes {
        let has = |receipt: &&Receipt| receipt.classes().any(|(name, _)| name == class.as_str());
        let receipts: Vec<Receipt> = receipts.iter().filter(has).cloned().collect();
        if model.head().can_forget_alone() || receipts.is_empty() {
            model.forget(class, how)?;
        } else {
            let how = Retraction { probes: how, ..Retraction::default() };
            model.forget_with_receipts(class, &receipts, how)?;
        }
        if arguments.strike_names {
            model.strike_from_journal(class);
        }
    }
    refuse_empty(&model)?;
    save(&model, &arguments.model)?;
    let names: Vec<String> = classes.into_iter().map(|name| visible(name)).collect();
    let remain = counted(model.head().classes().len(), "class remains", "classes remain");
    Ok(output::print(&format!("forgot {}; {remain}\n", names.join(", ")))?)
}

/// Says what was done to a model.
pub(crate) fn log(arguments: &InspectArguments) -> Result<(), Failure> {
    let model = load(&arguments.model)?;
    let journal = model.journal();
    if arguments.json {
        return Ok(output::print(&format!("{:#}\n", json!(journal)))?);
    }
    let mut text = String::new();
    if let Some(earlier) = journal.earlier() {
        let _ = writeln!(
            text,
            "before: {} from {} to {}: {} samples learned or added, {} taken back or forgotten\n",
            counted(earlier.entries as usize, "entry", "entries"),
            date(earlier.from),
            date(earlier.until),
            earlier.added,
            earlier.taken
        );
    }
    let mut table = Table::new(&["when (UTC)", "verb", "classes", "samples", "classes after"], 3);
    for entry in journal.entries() {
        let samples = if entry.samples == 0 { String::new() } else { entry.samples.to_string() };
        let cells = [
            date(entry.when),
            entry.verb.to_string(),
            named(entry),
            samples,
            entry.known.to_string(),
        ];
        table.row(cells.to_vec());
    }
    let _ = write!(text, "{table}");
    Ok(output::print(&text)?)
}

/// The first classes of an entry, and what they became.
fn named(entry: &Entry) -> String {
    const SHOWN: usize = 4;
    let mut names: Vec<&str> = entry.classes.iter().take(SHOWN).map(String::as_str).collect();
    let more = entry.more + entry.classes.len().min(NAMES) - names.len();
    let rest = format!("{more} more");
    if more > 0 {
        names.push(&rest);
    }
    let into = entry.into.as_ref().map_or(String::new(), |into| format!(" → {into}"));
    names.join(", ") + &into
}

/// A time as people write it; the calendar after Howard Hinnant's `civil_from_days`.
fn date(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // eras of 400 years that begin on the first of March of the year 0
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, (month + 2) % 12 + 1);
    let year = year + 400 * era + u64::from(month <= 2);
    let (hour, minute) = (second / 3600, second / 60 % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{:02}", second % 60)
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0), "1970-01-01 00:00:00");
        assert_eq!(date(951_782_399), "2000-02-28 23:59:59");
        assert_eq!(date(951_782_400), "2000-02-29 00:00:00");
        assert_eq!(date(1_700_000_000), "2023-11-14 22:13:20");
        assert_eq!(date(4_107_542_399), "2100-02-28 23:59:59");
        assert_eq!(date(4_107_542_400), "2100-03-01 00:00:00");
    }
}
