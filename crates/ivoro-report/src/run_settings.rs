//! What results of one method must have been made with alike, or they are not averaged.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use ivoro::Variant;
use ivoro::head::Settings;
use ivoro::head::settings;
use ivoro_eval::peers::{Look, Peer, PeerSettings};
use ivoro_eval::record::{Kind, MethodRecord, NamedValues, RunOptions, RunRecord, named_values};
use serde_json::Value;

/// Settings that nothing chose, by name: those that the method uses and the record tells. Seeds are
/// not among them.
pub(crate) type RunSettings = BTreeMap<String, String>;

/// Those of one method in one record.
pub(crate) fn of(record: &RunRecord, method: &MethodRecord) -> RunSettings {
    let mut found = RunSettings::new();
    let options = &record.options;
    if let Some(training) = &options.training {
        flatten("base ", training, &mut found);
    }
    // which share is held out, whatever the seed
    let split = record.split.split(", seed").next().unwrap_or_default();
    found.insert("split".to_owned(), split.to_owned());
    match method.kind {
        Kind::Variant => {
            let Ok(variant) = method.name.parse::<Variant>() else { return found };
            for info in settings::of_variant(variant).filter(|info| info.compared) {
                let value = options.settings.as_ref().and_then(|all| all.get(&info.key()));
                found.extend(value.map(|value| (info.name.to_owned(), plain(value))));
            }
            found.extend(layers_of(options, &variant.layers()));
        }
        Kind::Peer => {
            let (peer, look) =
                Peer::with_look(&method.name).unwrap_or((Peer::Ncm, Look::default()));
            let own = format!("{peer}_");
            let all = options.peers.iter().flatten();
            let of_method = all.filter_map(|(name, value)| Some((name.strip_prefix(&own)?, value)));
            found.extend(of_method.map(|(name, value)| (name.to_owned(), plain(value))));
            found.extend(layers_of(options, &(0..look.layers())));
        }
        Kind::Baseline => {
            let own = method.settings.get("recipe").and_then(Value::as_object);
            let recipe = own.or(options.phases.as_ref());
            recipe.iter().for_each(|recipe| flatten("", recipe, &mut found));
        }
    }
    found
}

/// Which layers, the last and the third block, were looked at, with their dimensions.
fn layers_of(options: &RunOptions, used: &Range<usize>) -> Option<(String, String)> {
    let layers = options.layers.as_ref()?.iter().enumerate().filter(|(at, _)| used.contains(at));
    let used: Vec<String> = layers.map(|(_, (name, dim))| format!("{name} {dim}")).collect();
    Some(("layers".to_owned(), used.join(", ")))
}

/// Every number and word of a setting, under its own name.
fn flatten(before: &str, values: &NamedValues, found: &mut RunSettings) {
    for (name, value) in values {
        match value {
            _ if name == "seed" => {}
            // the network's file does not say how images were brought to it
            Value::Null if name == "fit" => {}
            // one of several kinds, as `{"steps": [44, 89]}`
            Value::Object(kind) if kind.len() == 1 => {
                found.insert(format!("{before}{name}"), plain(value));
            }
            Value::Object(inner) => flatten(&format!("{before}{name} "), inner, found),
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
    let RunOptions { settings, peers, .. } = &record.options;
    let mut own = RunSettings::new();
    settings.iter().chain(peers).for_each(|part| flatten("", part, &mut own));
    let usual =
        [named_values(&Settings::default()).ok(), named_values(&PeerSettings::default()).ok()];
    let mut usually = RunSettings::new();
    usual.iter().flatten().for_each(|part| flatten("", part, &mut usually));
    let longest = Reverse(record.options.longest_training());
    (different(&usually, &own).len(), longest)
}

/// Whether nothing that both tell is different.
pub(crate) fn compatible(one: &RunSettings, other: &RunSettings) -> bool {
    one.iter().all(|(name, value)| other.get(name).is_none_or(|theirs| theirs == value))
}

/// What is different in the second, as words.
pub(crate) fn different(one: &RunSettings, other: &RunSettings) -> Vec<String> {
    let differs =
        |(name, value): &(&String, &String)| one.get(*name).is_some_and(|own| own != *value);
    other.iter().filter(differs).map(|(name, value)| format!("{name} {value}")).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn made(name: &str, kind: Kind, options: Value) -> RunSettings {
        let method = MethodRecord { name: name.to_owned(), kind, ..MethodRecord::default() };
        let options = serde_json::from_value(options).unwrap();
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
        let alike = |name: &str, kind: Kind| {
            compatible(&made(name, kind, one.clone()), &made(name, kind, other.clone()))
        };
        assert!(alike("iVoro", Kind::Variant) && alike("iVoro-D", Kind::Variant));
        assert!(!alike("iVoro-AC", Kind::Variant) && !alike("iVoro3", Kind::Variant));
        assert!(alike("fecam", Kind::Peer) && !alike("ranpac", Kind::Peer));
        assert!(alike("fecam-F", Kind::Peer) && !alike("fecam-L", Kind::Peer));
        assert!(!alike("ranpac-F", Kind::Peer));
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
        assert!(compatible(&one, &made("iVoro-KW", Kind::Variant, json!({}))));
        let fitted = |fit: Value| json!({"training": {"fit": fit}});
        let [unsaid, exact, centre] = [json!(null), json!("exact"), json!("centre")]
            .map(|fit| made("iVoro-KW", Kind::Variant, fitted(fit)));
        assert!(compatible(&unsaid, &exact) && !compatible(&exact, &centre));
        let longer = json!({"training": {"recipe": {"epochs": 9, "seed": 1}}});
        assert!(!compatible(&one, &made("iVoro-KW", Kind::Variant, longer)));
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
        assert!(!compatible(&steps, &cosine));
        assert_eq!(different(&steps, &cosine), ["schedule cosine 5"]);
        assert_eq!(steps["rate"], "0.001");
        let held = |split: &str| {
            let method = MethodRecord { name: "ncm".to_owned(), ..MethodRecord::default() };
            of_split(split, &method)
        };
        assert!(compatible(&held("0.2 of each, seed 1"), &held("0.2 of each, seed 2")));
        assert!(!compatible(&held("0.2 of each, seed 1"), &held("0.3 of each, seed 1")));
    }

    fn of_split(split: &str, method: &MethodRecord) -> RunSettings {
        of(&RunRecord { split: split.to_owned(), ..RunRecord::default() }, method)
    }

    #[test]
    fn a_longer_training_is_another_baseline() {
        let phases = |epochs: usize| json!({"phases": {"epochs": epochs, "seed": epochs}});
        let of = |epochs: usize| made("PASS", Kind::Baseline, phases(epochs));
        assert!(compatible(&of(3), &of(3)) && !compatible(&of(3), &of(4)));
        assert_eq!(different(&of(3), &of(4)), ["epochs 4"]);
    }
}
