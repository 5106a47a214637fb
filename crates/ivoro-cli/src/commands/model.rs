//! The verbs that teach a model, and those that say what it is.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use indicatif::ProgressBar;
use ivoro::head::audit::{NOT_KEPT, audit as list_kept};
use ivoro::head::{OtherSetting, settings};
use ivoro::journal::{Entry, Verb};
use ivoro::tune::{Choice, Tuner};
use ivoro::{Budget, Model, ModelOptions, NetworkDescription, Receipt, Variant};
use ivoro_io::features::{self, FeatureFile};
use ivoro_io::{FileLock, load, save_receipt};
use ivoro_vision::extract;
use ivoro_vision::recogniser::{Classifier as _, Taught};
use serde_json::json;

use super::images::{self, Lesson, Purpose, Wanted};
use super::save;
use crate::args::{
    DataArguments, InputArguments, InspectArguments, LearnArguments, LessonArguments,
    MergeArguments, UpdateArguments,
};
use crate::failure::Failure;
use crate::table::{Table, visible};
use crate::words::{counted, date};
use crate::{output, progress};

/// Reads a features file under a spinner.
pub(crate) fn read(path: &Path, input: &InputArguments) -> Result<FeatureFile, Failure> {
    let spinner = progress::spinner(&format!("reading {}", path.display()));
    let file = features::read(path, &input.options())?;
    spinner.finish_and_clear();
    Ok(file)
}

/// The labelled samples for a model, of a features file or with a network of photos; of all classes or of
/// those named.
pub(super) fn lesson(
    model: &mut Model,
    wanted: &Wanted<'_>,
    reading: &DataArguments,
) -> Result<Lesson, Failure> {
    if reading.look.all_images(wanted.paths)? {
        return lesson_of_photos(model, wanted, reading);
    }
    lesson_of_features(model, wanted, &reading.input)
}

/// The same where photos lie there.
pub(super) fn lesson_of_photos(
    model: &mut Model,
    wanted: &Wanted<'_>,
    reading: &DataArguments,
) -> Result<Lesson, Failure> {
    let network = reading.look.open(model.taught())?;
    images::lesson(&network, model, wanted)
}

/// The same where features lie there.
pub(super) fn lesson_of_features(
    model: &mut Model,
    wanted: &Wanted<'_>,
    input: &InputArguments,
) -> Result<Lesson, Failure> {
    let [path] = wanted.paths else {
        let text = "one features file at a time";
        return Err(Failure::Usage(text.to_owned()));
    };
    if wanted.class.is_some() {
        let text = "--class is for photos; a features file has labels";
        return Err(Failure::Usage(text.to_owned()));
    }
    let file = read(path, input)?;
    if let Some(described) = network_of(&file, path, model.taught())? {
        model.use_described_features(&described)?;
    }
    let features = file.learning()?;
    let names = features.classes().clone();
    let samples = match wanted.classes {
        None => features,
        Some(classes) => {
            images::check_classes(classes, &names, std::slice::from_ref(path))?;
            features.of_classes(|label| classes.contains(&names[label as usize]))
        }
    };
    let given: BTreeSet<u32> = samples.labels().iter().copied().collect();
    wanted.purpose.check(model, given.iter().map(|&label| names[label as usize].as_str()))?;
    Ok(samples.into())
}

/// The network that a features file says it is of. One that says nothing is taken as it is, with a note
/// where the model could have compared.
pub(super) fn network_of(
    file: &FeatureFile,
    path: &Path,
    taught: Taught<'_>,
) -> Result<Option<NetworkDescription>, Failure> {
    if let Some(text) = file.metadata.get(extract::NETWORK) {
        let malformed = |reason| ivoro_vision::Error::Malformed {
            path: path.to_owned(),
            what: format!("the description of its network {reason}"),
        };
        return Ok(Some(NetworkDescription::from_json(text).map_err(malformed)?));
    }
    let own = match taught {
        Taught::Hash(hash) => Some(hash),
        Taught::Described(described) => Some(described.hash.as_str()),
        Taught::Nothing | Taught::Features => None,
    };
    // what `extract` of version 0.1 wrote
    let hash = file.metadata.get("weights").map(String::as_str);
    if let (Some(expected), Some(found)) = (own, hash)
        && expected != found
    {
        let (expected, found) = (expected.to_owned(), found.to_owned());
        return Err(ivoro::Error::OtherNetwork { expected, found }.into());
    }
    if let Taught::Described(described) = taught {
        anstream::eprintln!(
            "note: {} does not say how its features were made; the model was taught with {described}",
            path.display()
        );
    }
    Ok(None)
}

/// A new model of the variant asked for, or of the one that will suit the samples best; what it is doing
/// stands beside the spinner.
fn new_model(arguments: &LearnArguments, spinner: &ProgressBar) -> Model {
    let spinner = spinner.clone();
    let tuner = Tuner::default().watched(move |step| spinner.set_message(step.to_owned()));
    let options = ModelOptions { tuner: Arc::new(tuner), ..arguments.settings.options() };
    if let Some(variant) = arguments.variant {
        return Model::new(variant, options);
    }
    let (kilobytes, seconds) = (arguments.budget as usize, arguments.budget_seconds);
    Model::choosing(options, Budget { bytes_per_class: kilobytes << 10, seconds })
}

/// Seconds since 1970 began: those of the clock, or those that `SOURCE_DATE_EPOCH` names, so that the
/// same commands can make the same file.
pub(super) fn now() -> u64 {
    let given = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|text| text.parse().ok());
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    given.unwrap_or_else(clock)
}

/// Loads a model that is to be changed, and tells it the time.
pub(super) fn load_to_change(path: &Path) -> Result<Model, Failure> {
    let mut model = load(path)?;
    model.set_time(now());
    Ok(model)
}

/// Saves a model and what it gave a receipt for. The receipt is written first: what can't be taken back is
/// not learned.
fn save_with(
    model: &Model,
    path: &Path,
    receipt: Option<(&Receipt, &Path)>,
) -> Result<(), Failure> {
    let Some((receipt, place)) = receipt else { return save(model, path) };
    progress::begin_writing()?;
    save_receipt(receipt, place)?;
    save(model, path).inspect_err(|_| {
        // nothing was learned that it could take back
        let _ = fs_err::remove_file(place);
    })
}

/// A receipt that is there already may be the only one of another lesson.
fn check_place(receipt: Option<&Path>) -> Result<(), Failure> {
    match receipt.filter(|path| path.exists()) {
        Some(path) => Err(Failure::Usage(format!(
            "{}: is there already; a receipt is not overwritten, name another file",
            path.display()
        ))),
        None => Ok(()),
    }
}

/// Says of a receipt what it is good for and what it gives away.
fn note_receipt(receipt: &Receipt, path: &Path) {
    let samples = counted(receipt.samples() as usize, "sample", "samples");
    anstream::eprintln!(
        "note: {} takes {samples} back on any machine; it reveals the features of few samples, so keep it \
         as you would keep them",
        path.display()
    );
}

/// Says while the samples are at hand what forgetting a class will need later.
fn note_forgetting(model: &Model, receipt: Option<&Path>) {
    if receipt.is_none() && !model.head().can_forget_alone() {
        anstream::eprintln!(
            "note: {} keeps one scatter for all classes: to forget a class later takes its samples, or the \
             receipt that --receipt FILE writes now; a model begun with --scatter per-class or compact needs neither",
            model.head().variant()
        );
    }
}

/// Loads a model that must be of this variant, if one is named.
fn load_for(path: &Path, variant: Option<Variant>) -> Result<Model, Failure> {
    let model = load_to_change(path)?;
    let own = model.head().variant();
    match variant {
        Some(other) if other != own => Err(Failure::Usage(format!(
            "{} is a model of {own} and stays one; leave out --variant {other} or begin a new file",
            path.display()
        ))),
        _ => Ok(model),
    }
}

/// Teaches a model new classes, and more of those it knows.
pub(crate) fn learn(arguments: &LearnArguments) -> Result<(), Failure> {
    let _lock = FileLock::acquire(&arguments.model)?;
    let place = arguments.lesson.receipt.as_deref();
    check_place(place)?;
    let spinner = ProgressBar::new_spinner();
    let mut model = if arguments.model.exists() {
        load_for(&arguments.model, arguments.variant)?
    } else {
        new_model(arguments, &spinner)
    };
    model.set_time(now());
    let before: Vec<(String, u64)> =
        model.head().classes().iter().map(|it| (it.name.clone(), it.statistics.count)).collect();
    let photos = &arguments.lesson.photos;
    let given = given(&mut model, &arguments.features, &arguments.lesson, Purpose::Teach)?;
    let spinner = progress::begun(spinner, "learning");
    let samples = &given.samples;
    // of photos people have more and more; a class that returns in a features file is a mistake
    let receipt = match (place, given.is_of_photos()) {
        (Some(_), true) => Some(model.teach_with_receipt(samples)?),
        (Some(_), false) => Some(model.learn_with_receipt(samples)?),
        (None, true) => model.teach(samples).map(|()| None)?,
        (None, false) => model.learn(samples).map(|()| None)?,
    };
    let receipt = receipt.as_ref().zip(place);
    save_with(&model, &arguments.model, receipt)?;
    spinner.finish_and_clear();
    receipt.iter().for_each(|(receipt, path)| note_receipt(receipt, path));
    note_again(&model);
    note_forgetting(&model, place);
    let (mut text, added) = taught(&arguments.model, &model, &before, given.samples.len());
    let may_repeat = added > 0 && photos.remember.is_none();
    given.finish(photos, false)?;
    if may_repeat {
        anstream::eprintln!(
            "note: photos that an earlier command taught count again; --remember FILE leaves them out"
        );
    }
    if before.is_empty() {
        model.choices().iter().for_each(|choice| text.push_str(&told(choice)));
    }
    Ok(output::print(&text)?)
}

/// What a model learned, and of which classes it got more; and how many samples those were.
fn taught(path: &Path, model: &Model, before: &[(String, u64)], samples: usize) -> (String, u64) {
    let known = model.head().classes();
    let grown: Vec<(&str, u64)> = known
        .iter()
        .zip(before)
        .map(|(class, (_, count))| (class.name.as_str(), class.statistics.count - count))
        .filter(|(_, more)| *more > 0)
        .collect();
    let added: u64 = grown.iter().map(|(_, more)| more).sum();
    let mut done = Vec::new();
    if known.len() > before.len() {
        let classes = counted(known.len() - before.len(), "class", "classes");
        let samples = counted(samples.saturating_sub(added as usize), "sample", "samples");
        done.push(format!("learned {classes} from {samples}"));
    }
    if added > 0 {
        let (samples, classes) = (
            counted(added as usize, "sample", "samples"),
            counted(grown.len(), "known class", "known classes"),
        );
        done.push(format!("added {samples} to {classes}"));
    }
    let mut text = format!(
        "{}: {}; now {} in {}\n",
        path.display(),
        done.join(", "),
        counted(known.len(), "class", "classes"),
        counted(model.head().phases().len(), "phase", "phases")
    );
    for (class, more) in grown {
        let more = counted(more as usize, "sample", "samples");
        let _ = writeln!(text, "  {}: {more} added", visible(class));
    }
    (text, added)
}

/// Says when the very same samples were given before.
fn note_again(model: &Model) {
    let mut entries = model.journal().entries().rev();
    let Some(last) = entries.next().and_then(|entry| entry.lesson.as_ref()) else { return };
    let gives = |entry: &&Entry| entry.lesson.as_ref() == Some(last);
    let Some(earlier) = entries.find(gives).filter(|entry| entry.verb != Verb::Retract) else {
        return;
    };
    anstream::eprintln!(
        "note: exactly these samples were given on {} already and count twice now; `ivoro retract` takes \
         them back once",
        date(earlier.when)
    );
}

/// What was chosen, and why.
fn told(choice: &Choice) -> String {
    let Choice { setting, value, variant, rule, .. } = choice;
    match setting.as_str() {
        "variant" => format!("  variant = {value}  ({rule})\n"),
        _ => format!("  {setting} = {value}  (chosen on {variant})\n"),
    }
}

/// The samples that a model is given.
fn given(
    model: &mut Model,
    paths: &[PathBuf],
    arguments: &LessonArguments,
    purpose: Purpose,
) -> Result<Lesson, Failure> {
    let LessonArguments { classes, class, photos, reading, .. } = arguments;
    let (class, classes) = (class.as_deref(), classes.as_ref());
    let wanted = Wanted { paths, arguments: photos, class, classes, purpose };
    lesson(model, &wanted, reading)
}

/// Adds samples to known classes.
pub(crate) fn update(arguments: &UpdateArguments) -> Result<(), Failure> {
    let _lock = FileLock::acquire(&arguments.model)?;
    let place = arguments.lesson.receipt.as_deref();
    check_place(place)?;
    let mut model = load_to_change(&arguments.model)?;
    let given = given(&mut model, &arguments.features, &arguments.lesson, Purpose::Update)?;
    let mut report: Vec<(String, u64)> = Vec::new();
    let receipt = if place.is_some() {
        let receipt = model.update_with_receipt(&given.samples)?;
        report.extend(receipt.classes().map(|(class, count)| (class.to_owned(), count)));
        Some(receipt)
    } else {
        report.extend(
            model.update(&given.samples)?.into_iter().map(|(class, count)| (class, count as u64)),
        );
        None
    };
    let receipt = receipt.as_ref().zip(place);
    save_with(&model, &arguments.model, receipt)?;
    receipt.iter().for_each(|(receipt, path)| note_receipt(receipt, path));
    note_forgetting(&model, place);
    note_again(&model);
    let variant = model.head().variant();
    if variant.divide || variant.residual {
        anstream::eprintln!(
            "note: probes of {variant} stay those of their phase; means and spread count all samples"
        );
    }
    given.finish(&arguments.lesson.photos, false)?;
    let lines =
        report.iter().map(|(class, count)| format!("{}: {count} samples added\n", visible(class)));
    Ok(output::print(&lines.collect::<String>())?)
}

/// Merges models.
pub(crate) fn merge(arguments: &MergeArguments) -> Result<(), Failure> {
    let MergeArguments { models, out, settings_of, .. } = arguments;
    if out.exists() && !arguments.force {
        let text = format!("{}: is there already; --force replaces it", out.display());
        return Err(Failure::Usage(text));
    }
    if let Some(path) = settings_of.as_ref().filter(|path| !models.contains(path)) {
        let text = format!("--settings-of {}: is none of the models to merge", path.display());
        return Err(Failure::Usage(text));
    }
    let _lock = FileLock::acquire(out)?;
    let ancestor = arguments.ancestor.as_deref().map(load).transpose()?;
    let mut text = String::new();
    let (first, others) =
        models.split_first().ok_or_else(|| Failure::Usage("nothing to merge".to_owned()))?;
    let mut merged = load_to_change(first)?;
    let mut differ = false;
    for path in others {
        let report = merged.merge(&load(path)?, ancestor.as_ref())?;
        let _ = writeln!(
            text,
            "{}: {} added, {} combined",
            path.display(),
            counted(report.added.len(), "class", "classes"),
            report.combined.len()
        );
        if !report.forgotten.is_empty() {
            let names = visible(&report.forgotten.join(", "));
            let _ = writeln!(text, "forgotten since the ancestor: {names}");
        }
        differ |= !report.settings.is_empty();
        for OtherSetting { name, own, other } in &report.settings {
            let (own_of, other_of) = (first.display(), path.display());
            let _ = writeln!(text, "{name} differs: {own} in {own_of}, {other} in {other_of}");
        }
    }
    if differ {
        let chosen = settings_of.as_ref().unwrap_or(first);
        if chosen != first {
            merged.take_settings(&load(chosen)?)?;
        }
        let _ = writeln!(text, "settings are those of {}", chosen.display());
    }
    save(&merged, out)?;
    let known = counted(merged.head().classes().len(), "class", "classes");
    let _ = writeln!(text, "{}: {known}", out.display());
    Ok(output::print(&text)?)
}

/// Says what a model is.
pub(crate) fn inspect(arguments: &InspectArguments) -> Result<(), Failure> {
    let model = load(&arguments.model)?;
    let head = model.head();
    if arguments.json {
        let classes =
            head.classes().iter().map(|c| json!({"name": c.name, "samples": c.statistics.count}));
        let text = json!({
            "variant": head.variant(),
            "settings": head.settings(),
            "choices": model.choices(),
            "calibration": model.calibration(),
            "temperature": model.calibration().and_then(|_| model.temperature().ok()),
            "network": model.network(),
            "network_description": model.network_description(),
            "layers": head.layers(),
            "phases": head.phases(),
            "classes": classes.collect::<Vec<_>>(),
            "bytes": head.bytes(),
            "search": if head.may_search_index() { "index" } else { "exact" },
        });
        return Ok(output::print(&format!("{text:#}\n"))?);
    }
    let mut text = format!("{}  {}\n", arguments.model.display(), head.variant());
    let layers: Vec<String> =
        head.layers().iter().map(|(name, dim)| format!("{} ({dim})", visible(name))).collect();
    let phases: Vec<String> = head.phases().iter().map(ToString::to_string).collect();
    if let Some(choice) = model.choices().iter().find(|choice| choice.setting == "variant") {
        let _ = writeln!(text, "chosen    {}", choice.rule);
    }
    let _ = writeln!(text, "layers    {}", layers.join(", "));
    let _ = writeln!(text, "phases    {} classes", phases.join(" + "));
    text.push_str(&network_lines(&model));
    if head.may_search_index() {
        let _ = writeln!(text, "search    by an index, approximately, unless asked with --exact");
    }
    for info in settings::of_variant(head.variant()) {
        let name = info.name;
        let value = json!(info.read(head.settings())).to_string().replace('"', "");
        let chosen = model.choices().iter().find(|it| it.setting.split(',').any(|it| it == name));
        let how = chosen.map_or(String::new(), |it| format!("  (chosen on {})", it.variant));
        let _ = writeln!(text, "{name:<9} {value}{how}");
    }
    if let Some(calibration) = model.calibration() {
        let _ = writeln!(
            text,
            "temperature {:.4} from {} held-out samples",
            model.temperature()?,
            calibration.samples()
        );
    }
    let mut table = Table::new(&["class", "samples"], 1);
    head.classes()
        .iter()
        .for_each(|c| table.row(vec![c.name.clone(), c.statistics.count.to_string()]));
    let _ = write!(text, "\n{table}");
    Ok(output::print(&text)?)
}

/// What a model knows of its network.
fn network_lines(model: &Model) -> String {
    let Some(described) = model.network_description() else {
        let known = model
            .network()
            .map(|hash| format!("network   {hash}; how images were brought to it is not known\n"));
        return known.unwrap_or_default();
    };
    let mut text = format!("network   {}\n", visible(&described.to_string()));
    let _ = writeln!(text, "hash      {}", described.hash);
    if let Some(path) = &described.path {
        let _ = writeln!(text, "file      {}", visible(path));
    }
    let _ = writeln!(text, "engine    {}", visible(&described.engine));
    text
}

/// Lists every number kept.
pub(crate) fn audit(arguments: &InspectArguments) -> Result<(), Failure> {
    let model = load(&arguments.model)?;
    let lines = list_kept(model.head());
    let total: usize = lines.iter().map(|line| line.bytes).sum();
    if arguments.json {
        let text = json!({"kept": lines, "bytes": total, "not_kept": NOT_KEPT});
        return Ok(output::print(&format!("{text:#}\n"))?);
    }
    let mut table = Table::new(&["owner", "what", "numbers", "bytes"], 2);
    for line in &lines {
        let cells = [
            line.owner.clone(),
            line.what.to_owned(),
            line.numbers.to_string(),
            line.bytes.to_string(),
        ];
        table.row(cells.to_vec());
    }
    let classes = model.head().classes().len().max(1);
    let mut text = format!(
        "{table}\n{total} bytes in all, {} per class; besides, whatever was learned: class names, \
         settings and how they were chosen, {} numbers of its calibration, a range of values for \
         each block, a journal of {} (ivoro log)\n",
        total / classes,
        model.calibration().map_or(0, ivoro::calibration::Calibration::numbers),
        counted(model.journal().entries().count(), "entry", "entries")
    );
    text.push_str("not kept:\n");
    NOT_KEPT.iter().for_each(|line| {
        let _ = writeln!(text, "  {line}");
    });
    Ok(output::print(&text)?)
}
