//! `ivoro predict`: asks a model about features or photos.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use ivoro::Samples;
use ivoro::head::{Approximation, Search};
use ivoro::model::{AskOptions, BurstRule, Prediction, Predictor};
use ivoro_eval::csv::quoted;
use ivoro_io::load_predictor;
use ivoro_vision::Recogniser;
use ivoro_vision::dataset::photos::labels;
use ivoro_vision::dataset::{ImageInput, Photo, Unread};
use ivoro_vision::recogniser::Classifier as _;
use serde_json::json;

use super::photos::{self, Tale};
use crate::args::{BurstChoice, Format, PredictArguments};
use crate::commands::model::{network_of, read};
use crate::failure::Failure;
use crate::progress;
use crate::table::{Table, visible};
use crate::words::counted;

/// Queries answered before the first results are printed; a whole number of bursts.
const BATCH: usize = 4096;

/// Parts of photos that are answered together: one is decoded while the network looks at another.
const PARTS: usize = 4;

/// The share of known queries that may be called unknown, where no other is asked for.
const USUAL_REJECTION: f64 = 0.05;

/// Asks a model about features or images.
pub(crate) fn predict(arguments: &PredictArguments) -> Result<(), Failure> {
    let model = load_predictor(&arguments.model)?;
    let rule = match arguments.burst_rule {
        BurstChoice::Sum => BurstRule::Sum,
        BurstChoice::Vote => BurstRule::Vote,
    };
    let options = AskOptions {
        top: arguments.top.get(),
        false_rejection: rejected(arguments, &model),
        burst: arguments.burst.map(|size| (size.get(), rule)),
        search: if arguments.exact { Search::Exact } else { Search::Automatic },
    };
    if let Some(about) = model.approximation(options)? {
        note(about);
    }
    if arguments.reading.look.all_images(&arguments.features)? {
        return predict_images(arguments, model, options);
    }
    let [path] = &arguments.features[..] else {
        return Err(Failure::Usage("one features file at a time".to_owned()));
    };
    let file = read(path, &arguments.reading.input)?;
    if let Some(described) = network_of(&file, path, model.taught())? {
        model.check_described_network(&described)?;
    }
    let set = file.asking()?;
    let size = arguments.burst.map_or(1, NonZeroUsize::get);
    let mut printer = Printer::new(arguments, false, set.labelled());
    let rows: Vec<usize> = (0..set.points().len()).collect();
    let bar = progress::bar(rows.len());
    for rows in rows.chunks(BATCH.next_multiple_of(size)) {
        let answers = model.ask(&set.points().select(rows), options)?;
        for (at, prediction) in answers.iter().enumerate() {
            let query = Query::Row(rows[at * size]);
            let label = printer.label(&query, prediction.burst);
            printer.take(&query, prediction, label.as_deref())?;
        }
        bar.inc(rows.len() as u64);
    }
    bar.finish_and_clear();
    printer.finish()
}

/// The share of known queries that may be called unknown: the one given, else the usual one where the
/// model can tell.
fn rejected(arguments: &PredictArguments, model: &Predictor) -> Option<f64> {
    let usual = (!arguments.no_reject && model.can_reject()).then_some(USUAL_REJECTION);
    arguments.reject.or(usual)
}

/// Asks about photos, some at a time; answers are printed as they come.
fn predict_images(
    arguments: &PredictArguments,
    model: Predictor,
    options: AskOptions,
) -> Result<(), Failure> {
    let PredictArguments { features, photos: reading, .. } = arguments;
    let mut found = photos::find(features, reading.broken())?;
    let mut tale = Tale::of("answered", &mut found);
    let all = found.photos;
    if all.is_empty() {
        return Err(tale.nothing(features));
    }
    let known: HashSet<String> = model.classes().map(str::to_owned).collect();
    let labels = labels(&all, |name| known.contains(name));
    let network = arguments.reading.look.open(model.taught())?;
    let recogniser = Recogniser::new(model, network)?;
    let size = arguments.burst.map_or(1, NonZeroUsize::get);
    let mut printer = Printer::new(arguments, true, None);
    printer.known = known;
    let bar = progress::bar(all.len());
    bar.set_message("photos");
    let at_once = (PARTS * recogniser.network().batch()).next_multiple_of(size);
    for (part, labels) in all.chunks(at_once).zip(labels.chunks(at_once)) {
        let inputs: Vec<ImageInput<'_>> = part.iter().map(Photo::input).collect();
        let seen = recogniser.ask_readable(&inputs, options, reading.decoding())?;
        tale.report.done += seen.rows.len();
        tale.report.add_truncated(part, &seen.truncated);
        for (at, prediction) in seen.of.iter().flatten().enumerate() {
            let rows = &seen.rows[at * size..(at * size + prediction.burst).min(seen.rows.len())];
            let Some(&first) = rows.first() else { continue };
            let label = printer.label_of_photos(rows.iter().map(|&row| labels[row].as_deref()));
            let query = Query::File(part[first].name().to_owned());
            printer.take(&query, prediction, label.as_deref())?;
        }
        printer.skipped(part, &seen.broken)?;
        tale.report.add_unread(part, seen.broken);
        printer.out.flush()?;
        bar.inc(part.len() as u64);
    }
    bar.finish_and_clear();
    if tale.report.done == 0 {
        tale.tell(reading)?;
        return Err(tale.nothing(features));
    }
    printer.finish()?;
    tale.tell(reading)
}

/// What an answer is about.
enum Query {
    Row(usize),
    File(PathBuf),
}

impl Query {
    /// The column it stands in, and its text.
    fn name(&self) -> (&'static str, String) {
        match self {
            Self::Row(row) => ("row", row.to_string()),
            Self::File(path) => ("file", path.display().to_string()),
        }
    }
}

/// Says that answers are approximate, before the first of them.
fn note(about: Approximation) {
    anstream::eprintln!(
        "note: answers come from an index and can be wrong: it looks at {} of {} families of \
         classes, which named the nearest class of {:.1} % of rehearsed queries; --exact compares \
         with all",
        about.probes,
        about.families,
        100.0 * about.agreement
    );
}

/// The columns of the table that stand only where they say something.
const RUNNER_UP: usize = 4;
const HV: usize = 5;
const BURST: usize = 7;

/// Prints predictions as they come and counts how many are right.
struct Printer<'a> {
    format: Format,
    on_terminal: bool,
    /// Whether more than one class was asked for.
    several: bool,
    /// Whether the views or rows of a query disagreed anywhere.
    disagree: bool,
    /// The most rows of a burst, where bursts were asked for.
    burst: Option<usize>,
    labels: Option<&'a Samples>,
    table: Table,
    out: BufWriter<io::StdoutLock<'static>>,
    asked: usize,
    right: usize,
    unknown: usize,
    /// Bursts of rows with different labels.
    mixed: usize,
    /// The classes of the model, where labels come from folders.
    known: HashSet<String>,
    /// Photos in folders called as a class, and those in folders called otherwise beside them.
    labelled: usize,
    labelled_rejected: usize,
    strangers: usize,
    strangers_rejected: usize,
}

impl<'a> Printer<'a> {
    fn new(arguments: &PredictArguments, images: bool, labels: Option<&'a Samples>) -> Self {
        let header = [
            if images { "file" } else { "row" },
            "class",
            "probability",
            "distance",
            "runner-up",
            "HV",
            "unknown",
            "burst",
        ];
        Self {
            format: arguments.format,
            on_terminal: io::stdout().is_terminal(),
            several: arguments.top.get() > 1,
            disagree: false,
            burst: arguments.burst.map(|_| 0),
            labels,
            table: Table::new(&header, 2),
            out: BufWriter::new(io::stdout().lock()),
            asked: 0,
            right: 0,
            unknown: 0,
            mixed: 0,
            known: HashSet::new(),
            labelled: 0,
            labelled_rejected: 0,
            strangers: 0,
            strangers_rejected: 0,
        }
    }

    /// The label of a query, if all rows of it have the same.
    fn label(&mut self, query: &Query, rows: usize) -> Option<String> {
        let (Query::Row(first), Some(features)) = (query, self.labels) else { return None };
        let labels = features.labels().get(*first..*first + rows)?;
        if labels.iter().any(|label| *label != labels[0]) {
            self.mixed += 1;
            return None;
        }
        Some(features.classes()[labels[0] as usize].clone())
    }

    /// The label of a query of photos, if all of them have the same.
    fn label_of_photos<'b>(
        &mut self,
        mut labels: impl Iterator<Item = Option<&'b str>>,
    ) -> Option<String> {
        let first = labels.next().flatten();
        if labels.any(|label| label != first) {
            self.mixed += 1;
            return None;
        }
        first.map(str::to_owned)
    }

    fn take(
        &mut self,
        query: &Query,
        prediction: &Prediction,
        label: Option<&str>,
    ) -> Result<(), Failure> {
        self.burst = self.burst.map(|most| most.max(prediction.burst));
        let best = &prediction.top[0];
        let rejected = usize::from(prediction.unknown == Some(true));
        match label {
            // labels of a features file
            Some(label) if self.labels.is_some() => {
                self.right += usize::from(label == best.class);
            }
            Some(label) if self.known.contains(label) => {
                self.labelled += 1;
                self.labelled_rejected += rejected;
                self.right += usize::from(label == best.class);
            }
            Some(_) => {
                self.strangers += 1;
                self.strangers_rejected += rejected;
            }
            None => {}
        }
        self.unknown += rejected;
        self.asked += 1;
        self.disagree |= prediction.uncertainty > 0.0;
        match self.format {
            Format::Table => self.table.row(cells(query, prediction)),
            Format::Csv => self.csv(query, prediction, label)?,
            Format::Jsonl => {
                let mut value = json!(prediction);
                match query {
                    Query::Row(row) => value["row"] = json!(row),
                    Query::File(path) => value["file"] = json!(path.display().to_string()),
                }
                value["label"] = json!(label);
                writeln!(self.out, "{}", self.json_text(&value.to_string()))?;
            }
        }
        Ok(())
    }

    fn csv(
        &mut self,
        query: &Query,
        prediction: &Prediction,
        label: Option<&str>,
    ) -> io::Result<()> {
        let (column, name) = query.name();
        if self.asked == 1 {
            let candidates = (1..=prediction.top.len())
                .map(|k| format!(",class_{k},distance_{k},probability_{k}"));
            writeln!(
                self.out,
                "{column},label,unknown,uncertainty,strangeness,burst,approximate{}",
                candidates.collect::<String>()
            )?;
        }
        let unknown =
            prediction.unknown.map_or("", |unknown| if unknown { "true" } else { "false" });
        write!(
            self.out,
            "{},{},{unknown},{},{},{},{}",
            quoted(&self.text(&name)),
            quoted(&self.text(label.unwrap_or(""))),
            prediction.uncertainty,
            prediction.strangeness.map_or(String::new(), |value| value.to_string()),
            prediction.burst,
            prediction.approximate
        )?;
        for candidate in &prediction.top {
            let probability = candidate.probability.map_or(String::new(), |p| format!("{p:.6}"));
            let class = self.text(&candidate.class).into_owned();
            write!(self.out, ",{},{},{probability}", quoted(&class), candidate.distance)?;
        }
        writeln!(self.out)
    }

    fn finish(mut self) -> Result<(), Failure> {
        if self.format == Format::Table {
            self.write_table()?;
        }
        self.out.flush()?;
        let queries = match self.burst {
            Some(size) => {
                counted(self.asked, "burst query", "burst queries") + &format!(" of {size}")
            }
            None => counted(self.asked, "query", "queries"),
        };
        if self.mixed > 0 {
            anstream::eprintln!(
                "note: {} rows of different labels and count neither as right nor as wrong; the \
                 rows of an object have to follow each other",
                counted(self.mixed, "burst has", "bursts have")
            );
        }
        let labelled = self.asked - self.mixed;
        if self.labels.is_some() && labelled > 0 {
            let share = 100.0 * self.right as f64 / labelled as f64;
            anstream::eprintln!(
                "{queries}: {share:.2} % right, {} rejected as unknown",
                self.unknown
            );
        }
        self.tell_folders();
        Ok(())
    }

    /// How many photos have the class that their folder is called.
    fn tell_folders(&self) {
        let share = |part: usize, all: usize| 100.0 * part as f64 / all.max(1) as f64;
        if self.labelled > 0 {
            anstream::eprintln!(
                "{} of {} right by their folders ({:.2} %), {} rejected as unknown",
                self.right,
                self.labelled,
                share(self.right, self.labelled),
                self.labelled_rejected
            );
        }
        if self.labelled > 0 && self.strangers > 0 {
            anstream::eprintln!(
                "{} of folders that are no class of the model, {} of them rejected as unknown",
                self.strangers,
                self.strangers_rejected
            );
        }
    }

    /// Photos that could not be read are lines of their own where lines are objects.
    fn skipped(&mut self, photos: &[Photo], unread: &[(usize, Unread)]) -> Result<(), Failure> {
        if self.format == Format::Jsonl {
            for (at, unread) in unread {
                let file = photos[*at].name().display().to_string();
                let value = json!({"file": file, "skipped": unread.kind, "why": unread.why});
                writeln!(self.out, "{value}")?;
            }
        }
        Ok(())
    }
}

impl Printer<'_> {
    /// A name as it may be printed: a terminal gets no sign that would steer it.
    fn text<'t>(&self, name: &'t str) -> Cow<'t, str> {
        if self.on_terminal { visible(name).into() } else { name.into() }
    }

    /// The same of JSON, in which some of these signs need not be written out.
    fn json_text<'t>(&self, json: &'t str) -> Cow<'t, str> {
        let steers = |sign: char| sign.is_control();
        if !self.on_terminal || !json.contains(steers) {
            return json.into();
        }
        let shown = |sign: char| match sign {
            sign if steers(sign) => format!("\\u{:04x}", u32::from(sign)),
            sign => sign.to_string(),
        };
        json.chars().map(shown).collect()
    }

    /// The table, without columns that would say the same in every row, and what the others mean.
    fn write_table(&mut self) -> io::Result<()> {
        let has_bursts = self.burst.is_some();
        // from the last on, so that the places of the others stay
        for (column, is_said) in
            [(BURST, has_bursts), (HV, self.disagree), (RUNNER_UP, self.several)]
        {
            if !is_said {
                self.table.remove_column(column);
            }
        }
        write!(self.out, "{}", self.table)?;
        self.out.flush()?;
        if self.disagree {
            anstream::eprintln!(
                "HV: how much the views or rows of a query disagree; 0 is not at all"
            );
        }
        if has_bursts {
            anstream::eprintln!("burst: how many rows the query is made of");
        }
        Ok(())
    }
}

fn cells(query: &Query, prediction: &Prediction) -> Vec<String> {
    let best = &prediction.top[0];
    let percent = |p: Option<f64>| p.map_or("–".to_owned(), |p| format!("{:.1} %", 100.0 * p));
    let runner = prediction.top.get(1).map_or(String::new(), |second| {
        format!("{} ({})", second.class, percent(second.probability))
    });
    // the nearest class is still told: as the runner-up of none
    let (class, probability, runner) = if prediction.unknown == Some(true) {
        let nearest = format!("{} ({})", best.class, percent(best.probability));
        ("unknown".to_owned(), percent(None), nearest)
    } else {
        (best.class.clone(), percent(best.probability), runner)
    };
    vec![
        query.name().1,
        class,
        probability,
        format!("{:.4}", best.distance),
        runner,
        format!("{:.3}", prediction.uncertainty),
        prediction.unknown.map_or("–", |unknown| if unknown { "unknown" } else { "no" }).to_owned(),
        prediction.burst.to_string(),
    ]
}
