//! The verbs that take back: retract, relabel, rename, forget; and the journal of all verbs.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use ivoro::head::Forgetting;
use ivoro::head::Retracted;
use ivoro::journal::{Entry, NAMES};
use ivoro::{Model, Receipt, Retraction, Samples};
use ivoro_io::features::Set;
use ivoro_io::{FileLock, load, load_receipt};
use ivoro_vision::recogniser::Classifier as _;
use serde_json::json;

use super::images::{Lesson, Purpose, Wanted};
use super::model::{lesson_of_features, lesson_of_photos, load_to_change, network_of, read};
use super::save;
use crate::args::{
    DataArguments, ForgetArguments, GivingUpArguments, InputArguments, InspectArguments,
    RelabelArguments, RenameArguments, RetractArguments,
};
use crate::failure::Failure;
use crate::output;
use crate::table::{Table, visible};
use crate::words::{counted, date};

impl GivingUpArguments {
    fn retraction(self, of_photos: bool) -> Retraction {
        let probes = if self.drop_probes { Forgetting::DropProbes } else { Forgetting::Exact };
        Retraction { probes, inexact: self.inexact, recomputed: of_photos, kept: false }
    }
}

/// Takes samples back.
pub(crate) fn retract(arguments: &RetractArguments) -> Result<(), Failure> {
    let _lock = FileLock::acquire(&arguments.model)?;
    let mut model = load_to_change(&arguments.model)?;
    let RetractArguments { features, receipt, classes, from, photos, reading, .. } = arguments;
    let of_photos = reading.look.all_images(features)?;
    let how = arguments.giving_up.retraction(of_photos);
    let mut text = String::new();
    let place = arguments.model.display();
    for path in receipt {
        let receipt = opened(path, &arguments.renamed, classes.as_ref())?;
        say(&mut text, &model.retract_receipt(&receipt, how)?);
    }
    let (class, classes) = (from.as_deref(), classes.as_ref());
    let purpose = Purpose::TakeBack;
    let all = Wanted { paths: features, arguments: photos, class, classes, purpose };
    let lessons = lessons(&mut model, &all, reading, of_photos)?;
    for given in &lessons {
        say(&mut text, &model.retract(&given.samples, how)?);
    }
    refuse_empty(&model)?;
    save(&model, &arguments.model)?;
    lessons.into_iter().try_for_each(|given| given.finish(photos, true))?;
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

/// The samples of each file or folder; of photos under one class together.
fn lessons(
    model: &mut Model,
    all: &Wanted<'_>,
    reading: &DataArguments,
    of_photos: bool,
) -> Result<Vec<Lesson>, Failure> {
    let together = of_photos && all.class.is_some() && !all.paths.is_empty();
    let each = all.paths.chunks(if together { all.paths.len() } else { 1 });
    let one = |paths| {
        let wanted = Wanted { paths, ..*all };
        match (of_photos, all.class) {
            (true, _) => lesson_of_photos(model, &wanted, reading),
            (false, None) => lesson_of_features(model, &wanted, &reading.input),
            (false, Some(class)) => of_one_class(model, paths, class, &reading.input),
        }
    };
    each.map(one).collect()
}

/// The features of files, whatever their labels, as samples of one class.
fn of_one_class(
    model: &Model,
    paths: &[PathBuf],
    class: &str,
    input: &InputArguments,
) -> Result<Lesson, Failure> {
    let none = |path: &Path| Failure::Usage(format!("{}: has no samples to take", path.display()));
    let [path] = paths else {
        return Err(Failure::Usage("one features file at a time".to_owned()));
    };
    let file = read(path, input)?;
    if let Some(described) = network_of(&file, path, model.taught())? {
        model.check_described_network(&described)?;
    }
    let set: Option<Set> = file.train.or(file.all);
    let points = set.ok_or_else(|| none(path))?.points().clone();
    let labels = vec![0; points.len()];
    Ok(Samples::new(points, labels, [class.to_owned()].into())?.into())
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
    let RelabelArguments { features, to, from, photos, reading, .. } = arguments;
    let of_photos = reading.look.all_images(features)?;
    let how = arguments.giving_up.retraction(of_photos);
    let mut text = String::new();
    let name = visible(to);
    if let (Some(from), []) = (from, &features[..]) {
        model.join(from, to, how.probes)?;
        let _ = writeln!(text, "{}: all of it is {name} now", visible(from));
    }
    let (class, classes) = (from.as_deref(), None);
    let purpose = Purpose::TakeBack;
    let all = Wanted { paths: features, arguments: photos, class, classes, purpose };
    let lessons = lessons(&mut model, &all, reading, of_photos)?;
    for given in &lessons {
        let retracted = model.relabel(&given.samples, to, how)?;
        for (class, count) in &retracted.samples {
            let gone = retracted.emptied.contains(class);
            let gone = if gone { "; none is left, the class is gone" } else { "" };
            let count = counted(*count as usize, "sample is", "samples are");
            let _ = writeln!(text, "{}: {count} {name} now{gone}", visible(class));
        }
    }
    save(&model, &arguments.model)?;
    lessons.into_iter().try_for_each(|given| given.tell(photos))?;
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
