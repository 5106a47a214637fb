//! How good a model is on what it was taught since the server began.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::held::hold;
use crate::problem::{Problem, ProblemBody};
use crate::record::{BINS, Record, wilson};
use crate::request::{Asker, Path};
use crate::snapshot::Snapshot;

/// Samples of a class below which it is said to need more.
const FEW: u64 = 10;
/// Classes that are named.
const MOST_NEEDY: usize = 10;

/// How good a model is: each sample is asked before it is learned. Counted in memory, since the server began.
#[derive(Serialize, ToSchema)]
pub(crate) struct Quality {
    /// Samples that were asked before they were learned, of classes that were known then.
    asked: u64,
    right: u64,
    /// Where the share of right answers lies with 95 % certainty, after Wilson.
    interval: Option<[f64; 2]>,
    per_class: Vec<ClassQuality>,
    /// Which class was taken for which, most frequent first.
    confusions: Vec<Confusion>,
    /// How often answers of some probability were right.
    calibration: Vec<CalibrationBin>,
    /// Classes that photos would help most: with few samples, or often wrong.
    needs_photos: Vec<String>,
}

/// How good a class is.
#[derive(Serialize, ToSchema)]
pub(crate) struct ClassQuality {
    class: String,
    samples: u64,
    asked: u64,
    right: u64,
    /// How many were called unknown.
    unknown: u64,
    interval: Option<[f64; 2]>,
}

/// A class that was taken for another.
#[derive(Serialize, ToSchema)]
pub(crate) struct Confusion {
    class: String,
    /// What it was taken for.
    answered: String,
    times: u64,
}

/// Answers whose probabilities lie in a range.
#[derive(Serialize, ToSchema)]
pub(crate) struct CalibrationBin {
    from: f64,
    to: f64,
    asked: u64,
    right: u64,
    /// Their mean probability.
    said: Option<f64>,
}

/// How good a model is on what it was taught since the server began.
#[utoipa::path(get, path = "/api/v1/models/{model}/quality", tag = "quality", params(("model" = String, Path)),
    responses((status = 200, body = Quality), (status = 404, body = ProblemBody)))]
pub(crate) async fn quality(
    State(app): State<Arc<App>>,
    Path(model): Path<String>,
    _: Asker,
) -> Result<Json<Quality>, Problem> {
    let hosted = app.store.get(&model)?;
    let (now, record) = (hosted.held(), hold(&hosted.record).clone());
    Ok(Json(of(&now, &record)))
}

fn of(now: &Snapshot, record: &Record) -> Quality {
    let classes = now.model.head().classes();
    let per_class: Vec<ClassQuality> = classes
        .iter()
        .map(|class| {
            let tally = record.of(&class.name);
            let (samples, interval) = (class.statistics.count, wilson(tally.right, tally.asked));
            let (asked, right, unknown) = (tally.asked, tally.right, tally.unknown);
            ClassQuality { class: class.name.clone(), samples, asked, right, unknown, interval }
        })
        .collect();
    let mut confusions: Vec<Confusion> = record
        .confusions
        .iter()
        .map(|((class, answered), &times)| {
            let (class, answered) = (class.clone(), answered.clone());
            Confusion { class, answered, times }
        })
        .collect();
    confusions.sort_by(|a, b| b.times.cmp(&a.times).then_with(|| a.class.cmp(&b.class)));
    Quality {
        asked: record.all.asked,
        right: record.all.right,
        interval: wilson(record.all.right, record.all.asked),
        needs_photos: needy(&per_class),
        per_class,
        confusions,
        calibration: bins(record),
    }
}

fn bins(record: &Record) -> Vec<CalibrationBin> {
    let width = 1.0 / BINS as f64;
    let bins = record.bins.iter().enumerate().map(|(at, bin)| CalibrationBin {
        from: at as f64 * width,
        to: (at + 1) as f64 * width,
        asked: bin.asked,
        right: bin.right,
        said: (bin.asked > 0).then(|| bin.promised / bin.asked as f64),
    });
    bins.collect()
}

/// Classes by how little is sure of them: the lower end of the interval of their right answers.
fn needy(classes: &[ClassQuality]) -> Vec<String> {
    let mut all: Vec<(f64, u64, &str)> = classes
        .iter()
        .map(|class| (class.interval.map_or(0.0, |it| it[0]), class.samples, class.class.as_str()))
        .filter(|(low, samples, _)| *samples < FEW || *low < 0.8)
        .collect();
    all.sort_by(|a, b| {
        (a.1.min(FEW), a.0).partial_cmp(&(b.1.min(FEW), b.0)).unwrap_or(std::cmp::Ordering::Equal)
    });
    all.into_iter().take(MOST_NEEDY).map(|(_, _, class)| class.to_owned()).collect()
}
