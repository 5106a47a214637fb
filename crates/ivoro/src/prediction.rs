//! What a model is asked and what it answers.

use serde::Serialize;

use crate::head::{BurstRule, Search};

/// What a model says of one query.
///
/// ```
/// # use ivoro::{Matrix, Model, Points, Samples, Variant};
/// # let points = Matrix::new(4, 2, vec![0.0, 0.1, 0.1, 0.0, 5.0, 5.1, 5.1, 5.0])?;
/// # let monday = Samples::single("monday", points, vec![0, 0, 1, 1], 2)?;
/// # let mut model = Model::new("iVoro".parse::<Variant>()?, Default::default());
/// # model.learn(&monday)?;
/// # let query = Points::single("tuesday", Matrix::new(1, 2, vec![4.9, 5.2])?)?;
/// let found = model.ask(&query, Default::default())?;
/// assert_eq!((found[0].top[0].class.as_str(), found[0].burst), ("1", 1));
/// # Ok::<(), ivoro::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// The nearest classes, nearest first.
    pub top: Vec<Candidate>,
    /// How much the views of the query disagree; 0 with a single view, and under W with AI, where
    /// they are one vector.
    pub uncertainty: f64,
    /// Distance to the nearest class in units of what is usual in that class; `None` where only
    /// differences of distances were measured (letter K without rejection).
    pub strangeness: Option<f64>,
    /// Whether the query is rejected as a class never learned; `None` if that was not asked.
    pub unknown: Option<bool>,
    /// How many vectors of one object were taken together: more than 1 is a burst.
    pub burst: usize,
    /// Whether the classes come from an index and may, rarely, not be the nearest; see
    /// [`Model::approximation`](crate::Model::approximation). Probabilities need the distance to every class and are missing
    /// then.
    pub approximate: bool,
}

/// One class a query may belong to.
///
/// ```
/// # use ivoro::{Matrix, Model, Points, Samples, Variant};
/// # let points = Matrix::new(4, 2, vec![0.0, 0.1, 0.1, 0.0, 5.0, 5.1, 5.1, 5.0])?;
/// # let monday = Samples::single("monday", points, vec![0, 0, 1, 1], 2)?;
/// # let mut model = Model::new("iVoro".parse::<Variant>()?, Default::default());
/// # model.learn(&monday)?;
/// # let query = Points::single("tuesday", Matrix::new(1, 2, vec![4.9, 5.2])?)?;
/// use ivoro::AskOptions;
/// let found = model.ask(&query, AskOptions { top: 2, ..AskOptions::default() })?;
/// let [first, second] = &found[0].top[..] else { panic!("two classes are known") };
/// assert!(first.class == "1" && first.distance < second.distance);
/// # Ok::<(), ivoro::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Candidate {
    /// Class name.
    pub class: String,
    /// Distance.
    pub distance: f32,
    /// Calibrated probability; `None` where the base phase was too small to calibrate, and for
    /// voted bursts, whose votes are not distances.
    pub probability: Option<f64>,
}

/// What to report of each query.
///
/// ```
/// # use ivoro::{Matrix, Model, Points, Samples, Variant};
/// # let points = Matrix::new(4, 2, vec![0.0, 0.1, 0.1, 0.0, 5.0, 5.1, 5.1, 5.0])?;
/// # let monday = Samples::single("monday", points, vec![0, 0, 1, 1], 2)?;
/// # let mut model = Model::new("iVoro".parse::<Variant>()?, Default::default());
/// # model.learn(&monday)?;
/// use ivoro::{AskOptions, BurstRule};
/// let burst = Some((2, BurstRule::Sum));
/// let found = model.ask(&monday, AskOptions { burst, ..AskOptions::default() })?;
/// assert_eq!((found.len(), found[1].burst), (2, 2));
/// # Ok::<(), ivoro::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct AskOptions {
    /// How many classes.
    pub top: usize,
    /// Share of known queries that may be rejected wrongly; `None` asks for no rejection.
    pub false_rejection: Option<f64>,
    /// Consecutive rows that show one object, and how to join them.
    pub burst: Option<(usize, BurstRule)>,
    /// How the nearest classes are sought. Bursts are always sought exactly.
    pub search: Search,
}

impl Default for AskOptions {
    fn default() -> Self {
        Self { top: 1, false_rejection: None, burst: None, search: Search::Automatic }
    }
}
