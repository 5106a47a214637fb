//! Records put together: what belongs to one data set and protocol, and what is averaged over.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use ivoro::Variant;
use ivoro::head::{EXTENDED, PAPER, Settings};
use ivoro_eval::metrics::mean_deviation;
use ivoro_eval::record::{Kind, MethodRecord, PhaseOutcome, RunRecord};
use serde_json::Value;

use crate::inputs::{Found, Inputs};
use crate::paper::{Measure, PaperProtocol, paper, same_name};
use crate::plot::text;
use crate::run_settings::{self, RunSettings};

/// Stands behind the name of a method that has changed since.
pub(crate) const OUTDATED: &str = "†";

/// One method in one record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'a> {
    /// Which record, as counted in the report.
    pub(crate) run: usize,
    /// Which method of it.
    pub(crate) at: usize,
    /// The record's file.
    pub(crate) file: &'a str,
    pub(crate) record: &'a RunRecord,
    pub(crate) method: &'a MethodRecord,
    /// Whether what the method computes has changed since.
    pub(crate) outdated: bool,
}

impl Entry<'_> {
    /// The folder of all that was made with one order and seed, as a grid lays records out.
    pub(crate) fn place(&self) -> Option<&Path> {
        Path::new(self.file).parent()?.parent()
    }

    /// The anchor of its place in the list of runs.
    pub(crate) fn anchor(&self) -> String {
        anchor(self.run, self.at)
    }

    pub(crate) fn last(&self) -> Option<&PhaseOutcome> {
        self.method.phases.last()
    }
}

/// The anchor of a method in the list of runs.
pub(crate) fn anchor(run: usize, at: usize) -> String {
    format!("run-{}-{}", run + 1, at + 1)
}

/// Mean and deviation over records.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) mean: f64,
    pub(crate) deviation: f64,
    pub(crate) count: usize,
}

/// One method on one data set and protocol, over class orders and seeds.
#[derive(Clone, Debug)]
pub(crate) struct Row<'a> {
    /// The method's own name.
    pub(crate) name: String,
    /// The name with what tells it apart from another of that name.
    pub(crate) label: String,
    pub(crate) kind: Kind,
    pub(crate) exemplar_free: bool,
    pub(crate) variant: Option<Variant>,
    /// What all of its records were made with, as far as they tell.
    settings: RunSettings,
    pub(crate) entries: Vec<Entry<'a>>,
}

impl<'a> Row<'a> {
    /// The mean over records of what `pick` finds, where it finds numbers.
    pub(crate) fn spread(&self, pick: impl Fn(&Entry<'a>) -> f64) -> Option<Spread> {
        let values: Vec<f64> = self.entries.iter().map(pick).filter(|v| v.is_finite()).collect();
        let (mean, deviation) = mean_deviation(&values);
        (!values.is_empty()).then_some(Spread { mean, deviation, count: values.len() })
    }

    pub(crate) fn average(&self) -> Option<Spread> {
        self.spread(|entry| entry.method.summary.average)
    }

    pub(crate) fn last(&self) -> Option<Spread> {
        self.spread(|entry| entry.method.summary.last)
    }

    pub(crate) fn forgetting(&self) -> Option<Spread> {
        self.spread(|entry| entry.method.summary.forgetting_pass)
    }

    /// The mean over records of a number for each phase.
    pub(crate) fn curve(&self, pick: impl Fn(&Entry<'a>, usize) -> Option<f64>) -> Vec<f64> {
        let phases = self.entries.iter().map(|entry| entry.method.phases.len()).max().unwrap_or(0);
        let mean = |phase: usize| {
            let values: Vec<f64> = self
                .entries
                .iter()
                .filter_map(|e| pick(e, phase))
                .filter(|v| v.is_finite())
                .collect();
            if values.is_empty() { f64::NAN } else { mean_deviation(&values).0 }
        };
        (0..phases).map(mean).collect()
    }

    /// The same of some of its records.
    pub(crate) fn of(&self, entries: Vec<Entry<'a>>) -> Self {
        Self { entries, ..self.clone() }
    }

    /// Whether its records are of the method as it was before.
    pub(crate) fn is_outdated(&self) -> bool {
        self.entries.iter().any(|entry| entry.outdated)
    }

    /// The label, marked if it is of the method as it was before.
    pub(crate) fn marked(&self) -> String {
        if self.is_outdated() { format!("{} {OUTDATED}", self.label) } else { self.label.clone() }
    }

    /// For a caption: which run a picture of a single one shows, where there are several.
    pub(crate) fn which(&self) -> String {
        match self.entries.len() {
            1 => String::new(),
            several => format!(" Of {several} runs this is {}.", self.first().file),
        }
    }

    /// The record that pictures of a single run show.
    pub(crate) fn first(&self) -> &Entry<'a> {
        &self.entries[0]
    }

    /// How many views of each test image are looked at.
    pub(crate) fn views(&self) -> usize {
        self.first().method.views()
    }

    /// Whether no setting was chosen on test samples: only then can it be the best of something.
    pub(crate) fn is_honest(&self) -> bool {
        self.entries.iter().all(|entry| !entry.record.tuned_on_test)
    }
}

/// Everything of one data set and protocol.
#[derive(Clone, Debug)]
pub(crate) struct Group<'a> {
    pub(crate) data_set: String,
    /// Whether the records say what the data set is; else it is the name of a features file.
    pub(crate) named: bool,
    pub(crate) protocol: String,
    pub(crate) phases: Vec<usize>,
    pub(crate) rows: Vec<Row<'a>>,
    /// Runs with a given λ and nothing else given, by that λ: for the sweep.
    pub(crate) sweep: BTreeMap<u32, Row<'a>>,
    /// Methods left out because another record says the same: of which run, and which they repeat.
    pub(crate) copies: Vec<(Entry<'a>, usize)>,
    /// Results of methods as they were before, left out where there are present ones.
    pub(crate) superseded: Vec<Entry<'a>>,
}

impl<'a> Group<'a> {
    pub(crate) fn title(&self) -> String {
        text::joined(&self.data_set, &format!(", {}", self.protocol))
    }

    pub(crate) fn row(&self, name: &str) -> Option<&Row<'a>> {
        self.rows.iter().find(|row| row.label == name)
    }

    /// PASS, which the paper compares with.
    pub(crate) fn pass(&self) -> Option<&Row<'a>> {
        self.rows.iter().find(|row| same_name(&row.name, "PASS"))
    }

    /// What the paper says of a method here.
    pub(crate) fn of_paper(&self, method: &str, measure: Measure) -> Option<f64> {
        let value = || paper().value(&self.data_set, &self.protocol, method, measure);
        self.named.then(value).flatten()
    }

    /// Whether the paper's tables have a column of it.
    pub(crate) fn is_in_paper(&self) -> bool {
        let column = |column: &PaperProtocol| {
            same_name(&column.data_set, &self.data_set) && column.name == self.protocol
        };
        self.named && paper().protocol.iter().any(column)
    }

    /// Test samples at the end, as most records count them.
    pub(crate) fn tested(&self) -> usize {
        let count = |phase: &PhaseOutcome| phase.by_class.iter().map(|class| class.tested).sum();
        let entries = self.rows.iter().flat_map(|row| &row.entries);
        entries.filter_map(|entry| entry.last().map(count)).max().unwrap_or(0)
    }

    /// The variant with the best average accuracy, of those that chose nothing on test samples.
    pub(crate) fn best_variant(&self) -> Option<&Row<'a>> {
        let variants = self.rows.iter().filter(|row| row.kind == Kind::Variant);
        best(variants)
    }
}

/// Groups of one data set together, in the order of their first.
pub(crate) fn by_data_set<'g, 'a>(groups: &'g [Group<'a>]) -> Vec<Vec<&'g Group<'a>>> {
    let mut sets: Vec<Vec<&'g Group<'a>>> = Vec::new();
    for group in groups {
        match sets.iter_mut().find(|set| same_name(&set[0].data_set, &group.data_set)) {
            Some(set) => set.push(group),
            None => sets.push(vec![group]),
        }
    }
    sets
}

/// Protocols of one data set that are shown side by side; of more, those that the paper does not
/// have stand apart.
pub(crate) const MOST_PROTOCOLS: usize = 4;

/// The protocols of a data set that a reader looks for first, and further ones, where there are many.
pub(crate) fn first_and_further<'g, 'a>(
    set: &[&'g Group<'a>],
) -> (Vec<&'g Group<'a>>, Vec<&'g Group<'a>>) {
    if set.len() <= MOST_PROTOCOLS || !set.iter().any(|group| group.is_in_paper()) {
        return (set.to_vec(), Vec::new());
    }
    set.iter().partition(|group| group.is_in_paper())
}

/// The row with the best average accuracy, of those that chose nothing on test samples.
pub(crate) fn best<'r, 'a>(rows: impl Iterator<Item = &'r Row<'a>>) -> Option<&'r Row<'a>> {
    let scored =
        rows.filter(|row| row.is_honest()).filter_map(|row| Some((row.average()?.mean, row)));
    scored.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, row)| row)
}

/// What was given on the command line, as text; empty where all was chosen.
fn given(record: &RunRecord) -> BTreeMap<String, String> {
    record.options.given().map(|(name, value)| (name.clone(), value.to_string())).collect()
}

/// λ in thousandths, if it alone was given.
fn given_lambda(record: &RunRecord) -> Option<u32> {
    let given = given(record);
    let lambda: f64 = given.get("lambda")?.parse().ok()?;
    (given.len() == 1 && (0.0..=10.0).contains(&lambda)).then(|| (lambda * 1e3).round() as u32)
}

/// All groups, those of the paper first and in its order.
pub(crate) fn groups(inputs: &Inputs) -> Vec<Group<'_>> {
    let records = &inputs.records;
    let mut groups: Vec<Group<'_>> = Vec::new();
    // runs where all was chosen, and the rest as usual, come first, so that they have the plain names
    let mut order: Vec<usize> = (0..records.len()).collect();
    order.sort_by_cached_key(|&run| {
        let record = &records[run].content;
        (given(record).len(), run_settings::unusual(record))
    });
    for &run in &order {
        let record = &records[run].content;
        let (data_set, named) = match &record.data_set {
            Some(name) => (name.clone(), true),
            None => (record.features.clone(), false),
        };
        let same = |group: &Group<'_>| {
            same_name(&group.data_set, &data_set) && group.protocol == record.protocol
        };
        let at = groups.iter().position(same).unwrap_or_else(|| {
            groups.push(Group {
                data_set,
                named,
                protocol: record.protocol.clone(),
                phases: record.phases.clone(),
                rows: Vec::new(),
                sweep: BTreeMap::new(),
                copies: Vec::new(),
                superseded: Vec::new(),
            });
            groups.len() - 1
        });
        insert(&mut groups[at], run, inputs);
    }
    for group in &mut groups {
        for row in group.rows.iter_mut().filter(|row| row.entries.iter().any(|e| !e.outdated)) {
            let (old, present) = row.entries.iter().partition(|entry| entry.outdated);
            row.entries = present;
            group.superseded.extend::<Vec<Entry<'_>>>(old);
        }
    }
    tell_apart(&mut groups, &order);
    groups.iter_mut().for_each(|group| group.rows.sort_by_key(rank));
    groups.sort_by_key(place);
    groups
}

fn insert<'a>(group: &mut Group<'a>, run: usize, inputs: &'a Inputs) {
    let Found { file, content: record } = &inputs.records[run];
    let lambda = given_lambda(record);
    for (at, method) in record.methods.iter().enumerate() {
        if !method.is_whole(record.phases.len()) {
            continue;
        }
        let outdated = inputs.is_outdated(method);
        let entry = Entry { run, at, file, record, method, outdated };
        if let Some(lambda) = lambda.filter(|_| method.name == "iVoro-N") {
            let row = group.sweep.entry(lambda).or_insert_with(|| row_of(entry, String::new()));
            let known = |other: &Entry<'_>| other.run == run || is_copy(other, &entry);
            if !row.entries.iter().any(known) {
                row.entries.push(entry);
            }
            // beside runs that chose their settings it is no row of a table
            if group.rows.iter().any(|row| given(row.first().record).is_empty()) {
                continue;
            }
        }
        let (label, made_with) = (label(record, method), run_settings::of(record, method));
        let same = |row: &&mut Row<'_>| {
            row.label == label && run_settings::compatible(&row.settings, &made_with)
        };
        match group.rows.iter_mut().find(same) {
            Some(row) => {
                if let Some(other) = row.entries.iter().find(|other| is_copy(other, &entry)) {
                    group.copies.push((entry, other.run));
                } else {
                    row.entries.push(entry);
                    row.settings.extend(made_with);
                }
            }
            None => group.rows.push(row_of(entry, label)),
        }
    }
}

/// Whether two methods of one name say the same of one class order, but for their seconds.
fn is_copy(one: &Entry<'_>, other: &Entry<'_>) -> bool {
    let same = |(one, other): (&PhaseOutcome, &PhaseOutcome)| {
        one.accuracy == other.accuracy
            && one.confusion == other.confusion
            && one.by_class == other.by_class
            && one.log_loss == other.log_loss
            && one.calibration_error == other.calibration_error
    };
    let (ours, others) = (&one.method.phases, &other.method.phases);
    one.record.order == other.record.order
        && one.record.options.network == other.record.options.network
        && ours.len() == others.len()
        && ours.iter().zip(others).all(same)
}

fn row_of(entry: Entry<'_>, label: String) -> Row<'_> {
    let method = entry.method;
    Row {
        name: method.name.clone(),
        label,
        kind: method.kind,
        exemplar_free: method.exemplar_free,
        variant: method.name.parse().ok().filter(|_| method.kind == Kind::Variant),
        settings: run_settings::of(entry.record, method),
        entries: vec![entry],
    }
}

/// Settings that a label tells, where several are different.
const MOST_TOLD: usize = 3;

/// Rows of one data set and name that were made with other settings than the first say so, whatever
/// their protocols: tables put protocols side by side.
fn tell_apart(groups: &mut [Group<'_>], order: &[usize]) {
    let mut rows: Vec<(&str, &mut Row<'_>)> = groups
        .iter_mut()
        .flat_map(|group| group.rows.iter_mut().map(|row| (group.data_set.as_str(), row)))
        .collect();
    // the most usual first
    let places: HashMap<usize, usize> = order.iter().copied().zip(0..).collect();
    rows.sort_by_key(|(_, row)| places.get(&row.first().run).copied());
    let mut firsts: HashMap<(String, String), RunSettings> = HashMap::new();
    for (data_set, row) in rows {
        let first = firsts.entry((data_set.to_lowercase(), row.label.clone())).or_default();
        if run_settings::compatible(first, &row.settings) {
            first.extend(row.settings.clone());
        } else {
            let different = run_settings::different(first, &row.settings);
            let told = different.len().min(MOST_TOLD);
            row.label = format!("{} · {}", row.label, different[..told].join(", "));
        }
    }
    groups.iter_mut().for_each(|group| number_equal(&mut group.rows));
}

/// Names that are still the same get a number, or one row would stand for all of them.
fn number_equal(rows: &mut [Row<'_>]) {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for row in rows {
        let count = counts.entry(row.label.clone()).or_insert(0);
        *count += 1;
        if *count > 1 {
            row.label = format!("{} ({count})", row.label);
        }
    }
}

/// A method's name, with the network and what was given where that is told.
fn label(record: &RunRecord, method: &MethodRecord) -> String {
    let mut label = method.name.clone();
    if let Some(network) = &record.network {
        label = format!("{label} · {network}");
    }
    let relevant = given(record);
    if !relevant.is_empty() && method.kind == Kind::Variant {
        let set: Vec<String> =
            relevant.iter().map(|(name, value)| format!("{name} {value}")).collect();
        label = format!("{label} ({})", set.join(", "));
    }
    let own = method.kind == Kind::Variant
        && method.name.parse::<Variant>().is_ok_and(|variant| variant.per_class_metric);
    let volume = method.settings.get("volume").and_then(Value::as_f64).unwrap_or(0.0);
    let usual = Settings::default().volume;
    if own && (volume - usual).abs() > 1e-9 && !relevant.contains_key("volume") {
        label = format!("{label} · volume {volume}");
    }
    // records of whole matrices, as all were once, say nothing
    let directions = method.settings.get("rank").and_then(Value::as_u64);
    if let Some(count) = directions.filter(|_| own && !relevant.contains_key("rank")) {
        label = format!("{label} · {count} directions");
    }
    if record.tuned_on.is_some() && method.kind == Kind::Variant {
        label.push_str(" · judged");
    }
    if record.tuned_on_test { format!("{label} (tuned on test)") } else { label }
}

/// Variants in the paper's order, then ours, then peers and baselines; what keeps samples last.
fn rank(row: &Row<'_>) -> (bool, usize, usize, String) {
    let kind = match row.kind {
        Kind::Variant => 0,
        Kind::Peer => 1,
        Kind::Baseline => 2,
    };
    let known = PAPER.iter().chain(&EXTENDED).position(|name| *name == row.name);
    (!row.exemplar_free, kind, known.unwrap_or(usize::MAX), row.label.clone())
}

fn place(group: &Group<'_>) -> (usize, usize, String, std::cmp::Reverse<usize>, String) {
    let columns = &paper().protocol;
    let data_set = columns.iter().position(|column| same_name(&column.data_set, &group.data_set));
    let column = columns.iter().position(|column| {
        same_name(&column.data_set, &group.data_set) && column.name == group.protocol
    });
    let base = std::cmp::Reverse(group.phases.first().copied().unwrap_or(0));
    let at = |found: Option<usize>| found.unwrap_or(usize::MAX);
    (at(data_set), at(column), group.data_set.clone(), base, group.protocol.clone())
}
