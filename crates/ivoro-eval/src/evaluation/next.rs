//! Which queries a person should look at: the surest mistakes, and what to label next.

use std::collections::BTreeSet;

use ivoro::{Model, Points, Result, Samples};
use serde::Serialize;

use super::answers::Answer;
use super::clusters::{Clusters, find};

/// Places in the list of answers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Next {
    /// Wrong answers about known classes, the surest first.
    pub mistakes: Vec<usize>,
    /// Accepted queries that two classes claim alike, the least decided first.
    pub uncertain: Vec<usize>,
    /// The queries that are least like anything known, the strangest first.
    pub strange: Vec<usize>,
    /// Unknown queries that are like each other; none where the variant can't compare two queries.
    pub clusters: Option<Clusters>,
}

impl Next {
    /// At most `most` queries of each kind. `points` are the queries in the order of `answers`, `known`
    /// the labelled ones among them, which show how alike two queries of one class are.
    pub fn of(
        model: &Model,
        answers: &[Answer],
        points: &[&Points],
        known: &Samples,
        most: usize,
    ) -> Result<Self> {
        let mut found = Self {
            mistakes: mistakes(answers),
            uncertain: uncertain(answers),
            strange: strange(answers),
            clusters: find(model.head(), answers, points, known)?,
        };
        for list in [&mut found.mistakes, &mut found.uncertain, &mut found.strange] {
            list.truncate(most);
        }
        Ok(found)
    }

    /// All that is shown where a list shows at most so many.
    pub fn shown(&self, most: usize) -> BTreeSet<usize> {
        let lists = [&self.mistakes, &self.uncertain, &self.strange];
        let lists = lists.into_iter().flat_map(|list| list.iter().take(most).copied());
        let clusters = self.clusters.iter().flat_map(Clusters::shown);
        lists.chain(clusters.flat_map(|(_, members)| members.iter().copied())).collect()
    }
}

/// Places in an order; equal ones in that of the answers.
fn sorted(places: impl Iterator<Item = usize>, key: impl Fn(usize) -> f64) -> Vec<usize> {
    let mut places: Vec<usize> = places.collect();
    places.sort_by(|&a, &b| key(a).total_cmp(&key(b)).then(a.cmp(&b)));
    places
}

fn mistakes(answers: &[Answer]) -> Vec<usize> {
    let wrong = (0..answers.len()).filter(|&at| answers[at].known && !answers[at].is_right());
    // without probabilities the nearest to a wrong class are the surest
    let sure = |at: usize| {
        let answer: &Answer = &answers[at];
        answer.probability.map_or(answer.strangeness.unwrap_or(0.0), |probability| -probability)
    };
    sorted(wrong, sure)
}

fn uncertain(answers: &[Answer]) -> Vec<usize> {
    let open = |at: &usize| answers[*at].rejected != Some(true) && answers[*at].margin().is_some();
    sorted((0..answers.len()).filter(open), |at| answers[at].margin().unwrap_or(1.0))
}

fn strange(answers: &[Answer]) -> Vec<usize> {
    let measured = (0..answers.len()).filter(|&at| answers[at].strangeness.is_some());
    sorted(measured, |at| -answers[at].strangeness.unwrap_or(0.0))
}
