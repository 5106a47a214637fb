//! Random damage, plain and with a checksum that covers it: an error or a model, never a panic.

use std::sync::LazyLock;

use ivoro::model::AskOptions;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::file::{Parts, bytes_of, compact_model, features, loaded, model};

static FILES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let mut models = ["iVoro", "iVoro-NWDR", "iVoro-NKW"].map(model).to_vec();
    models.push(compact_model("iVoro-NW"));
    models.iter().map(bytes_of).collect()
});

/// Loads and uses what was loaded.
fn use_it(bytes: &[u8]) {
    let Ok(mut model) = loaded(bytes) else { return };
    let _ = model
        .ask(&features(0), AskOptions { false_rejection: Some(0.05), ..AskOptions::default() });
    let _ = model.update(&features(2));
    let _ = model.learn(&features(0));
    let _ = ivoro::head::audit::audit(model.head());
}

/// Every place in a description.
fn places(value: &Value, here: &str, out: &mut Vec<String>) {
    out.push(here.to_owned());
    match value {
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(at, v)| places(v, &format!("{here}/{at}"), out));
        }
        Value::Object(map) => {
            map.iter().for_each(|(key, v)| places(v, &format!("{here}/{key}"), out));
        }
        _ => {}
    }
}

fn replacement() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        Just(json!([])),
        Just(json!("iVoro-NWDRACL")),
        Just(json!(true)),
        Just(json!(false)),
        any::<u64>().prop_map(|number| json!(number)),
        (-3i64..6).prop_map(|number| json!(number)),
        any::<f64>().prop_map(|number| json!(number)),
        Just(json!([3, 3, 3, 3])),
    ]
}

proptest! {
    #[test]
    fn bytes_changed_at_random(
        file in 0usize..4,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = FILES[file].clone();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        use_it(&bytes);
    }

    #[test]
    fn bytes_cut_out_or_doubled(
        file in 0usize..4, from in any::<prop::sample::Index>(), length in 1usize..200, cut: bool,
    ) {
        let bytes = &FILES[file];
        let from = from.index(bytes.len());
        let to = (from + length).min(bytes.len());
        let rest = if cut { to } else { from };
        use_it(&[&bytes[..to.min(if cut { from } else { to })], &bytes[rest..]].concat());
    }

    #[test]
    fn signed_numbers_changed_at_random(
        file in 0usize..4,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
    ) {
        let mut parts = Parts::of(&FILES[file]);
        for (at, value) in changes {
            let at = at.index(parts.data.len());
            parts.data[at] = value;
        }
        use_it(&parts.signed().bytes());
    }

    #[test]
    fn a_signed_description_changed_at_random(
        file in 0usize..4, at in any::<prop::sample::Index>(), value in replacement(),
    ) {
        let parts = Parts::of(&FILES[file]).describe(|description| {
            let mut all = Vec::new();
            places(description, "", &mut all);
            *description.pointer_mut(&all[at.index(all.len())]).unwrap() = value;
        });
        use_it(&parts.signed().bytes());
    }
}
