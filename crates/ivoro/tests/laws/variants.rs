use ivoro::diagram::PowerDiagram;
use ivoro::head::{Optimiser, ProbeSpace, Rule, Settings, Views};
use ivoro::regression::{FitOptions, Objective, Penalty, fit};
use ivoro::statistics::{Grid, sums_by_class};
use ivoro::{Matrix, Samples, Variant, View};

use crate::data::{
    CLASSES, every_variant, learned, phases, queries, rearranged, small, train, variant,
};

fn least(row: &[f32]) -> u32 {
    let mut best = 0;
    for (at, value) in row.iter().enumerate() {
        if *value < row[best] {
            best = at;
        }
    }
    best as u32
}

fn argmin(distances: &Matrix) -> Vec<u32> {
    distances.iter_rows().map(least).collect()
}

#[test]
fn every_variant_learns_and_answers_with_its_nearest_class() {
    let (phases, queries) = (phases(&train()), queries());
    let variants = every_variant();
    assert_eq!(variants.len(), 468);
    for variant in variants {
        let head = learned(variant, &small(), &phases);
        let predicted = head.predict(&queries).unwrap();
        for absolute in [true, false] {
            let distances = head.measure(&queries, absolute).unwrap();
            assert_eq!((distances.rows(), distances.cols()), (queries.len(), CLASSES as usize));
            assert!(distances.as_slice().iter().all(|d| d.is_finite()), "{variant}");
            assert_eq!(argmin(&distances), predicted, "{variant}, absolute {absolute}");
            let answers = head.ask(&queries, absolute).unwrap();
            assert_eq!(answers.distances, distances, "{variant}, absolute {absolute}");
        }
        let right = predicted.iter().zip(queries.labels()).filter(|(a, b)| a == b).count();
        // chance is one in nine
        assert!(9 * right > 2 * queries.len(), "{variant}: {right} of {}", queries.len());
    }
}

/// The same with each kind of exponent, whose power must not be taken of a relative distance.
#[test]
fn an_exponent_keeps_the_order_within_a_view_and_layer() {
    let (phases, queries) = (phases(&train()), queries());
    for gamma in [0.5, 2.0, -1.0] {
        let settings = Settings { gamma, ..small() };
        for name in ["iVoro", "iVoro-N", "iVoro-W", "iVoro-KW", "iVoro-Q", "iVoro3"] {
            let plain = learned(variant(name), &small(), &phases).predict(&queries).unwrap();
            let head = learned(variant(name), &settings, &phases);
            assert_eq!(head.predict(&queries).unwrap(), plain, "{name} {gamma}");
            let distances = head.measure(&queries, false).unwrap();
            assert_eq!(argmin(&distances), plain, "{name} {gamma}");
        }
        for name in ["iVoro-WAC", "iVoro-NWACL"] {
            let head = learned(variant(name), &settings, &phases);
            let relative = argmin(&head.measure(&queries, false).unwrap());
            assert_eq!(relative, argmin(&head.measure(&queries, true).unwrap()), "{name} {gamma}");
        }
    }
}

fn still(features: &Samples) -> Samples {
    let mirrored = |view: View| View { quarter_turns: 0, ..view };
    rearranged(features, 2, features.views().to_vec(), |layer, view| (layer, mirrored(view)))
}

#[test]
fn views_that_are_all_the_same_change_nothing() {
    let (phases, queries) = (phases(&still(&train())), still(&queries()));
    let fixed = every_variant().into_iter().filter(|v| v.views == Views::Single && !v.lift);
    for single in fixed {
        let expected = learned(single, &small(), &phases).predict(&queries).unwrap();
        for views in [Views::Consensus, Views::Integration] {
            let turned = Variant { views, ..single };
            // the joint metric of four equal views has four times the variance along them
            let joint = single.whiten && views == Views::Integration;
            if joint && (single.residual || single.divide) {
                continue; // a probe on concatenated views is another fit
            }
            let ridge = small().ridge * if joint { 4.0 } else { 1.0 };
            let head = learned(turned, &Settings { ridge, ..small() }, &phases);
            assert_eq!(head.predict(&queries).unwrap(), expected, "{turned}");
        }
    }
}

#[test]
fn a_layer_added_to_itself_changes_nothing() {
    let twice = |f: &Samples| rearranged(f, 2, f.views().to_vec(), |_, view| (0, view));
    let (phases, queries) = (phases(&twice(&train())), twice(&queries()));
    for layered in every_variant().into_iter().filter(|v| v.layered && !v.lift) {
        if layered.whiten && (layered.residual || layered.divide) {
            continue; // a probe on concatenated layers is another fit
        }
        let single = Variant { layered: false, ..layered };
        let expected = learned(single, &small(), &phases).predict(&queries).unwrap();
        let ridge =
            small().ridge * if layered.whiten || layered.per_class_metric { 2.0 } else { 1.0 };
        let head = learned(layered, &Settings { ridge, ..small() }, &phases);
        assert_eq!(head.predict(&queries).unwrap(), expected, "{layered}");
    }
}

/// (z − m)ᵀ Σ⁻¹ (z − m) by Gaussian elimination.
fn quadratic(z: &[f64], m: &[f64], sigma: &[Vec<f64>]) -> f64 {
    let n = z.len();
    let delta: Vec<f64> = z.iter().zip(m).map(|(z, m)| z - m).collect();
    let mut rows: Vec<Vec<f64>> = sigma.to_vec();
    rows.iter_mut().zip(&delta).for_each(|(row, &d)| row.push(d));
    for pivot in 0..n {
        for other in (0..n).filter(|&other| other != pivot) {
            let factor = rows[other][pivot] / rows[pivot][pivot];
            let source = rows[pivot].clone();
            rows[other].iter_mut().zip(source).for_each(|(to, from)| *to -= factor * from);
        }
    }
    (0..n).map(|at| delta[at] * rows[at][n] / rows[at][at]).sum()
}

#[test]
fn q_measures_each_class_in_its_own_covariance() {
    let (train, queries) = (train(), queries());
    let settings = Settings { ridge: 0.2, prior: 5.0, volume: 0.0, ..small() };
    let head = learned(variant("iVoro-Q"), &settings, &phases(&train));
    let wide = |row: &[f32]| row.iter().copied().map(f64::from).collect::<Vec<_>>();
    let points = train.block(0, View::UPRIGHT).unwrap();
    let dim = points.cols();
    let mut pooled = vec![vec![0.0; dim]; dim];
    let mut classes = Vec::new();
    for class in 0..CLASSES {
        let rows = (0..train.len()).filter(|&row| train.labels()[row] == class);
        let rows: Vec<Vec<f64>> = rows.map(|row| wide(points.row(row))).collect();
        let count = rows.len() as f64;
        let mean: Vec<f64> =
            (0..dim).map(|at| rows.iter().map(|row| row[at]).sum::<f64>() / count).collect();
        let product = |a: usize, b: usize| -> f64 {
            rows.iter().map(|row| (row[a] - mean[a]) * (row[b] - mean[b])).sum()
        };
        let scatter: Vec<Vec<f64>> =
            (0..dim).map(|a| (0..dim).map(|b| product(a, b)).collect()).collect();
        for (a, row) in scatter.iter().enumerate() {
            row.iter().enumerate().for_each(|(b, value)| pooled[a][b] += value);
        }
        classes.push((mean, scatter, count));
    }
    let freedom = (train.len() - CLASSES as usize) as f64;
    pooled.iter_mut().flatten().for_each(|value| *value /= freedom);
    let floor = 0.2 * (0..dim).map(|at| pooled[at][at]).sum::<f64>() / dim as f64;
    let found = head.measure(&queries, true).unwrap();
    for (row, query) in queries.block(0, View::UPRIGHT).unwrap().iter_rows().enumerate() {
        for (class, (mean, scatter, count)) in classes.iter().enumerate() {
            let entry = |a: usize, b: usize| {
                let mixed = (scatter[a][b] + 5.0 * pooled[a][b]) / (count - 1.0 + 5.0);
                mixed + if a == b { floor } else { 0.0 }
            };
            let sigma: Vec<Vec<f64>> =
                (0..dim).map(|a| (0..dim).map(|b| entry(a, b)).collect()).collect();
            let expected = quadratic(&wide(query), mean, &sigma);
            let found = f64::from(found.row(row)[class]);
            assert!((found - expected).abs() < 1e-3 * expected, "{found} {expected}");
        }
    }
}

#[test]
fn q_with_nothing_but_the_prior_is_w() {
    let (phases, queries) = (phases(&train()), queries());
    let settings = Settings { prior: 1e15, ..small() };
    for (own, pooled) in [("iVoro-Q", "iVoro-W"), ("iVoro-NQAC", "iVoro-NWAC")] {
        let own = learned(variant(own), &settings, &phases).measure(&queries, true).unwrap();
        let pooled = learned(variant(pooled), &settings, &phases).measure(&queries, true).unwrap();
        for (own, pooled) in own.as_slice().iter().zip(pooled.as_slice()) {
            assert!((own - pooled).abs() < 1e-3 * pooled.abs().max(1.0), "{own} {pooled}");
        }
    }
}

#[test]
fn in_one_phase_d_answers_as_its_probe_does() {
    let (train, queries) = (train(), queries());
    let points = train.block(0, View::UPRIGHT).unwrap();
    let grid = Grid::covering(points);
    let sums = sums_by_class(points, train.labels(), train.classes(), grid, "test").unwrap();
    let means = sums.iter().enumerate().flat_map(|(class, sums)| {
        let count = train.labels().iter().filter(|&&label| label as usize == class).count();
        sums.mean(count as u64, grid).into_iter().map(|value| value as f32)
    });
    let start = Matrix::new(CLASSES as usize, points.cols(), means.collect()).unwrap();
    let penalty = Penalty::Decay(small().weight_decay);
    let objective = Objective::new(points, train.labels(), &start, penalty).unwrap();
    let options = FitOptions { optimiser: Optimiser::Lbfgs, iterations: 5, seed: small().seed };
    let probe = PowerDiagram::voronoi(fit(&objective, options).unwrap().centres);
    let nearest = probe.nearest(queries.block(0, View::UPRIGHT).unwrap()).unwrap();
    let expected: Vec<u32> = nearest.iter().map(|nearest| nearest.cell).collect();
    // N with a raw probe, and W, act between phases alone
    let raw = Settings { probe_space: ProbeSpace::Raw, ..small() };
    for (name, settings) in [("iVoro-D", small()), ("iVoro-ND", raw), ("iVoro-WD", small())] {
        for rule in [Rule::Tournament, Rule::Elimination] {
            let settings = Settings { rule, ..settings.clone() };
            let head = learned(variant(name), &settings, std::slice::from_ref(&train));
            assert_eq!(head.predict(&queries).unwrap(), expected, "{name} {rule}");
        }
    }
    let prototypes = learned(variant("iVoro"), &small(), &[train]).predict(&queries).unwrap();
    assert_ne!(prototypes, expected, "the data must be able to tell the two apart");
}

#[test]
fn tournament_and_elimination_agree_on_phases_of_one_class() {
    let (train, queries) = (train(), queries());
    let one_each: Vec<Samples> =
        (0..CLASSES).map(|class| train.of_classes(|label| label == class)).collect();
    for variant in every_variant().into_iter().filter(|v| v.divide && !v.flip && !v.third) {
        let answer = |rule| {
            let settings = Settings { rule, ..small() };
            learned(variant, &settings, &one_each).predict(&queries).unwrap()
        };
        assert_eq!(answer(Rule::Tournament), answer(Rule::Elimination), "{variant}");
    }
}
