//! Asking models of Q and of W: all classes in one metric, in few directions each, with whole matrices.

use ivoro::head::{Head, Rank, Settings};
use ivoro::{Error, Matrix, Points, Samples, Variant};
use serde_json::{Value, json};

use super::{best, random};

/// Samples of each class, and queries.
const EACH: usize = 60;
const QUERIES: usize = 2048;

/// Seconds for many queries, and for one, of each form.
pub(super) fn measure(classes: usize, dim: usize, rank: usize) -> Result<Value, Error> {
    let (train, queries) = data(classes, dim)?;
    let one = queries.select(&[0]);
    let mut seconds = serde_json::Map::new();
    for (form, variant, rank) in [
        ("pooled", "iVoro-W", Rank::Full),
        ("compact", "iVoro-Q", Rank::Directions(rank)),
        ("whole", "iVoro-Q", Rank::Full),
    ] {
        let settings = Settings { rank, ..Settings::default() };
        let mut head = Head::new(variant.parse::<Variant>()?, settings)?;
        head.learn(&train)?;
        let mut outcome = head.ask(&one, true).map(drop);
        let many = best(|| outcome = head.ask(&queries, true).map(drop));
        outcome?;
        let mut outcome = Ok(());
        let single = best(|| outcome = head.ask(&one, true).map(drop));
        outcome?;
        seconds.insert(form.to_owned(), json!({"many": many, "single": single}));
    }
    Ok(json!({"queries": QUERIES, "seconds": seconds}))
}

/// Classes around random centres.
fn data(classes: usize, dim: usize) -> Result<(Samples, Points), Error> {
    let centres = random(classes, dim, 1)?;
    let around = |rows: usize, seed: u64| {
        let mut points = random(rows, dim, seed)?;
        for row in 0..rows {
            let pairs = points.row_mut(row).iter_mut().zip(centres.row(row % classes));
            pairs.for_each(|(value, centre)| *value += centre);
        }
        Ok::<Matrix, Error>(points)
    };
    let labels = (0..classes * EACH).map(|row| (row % classes) as u32).collect();
    let train = Samples::single("bench", around(classes * EACH, 2)?, labels, classes)?;
    Ok((train, Points::single("bench", around(QUERIES, 3)?)?))
}
