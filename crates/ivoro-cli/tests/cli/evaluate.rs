//! `evaluate` and `calibrate`: numbers, files, pages and exit codes.

use serde_json::Value;

use crate::harness::{CLASSES, Place, samples};

/// `known.features` with samples that the model has not learned, `other.features` of classes it does not
/// know.
fn place() -> Place {
    let place = Place::new();
    place.write("known.features", &samples(7, 0..4, 10), None);
    place.write("other.features", &samples(8, 4..6, 10), None);
    place.learn("m.ivoro", "ant,bee,cat,dog", "--variant iVoro-N").good();
    place
}

#[test]
fn numbers_stand_in_the_table_and_in_both_files() {
    let place = place();
    let model = std::fs::read(place.path("m.ivoro")).unwrap();
    let out = place
        .ivoro("evaluate m.ivoro known.features --unknown other.features --json e.json --csv e.csv")
        .good();
    assert!(out.starts_with("m.ivoro on known.features: iVoro-N, 1 view of each query\n"), "{out}");
    for line in
        ["accuracy ", "macro accuracy ", "calibration error ", "known rejected ", "unknown, AUROC "]
    {
        assert!(out.contains(line), "{line}: {out}");
    }
    assert!(out.contains("of 40 queries") && out.contains("95 % interval"), "{out}");
    let json: Value =
        serde_json::from_slice(&std::fs::read(place.path("e.json")).unwrap()).unwrap();
    assert_eq!((&json["queries"], &json["views"]), (&Value::from(40), &Value::from(1)));
    let rejection = &json["rejection"]["at_threshold"];
    assert_eq!(rejection["unknown"]["queries"], 20);
    let csv = std::fs::read_to_string(place.path("e.csv")).unwrap();
    assert_eq!(csv.lines().count(), 61);
    let right = csv.lines().filter(|line| line.split(',').nth(5) == Some("true")).count();
    assert_eq!(json["right"], right);
    let rejected = csv
        .lines()
        .filter(|line| line.contains(",unknown,") && line.split(',').nth(11) == Some("true"));
    assert_eq!(rejection["unknown"]["rejected"], rejected.count());
    // nothing was put into the model
    assert_eq!(std::fs::read(place.path("m.ivoro")).unwrap(), model);
}

#[test]
fn classes_that_are_not_known_are_noted() {
    let place = place();
    let done = place.ivoro("evaluate m.ivoro data.features");
    assert!(
        done.err.contains("note: 8 samples of 2 classes that the model does not know (eel, fox)"),
        "{}",
        done.err
    );
    assert!(done.good().contains("of 16 queries"));
    let said = place.ivoro("evaluate m.ivoro known.features --unknown data.features").bad(2);
    assert!(said.contains("class ant is known to the model"), "{said}");
    let said = place.ivoro("evaluate m.ivoro known.features --reject 2").bad(2);
    assert!(
        said.contains("--reject=2: expected a share of known queries from 0.001 to 0.999"),
        "{said}"
    );
    let said = place.ivoro("evaluate m.ivoro missing.features").bad(2);
    assert!(said.contains("missing.features"), "{said}");
}

#[test]
fn the_page_has_every_number_and_no_script() {
    let place = place();
    let name = "<script>alert(1)</script>";
    place.ivoro_with(&["rename", "m.ivoro", "ant", name]).good();
    place.ivoro("evaluate m.ivoro known.features --html page.html --json e.json").good();
    let page = std::fs::read_to_string(place.path("page.html")).unwrap();
    assert!(!page.contains("<script") && page.contains("default-src 'none'"));
    assert!(page.contains("&lt;script&gt;"), "the name is still shown");
    let json: Value =
        serde_json::from_slice(&std::fs::read(place.path("e.json")).unwrap()).unwrap();
    for class in json["classes"].as_array().unwrap() {
        let recall = class["recall"].as_f64();
        if let Some(recall) = recall {
            assert!(page.contains(&format!("{:.1}\u{a0}%", 100.0 * recall)));
        }
    }
}

#[test]
fn calibrating_prints_before_and_after_and_a_dry_run_changes_nothing() {
    let place = place();
    let model = std::fs::read(place.path("m.ivoro")).unwrap();
    let out = place.ivoro("calibrate m.ivoro known.features --dry-run").good();
    assert!(out.starts_with("m.ivoro: would be calibrated on 40 samples\n"), "{out}");
    for line in
        ["temperature ", "threshold for 5 %", "calibration error *", "rejected where 5 % may be *"]
    {
        assert!(out.contains(line), "{line}: {out}");
    }
    assert_eq!(std::fs::read(place.path("m.ivoro")).unwrap(), model);
    let json: Value =
        serde_json::from_str(&place.ivoro("calibrate m.ivoro known.features --json").good())
            .unwrap();
    assert_ne!(std::fs::read(place.path("m.ivoro")).unwrap(), model);
    let kept: Value = serde_json::from_str(&place.ivoro("inspect m.ivoro --json").good()).unwrap();
    assert_eq!(kept["temperature"], json["temperature_after"]);
    let said = place.ivoro("calibrate m.ivoro other.features").bad(2);
    assert!(said.contains("class eel is not in the model"), "{said}");
    assert_eq!(CLASSES[4], "eel");
}

#[test]
fn help_says_when_to_calibrate() {
    let help = place().ivoro("calibrate --help").good();
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        help.contains("another camera") && help.contains("Do not give samples that were learned")
    );
}
