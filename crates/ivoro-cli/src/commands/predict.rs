//! `ivoro predict`: asks a model about features or photos.

use std::borrow::Cow;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;

use ivoro::Samples;
use ivoro::head::{Approximation, Search};
use ivoro::model::{AskOptions, BurstRule, Prediction, Predictor};
use ivoro_eval::csv::quoted;
use ivoro_io::load_predictor;
use ivoro_vision::Recogniser;
use ivoro_vision::dataset::{ImageInput, collect_images};
use ivoro_vision::recogniser::Classifier as _;
use serde_json::json;

use super::images::say_left_out;
use crate::args::{BurstChoice, Format, PredictArguments};
use crate::commands::model::{counted, network_of, read};
use crate::failure::Failure;
use crate::progress;
use crate::table::{Table, visible};

/// Queries answered before the first results are printed; a whole number of bursts.
const BATCH: usize = 4096;

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
    let images = arguments.features.iter().map(|path| arguments.look.takes_images(path));
    let images = images.collect::<Result<Vec<bool>, Failure>>()?;
    let path = match &arguments.features[..] {
        [path] if !images[0] => path,
        _ if images.iter().all(|&images| images) => {
            return predict_images(arguments, model, options);
        }
        _ => {
            let text = "name images and folders of images, or one features file".to_owned();
            return Err(Failure::Usage(text));
        }
    };
    let file = read(path, &arguments.input)?;
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
            printer.take(&Query::Row(rows[at * size]), prediction)?;
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

/// Asks about images, some at a time; answers are printed as they come.
fn predict_images(
    arguments: &PredictArguments,
    model: Predictor,
    options: AskOptions,
) -> Result<(), Failure> {
    let paths = collect_images(&arguments.features)?;
    let fitting = &arguments.look.fitting;
    let network = arguments.look.open(model.taught())?;
    let recogniser = Recogniser::new(model, network)?;
    let size = arguments.burst.map_or(1, NonZeroUsize::get);
    let mut printer = Printer::new(arguments, true, None);
    let bar = progress::bar(paths.len());
    for paths in paths.chunks(recogniser.network().batch().next_multiple_of(size)) {
        let inputs: Vec<ImageInput<'_>> = paths.iter().map(|path| ImageInput::Path(path)).collect();
        let seen = recogniser.ask_readable(&inputs, options, fitting.broken())?;
        say_left_out(&seen);
        for (at, prediction) in seen.of.iter().flatten().enumerate() {
            let path = &paths[seen.rows[at * size]];
            printer.take(&Query::File(path.clone()), prediction)?;
        }
        printer.out.flush()?;
        bar.inc(paths.len() as u64);
    }
    bar.finish_and_clear();
    printer.finish()
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

    fn take(&mut self, query: &Query, prediction: &Prediction) -> Result<(), Failure> {
        let label = self.label(query, prediction.burst);
        self.burst = self.burst.map(|most| most.max(prediction.burst));
        let best = &prediction.top[0];
        self.right += usize::from(label.as_ref() == Some(&best.class));
        self.unknown += usize::from(prediction.unknown == Some(true));
        self.asked += 1;
        self.disagree |= prediction.uncertainty > 0.0;
        match self.format {
            Format::Table => self.table.row(cells(query, prediction)),
            Format::Csv => self.csv(query, prediction, label.as_deref())?,
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
