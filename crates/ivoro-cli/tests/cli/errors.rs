use crate::harness::{Place, samples};

/// A run that fails with one sentence, and perhaps a hint, and writes nothing.
#[track_caller]
fn refused(place: &Place, arguments: &str) -> String {
    let before = place.names();
    let message = place.ivoro(arguments).bad(2);
    assert!(message.starts_with("error: "), "{message}");
    assert!(message.lines().count() <= 2, "{message}");
    assert_eq!(place.names(), before, "nothing is written");
    message
}

#[test]
fn a_wrong_flag() {
    let place = Place::new();
    for arguments in ["run --no-such-flag", "no-such-command", "run data.features --json --csv -"] {
        let message = place.ivoro(arguments).bad(2);
        assert!(message.starts_with("error: ") && message.contains("--help"), "{message}");
    }
}

#[test]
fn a_wrong_variant_teaches_the_grammar() {
    let place = Place::new();
    insta::assert_snapshot!(refused(&place, "run data.features --variants iVoro,iVoro-DN --out o"), @"");
    let message = place.ivoro("learn m.ivoro data.features --variant iVoro-K").bad(2);
    assert!(message.contains("iVoro[3][-[N][F][K][W][D][R][AC|AI][L]]"), "{message}");
    insta::assert_snapshot!(refused(&place, "run data.features --variants none"), @"");
}

#[test]
fn a_wrong_protocol_or_order() {
    let place = Place::new();
    insta::assert_snapshot!(refused(&place, "run data.features --protocol 4,3 --out o"), @"");
    insta::assert_snapshot!(refused(&place, "run data.features --protocol 4+x --out o"), @"");
    insta::assert_snapshot!(refused(&place, "run data.features --order sorted --out o"), @"");
    insta::assert_snapshot!(refused(&place, "run data.features --variants none --peers knn"), @"");
}

#[test]
fn a_missing_file() {
    let place = Place::new();
    insta::assert_snapshot!(refused(&place, "run missing.features --out o"), @"");
    insta::assert_snapshot!(refused(&place, "learn m.ivoro missing.features"), @"");
    insta::assert_snapshot!(refused(&place, "predict missing.ivoro data.features"), @"");
    insta::assert_snapshot!(refused(&place, "update missing.ivoro data.features"), @"");
    refused(&place, "learn nowhere/m.ivoro data.features");
}

#[test]
fn a_truncated_file() {
    let place = Place::new();
    let whole = std::fs::read(place.path("data.features")).unwrap();
    for length in [0, 5, 100, whole.len() / 2, whole.len() - 1] {
        std::fs::write(place.path("cut.features"), &whole[..length]).unwrap();
        assert!(refused(&place, "run cut.features --out o").contains("cut.features"));
        assert!(refused(&place, "learn m.ivoro cut.features").contains("cut.features"));
    }
}

#[test]
fn a_damaged_model() {
    let place = Place::new();
    place.learn("m.ivoro", "ant,bee", "--variant iVoro").good();
    let mut bytes = std::fs::read(place.path("m.ivoro")).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(place.path("m.ivoro"), &bytes).unwrap();
    for command in ["inspect m.ivoro", "audit m.ivoro", "learn m.ivoro data.features --classes cat"]
    {
        assert!(refused(&place, command).contains("the file is damaged"));
    }
    assert_eq!(std::fs::read(place.path("m.ivoro")).unwrap(), bytes);
    insta::assert_snapshot!(refused(&place, "inspect data.features"), @"");
}

#[test]
fn a_value_that_is_not_a_number() {
    let place = Place::new();
    let mut bytes = std::fs::read(place.path("data.features")).unwrap();
    let end = bytes.len();
    bytes[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    std::fs::write(place.path("nan.features"), &bytes).unwrap();
    insta::assert_snapshot!(refused(&place, "run nan.features --out o"), @"");
}

#[test]
fn views_and_layers_that_are_missing() {
    let place = Place::new();
    insta::assert_snapshot!(refused(&place, "learn m.ivoro data.features --variant iVoro-F"), @"");
    let message = refused(&place, "learn m.ivoro data.features --layers last --variant iVoro-L");
    insta::assert_snapshot!(message, @"");
}

#[test]
fn a_class_that_returns_or_is_not_there() {
    let place = Place::new();
    place.learn("m.ivoro", "ant,bee", "--variant iVoro").good();
    insta::assert_snapshot!(refused(&place, "learn m.ivoro data.features --classes bee,cat"), @"");
    insta::assert_snapshot!(refused(&place, "learn m.ivoro data.features --classes yak"), @"");
    insta::assert_snapshot!(refused(&place, "update m.ivoro data.features --classes cat"), @"");
}

#[test]
fn a_setting_out_of_range() {
    let place = Place::new();
    insta::assert_snapshot!(refused(&place, "learn m.ivoro data.features --gamma 0"), @"");
    insta::assert_snapshot!(refused(&place, "learn m.ivoro data.features --ridge -1 --variant iVoro-W"), @"");
    place.learn("m.ivoro", "ant,bee", "--variant iVoro").good();
    insta::assert_snapshot!(refused(&place, "predict m.ivoro data.features --burst 0"), @"");
    insta::assert_snapshot!(refused(&place, "predict m.ivoro data.features --reject 2"), @"");
}

#[test]
fn a_rejection_without_a_threshold() {
    let place = Place::new();
    place.write("few.features", &samples(4, 0..3, 3), None);
    place.ivoro("learn m.ivoro few.features --variant iVoro").good();
    insta::assert_snapshot!(refused(&place, "predict m.ivoro data.features --reject"), @"");
}
