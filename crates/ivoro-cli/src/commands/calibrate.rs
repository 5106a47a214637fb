//! The verb `calibrate`: probabilities and thresholds from samples that were not learned.

use std::fmt::Write as _;

use ivoro_eval::evaluation::{self, Calibrated};
use ivoro_io::FileLock;
use serde_json::json;

use super::images::{Purpose, Wanted};
use super::model::{lesson, load_to_change};
use super::save;
use crate::args::CalibrateArguments;
use crate::failure::Failure;
use crate::table::Table;
use crate::words::counted;
use crate::{output, progress};

/// Calibrates a model on samples that it has not learned.
pub(crate) fn calibrate(arguments: &CalibrateArguments) -> Result<(), Failure> {
    let _lock = FileLock::acquire(&arguments.model)?;
    let mut model = load_to_change(&arguments.model)?;
    let CalibrateArguments { data, classes, photos, reading, .. } = arguments;
    let (paths, classes) = (std::slice::from_ref(data), classes.as_ref());
    let purpose = Purpose::Calibrate;
    let wanted = Wanted { paths, arguments: photos, class: None, classes, purpose };
    let held_out = lesson(&mut model, &wanted, reading)?;
    let spinner = progress::spinner("calibrating");
    let changed = evaluation::calibrate(&mut model, &held_out.samples)?;
    if !arguments.dry_run {
        save(&model, &arguments.model)?;
    }
    spinner.finish_and_clear();
    held_out.tell(photos)?;
    if arguments.json {
        let value = json!(changed);
        return Ok(output::print(&format!("{value:#}\n"))?);
    }
    let verb = if arguments.dry_run { "would be calibrated" } else { "calibrated" };
    let name = arguments.model.display();
    let count = counted(changed.samples, "sample", "samples");
    Ok(output::print(&format!("{name}: {verb} on {count}\n\n{}", told(&changed)))?)
}

/// What changed, as a table.
fn told(changed: &Calibrated) -> String {
    let mut table = Table::new(&["", "before", "after"], 1);
    let mut row = |name: String, before: Option<String>, after: Option<String>| {
        let dash = || "–".to_owned();
        table.row(vec![name, before.unwrap_or_else(dash), after.unwrap_or_else(dash)]);
    };
    let number = |value: Option<f64>| value.map(|value| format!("{value:.4}"));
    let percent = |value: Option<f64>| value.map(|value| format!("{:.1} %", 100.0 * value));
    let temperatures = (changed.temperature_before, changed.temperature_after);
    row("temperature".to_owned(), number(temperatures.0), number(temperatures.1));
    for it in &changed.thresholds {
        let name = format!("threshold for {:.0} %", 100.0 * it.share);
        row(name, number(it.before), number(it.after));
    }
    let (before, after) = (&changed.before, changed.after.as_ref());
    let of = |pick: fn(&evaluation::Fitness) -> Option<f64>| {
        (percent(pick(before)), percent(after.and_then(pick)))
    };
    let figures = [
        ("calibration error *", of(|it| it.error)),
        ("mean confidence *", of(|it| it.confidence)),
        ("rejected where 5 % may be *", of(|it| it.rejected)),
    ];
    for (name, (before, after)) in figures {
        row(name.to_owned(), before, after);
    }
    let mut text = table.to_string();
    let _ = writeln!(
        text,
        "\n* on these samples, of which {:.1} % are right; after: each asked by the model that the other \
         fifths of them calibrated",
        100.0 * changed.accuracy
    );
    text
}
