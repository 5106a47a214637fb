//! What results of one method must have been made with alike, or they are not averaged.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use ivoro::head::Settings;
use ivoro::{Variant, settings};
use ivoro_eval::peers::PeerSettings;
use ivoro_eval::record::{Kind, MethodRecord, RunRecord};
use serde_json::{Value, json};

/// Settings that nothing chose, by name: those that the method uses and the record tells. Seeds are
/// not among them.
pub(crate) type Traits = BTreeMap<String, String>;

/// Those of one method in one record.
pub(crate) fn of(record: &RunRecord, method: &MethodRecord) -> Traits {
    let mut found = Traits::new();
    let options = &record.options;
    if let Some(training) = options.get("training") {
        flatten("base ", training, &mut found);
    }
    // which share is held out, whatever the seed
    let split = record.split.split(", seed").next().unwrap_or_default();
    found.insert("split".to_owned(), split.to_owned());
    match method.kind {
        Kind::Variant => {
            let Ok(variant) = method.name.parse::<Variant>() else { return found };
            for info in settings::of_variant(variant).filter(|info| info.compared) {
                let value = options.get("settings").and_then(|settings| settings.get(info.key()));
                found.extend(value.map(|value| (info.name.to_owned(), plain(value))));
            }
            found.extend(layers_of(options, &variant.layers()));
        }
        Kind::Peer => {
            let own = format!("{}_", method.name);
            let peers = options.get("peers").and_then(Value::as_object);
            let all = peers.into_iter().flatten();
            let of_method = all.filter_map(|(name, value)| Some((name.strip_prefix(&own)?, value)));
            found.extend(of_method.map(|(name, value)| (name.to_owned(), plain(value))));
            found.extend(layers_of(options, &(0..1)));
        }
        Kind::Baseline => {
            let recipe = method.settings.get("recipe").or_else(|| options.get("phases"));
            recipe.iter().for_each(|recipe| flatten("", recipe, &mut found));
        }
    }
    found
}

/// Which layers, the last and the third block, were looked at, with their dimensions.
fn layers_of(options: &Value, used: &Range<usize>) -> Option<(String, String)> {
    let layers = options.get("layers")?.as_array()?.iter().enumerate();
    let used: Vec<String> =
        layers.filter(|(at, _)| used.contains(at)).map(|(_, layer)| plain(layer)).collect();
    Some(("layers".to_owned(), used.join(", ")))
}

/// Every number and word of a setting, under its own name.
fn flatten(before: &str, value: &Value, found: &mut Traits) {
    for (name, value) in value.as_object().into_iter().flatten() {
        match value {
            _ if name == "seed" => {}
            // one of several kinds, as `{"steps": [44, 89]}`
            Value::Object(kind) if kind.len() == 1 => {
                found.insert(format!("{before}{name}"), plain(value));
            }
            Value::Object(_) => flatten(&format!("{before}{name} "), value, found),
            value => {
                found.insert(format!("{before}{name}"), plain(value));
            }
        }
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(all) => all.iter().map(plain).collect::<Vec<_>>().join(" "),
        Value::Object(all) => {
            let words = all.iter().map(|(name, value)| format!("{name} {}", plain(value)));
            words.collect::<Vec<_>>().join(", ")
        }
        // most are numbers of 32 bits, which 64 would write out at length
        Value::Number(number) if number.is_f64() => {
            number.as_f64().map_or_else(String::new, |value| (value as f32).to_string())
        }
        other => other.to_string(),
    }
}

/// How many settings of a record are others than the program's own; of trainings, the longest is the
/// most usual one.
pub(crate) fn unusual(record: &RunRecord) -> (usize, Reverse<u64>) {
    let epochs = |place: &str| record.options.pointer(place).and_then(Value::as_u64).unwrap_or(0);
    let longest = Reverse(epochs("/training/recipe/epochs").max(epochs("/phases/epochs")));
    let usual = json!({"settings": Settings::default(), "peers": PeerSettings::default()});
    let mut own = Traits::new();
    for part in ["settings", "peers"] {
        record.options.get(part).iter().for_each(|part| flatten("", part, &mut own));
    }
    let mut usually = Traits::new();
    usual.as_object().into_iter().flatten().for_each(|(_, part)| flatten("", part, &mut usually));
    (different(&usually, &own).len(), longest)
}

/// Whether nothing that both tell is different.
pub(crate) fn agree(one: &Traits, other: &Traits) -> bool {
    one.iter().all(|(name, value)| other.get(name).is_none_or(|theirs| theirs == value))
}

/// What is different in the second, as words.
pub(crate) fn different(one: &Traits, other: &Traits) -> Vec<String> {
    let differs =
        |(name, value): &(&String, &String)| one.get(*name).is_some_and(|own| own != *value);
    other.iter().filter(differs).map(|(name, value)| format!("{name} {value}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(name: &str, kind: Kind, options: Value) -> Traits {
        let method = MethodRecord { name: name.to_owned(), kind, ..MethodRecord::default() };
        of(&RunRecord { options, ..RunRecord::default() }, &method)
    }

    #[test]
    fn a_setting_counts_for_methods_that_use_it() {
        let options = |pairs: &str, dim: usize| {
            json!({
                "settings": {"pairs": pairs, "rule": "tournament", "seed": dim},
                "peers": {"ranpac_dim": dim, "seed": dim},
                "layers": [["last", 512], ["block3", dim]],
            })
        };
        let (one, other) = (options("matched", 2000), options("all", 10_000));
        let agreed = |name: &str, kind: Kind| {
            agree(&made(name, kind, one.clone()), &made(name, kind, other.clone()))
        };
        assert!(agreed("iVoro", Kind::Variant) && agreed("iVoro-D", Kind::Variant));
        assert!(!agreed("iVoro-AC", Kind::Variant) && !agreed("iVoro3", Kind::Variant));
        assert!(agreed("fecam", Kind::Peer) && !agreed("ranpac", Kind::Peer));
        let [one, other] = [one, other].map(|options| made("iVoro-AI", Kind::Variant, options));
        assert_eq!(different(&one, &other), ["pairs all"]);
    }

    #[test]
    fn what_a_record_does_not_tell_is_no_difference() {
        let told =
            json!({"settings": {"lift": 10}, "training": {"recipe": {"epochs": 3, "seed": 1}}});
        let one = made("iVoro-KW", Kind::Variant, told);
        assert_eq!(one.get("base recipe epochs").map(String::as_str), Some("3"));
        assert!(!one.keys().any(|name| name.contains("seed")));
        assert!(agree(&one, &made("iVoro-KW", Kind::Variant, Value::Null)));
        let longer = json!({"training": {"recipe": {"epochs": 9, "seed": 1}}});
        assert!(!agree(&one, &made("iVoro-KW", Kind::Variant, longer)));
    }

    #[test]
    fn another_schedule_or_share_is_a_difference() {
        let of = |schedule: Value| {
            made(
                "PASS",
                Kind::Baseline,
                json!({"phases": {"schedule": schedule, "rate": 0.001f32}}),
            )
        };
        let (steps, cosine) = (of(json!({"steps": [44, 89]})), of(json!({"cosine": 5})));
        assert!(!agree(&steps, &cosine));
        assert_eq!(different(&steps, &cosine), ["schedule cosine 5"]);
        assert_eq!(steps["rate"], "0.001");
        let held = |split: &str| {
            let method = MethodRecord { name: "ncm".to_owned(), ..MethodRecord::default() };
            of_split(split, &method)
        };
        assert!(agree(&held("0.2 of each, seed 1"), &held("0.2 of each, seed 2")));
        assert!(!agree(&held("0.2 of each, seed 1"), &held("0.3 of each, seed 1")));
    }

    fn of_split(split: &str, method: &MethodRecord) -> Traits {
        of(&RunRecord { split: split.to_owned(), ..RunRecord::default() }, method)
    }

    #[test]
    fn a_longer_training_is_another_baseline() {
        let phases = |epochs: usize| json!({"phases": {"epochs": epochs, "seed": epochs}});
        let of = |epochs: usize| made("PASS", Kind::Baseline, phases(epochs));
        assert!(agree(&of(3), &of(3)) && !agree(&of(3), &of(4)));
        assert_eq!(different(&of(3), &of(4)), ["epochs 4"]);
    }
}
