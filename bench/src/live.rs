//! What a model costs that is taught and asked in turn: one query after each change, and one query to K.

use std::time::Instant;

use ivoro::lift::Lift;
use ivoro::random::unit;
use ivoro::tune::Given;
use ivoro::{AskOptions, Error, Matrix, Model, ModelOptions, Points, Samples, Settings};
use serde_json::{Value, json};

/// Changes and queries, of which the median counts.
const TIMES: usize = 31;
/// Samples of each class, and of a class or an update that comes later.
const SAMPLES: usize = 20;
const FEW: usize = 5;
/// Dimension of K.
const LIFT: usize = 3000;

/// Normal-like points around random centres, one class after another from `first` on.
struct World {
    dim: usize,
}

impl World {
    fn rows(&self, first: usize, classes: usize, each: usize, seed: u64) -> Matrix {
        let value = |class: usize, row: usize, at: usize| {
            let centre = unit(1, (class * self.dim + at) as u64);
            let place = ((class * 1000 + row) * self.dim + at) as u64;
            let noise: f64 = (0..3).map(|more| unit(seed + more, place) - 0.5).sum();
            (centre + noise) as f32
        };
        let rows = (first..first + classes).flat_map(|c| (0..each).map(move |row| (c, row)));
        let data = rows.flat_map(|(c, row)| (0..self.dim).map(move |at| value(c, row, at)));
        Matrix::new(classes * each, self.dim, data.collect()).unwrap_or_default()
    }

    fn samples(
        &self,
        first: usize,
        classes: usize,
        each: usize,
        seed: u64,
    ) -> Result<Samples, Error> {
        let names = (first..first + classes).map(|class| class.to_string()).collect();
        let labels = (0..classes as u32).flat_map(|c| std::iter::repeat_n(c, each)).collect();
        let points = Points::single("live", self.rows(first, classes, each, seed))?;
        Samples::new(points, labels, names)
    }

    fn query(&self, class: usize, seed: u64) -> Result<Points, Error> {
        Points::single("live", self.rows(class, 1, 1, seed))
    }
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

fn timed<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<(f64, T), Error> {
    let started = Instant::now();
    let done = work()?;
    Ok((started.elapsed().as_secs_f64(), done))
}

fn model(name: &str, settings: Settings) -> Result<Model, Error> {
    let given = Given { ridge: Some(settings.ridge), ..Given::default() };
    let options = ModelOptions { settings, given, ..ModelOptions::default() };
    Ok(Model::new(name.parse()?, options))
}

/// W with so many classes: a class is learned or updated, and one query asked.
pub(crate) fn metric(classes: usize, dim: usize) -> Result<Value, Error> {
    let world = World { dim };
    let mut model = model("iVoro-W", Settings::default())?;
    model.learn(&world.samples(0, classes, SAMPLES, 10)?)?;
    model.head().predict(&world.query(0, 77)?)?;
    let mut seconds = [Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new()];
    let mut same = 0;
    for time in 0..TIMES {
        let fresh = world.samples(classes + time, 1, FEW, 20)?;
        let known = world.samples(time, 1, 1, 30)?;
        let query = world.query((time * 31) % classes, 40)?;
        seconds[0].push(timed(|| model.learn(&fresh))?.0);
        let (asked, first) = timed(|| model.head().predict(&query))?;
        seconds[1].push(asked);
        seconds[2].push(timed(|| model.update(&known))?.0);
        let (asked, updated) = timed(|| model.head().predict(&query))?;
        seconds[3].push(asked);
        // a copy builds its metric anew
        let copy = model.head().clone();
        let (rebuilt, expected) = timed(|| copy.predict(&query))?;
        seconds[4].push(rebuilt);
        same += usize::from(updated == expected) + usize::from(first == expected);
    }
    let [learn, ask, update, again, rebuilt] = seconds.map(median);
    Ok(json!({"learn": learn, "ask": ask, "update": update, "ask_again": again,
        "rebuilt": rebuilt, "same": same, "of": 2 * TIMES,
        "ratio_learn": (learn + rebuilt) / (learn + ask),
        "ratio_update": (update + rebuilt) / (update + again)}))
}

/// One query to K, beside making the directions anew.
pub(crate) fn lifted(classes: usize, dim: usize) -> Result<Value, Error> {
    let world = World { dim };
    let mut model = model("iVoro-KW", Settings { lift: LIFT, ..Settings::default() })?;
    model.learn(&world.samples(0, classes, SAMPLES, 10)?)?;
    model.head().predict(&world.query(0, 77)?)?;
    let lift = Lift::new(dim, LIFT, 1993);
    let (mut asked, mut answered, mut anew) = (Vec::new(), Vec::new(), Vec::new());
    for time in 0..TIMES {
        let query = world.query(time % classes, 40)?;
        asked.push(timed(|| model.head().predict(&query))?.0);
        answered.push(timed(|| model.ask(&query, AskOptions::default()))?.0);
        let rows = world.rows(time % classes, 1, 1, 40);
        anew.push(timed(|| Ok(lift.apply(&rows)))?.0);
    }
    let (ask, answer, anew) = (median(asked), median(answered), median(anew));
    Ok(json!({"predict": ask, "answer": answer, "directions_anew": anew, "ratio": anew / ask,
        "bytes": LIFT * dim * 4}))
}
