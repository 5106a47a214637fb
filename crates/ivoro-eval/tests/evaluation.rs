//! Evaluations against NumPy, SciPy and scikit-learn (see `golden/make_evaluation.py`), and what must hold
//! of them whatever the data.

use std::collections::BTreeMap;

use ivoro::{Error, Forgetting, Matrix, Model, ModelOptions, Points, Samples, Settings};
use ivoro_eval::evaluation::{
    Answer, Asked, BINS, Cluster, Clusters, Findings, Interval, Next, Reliability, Set, calibrate,
    csv,
};
use ivoro_eval::metrics::{area_under_roc, false_positive_rate};
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    train: Vec<Vec<f32>>,
    train_labels: Vec<u32>,
    asked: Vec<Vec<f32>>,
    labels: Vec<u32>,
    strange: Vec<Vec<f32>>,
    strange_labels: Vec<u32>,
    named: Vec<u32>,
    wilson: BTreeMap<String, [f64; 2]>,
    recall: Vec<f64>,
    precision: Vec<f64>,
    #[serde(rename = "macro")]
    macro_accuracy: f64,
    confusion: Vec<Vec<usize>>,
    probability: Vec<f64>,
    correct: Vec<bool>,
    error: f64,
    bins: Vec<(usize, f64, f64)>,
    near: Vec<f64>,
    away: Vec<f64>,
    auroc: f64,
    fpr95: f64,
    groups: Vec<u32>,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("golden/evaluation.json")).unwrap()
}

fn samples(rows: &[Vec<f32>], labels: &[u32], prefix: &str) -> Samples {
    let points = Matrix::new(rows.len(), rows[0].len(), rows.concat()).unwrap();
    let classes = labels.iter().max().unwrap() + 1;
    let names: Vec<String> = (0..classes).map(|class| format!("{prefix}{class}")).collect();
    let points = Points::single("test", points).unwrap();
    Samples::new(points, labels.to_vec(), names.into()).unwrap()
}

impl Golden {
    /// The nearest mean, without any letter.
    fn model(&self) -> Model {
        self.model_of("iVoro")
    }

    fn model_of(&self, variant: &str) -> Model {
        let options = ModelOptions { settings: Settings::default(), ..ModelOptions::default() };
        let mut model = Model::new(variant.parse().unwrap(), options);
        model.learn(&samples(&self.train, &self.train_labels, "class ")).unwrap();
        model
    }

    fn asked(&self) -> Samples {
        samples(&self.asked, &self.labels, "class ")
    }

    /// Places of the queries of a new class, as SciPy finds it.
    fn group(&self, group: u32) -> Vec<usize> {
        let places = (0..self.groups.len()).filter(|&at| self.groups[at] == group);
        places.map(|at| self.asked.len() + at).collect()
    }

    fn strange(&self) -> Samples {
        samples(&self.strange, &self.strange_labels, "new ")
    }
}

fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "{found} {expected}");
}

fn answers(model: &Model, golden: &Golden) -> Vec<Answer> {
    let (mut asked, without) = Asked::new(model, Some(0.05)).unwrap();
    assert_eq!(without, None);
    asked.labelled(&golden.asked(), |row| format!("row {row}")).unwrap();
    let strange = golden.strange();
    asked.unknown(strange.points(), Some(&strange), |row| format!("strange {row}")).unwrap();
    asked.answers
}

#[test]
fn the_interval_of_wilson() {
    for (of, [low, high]) in golden().wilson {
        let (right, queries) = of.split_once('/').unwrap();
        let found = Interval::wilson(right.parse().unwrap(), queries.parse().unwrap()).unwrap();
        near(found.low, low);
        near(found.high, high);
        assert!(found.low <= found.share && found.share <= found.high);
    }
    assert_eq!(Interval::wilson(0, 0), None);
}

#[test]
fn classes_confusions_and_accuracy() {
    let golden = golden();
    let model = golden.model();
    let answers = answers(&model, &golden);
    let found = Findings::of(&model, Some(0.05), &answers).unwrap();
    for (answer, named) in answers.iter().zip(&golden.named) {
        assert_eq!(answer.class, format!("class {named}"));
    }
    let right: usize = golden.confusion.iter().enumerate().map(|(at, row)| row[at]).sum();
    assert_eq!((found.queries, found.right, found.views), (golden.labels.len(), right, 1));
    assert_eq!(found.accuracy, Interval::wilson(right, golden.labels.len()));
    near(found.macro_accuracy.unwrap(), golden.macro_accuracy);
    assert_eq!(found.classes.len(), golden.recall.len());
    for (at, class) in found.classes.iter().enumerate() {
        near(class.recall.unwrap(), golden.recall[at]);
        near(class.precision.unwrap(), golden.precision[at]);
        assert_eq!(class.queries, golden.confusion[at].iter().sum::<usize>());
        let most = golden.confusion[at].iter().enumerate().filter(|(to, _)| *to != at);
        let most = most.map(|(_, &count)| count).max().filter(|&count| count > 0);
        assert_eq!(class.confused_with.as_ref().map(|it| it.queries), most);
    }
    let mut wrong = 0;
    for it in &found.confusions {
        let place = |name: &str| name.strip_prefix("class ").unwrap().parse::<usize>().unwrap();
        assert_eq!(it.queries, golden.confusion[place(&it.class)][place(&it.named)]);
        wrong += it.queries;
    }
    assert_eq!(wrong, golden.labels.len() - right);
    assert!(found.confusions.is_sorted_by_key(|it| std::cmp::Reverse(it.queries)));
}

#[test]
fn reliability_in_bins_of_equal_mass() {
    let golden = golden();
    let found = Reliability::from_parts(&golden.probability, &golden.correct, BINS).unwrap();
    near(found.error, golden.error);
    assert_eq!(found.bins.len(), golden.bins.len());
    for (bin, (queries, confidence, accuracy)) in found.bins.iter().zip(&golden.bins) {
        assert_eq!(bin.queries, *queries);
        near(bin.confidence, *confidence);
        near(bin.accuracy, *accuracy);
    }
    assert_eq!(Reliability::from_parts(&[], &[], BINS), None);
}

#[test]
fn known_and_unknown_are_told_apart() {
    let golden = golden();
    near(area_under_roc(&golden.near, &golden.away).unwrap(), golden.auroc);
    near(false_positive_rate(&golden.near, &golden.away, 0.95).unwrap(), golden.fpr95);
    let model = golden.model();
    let answers = answers(&model, &golden);
    let found = Findings::of(&model, Some(0.05), &answers).unwrap().rejection.unwrap();
    let at = found.at_threshold.unwrap();
    let rejected = |known: bool| {
        let of = |it: &&Answer| it.known == known && it.strangeness.unwrap() > at.threshold;
        answers.iter().filter(of).count()
    };
    assert_eq!(at.known.rejected, rejected(true));
    assert_eq!(at.unknown.unwrap().rejected, rejected(false));
    assert_eq!(at.unknown.unwrap().queries, golden.strange.len());
    assert_eq!(found.auroc, Some(1.0), "they are far away");
    let accepted = answers.iter().filter(|it| it.known && it.rejected == Some(false));
    let right = accepted.clone().filter(|it| it.is_right()).count();
    assert_eq!(at.accepted, Interval::wilson(right, accepted.count()));
}

#[test]
fn classes_that_the_model_does_not_know_count_as_unknown() {
    let golden = golden();
    let mut model = golden.model();
    model.forget("class 4", Forgetting::default()).unwrap();
    let (mut asked, _) = Asked::new(&model, None).unwrap();
    asked.labelled(&golden.asked(), |row| row.to_string()).unwrap();
    let found = Findings::of(&model, None, &asked.answers).unwrap();
    let left = golden.labels.iter().filter(|&&label| label != 4).count();
    assert_eq!(found.queries, left);
    assert_eq!(found.unknown_classes.len(), 1);
    assert_eq!(found.unknown_classes[0].class, "class 4");
    assert_eq!(found.unknown_classes[0].queries, golden.labels.len() - left);
    assert!(found.rejection.unwrap().at_threshold.is_none());
    assert!(asked.answers.iter().all(|it| it.rejected.is_none() && it.set == Set::Labelled));
    // what the model knows is no unknown
    let known = golden.asked();
    let refused = asked.unknown(known.points(), Some(&known), |row| row.to_string());
    assert!(matches!(refused, Err(Error::Unsupported { what }) if what.contains("class 0")));
}

#[test]
fn a_model_that_knows_nothing_and_a_share_that_is_none() {
    let golden = golden();
    let empty = Model::new("iVoro".parse().unwrap(), ModelOptions::default());
    assert!(Asked::new(&empty, None).is_err());
    for share in [0.0, 1.0, -1.0, f64::NAN] {
        assert!(matches!(Asked::new(&golden.model(), Some(share)), Err(Error::Setting { .. })));
    }
}

#[test]
fn mistakes_come_the_surest_first_and_clusters_are_the_new_classes() {
    let golden = golden();
    let model = golden.model();
    let answers = answers(&model, &golden);
    let (known, strange) = (golden.asked(), golden.strange());
    let points = [known.points(), strange.points()];
    let next = Next::of(&model, &answers, &points, &known, 9).unwrap();
    assert!(next.mistakes.iter().all(|&at| answers[at].known && !answers[at].is_right()));
    let sure = |&at: &usize| answers[at].probability.unwrap();
    assert!(next.mistakes.is_sorted_by(|a, b| sure(a) >= sure(b)) && !next.mistakes.is_empty());
    let decided = |&at: &usize| answers[at].margin().unwrap();
    assert!(next.uncertain.is_sorted_by(|a, b| decided(a) <= decided(b)));
    assert!(next.uncertain.iter().all(|&at| answers[at].rejected == Some(false)));
    assert!(next.strange.iter().all(|&at| answers[at].set == Set::Unknown));
    let clusters = next.clusters.unwrap();
    let unknown = answers.iter().filter(|it| it.rejected == Some(true) || !it.known).count();
    assert_eq!(clusters.compared, unknown);
    let found = the_first_two(&clusters, &golden);
    for group in [1, 2] {
        assert!(found.contains(&golden.group(group)), "{found:?}");
    }
    // a known query that was rejected may stand with them
    let all = clusters.found[..2].iter().map(|cluster| cluster.members.len());
    assert!(all.zip(&found).all(|(all, members)| members.len() + 1 >= all));
    assert_eq!(clusters.found[0].labels[0].1, 15);
}

/// The members of the first two clusters that are of no known class.
fn the_first_two(clusters: &Clusters, golden: &Golden) -> Vec<Vec<usize>> {
    let first = golden.asked.len();
    let members = |cluster: &Cluster| {
        let mut members = cluster.members.clone();
        members.retain(|&at| at >= first);
        members.sort_unstable();
        members
    };
    clusters.found[..2].iter().map(members).collect()
}

#[test]
fn letters_that_compare_no_two_queries_are_left_away() {
    let golden = golden();
    let (known, strange) = (golden.asked(), golden.strange());
    for variant in ["iVoro-D", "iVoro-R", "iVoro-WDR"] {
        let model = golden.model_of(variant);
        let answers = answers(&model, &golden);
        let points = [known.points(), strange.points()];
        let next = Next::of(&model, &answers, &points, &known, 9).unwrap();
        let clusters = next.clusters.unwrap();
        assert_eq!(clusters.by, "iVoro");
        let found = the_first_two(&clusters, &golden);
        assert!([1, 2].iter().all(|&it| found.contains(&golden.group(it))), "{variant} {found:?}");
    }
}

/// Which rows stand together must not depend on the order they are given in.
#[test]
fn clusters_do_not_depend_on_the_order() {
    let golden = golden();
    let model = golden.model();
    let known = golden.asked();
    let members = |strange: &Samples| -> Vec<Vec<String>> {
        let (mut asked, _) = Asked::new(&model, Some(0.05)).unwrap();
        asked.labelled(&known, |row| row.to_string()).unwrap();
        let name = |row: usize| {
            format!("{:?}", strange.points().select(&[row]).block(0, strange.views()[0]))
        };
        asked.unknown(strange.points(), None, name).unwrap();
        let points = [known.points(), strange.points()];
        let next = Next::of(&model, &asked.answers, &points, &known, 5).unwrap();
        let mut found: Vec<Vec<String>> = next
            .clusters
            .unwrap()
            .found
            .iter()
            .map(|it| {
                let mut names: Vec<String> =
                    it.members.iter().map(|&at| asked.answers[at].query.clone()).collect();
                names.sort();
                names
            })
            .collect();
        found.sort();
        found
    };
    let strange = golden.strange();
    let backwards: Vec<usize> = (0..strange.len()).rev().collect();
    assert_eq!(members(&strange), members(&strange.select(&backwards)));
}

#[test]
fn every_query_has_a_row() {
    let golden = golden();
    let mut model = golden.model();
    model.rename("class 0", "a, \"b\"").unwrap();
    let answers = {
        let (mut asked, _) = Asked::new(&model, Some(0.05)).unwrap();
        asked.labelled(&golden.asked(), |row| row.to_string()).unwrap();
        asked.answers
    };
    let text = csv(&answers);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 1 + golden.asked.len());
    assert!(text.contains(",\"a, \"\"b\"\"\","));
    assert_eq!(lines[0].split(',').count(), 13);
    let plain = lines.iter().filter(|line| !line.contains('"'));
    assert!(
        plain.clone().count() > 50 && plain.into_iter().all(|line| line.split(',').count() == 13)
    );
}

#[test]
fn calibrating_says_what_it_changed_on_samples_kept_apart() {
    let golden = golden();
    let mut model = golden.model();
    let before = model.temperature().unwrap();
    let mut plain = model.clone();
    plain.calibrate(&golden.asked()).unwrap();
    let changed = calibrate(&mut model, &golden.asked()).unwrap();
    // the model is the one that all samples calibrated
    assert_eq!(model.calibration(), plain.calibration());
    assert_eq!(changed.temperature_before, Some(before));
    assert_eq!(changed.temperature_after, Some(model.temperature().unwrap()));
    assert_eq!(changed.samples, golden.asked.len());
    for it in &changed.thresholds {
        assert_eq!(it.after, Some(model.threshold(it.share).unwrap()));
    }
    let after = changed.after.unwrap();
    assert!(after.error.is_some() && after.rejected.unwrap() < 0.2);
    // a class that is not known changes nothing
    let strange = golden.strange();
    let kept = model.calibration().cloned();
    assert!(matches!(calibrate(&mut model, &strange), Err(Error::UnknownClass { .. })));
    assert_eq!(model.calibration(), kept.as_ref());
    // single samples can't be kept apart
    let one = golden.asked().select(&[0, 30]);
    assert_eq!(calibrate(&mut model, &one).unwrap().after, None);
}
