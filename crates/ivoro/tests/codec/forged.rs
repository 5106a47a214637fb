use ivoro::model::AskOptions;
use ivoro::{Error, SealOptions};
use serde_json::json;

use crate::file::{Parts, assert_malformed, bytes_of, compact_model, features, loaded, model};

fn parts(variant: &str) -> Parts {
    Parts::of(&bytes_of(&model(variant)))
}

/// What the other tests rely on: a file taken apart and signed again is a good file.
#[test]
fn nothing_forged() {
    for variant in ["iVoro", "iVoro-D", "iVoro-NWR", "iVoro-NKW"] {
        let model = model(variant);
        let bytes = Parts::of(&bytes_of(&model)).signed().bytes();
        assert!(loaded(&bytes).unwrap().head() == model.head());
    }
}

#[test]
fn truncated_anywhere() {
    for variant in ["iVoro", "iVoro-NWDR"] {
        let bytes = bytes_of(&model(variant));
        for length in (0..bytes.len()).step_by(97).chain([1, 7, 8, 9, bytes.len() - 1]) {
            assert_malformed(&bytes[..length], "not a whole model file");
        }
    }
}

#[test]
fn bytes_behind_the_end() {
    let mut bytes = bytes_of(&model("iVoro"));
    bytes.push(0);
    assert_malformed(&bytes, "not a whole model file");
}

#[test]
fn a_header_longer_than_any_file() {
    let mut bytes = bytes_of(&model("iVoro"));
    for length in [u64::MAX, 1 << 62, 100_000_001, bytes.len() as u64] {
        bytes[..8].copy_from_slice(&length.to_le_bytes());
        assert_malformed(&bytes, "not a whole model file");
    }
}

#[test]
fn a_tensor_of_a_hundred_gigabytes() {
    let mut parts = parts("iVoro");
    parts.header["sums.0"]["shape"] = json!([4, 3_125_000_000_u64]);
    assert_malformed(&parts.bytes(), "not a whole model file");
    parts.header["sums.0"]["shape"] = json!([usize::MAX, usize::MAX]);
    assert_malformed(&parts.bytes(), "not a whole model file");
}

#[test]
fn a_model_that_says_it_has_a_hundred_gigabytes() {
    let forged = parts("iVoro").describe(|model| model["dims"] = json!([1 << 24]));
    assert_malformed(&forged.signed().bytes(), "tensor sums.0: expected I64 [4, 16777216]");
    let forged = parts("iVoro-NW").describe(|model| model["dims"] = json!([1 << 24]));
    assert_malformed(&forged.signed().bytes(), "expected I64 [4, 16777216]");
    for dim in [json!(0), json!((1 << 24) + 1), json!(u64::MAX)] {
        let forged = parts("iVoro").describe(|model| model["dims"] = json!([dim]));
        assert_malformed(&forged.signed().bytes(), "contradicts itself");
    }
}

#[test]
fn another_number_type() {
    let mut parts = parts("iVoro");
    parts.header["sums.0"]["dtype"] = json!("F64");
    assert_malformed(&parts.signed().bytes(), "tensor sums.0: expected I64 [4, 3], found F64");
}

#[test]
fn a_tensor_under_another_name() {
    for name in ["counts", "sums.0", "squares.0"] {
        let mut parts = parts("iVoro");
        let entry = parts.header.remove(name).unwrap();
        parts.header.insert("other".to_owned(), entry);
        assert_malformed(&parts.signed().bytes(), &format!("tensor {name} is missing"));
    }
    let mut parts = parts("iVoro-DR");
    let entry = parts.header.remove("residual.1.0").unwrap();
    parts.header.insert("other".to_owned(), entry);
    assert_malformed(&parts.signed().bytes(), "tensor residual.1.0 is missing");
}

#[test]
fn a_count_that_is_not_positive() {
    for count in [0i64, -1, i64::MIN] {
        let forged = parts("iVoro").overwrite("counts", &count.to_le_bytes()).signed();
        assert_malformed(&forged.bytes(), &format!("class 0 has count {count}"));
    }
}

#[test]
fn more_or_fewer_classes_than_numbers() {
    for names in [json!([]), json!(["0"]), json!(["0", "1", "2", "3", "4"])] {
        let forged = parts("iVoro").describe(|model| model["classes"] = names);
        assert_malformed(&forged.signed().bytes(), "contradicts itself");
    }
    let forged = parts("iVoro").describe(|model| {
        model["classes"] = json!(["0", "1", "2", "3", "4"]);
        model["cliques"][1]["size"] = json!(3);
    });
    assert_malformed(&forged.signed().bytes(), "tensor counts: expected I64 [5]");
    let forged = parts("iVoro").describe(|model| model["cliques"][0]["size"] = json!(u64::MAX));
    assert_malformed(&forged.signed().bytes(), "contradicts itself");
}

#[test]
fn two_classes_of_one_name() {
    let forged = parts("iVoro").describe(|model| model["classes"] = json!(["0", "1", "0", "3"]));
    assert_malformed(&forged.signed().bytes(), "contradicts itself");
}

/// The diagram of one variant under the name of another.
#[test]
fn another_variant() {
    for (own, other) in [
        ("iVoro", "iVoro-L"),
        ("iVoro", "iVoro-AC"),
        ("iVoro-NWR", "iVoro-NWRL"),
        ("iVoro", "iVoro-W"),
        ("iVoro-D", "iVoro-NKWDAI"),
    ] {
        let forged = parts(own).describe(|model| model["variant"] = json!(other)).signed();
        assert!(matches!(loaded(&forged.bytes()), Err(Error::Malformed { .. })), "{own} {other}");
    }
    // what loads all the same must answer or refuse
    for (own, other) in [("iVoro-D", "iVoro-ND"), ("iVoro-D", "iVoro"), ("iVoro-NWR", "iVoro-KW")] {
        let forged = parts(own).describe(|model| model["variant"] = json!(other)).signed();
        let _ = loaded(&forged.bytes()).map(|model| model.head().predict(&features(0)));
    }
}

#[test]
fn views_that_the_variant_does_not_have() {
    let forged = parts("iVoro").describe(|model| {
        model["views"] = json!(4);
        for list in ["dims", "probe_dims", "grids"] {
            model[list] = json!([3, 3, 3, 3]);
        }
    });
    assert_malformed(&forged.signed().bytes(), "contradicts itself");
    let forged = parts("iVoro").describe(|model| model["views"] = json!(0));
    assert_malformed(&forged.signed().bytes(), "contradicts itself");
}

#[test]
fn a_grid_out_of_range() {
    for exponent in [i32::MAX, i32::MIN, 133, -121] {
        let forged = parts("iVoro").describe(|model| model["grids"] = json!([exponent]));
        assert_malformed(&forged.signed().bytes(), "grid exponent");
    }
}

#[test]
fn a_calibration_without_thresholds() {
    let fixed = |temperature: f64, thresholds: serde_json::Value| json!({"temperature": temperature, "thresholds": thresholds, "samples": 9});
    for thresholds in [json!([]), json!([1.0]), json!(vec![(); 12])] {
        let forged = parts("iVoro").describe(|model| model["calibration"] = fixed(1.0, thresholds));
        assert!(matches!(loaded(&forged.signed().bytes()), Err(Error::Malformed { .. })));
    }
    for temperature in [0.0, -1.0] {
        let forged = parts("iVoro")
            .describe(|model| model["calibration"] = fixed(temperature, json!(vec![1.0; 12])));
        assert_malformed(&forged.signed().bytes(), "contradicts itself");
    }
}

#[test]
fn a_lesson_that_can_not_have_been_measured() {
    for (field, value) in [
        ("strangeness", json!([1.0])),
        ("strangeness", json!((0..15).collect::<Vec<_>>())),
        ("losses", json!([])),
        ("known", json!(0)),
        ("samples", json!(0)),
        ("classes", json!([])),
    ] {
        let forged =
            parts("iVoro").describe(|model| model["calibration"]["lessons"][0][field] = value);
        assert_malformed(&forged.signed().bytes(), "contradicts itself");
    }
}

/// A file of version 0.1 has one temperature and twelve thresholds.
#[test]
fn a_calibration_of_an_earlier_version() {
    let thresholds: Vec<f64> = (0..12).map(|at| 3.0 - f64::from(at) / 10.0).collect();
    let written = json!({"temperature": 0.25, "thresholds": thresholds, "samples": 9});
    let earlier = parts("iVoro").describe(|model| model["calibration"] = written);
    let mut model = loaded(&earlier.signed().bytes()).unwrap();
    assert_eq!(model.temperature().unwrap(), 0.25);
    assert_eq!(model.threshold(0.001).unwrap(), 3.0);
    // a distance in units of that class's own mean distance
    let queries = features(0);
    let asked = model.ask(&queries, AskOptions::default()).unwrap();
    let typical = model.head().typical_distances().unwrap();
    for one in &asked {
        let class = model.head().classes().iter().position(|it| it.name == one.top[0].class);
        let expected = f64::from(one.top[0].distance) / typical[class.unwrap()];
        assert!((one.strangeness.unwrap() / expected - 1.0).abs() < 1e-9);
    }
    let head = model.head().clone();
    model.update(&features(2)).unwrap();
    assert_eq!(model.temperature().unwrap(), 0.25, "until it is calibrated again");
    model.calibrate(&features(0)).unwrap();
    assert!(model.temperature().unwrap() != 0.25 && *model.head() != head);
}

#[test]
fn a_setting_out_of_range() {
    let forged = parts("iVoro").describe(|model| model["settings"]["gamma"] = json!(0.0));
    assert!(matches!(loaded(&forged.signed().bytes()), Err(Error::Setting { name: "gamma", .. })));
}

#[test]
fn a_field_nobody_knows() {
    let forged = parts("iVoro").describe(|model| model["exemplars"] = json!([1, 2, 3]));
    assert_malformed(&forged.signed().bytes(), "unknown field `exemplars`");
}

#[test]
fn a_newer_version() {
    let mut parts = parts("iVoro");
    parts.metadata().insert("version".to_owned(), json!("3"));
    let refused = loaded(&parts.bytes());
    assert!(matches!(refused, Err(Error::NewerVersion { found: 3, supported: 2, .. })));
    parts.metadata().insert("version".to_owned(), json!("one"));
    assert_malformed(&parts.bytes(), "no version in the metadata");
}

#[test]
fn another_format() {
    let mut parts = parts("iVoro");
    parts.metadata().insert("format".to_owned(), json!("ivoro-features"));
    assert_malformed(&parts.bytes(), "expected a file of format ivoro-model, found ivoro-features");
    parts.header.remove("__metadata__");
    assert_malformed(&parts.bytes(), "found none");
}

#[test]
fn a_flipped_bit_anywhere_in_the_numbers() {
    let bytes = bytes_of(&model("iVoro-DR"));
    let data = Parts::of(&bytes).data.len();
    for at in (bytes.len() - data..bytes.len()).step_by(13) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x10;
        assert!(matches!(loaded(&flipped), Err(Error::Checksum { .. })), "byte {at}");
    }
}

#[test]
fn a_changed_description() {
    let forged = parts("iVoro").describe(|model| model["classes"] = json!(["a", "b", "c", "d"]));
    assert!(matches!(loaded(&forged.bytes()), Err(Error::Checksum { .. })));
    let mut unsigned = parts("iVoro");
    unsigned.metadata().remove("checksum");
    assert!(matches!(loaded(&unsigned.bytes()), Err(Error::Checksum { .. })));
}

#[test]
fn a_probe_that_is_not_a_number() {
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for tensor in ["probe.0.0", "residual.1.0"] {
            let forged = parts("iVoro-DR").overwrite(tensor, &value.to_le_bytes()).signed();
            assert_malformed(&forged.bytes(), &format!("tensor {tensor} holds a number"));
        }
    }
}

/// The largest integers, well signed: sums must not overflow when such a model learns on.
#[test]
fn sums_at_the_edge_of_their_integers() {
    let edge = i64::MAX.to_le_bytes();
    for variant in ["iVoro", "iVoro-W"] {
        for tensor in ["counts", "sums.0", "squares.0", "second.0"] {
            let parts = parts(variant);
            if !parts.header.contains_key(tensor) {
                continue;
            }
            let whole = edge.repeat(parts.range(tensor).len() / 8);
            let mut model = loaded(&parts.overwrite(tensor, &whole).signed().bytes()).unwrap();
            let _ = model.head().predict(&features(0));
            let _ = model.ask(&features(0), AskOptions::default());
            let _ = model.update(&features(0));
            let other = model.clone();
            let _ = model.merge(&other, Some(&other));
            let _ = model.merge(&crate::file::model(variant), None);
        }
    }
}

fn sealed() -> Parts {
    let mut model = model("iVoro-Q");
    model.seal(None, SealOptions { rank: Some(2), bits: None }).unwrap();
    Parts::of(&bytes_of(&model))
}

#[test]
fn sealed_classes_that_contradict_themselves() {
    assert!(loaded(&sealed().signed().bytes()).is_ok());
    for (key, value) in [
        ("bits", json!(12)),
        ("metrics", json!([])),
        ("metrics", json!([[2.0, 0.0]])),
        ("metrics", json!([[1.0, -1.0]])),
        ("classes", json!([0, 1, 2, 9])),
        ("classes", json!([0, 0, 1, 2])),
    ] {
        let forged = sealed().describe(|model| model["sealed"][key] = value);
        assert_malformed(&forged.signed().bytes(), "sealed classes contradicts itself");
    }
    let open = sealed().describe(|model| model["sealed"]["classes"] = json!([0, 1, 2]));
    assert_malformed(&open.signed().bytes(), "expected");
    let whole = sealed().describe(|model| model["settings"]["rank"] = json!("full"));
    assert_malformed(&whole.signed().bytes(), "sealed classes contradicts itself");
}

#[test]
fn sealed_numbers_that_can_not_be() {
    let forged = |name: &str, bytes: &[u8]| sealed().overwrite(name, bytes).signed().bytes();
    for ranks in [-1i64, 4, i64::MAX] {
        assert_malformed(&forged("sealed.0.ranks", &ranks.to_le_bytes()), "number of directions");
    }
    assert_malformed(&forged("sealed.0.ranks", &3i64.to_le_bytes()), "sealed.0.directions");
    for name in ["origin", "whitener", "centre_scales", "direction_scales"] {
        let forged = forged(&format!("sealed.0.{name}"), &f32::NAN.to_le_bytes());
        assert_malformed(&forged, "not finite");
    }
    assert_malformed(&forged("sealed.0.whitener", &0f32.to_le_bytes()), "not that of a metric");
    for name in ["centre_scales", "direction_scales"] {
        for scale in [-1f32, f32::MAX] {
            let forged = forged(&format!("sealed.0.{name}"), &scale.to_le_bytes());
            assert_malformed(&forged, "scale that can't be");
        }
    }
    for name in ["sealed.0.variances", "sealed.0.rests"] {
        assert_malformed(&forged(name, &(-1f32).to_le_bytes()), "not positive");
    }
    let mut short = sealed();
    short.header.remove("sealed.0.directions");
    assert!(loaded(&short.bytes()).is_err());
}

#[test]
fn numbers_of_a_compact_scatter_that_can_not_be() {
    let compact = || Parts::of(&bytes_of(&compact_model("iVoro-W")));
    assert!(loaded(&compact().signed().bytes()).is_ok());
    let forged = |name: &str, bytes: &[u8]| {
        compact().overwrite(&format!("compact.0.{name}"), bytes).signed().bytes()
    };
    for rank in [-1i64, 4, i64::MAX] {
        assert_malformed(&forged("ranks", &rank.to_le_bytes()), "number of directions");
    }
    assert_malformed(&forged("ranks", &3i64.to_le_bytes()), "compact.0.factors");
    for (name, value) in [
        ("grids", 133i64),
        ("grids", i64::MIN),
        ("shifts", -1),
        ("shifts", 65),
        ("factors", 0),
        ("factors", 1 << 51),
        ("factors", (1 << 17) + 1),
    ] {
        assert_malformed(&forged(name, &value.to_le_bytes()), "a number that can't be");
    }
    assert_malformed(&forged("variances", &(-1i16).to_le_bytes()), "a number that can't be");
    let mut short = compact();
    short.header.remove("compact.0.directions");
    assert!(loaded(&short.bytes()).is_err());
    // units so far apart that no sum could hold both are an error when the metric is built
    let far = loaded(&forged("grids", &(-120i64).to_le_bytes())).unwrap();
    let _ = far.ask(&features(0), AskOptions::default());
}
