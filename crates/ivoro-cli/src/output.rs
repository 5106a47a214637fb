//! Results as a table, as CSV and as files.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;

use ivoro_eval::csv::quoted;
use ivoro_eval::metrics::mean_deviation;
use ivoro_eval::record::{Kind, MethodRecord, RunRecord, Summary};

use crate::failure::Failure;
use crate::table::Table;

/// Makes a folder, with all above it.
pub(crate) fn make_folder(folder: &Path) -> Result<(), Failure> {
    if let Some(file) = folder.ancestors().find(|above| above.is_file()) {
        return Err(Failure::Usage(format!("{}: a file, not a folder", file.display())));
    }
    Ok(fs_err::create_dir_all(folder)?)
}

/// The header that scripts rely on.
const HEADER: &str =
    "method,average,last,forgetting_pass,forgetting_pycil,bytes_per_class,seconds,views";

/// One method over several class orders.
struct Row<'a> {
    name: String,
    exemplar_free: bool,
    views: usize,
    summaries: Vec<&'a Summary>,
}

/// A method's name; where test samples chose its settings, that stands beside the name wherever
/// its numbers stand.
fn stamped(record: &RunRecord, method: &MethodRecord) -> String {
    let stamp =
        if record.tuned_on_test && method.kind == Kind::Variant { " (tuned on test)" } else { "" };
    format!("{}{stamp}", method.name)
}

fn rows(records: &[RunRecord]) -> Vec<Row<'_>> {
    let Some(first) = records.first() else { return Vec::new() };
    let row = |method: &'_ MethodRecord| {
        let same = |record: &'_ RunRecord| -> Option<usize> {
            record.methods.iter().position(|other| other.name == method.name)
        };
        records.iter().filter_map(|r| same(r).map(|at| &r.methods[at].summary)).collect::<Vec<_>>()
    };
    let rows = first.methods.iter().map(|method| Row {
        name: stamped(first, method),
        exemplar_free: method.exemplar_free,
        views: method.views(),
        summaries: row(method),
    });
    rows.collect()
}

/// mean, or mean ± deviation over several orders.
fn cell(values: &[f64], digits: usize) -> String {
    let (mean, deviation) = mean_deviation(values);
    if values.len() > 1 {
        format!("{mean:.digits$} ± {deviation:.digits$}")
    } else {
        format!("{mean:.digits$}")
    }
}

/// The table for people.
pub(crate) fn table(records: &[RunRecord]) -> String {
    let header = ["method", "views", "average", "last", "forgetting", "bytes/class", "seconds"];
    let mut table = Table::new(&header, 1);
    let mut kept = false;
    for row in rows(records) {
        let of =
            |pick: fn(&Summary) -> f64| row.summaries.iter().map(|s| pick(s)).collect::<Vec<_>>();
        let mark = if row.exemplar_free { "" } else { " *" };
        kept |= !row.exemplar_free;
        table.row(vec![
            format!("{}{mark}", row.name),
            row.views.to_string(),
            cell(&of(|s| s.average), 2),
            cell(&of(|s| s.last), 2),
            cell(&of(|s| s.forgetting_pass), 2),
            cell(&of(|s| s.bytes_per_class), 0),
            cell(&of(|s| s.seconds), 2),
        ]);
    }
    let note = if kept { "* keeps samples of earlier phases: not exemplar-free\n" } else { "" };
    format!("{table}{note}")
}

/// The table for scripts: means over class orders.
pub(crate) fn csv(records: &[RunRecord]) -> String {
    let mut text = format!("{HEADER}\n");
    for row in rows(records) {
        let mean = |pick: fn(&Summary) -> f64| {
            mean_deviation(&row.summaries.iter().map(|s| pick(s)).collect::<Vec<_>>()).0
        };
        let _ = writeln!(
            text,
            "{},{:.2},{:.2},{:.2},{:.2},{:.0},{:.3},{}",
            quoted(&row.name),
            mean(|s| s.average),
            mean(|s| s.last),
            mean(|s| s.forgetting_pass),
            mean(|s| s.forgetting_pycil),
            mean(|s| s.bytes_per_class),
            mean(|s| s.seconds),
            row.views,
        );
    }
    text
}

/// Accuracy after every phase, one line a method, order and phase.
pub(crate) fn phases_csv(records: &[RunRecord]) -> String {
    let mut text = String::from(
        "method,order,phase,classes,accuracy,old,new,calibration_error,rejection_auroc\n",
    );
    let number = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.4}"));
    for record in records {
        for method in &record.methods {
            for phase in &method.phases {
                let _ = writeln!(
                    text,
                    "{},{},{},{},{:.2},{},{},{},{}",
                    quoted(&stamped(record, method)),
                    quoted(&record.order),
                    phase.phase,
                    phase.classes,
                    phase.accuracy,
                    number(phase.accuracy_old),
                    number(phase.accuracy_new),
                    number(phase.calibration_error),
                    number(phase.rejection_auroc),
                );
            }
        }
    }
    text
}

/// Writes a file so that a reader sees the old one or the new one, never half of one.
pub(crate) fn write_whole(path: &Path, text: &str) -> ivoro::Result<()> {
    ivoro_io::atomic::write_atomically(path, |file| Ok(file.write_all(text.as_bytes())?))
}

/// Prints data on standard output.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
