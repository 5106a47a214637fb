//! The peers against computations that share no code with them (see `golden/make_peers.py`), and
//! what must hold of them whatever the data.

use std::collections::BTreeMap;

use ivoro::{Error, Matrix, Points, Samples, View};
use ivoro_eval::peers::{Peer, PeerSettings};
use proptest::prelude::*;
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    settings: PeerSettings,
    phases: Vec<u32>,
    train: Vec<Vec<f32>>,
    labels: Vec<u32>,
    test: Vec<Vec<f32>>,
    distances: BTreeMap<String, Vec<Vec<Vec<f64>>>>,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("golden/peers.json")).unwrap()
}

fn features(rows: &[Vec<f32>], labels: Vec<u32>) -> Samples {
    let points = Matrix::new(rows.len(), rows[0].len(), rows.concat()).unwrap();
    Samples::single("test", points, labels, 7).unwrap()
}

impl Golden {
    fn train(&self) -> Samples {
        features(&self.train, self.labels.clone())
    }

    fn test(&self) -> Samples {
        features(&self.test, vec![0; self.test.len()])
    }

    fn phases(&self) -> Vec<Samples> {
        let mut first = 0;
        let mut phase = |&classes: &u32| {
            let range = first..first + classes;
            first = range.end;
            self.train().of_classes(|class| range.contains(&class))
        };
        self.phases.iter().map(&mut phase).collect()
    }
}

/// Distances after every phase.
fn replay(peer: Peer, settings: &PeerSettings, phases: &[Samples], test: &Samples) -> Vec<Matrix> {
    let mut learner = peer.learner(settings);
    let mut after = |phase| {
        learner.learn(phase).unwrap();
        learner.distances(test).unwrap()
    };
    phases.iter().map(&mut after).collect()
}

fn assert_near(name: &str, found: &Matrix, expected: &[Vec<f64>], tolerance: f64) {
    assert_eq!((found.rows(), found.cols()), (expected.len(), expected[0].len()), "{name}");
    for (found, expected) in found.iter_rows().zip(expected) {
        let scale = expected.iter().fold(0.0, |most, value| f64::max(most, value.abs()));
        for (&found, expected) in found.iter().zip(expected) {
            let error = (f64::from(found) - expected).abs();
            assert!(error <= tolerance * scale, "{name}: {found} for {expected}");
        }
    }
}

#[test]
fn peers_match_independent_computations_after_every_phase() {
    let golden = golden();
    for (name, expected) in &golden.distances {
        let (peer, settings) = match name.as_str() {
            "ranpac-chosen" => {
                (Peer::Ranpac, PeerSettings { ranpac_ridge: None, ..golden.settings })
            }
            "klda-chosen" => (Peer::Klda, PeerSettings { klda_gamma: None, ..golden.settings }),
            // more samples than dimensions
            "loranpac-tall" => {
                (Peer::Loranpac, PeerSettings { loranpac_dim: 20, ..golden.settings })
            }
            _ => (name.parse().unwrap(), golden.settings),
        };
        let found = replay(peer, &settings, &golden.phases(), &golden.test());
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert_near(name, found, expected, 1e-4);
        }
    }
}

#[test]
fn peers_give_the_same_bits_on_any_number_of_threads() {
    let value = |at: usize| ((at * 7919 + 13) % 1009) as f32 / 504.5;
    let set = |rows: usize, shift: usize, first: usize, classes: usize| {
        let points = (0..rows * 140).map(|at| value(at + shift)).collect();
        let labels = (0..rows).map(|row| (first + row % classes) as u32).collect();
        let points = Matrix::new(rows, 140, points).unwrap();
        Samples::single("test", points, labels, 7).unwrap()
    };
    let (phases, test) = ([set(700, 0, 0, 4), set(600, 5, 4, 3)], set(300, 11, 0, 7));
    let settings = PeerSettings { joint_iterations: 20, ..PeerSettings::default() }.with_lifts(300);
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    for peer in Peer::ALL {
        let run = || replay(peer, &settings, &phases, &test);
        assert_eq!(pool(1).install(run), pool(3).install(run), "{peer}");
    }
}

#[test]
fn peers_refuse_gaps_returns_and_other_dimensions() {
    let settings = PeerSettings::default().with_lifts(9);
    let set = |labels: &[u32], dim| {
        let value = |at: usize| ((at * 7919 + 13) % 1009) as f32 / 504.5;
        let row = |row: usize| (row * dim..(row + 1) * dim).map(value).collect();
        let rows: Vec<_> = (0..labels.len()).map(row).collect();
        features(&rows, labels.to_vec())
    };
    for peer in Peer::ALL {
        let mut learner = peer.learner(&settings);
        learner.learn(&set(&[0, 1, 0, 1], 3)).unwrap();
        let gap = learner.learn(&set(&[3], 3));
        assert!(matches!(gap, Err(Error::EmptyClass { .. })), "{peer}");
        let known = learner.learn(&set(&[1, 2], 3));
        assert!(matches!(known, Err(Error::ClassReturns { phase: 0, .. })), "{peer}");
        assert!(matches!(learner.learn(&set(&[2], 4)), Err(Error::Size { .. })), "{peer}");
        assert!(matches!(learner.distances(&set(&[0], 4)), Err(Error::Size { .. })), "{peer}");
        learner.learn(&set(&[2], 3)).unwrap();
        assert_eq!((learner.class_count(), learner.name()), (3, peer.to_string()));
        let distances = learner.distances(&set(&[0, 1], 3)).unwrap();
        assert!(distances.as_slice().iter().all(|value| value.is_finite()), "{peer}");
    }
}

#[test]
fn peers_count_what_they_keep() {
    let golden = golden();
    let bytes = |peer: Peer| {
        let mut learner = peer.learner(&golden.settings);
        golden.phases().iter().for_each(|phase| learner.learn(phase).unwrap());
        learner.bytes()
    };
    assert_eq!(bytes(Peer::Ncm), 7 * 6 * 4);
    assert_eq!(bytes(Peer::NcmCosine), 7 * 6 * 4);
    assert_eq!(bytes(Peer::Slda), 7 * 6 * 4 + 21 * 8 + 8);
    assert_eq!(bytes(Peer::Fecam), 7 * (6 + 21) * 4);
    assert_eq!(bytes(Peer::Ranpac), 7 * 31 * 4 + 31 * 32 / 2 * 8 + 24);
    assert_eq!(bytes(Peer::Klda), 7 * 29 * 4 + 29 * 30 / 2 * 8 + 8);
    assert_eq!(bytes(Peer::Dsal), 2 * (7 * 37 * 4 + 37 * 38 / 2 * 8));
    // 60 % of 60 directions, which is less than of 87 samples
    assert_eq!(bytes(Peer::Loranpac), (36 + 7) * 60 * 4 + 8 + 24);
    assert_eq!(bytes(Peer::Anacp), 3 * (7 * 33 * 4 + 33 * 34 / 2 * 8) + 7 * 6 * 4 + 21 * 8 + 8);
    // of 14, 9, 21, 8, 17, 6 and 12 samples only 21 are enough for two centres
    assert_eq!(bytes(Peer::Fenec), (8 * 6 + 7 * 21) * 4);
    assert_eq!(bytes(Peer::Joint), golden.labels.len() * (6 * 4 + 4));
}

/// Two layers at all eight views, each value of its own.
fn seen(rows: usize, shift: usize) -> Points {
    let value = |at: usize| ((at * 7919 + 13) % 1009) as f32 / 504.5;
    let views = View::conventional(8).unwrap();
    let block = |(at, dim): (usize, usize)| {
        let first = shift + at * 1000;
        Matrix::new(rows, dim, (0..rows * dim).map(|at| value(first + at)).collect()).unwrap()
    };
    let dims = (0..16).map(|at| (at, if at < 8 { 4 } else { 3 }));
    let layers = vec!["last".to_owned(), "block3".to_owned()];
    Points::new("test", layers, views, dims.map(block).collect()).unwrap()
}

/// The one vector that these letters stand for, put together by hand.
fn by_hand(points: &Points, letters: &str) -> Points {
    let turned = if letters.contains("AI") { 4 } else { 1 };
    let layers = if letters.contains('L') { 2 } else { 1 };
    let entry = |layer: usize, view: View, row: usize, col: usize| {
        points.block(layer, view).unwrap().row(row)[col]
    };
    let mut numbers = Vec::new();
    for row in 0..points.len() {
        for &view in &View::ROTATIONS[..turned] {
            for layer in 0..layers {
                for col in 0..points.dim(layer) {
                    let one = entry(layer, view, row, col);
                    let mirrored = entry(layer, view.mirror(), row, col);
                    numbers.push(if letters.contains('F') {
                        f32::midpoint(one, mirrored)
                    } else {
                        one
                    });
                }
            }
        }
    }
    let cols = numbers.len() / points.len();
    Points::single("test", Matrix::new(points.len(), cols, numbers).unwrap()).unwrap()
}

#[test]
fn letters_give_a_peer_more_of_an_image() {
    let settings = PeerSettings { joint_iterations: 20, ..PeerSettings::default() }.with_lifts(40);
    let labels: Vec<u32> = (0..30).map(|row| row % 3).collect();
    let names: std::sync::Arc<[String]> = (0..3).map(|class| class.to_string()).collect();
    let (train, test) = (seen(30, 0), seen(8, 77));
    for peer in Peer::ALL {
        for (letters, dim) in [("F", 4), ("AI", 16), ("L", 7), ("FL", 7), ("FAIL", 28)] {
            let distances = |peer: &str, train: Points, test: &Points| {
                let (peer, look) = Peer::with_look(peer).unwrap();
                let mut learner = peer.learner_of(look, &settings);
                let train = Samples::new(train, labels.clone(), names.clone()).unwrap();
                learner.learn(&train).unwrap();
                (learner.name(), learner.distances(test).unwrap())
            };
            let name = format!("{peer}-{letters}");
            let (found, looked) = distances(&name, train.clone(), &test);
            let plain = (by_hand(&train, letters), by_hand(&test, letters));
            assert_eq!((found, plain.0.dim(0)), (name.clone(), dim));
            assert_eq!(looked, distances(peer.name(), plain.0, &plain.1).1, "{name}");
        }
    }
}

#[test]
fn a_peer_refuses_features_without_its_views_and_layers() {
    let learn = |peer: &str, samples: &Samples| {
        let (peer, look) = Peer::with_look(peer).unwrap();
        peer.learner_of(look, &PeerSettings::default()).learn(samples).unwrap_err()
    };
    let plain = features(&[vec![0.0, 1.0], vec![2.0, 3.0]], vec![0, 1]);
    let error = learn("ncm-F", &plain);
    assert!(matches!(&error, Error::MissingViews { variant, .. } if variant == "ncm-F"), "{error}");
    let error = learn("ncm-L", &plain);
    assert!(matches!(&error, Error::MissingLayer { variant, .. } if variant == "ncm-L"), "{error}");
}

/// Classes 0..6 with so many samples each, in phases of two.
fn arrival(rows: &[Vec<Vec<f32>>], order: &[usize]) -> Vec<Samples> {
    let phase = |(at, &pair): (usize, &usize)| {
        let classes = [&rows[2 * pair], &rows[2 * pair + 1]];
        let first = 2 * at as u32;
        let labels = (first..).zip(classes).flat_map(|(label, rows)| vec![label; rows.len()]);
        features(&[classes[0].clone(), classes[1].clone()].concat(), labels.collect())
    };
    order.iter().enumerate().map(phase).collect()
}

fn classes() -> impl Strategy<Value = Vec<Vec<Vec<f32>>>> {
    let row = prop::collection::vec(0.0_f32..3.0, 5);
    prop::collection::vec(prop::collection::vec(row, 2..7), 6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn peers_do_not_mind_the_order_of_phases(
        rows in classes(),
        order in Just(vec![0, 1, 2]).prop_shuffle(),
        test in prop::collection::vec(prop::collection::vec(0.0_f32..3.0, 5), 4),
    ) {
        let test = features(&test, vec![0; 4]);
        let settings = PeerSettings {
            ranpac_dim: 20,
            ranpac_ridge: Some(1.0),
            slda_shrinkage: 0.1,
            klda_gamma: Some(0.1),
            klda_dim: 20,
            ..PeerSettings::default()
        };
        // what these keep of a phase depends on those before it
        let others = [Peer::Dsal, Peer::Loranpac, Peer::Anacp, Peer::Joint];
        for peer in Peer::ALL.into_iter().filter(|peer| !others.contains(peer)) {
            let last = |order: &[usize]| {
                replay(peer, &settings, &arrival(&rows, order), &test).pop().unwrap()
            };
            let (straight, shuffled) = (last(&[0, 1, 2]), last(&order));
            let back = |row: &[f32]| -> Vec<f64> {
                let at = |class: usize| order.iter().position(|&pair| pair == class / 2).unwrap();
                (0..6).map(|class| row[2 * at(class) + class % 2].into()).collect()
            };
            let shuffled: Vec<Vec<f64>> = shuffled.iter_rows().map(back).collect();
            assert_near(peer.name(), &straight, &shuffled, 1e-4);
        }
    }
}
