//! Any sequence of calls of the API does what the same calls of the library do.

use ivoro::{Forgetting, Matrix, Model, Retraction, Samples};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::harness::{Place, lesson, model};

/// A call.
#[derive(Clone, Debug)]
enum Call {
    Teach { class: usize, rows: Vec<[f32; 2]> },
    Retract { receipt: usize },
    Relabel { receipt: usize, class: usize },
    Rename { class: usize, name: usize },
    Join { class: usize, into: usize },
    Forget { class: usize },
    Restart,
}

const NAMES: [&str; 5] = ["ant", "bee", "cat", "dog", "Esel"];

fn call() -> impl Strategy<Value = Call> {
    let value = -50i16..50;
    let row = [value.clone(), value].prop_map(|row| row.map(|it| f32::from(it) / 4.0));
    let rows = prop::collection::vec(row, 1..4);
    prop_oneof![
        6 => (0..NAMES.len(), rows).prop_map(|(class, rows)| Call::Teach { class, rows }),
        2 => (0..20usize).prop_map(|receipt| Call::Retract { receipt }),
        2 => (0..20usize, 0..NAMES.len()).prop_map(|(receipt, class)| Call::Relabel { receipt, class }),
        1 => (0..NAMES.len(), 0..NAMES.len()).prop_map(|(class, name)| Call::Rename { class, name }),
        1 => (0..NAMES.len(), 0..NAMES.len()).prop_map(|(class, into)| Call::Join { class, into }),
        1 => (0..NAMES.len()).prop_map(|class| Call::Forget { class }),
        1 => Just(Call::Restart),
    ]
}

fn samples(class: &str, rows: &[[f32; 2]]) -> Samples {
    let points = Matrix::new(rows.len(), 2, rows.concat()).unwrap();
    let points = ivoro::Points::single("rows", points).unwrap();
    Samples::new(points, vec![0; rows.len()], [class.to_owned()].into()).unwrap()
}

/// A sample that was taught, what it is called now, and its receipt.
struct Held {
    class: String,
    row: [f32; 2],
    receipt: Value,
}

struct Both {
    place: Place,
    model: Model,
    begun: Model,
    held: Vec<Held>,
}

const KEPT: Retraction =
    Retraction { probes: Forgetting::Exact, inexact: false, recomputed: false, kept: true };

impl Both {
    fn new(variant: &str) -> Self {
        let place =
            Place::with(|options| options.beginning.variant = Some(variant.parse().unwrap()));
        let begun = Model::new(variant.parse().unwrap(), ivoro::ModelOptions::default());
        Self { place, model: begun.clone(), begun, held: Vec::new() }
    }

    fn do_both(&mut self, call: &Call) {
        self.model.set_time(1);
        match call {
            Call::Teach { class, rows } => self.teach(NAMES[*class], rows),
            Call::Retract { receipt } if *receipt < self.held.len() => self.retract(*receipt),
            Call::Relabel { receipt, class } if *receipt < self.held.len() => {
                self.relabel(*receipt, NAMES[*class]);
            }
            Call::Rename { class, name } => {
                let (class, name) = (NAMES[*class], NAMES[*name]);
                let done = self.model.rename(class, name).is_ok();
                self.renamed(class, name, done, &json!({"name": name}));
            }
            Call::Join { class, into } => {
                let (class, into) = (NAMES[*class], NAMES[*into]);
                let done = self.model.join(class, into, Forgetting::Exact).is_ok();
                self.renamed(class, into, done, &json!({"into": into}));
            }
            Call::Forget { class } => self.forget(NAMES[*class]),
            Call::Restart => self.place.again(),
            Call::Retract { .. } | Call::Relabel { .. } => {}
        }
        if self.model.head().classes().is_empty() {
            self.model = self.begun.clone();
        }
        self.compare();
    }

    fn teach(&mut self, class: &str, rows: &[[f32; 2]]) {
        let done = self.model.teach(&samples(class, rows));
        let answer = self.place.post(&model("samples"), &lesson(class, rows));
        assert_eq!(answer.status == 200, done.is_ok(), "{done:?}");
        if done.is_ok() {
            let taught = answer.json()["taught"].clone();
            let held = rows.iter().zip(taught.as_array().unwrap()).map(|(row, it)| Held {
                class: class.to_owned(),
                row: *row,
                receipt: it["receipt"].clone(),
            });
            self.held.extend(held);
        }
    }

    fn retract(&mut self, receipt: usize) {
        let Held { class, row, receipt } = self.held.swap_remove(receipt);
        let done = self.model.retract(&samples(&class, &[row]), KEPT);
        let answer = self.place.post(&model("retract"), &json!({"receipts": [receipt]}));
        let said = String::from_utf8_lossy(&answer.body);
        assert_eq!(answer.status == 200, done.is_ok(), "{done:?} {said}");
    }

    fn relabel(&mut self, receipt: usize, class: &str) {
        let held = &mut self.held[receipt];
        if held.class == class {
            return;
        }
        let done = self.model.relabel(&samples(&held.class, &[held.row]), class, KEPT);
        let body = json!({"receipts": [held.receipt], "class": class});
        let answer = self.place.post(&model("relabel"), &body);
        assert_eq!(answer.status == 200, done.is_ok(), "{done:?}");
        if done.is_ok() {
            class.clone_into(&mut held.class);
            held.receipt = answer.json()["receipts"][0].clone();
        }
    }

    fn forget(&mut self, class: &str) {
        let done = self.model.forget(class, Forgetting::Exact);
        let answer = self.place.send("DELETE", &model(&format!("classes/{class}")), &[], b"");
        assert_eq!(answer.status == 200, done.is_ok(), "{done:?}");
        if done.is_ok() {
            self.held.retain(|held| held.class != class);
        }
    }

    fn renamed(&mut self, class: &str, name: &str, done: bool, body: &Value) {
        let path = model(&format!("classes/{class}"));
        let answer = self.place.with_json("PATCH", &path, &[], body);
        assert_eq!(answer.status == 200, done);
        if done {
            let held = self.held.iter_mut().filter(|held| held.class == class);
            held.for_each(|held| name.clone_into(&mut held.class));
        }
    }

    /// The file is the model of the library in every number kept.
    fn compare(&self) {
        if self.model.head().classes().is_empty() {
            assert!(!self.place.model().exists());
            return;
        }
        let saved = ivoro_io::load(&self.place.model()).unwrap();
        assert!(saved.head() == self.model.head());
        assert_eq!(saved.calibration(), self.model.calibration());
    }
}

fn run(variant: &str, calls: &[Call]) {
    let mut both = Both::new(variant);
    calls.iter().for_each(|call| both.do_both(call));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, max_shrink_iters: 60, ..ProptestConfig::default() })]

    #[test]
    fn plain(calls in prop::collection::vec(call(), 1..25)) {
        run("iVoro-N", &calls);
    }

    #[test]
    fn pooled(calls in prop::collection::vec(call(), 1..25)) {
        run("iVoro-W", &calls);
    }

    #[test]
    fn per_class(calls in prop::collection::vec(call(), 1..25)) {
        run("iVoro-Q", &calls);
    }
}
