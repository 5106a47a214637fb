//! The verb `evaluate`: what a model gets right on labelled samples.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anstream::eprintln;
use ivoro::{Model, Points, Samples};
use ivoro_eval::evaluation::{self, Asked, Findings, Interval, Next, Rejected};
use ivoro_io::load;
use ivoro_report::evaluation::Sheet;
use ivoro_vision::FrozenNetwork;
use ivoro_vision::dataset::photos::test_part;
use ivoro_vision::dataset::{Broken, Dataset, ImageInput, OpenOptions, Photo};
use ivoro_vision::photos::{Looking, PhotoReport};
use ivoro_vision::recogniser::Classifier as _;
use ivoro_vision::thumbnail;
use serde_json::json;

use super::images::say_left_out;
use super::model::{network_of, read};
use super::photos::{Tale, find};
use crate::args::{EvaluateArguments, InputArguments};
use crate::failure::Failure;
use crate::table::{Table, visible};
use crate::words::counted;
use crate::{output, progress};

/// Images looked at between two steps of the progress bar.
const AT_ONCE: usize = 256;
/// Confusions that the table lists.
const CONFUSIONS: usize = 10;
/// Side of a thumbnail.
const THUMBNAIL: usize = 128;

/// Labelled queries with their names, and their files where they are photos.
struct Labelled {
    samples: Samples,
    files: Option<Vec<PathBuf>>,
    report: PhotoReport,
}

/// Queries that are unknown, in parts.
#[derive(Default)]
struct Unknown {
    parts: Vec<Points>,
    labels: Option<Samples>,
    files: Option<Vec<PathBuf>>,
    report: PhotoReport,
}

/// Measures a model on labelled samples.
pub(crate) fn evaluate(arguments: &EvaluateArguments) -> Result<(), Failure> {
    progress::catch_interrupts();
    let model = load(&arguments.model)?;
    let images = arguments.reading.look.takes_images(&arguments.data)?;
    let network = images.then(|| arguments.reading.look.open(model.taught())).transpose()?;
    let (mut asked, without) = Asked::new(&model, Some(arguments.reject))?;
    if let Some(why) = without {
        eprintln!("note: nothing is rejected: {why}");
    }
    let labelled = labelled(arguments, &model, network.as_ref())?;
    let unknown = unknown(arguments, &model, network.as_ref())?;
    if let Some(path) = arguments.photos.left_out.as_deref().filter(|_| images) {
        let [labelled, unknown] =
            [&labelled.report, &unknown.report].map(|it| it.to_json("photos"));
        let value = json!({"labelled": labelled, "unknown": unknown});
        output::write_whole(path, &format!("{value:#}\n"))?;
    }
    let spinner = progress::spinner("asking");
    asked.labelled(&labelled.samples, name(labelled.files.as_deref(), 0))?;
    let mut first = 0;
    for part in &unknown.parts {
        asked.unknown(part, unknown.labels.as_ref(), name(unknown.files.as_deref(), first))?;
        first += part.len();
    }
    let findings = Findings::of(&model, asked.reject(), &asked.answers)?;
    spinner.finish_and_clear();
    note_unknown_classes(&findings);
    let about = [&arguments.model, &arguments.data].map(|path| path.display().to_string());
    if let Some(path) = &arguments.json {
        let mut value = json!(findings);
        value["model"] = json!(about[0]);
        value["data"] = json!(about[1]);
        output::write_whole(path, &format!("{value:#}\n"))?;
    }
    if let Some(path) = &arguments.csv {
        output::write_whole(path, &evaluation::csv(&asked.answers))?;
    }
    if let Some(path) = &arguments.html {
        let points: Vec<&Points> =
            std::iter::once(labelled.samples.points()).chain(&unknown.parts).collect();
        let next = Next::of(&model, &asked.answers, &points, &labelled.samples, arguments.show)?;
        let files = [labelled.files.as_deref(), unknown.files.as_deref()];
        let thumbnails = thumbnails(&next, arguments.show, labelled.samples.len(), files);
        let sheet = Sheet {
            model: &about[0],
            data: &about[1],
            findings: &findings,
            answers: &asked.answers,
            next: &next,
            thumbnails: &thumbnails,
            most: arguments.show,
        };
        output::write_whole(path, &ivoro_report::evaluation::page(&sheet))?;
    }
    Ok(output::print(&table(&about, &findings))?)
}

/// The name of a row: its file, or its number.
fn name(files: Option<&[PathBuf]>, first: usize) -> impl Fn(usize) -> String {
    move |row| match files.and_then(|files| files.get(first + row)) {
        Some(file) => file.display().to_string(),
        None => (first + row).to_string(),
    }
}

/// The queries of a features file: its test part, or all that it has.
fn features(
    model: &Model,
    path: &Path,
    input: &InputArguments,
) -> Result<(Points, Option<Samples>), Failure> {
    let file = read(path, input)?;
    if let Some(described) = network_of(&file, path, model.taught())? {
        model.check_described_network(&described)?;
    }
    if file.test.is_some() || file.all.is_some() {
        let set = file.asking()?;
        return Ok((set.points().clone(), set.labelled().cloned()));
    }
    let samples = file.learning()?;
    eprintln!("note: {} has only a train part; it is asked", path.display());
    Ok((samples.points().clone(), Some(samples)))
}

fn labelled(
    arguments: &EvaluateArguments,
    model: &Model,
    network: Option<&FrozenNetwork>,
) -> Result<Labelled, Failure> {
    let EvaluateArguments { data, photos, reading, .. } = arguments;
    let Some(network) = network else {
        let unlabelled =
            || Failure::Usage(format!("{}: no labels to compare with", data.display()));
        let (_, samples) = features(model, data, &reading.input)?;
        let (samples, report) = (samples.ok_or_else(unlabelled)?, PhotoReport::default());
        return Ok(Labelled { samples, files: None, report });
    };
    let options =
        OpenOptions { test_share: 0.0, broken: photos.broken(), ..OpenOptions::default() };
    if let Some(dataset) = Dataset::open_known(data, &options)? {
        return of_dataset(model, network, dataset, data, photos.broken());
    }
    let folder = match test_part(data) {
        Some(part) => {
            eprintln!("note: of {} the folder {} is asked", data.display(), part.display());
            part
        }
        None => data.clone(),
    };
    let paths = std::slice::from_ref(&folder);
    let mut found = find(paths, photos.broken())?;
    found.name_classes(None, None, photos.broken())?;
    let mut tale = Tale::of("asked about", &mut found);
    let all = found.photos;
    model.check_described_network(&network.describe(network.photo_fit(&all)?))?;
    let bar = progress::bar(all.len());
    bar.set_message("photos");
    let looking = Looking { decoding: photos.decoding(), keep_duplicates: true, remembered: None };
    let mut done = |count: usize| bar.set_position(count as u64);
    let seen = network.photo_samples(model.head().variant(), &all, looking, &mut done)?;
    bar.finish_and_clear();
    let rows = seen.rows.clone();
    let Some(samples) = tale.report.add_seen(&all, seen).0 else {
        return Err(tale.nothing(paths));
    };
    tale.say(photos);
    let files = rows.iter().map(|&row| all[row].name().to_owned()).collect();
    Ok(Labelled { samples, files: Some(files), report: tale.report })
}

/// The images of a data set of a known layout: its test part, where it has one.
fn of_dataset(
    model: &Model,
    network: &FrozenNetwork,
    mut dataset: Dataset,
    data: &Path,
    broken: Broken,
) -> Result<Labelled, Failure> {
    if !dataset.test.is_empty() {
        eprintln!("note: {} has a train and a test part; the test part is asked", data.display());
        dataset.train = dataset.test.clone();
    }
    let rows: Vec<usize> = (0..dataset.train.len()).collect();
    if let Some(fit) = network.fit_of(&dataset.train, &rows)? {
        model.check_described_network(&network.describe(fit))?;
    }
    let bar = progress::bar(rows.len());
    bar.set_message("images");
    let mut done = |count: usize| bar.set_position(count as u64);
    let variant = model.head().variant();
    let seen = network.samples(variant, &dataset, &rows, broken, &mut done)?;
    bar.finish_and_clear();
    say_left_out(&seen);
    let files = seen.rows.iter().map(|&row| dataset.train.path(row).map(Path::to_owned)).collect();
    let none = || Failure::Usage(format!("{}: there is no image to ask about", data.display()));
    Ok(Labelled { samples: seen.of.ok_or_else(none)?, files, report: PhotoReport::default() })
}

fn unknown(
    arguments: &EvaluateArguments,
    model: &Model,
    network: Option<&FrozenNetwork>,
) -> Result<Unknown, Failure> {
    let Some(path) = &arguments.unknown else { return Ok(Unknown::default()) };
    let Some(network) = network else {
        let (points, labels) = features(model, path, &arguments.reading.input)?;
        return Ok(Unknown { parts: vec![points], labels, ..Unknown::default() });
    };
    let photos = &arguments.photos;
    let paths = std::slice::from_ref(path);
    let mut found = find(paths, photos.broken())?;
    let mut tale = Tale::of("asked as unknown about", &mut found);
    let all = found.photos;
    let bar = progress::bar(all.len());
    bar.set_message("unknown photos");
    let (mut parts, mut files) = (Vec::new(), Vec::new());
    for some in all.chunks(AT_ONCE.max(network.batch())) {
        let inputs: Vec<ImageInput<'_>> = some.iter().map(Photo::input).collect();
        let seen = network.points(model.head().variant(), &inputs, photos.decoding())?;
        files.extend(seen.rows.iter().map(|&row| some[row].name().to_owned()));
        tale.report.done += seen.rows.len();
        tale.report.add_unread(some, seen.broken);
        parts.extend(seen.of);
        bar.inc(some.len() as u64);
    }
    bar.finish_and_clear();
    if files.is_empty() {
        return Err(tale.nothing(paths));
    }
    tale.say(photos);
    Ok(Unknown { parts, labels: None, files: Some(files), report: tale.report })
}

fn note_unknown_classes(findings: &Findings) {
    let classes = &findings.unknown_classes;
    if classes.is_empty() {
        return;
    }
    let names: Vec<String> = classes.iter().take(5).map(|it| visible(&it.class)).collect();
    let more = if classes.len() > names.len() { ", …" } else { "" };
    let queries = classes.iter().map(|it| it.queries).sum();
    eprintln!(
        "note: {} of {} that the model does not know ({}{more}) count as unknown",
        counted(queries, "sample", "samples"),
        counted(classes.len(), "class", "classes"),
        names.join(", ")
    );
}

/// Small copies of the photos that the page shows, by their places among the answers. A photo that has
/// gone meanwhile has none.
fn thumbnails(
    next: &Next,
    most: usize,
    labelled: usize,
    [known, unknown]: [Option<&[PathBuf]>; 2],
) -> BTreeMap<usize, Vec<u8>> {
    let file = |at: usize| match at.checked_sub(labelled) {
        None => known?.get(at),
        Some(at) => unknown?.get(at),
    };
    let shown = next.shown(most).into_iter();
    shown.filter_map(|at| Some((at, thumbnail::jpeg(file(at)?, THUMBNAIL).ok()?))).collect()
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn with_interval(found: Option<Interval>) -> String {
    found.map_or("–".to_owned(), |it| {
        format!(
            "{}  (95 % interval {:.1} to {})",
            percent(it.share),
            100.0 * it.low,
            percent(it.high)
        )
    })
}

/// The table for people.
fn table([model, data]: &[String; 2], findings: &Findings) -> String {
    let views = counted(findings.views, "view", "views");
    let (queries, right) = (counted(findings.queries, "query", "queries"), findings.right);
    let mut text = format!(
        "{} on {}: {}, {views} of each query\n\naccuracy           {}, {right} of {queries}\n",
        visible(model),
        visible(data),
        findings.variant,
        with_interval(findings.accuracy),
    );
    let number = |value: Option<f64>| value.map_or("–".to_owned(), percent);
    let _ = writeln!(text, "macro accuracy     {}", number(findings.macro_accuracy));
    if let Some(found) = &findings.calibration {
        let _ = writeln!(
            text,
            "calibration error  {}  (mean confidence {}, {} right)",
            percent(found.error),
            percent(found.confidence),
            percent(found.accuracy)
        );
    }
    rejection(&mut text, findings);
    let mut table =
        Table::new(&["class", "n", "right", "recall", "precision", "most confused with"], 1);
    let mut classes: Vec<_> =
        findings.classes.iter().filter(|it| it.queries > 0 || it.named > 0).collect();
    classes.sort_by(|a, b| a.recall.unwrap_or(2.0).total_cmp(&b.recall.unwrap_or(2.0)));
    for class in classes {
        let mistaken = class.confused_with.as_ref();
        table.row(vec![
            class.class.clone(),
            class.queries.to_string(),
            class.right.to_string(),
            number(class.recall),
            number(class.precision),
            mistaken.map_or(String::new(), |it| format!("{} ({})", it.class, it.queries)),
        ]);
    }
    let _ = write!(text, "\n{table}");
    if !findings.confusions.is_empty() {
        let mut table = Table::new(&["class", "taken for", "queries"], 2);
        for it in findings.confusions.iter().take(CONFUSIONS) {
            table.row(vec![it.class.clone(), it.named.clone(), it.queries.to_string()]);
        }
        let _ = write!(text, "\n{table}");
        if findings.confusions.len() > CONFUSIONS {
            let _ = writeln!(text, "… and {} more", findings.confusions.len() - CONFUSIONS);
        }
    }
    text
}

fn rejection(text: &mut String, findings: &Findings) {
    let Some(found) = &findings.rejection else { return };
    let of = |it: &Rejected| {
        let share = it.share.map_or("–".to_owned(), |it| percent(it.share));
        format!("{share} ({} of {})", it.rejected, it.queries)
    };
    if let Some(at) = &found.at_threshold {
        let _ = writeln!(
            text,
            "known rejected     {}, {} promised",
            of(&at.known),
            percent(at.promised)
        );
        let _ = writeln!(text, "right if accepted  {}", with_interval(at.accepted));
        if let Some(unknown) = &at.unknown {
            let _ = writeln!(text, "unknown rejected   {}", of(unknown));
        }
    }
    if let (Some(auroc), Some(fpr)) = (found.auroc, found.fpr95) {
        let _ = writeln!(text, "unknown, AUROC     {auroc:.3}");
        let _ =
            writeln!(text, "unknown, FPR       {} where 95 % of known are accepted", percent(fpr));
    }
}
