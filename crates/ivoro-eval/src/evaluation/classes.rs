//! Which classes are told apart, and which are taken for each other.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::answers::Answer;

/// What was found of one class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassFindings {
    /// Its name.
    pub class: String,
    /// Queries of it.
    pub queries: usize,
    /// How many of them were given this class.
    pub right: usize,
    /// Share of its queries that were given this class; none without a query.
    pub recall: Option<f64>,
    /// Queries of all known classes that were given this class.
    pub named: usize,
    /// Share of those that are of this class; none if no query was given it.
    pub precision: Option<f64>,
    /// The class that its queries were given most often by mistake.
    pub confused_with: Option<Mistaken>,
}

/// A class given by mistake.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mistaken {
    /// Its name.
    pub class: String,
    /// How often it was given.
    pub queries: usize,
}

/// Queries of one class that were given another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Confusion {
    /// The class of the label.
    pub class: String,
    /// The class that was given.
    pub named: String,
    /// How often.
    pub queries: usize,
}

/// How often each class was given to queries of each, by their places among `names`.
fn counted(names: &[&str], known: &[&Answer]) -> BTreeMap<(usize, usize), usize> {
    let place: HashMap<&str, usize> =
        names.iter().enumerate().map(|(at, &name)| (name, at)).collect();
    let mut counts = BTreeMap::new();
    for answer in known {
        let label = answer.label.as_deref().and_then(|label| place.get(label));
        let pair = label.zip(place.get(answer.class.as_str()));
        if let Some((&truth, &named)) = pair {
            *counts.entry((truth, named)).or_default() += 1;
        }
    }
    counts
}

/// All classes in the order of `names`.
pub(super) fn by_class(names: &[&str], known: &[&Answer]) -> Vec<ClassFindings> {
    let counts = counted(names, known);
    let mut found: Vec<ClassFindings> = names
        .iter()
        .map(|&class| ClassFindings {
            class: class.to_owned(),
            queries: 0,
            right: 0,
            recall: None,
            named: 0,
            precision: None,
            confused_with: None,
        })
        .collect();
    for (&(truth, named), &count) in &counts {
        found[truth].queries += count;
        found[named].named += count;
        if truth == named {
            found[truth].right = count;
            continue;
        }
        // of equal counts the class that came first
        let most = &mut found[truth].confused_with;
        if most.as_ref().is_none_or(|most| count > most.queries) {
            *most = Some(Mistaken { class: names[named].to_owned(), queries: count });
        }
    }
    let share = |part: usize, all: usize| (all > 0).then(|| part as f64 / all as f64);
    for class in &mut found {
        class.recall = share(class.right, class.queries);
        class.precision = share(class.right, class.named);
    }
    found
}

/// Mean recall of the classes that have queries.
pub(super) fn macro_accuracy(classes: &[ClassFindings]) -> Option<f64> {
    let recalls: Vec<f64> = classes.iter().filter_map(|class| class.recall).collect();
    (!recalls.is_empty()).then(|| recalls.iter().sum::<f64>() / recalls.len() as f64)
}

/// All mistakes, the most frequent first, then in order of arrival.
pub(super) fn confusions(names: &[&str], known: &[&Answer]) -> Vec<Confusion> {
    let counts = counted(names, known);
    let mut wrong: Vec<((usize, usize), usize)> =
        counts.into_iter().filter(|((truth, named), _)| truth != named).collect();
    wrong.sort_by_key(|&(pair, count)| (std::cmp::Reverse(count), pair));
    let confusion = |((truth, named), queries): ((usize, usize), usize)| Confusion {
        class: names[truth].to_owned(),
        named: names[named].to_owned(),
        queries,
    };
    wrong.into_iter().map(confusion).collect()
}
