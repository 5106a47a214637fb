//! What a model says of each query, beside what its label says.

use std::collections::HashSet;
use std::fmt::Write as _;

use ivoro::{AskOptions, Error, Model, Points, Prediction, Result, Samples};
use serde::Serialize;

use crate::csv::quoted;

/// Where a query comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Set {
    /// From the labelled data.
    Labelled,
    /// Given as something that the model can't know.
    Unknown,
}

/// The second nearest class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunnerUp {
    /// Its name.
    pub class: String,
    /// Its probability, where there is one.
    pub probability: Option<f64>,
}

/// What a model says of one query.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// The file of the query, or its row.
    pub query: String,
    /// Where it comes from.
    pub set: Set,
    /// What its label says, if there is one.
    pub label: Option<String>,
    /// Whether it is of a class that the model knows.
    pub known: bool,
    /// The nearest class.
    pub class: String,
    /// Probability of that class, where the model gives one.
    pub probability: Option<f64>,
    /// The class after it, where there are two.
    pub runner_up: Option<RunnerUp>,
    /// Distance to the nearest class.
    pub distance: f32,
    /// How unlike everything known it is, where the model can say that.
    pub strangeness: Option<f64>,
    /// Whether it is rejected; none where that was not asked or can't be.
    pub rejected: Option<bool>,
    /// How much its views disagree.
    pub uncertainty: f64,
}

impl Answer {
    /// Whether the class is the label's.
    pub fn is_right(&self) -> bool {
        self.label.as_ref() == Some(&self.class)
    }

    /// How much surer the model is of its answer than of the next.
    pub fn margin(&self) -> Option<f64> {
        let second = self.runner_up.as_ref().map_or(Some(0.0), |it| it.probability);
        Some(self.probability? - second?)
    }
}

/// Asks a model and keeps what it says.
#[derive(Debug)]
pub struct Asked<'a> {
    model: &'a Model,
    known: HashSet<&'a str>,
    reject: Option<f64>,
    /// What was said so far.
    pub answers: Vec<Answer>,
}

impl<'a> Asked<'a> {
    /// Asks a model that knows a class. `reject` is the share of known queries that may be rejected
    /// wrongly; a model that can't reject is asked without, and the sentence says why.
    pub fn new(model: &'a Model, reject: Option<f64>) -> Result<(Self, Option<String>)> {
        let known: HashSet<&str> =
            model.head().classes().iter().map(|class| class.name.as_str()).collect();
        if known.is_empty() {
            let what = "the model knows no class yet: there is nothing to evaluate".to_owned();
            return Err(Error::Unsupported { what });
        }
        let (reject, why) = match reject.map(|share| model.threshold(share)) {
            Some(Err(Error::Unsupported { what })) => (None, Some(what)),
            Some(Err(error)) => return Err(error),
            _ => (reject, None),
        };
        Ok((Self { model, known, reject, answers: Vec::new() }, why))
    }

    /// The share that rejection is asked with, where the model can reject.
    pub fn reject(&self) -> Option<f64> {
        self.reject
    }

    /// Asks about labelled samples; `name` gives the name of a row.
    pub fn labelled(&mut self, samples: &Samples, name: impl Fn(usize) -> String) -> Result<()> {
        let label = |row: usize| Some(samples.classes()[samples.labels()[row] as usize].clone());
        self.ask(samples.points(), Set::Labelled, name, label)
    }

    /// Asks about queries that are of no class the model knows. A label may tell what they are; one
    /// that the model does know is refused.
    pub fn unknown(
        &mut self,
        points: &Points,
        labels: Option<&Samples>,
        name: impl Fn(usize) -> String,
    ) -> Result<()> {
        let label = |row: usize| {
            labels.map(|samples| samples.classes()[samples.labels()[row] as usize].clone())
        };
        let familiar = (0..points.len()).filter_map(label);
        let familiar = familiar.into_iter().find(|label| self.known.contains(label.as_str()));
        if let Some(class) = familiar {
            let what = format!(
                "{}: class {class} is known to the model, but these queries were named as unknown",
                points.origin()
            );
            return Err(Error::Unsupported { what });
        }
        self.ask(points, Set::Unknown, name, label)
    }

    fn ask(
        &mut self,
        points: &Points,
        set: Set,
        name: impl Fn(usize) -> String,
        label: impl Fn(usize) -> Option<String>,
    ) -> Result<()> {
        let options = AskOptions { top: 2, false_rejection: self.reject, ..AskOptions::default() };
        for (row, prediction) in self.model.ask(points, options)?.into_iter().enumerate() {
            let label = label(row);
            let known = label.as_ref().is_some_and(|label| self.known.contains(label.as_str()));
            self.answers.extend(answer(name(row), set, label, known, prediction));
        }
        Ok(())
    }
}

/// None of a prediction that names no class: there is none of a model that knows one.
fn answer(
    query: String,
    set: Set,
    label: Option<String>,
    known: bool,
    prediction: Prediction,
) -> Option<Answer> {
    let Prediction { top, uncertainty, strangeness, unknown, .. } = prediction;
    let mut top = top.into_iter();
    let first = top.next()?;
    let second = top.next();
    Some(Answer {
        query,
        set,
        label,
        known,
        class: first.class,
        probability: first.probability,
        runner_up: second.map(|it| RunnerUp { class: it.class, probability: it.probability }),
        distance: first.distance,
        strangeness,
        rejected: unknown,
        uncertainty,
    })
}

/// One row per query. Where nothing can be said, the field is empty.
pub fn csv(answers: &[Answer]) -> String {
    let mut text = String::from(
        "query,set,label,known,class,right,probability,runner_up,runner_up_probability,distance,\
         strangeness,rejected,uncertainty\n",
    );
    let number = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.6}"));
    for answer in answers {
        let second = answer.runner_up.as_ref();
        let _ = writeln!(
            text,
            "{},{},{},{},{},{},{},{},{},{},{},{},{}",
            quoted(&answer.query),
            if answer.set == Set::Labelled { "labelled" } else { "unknown" },
            quoted(answer.label.as_deref().unwrap_or("")),
            answer.known,
            quoted(&answer.class),
            if answer.known { answer.is_right().to_string() } else { String::new() },
            number(answer.probability),
            quoted(second.map_or("", |it| &it.class)),
            number(second.and_then(|it| it.probability)),
            answer.distance,
            answer.strangeness.map_or(String::new(), |value| value.to_string()),
            answer.rejected.map_or(String::new(), |rejected| rejected.to_string()),
            answer.uncertainty,
        );
    }
    text
}
