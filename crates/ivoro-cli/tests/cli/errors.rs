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
    insta::assert_snapshot!(refused(&place, "run data.features --variants iVoro,iVoro-DN --out o"), @"
    error: variant iVoro-DN: N is unknown, repeated or out of order; the grammar is iVoro[3][-[N][F][K][W|Q][D][R][AC|AI][L]], letters in this order
    hint: `ivoro variants` explains the letters
    ");
    let message = place.ivoro("learn m.ivoro data.features --variant iVoro-K").bad(2);
    assert!(message.contains("iVoro[3][-[N][F][K][W|Q][D][R][AC|AI][L]]"), "{message}");
    insta::assert_snapshot!(refused(&place, "run data.features --variants none"), @"error: no method to run: name variants, peers or baselines");
}

#[test]
fn a_wrong_protocol_or_order() {
    let place = Place::new();
    insta::assert_snapshot!(refused(&place, "run data.features --protocol 4,3 --out o"), @"error: protocol 4,3: it has 7 classes, the data 6");
    insta::assert_snapshot!(refused(&place, "run data.features --protocol 4+x --out o"), @"error: protocol 4+x: not a number; write 50+5x10 or 4,3,3");
    insta::assert_snapshot!(refused(&place, "run data.features --order sorted --out o"), @"error: class order sorted: write identity, a seed, numpy:SEED, or the path of a list; there is no such file");
    insta::assert_snapshot!(refused(&place, "run data.features --variants none --peers knn"), @"error: peer = knn: one of ncm, ncm-cosine, slda, fecam, fenec, ranpac, klda, dsal, loranpac, anacp, joint; behind it, if wanted, - and the letters F, AI, L of what it sees");
}

#[test]
fn a_missing_file() {
    let place = Place::new();
    insta::assert_snapshot!(refused(&place, "run missing.features --out o"), @"error: failed to open file `missing.features`: No such file or directory (os error 2)");
    insta::assert_snapshot!(refused(&place, "learn m.ivoro missing.features"), @"error: failed to open file `missing.features`: No such file or directory (os error 2)");
    insta::assert_snapshot!(refused(&place, "predict missing.ivoro data.features"), @"error: failed to open file `missing.ivoro`: No such file or directory (os error 2)");
    insta::assert_snapshot!(refused(&place, "update missing.ivoro data.features"), @"error: failed to open file `missing.ivoro`: No such file or directory (os error 2)");
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
    insta::assert_snapshot!(refused(&place, "inspect data.features"), @"error: data.features: expected a file of format ivoro-model, found ivoro-features");
}

#[test]
fn a_file_that_is_no_model_at_all() {
    let place = Place::new();
    let jpeg = [0xff, 0xd8, 0xff, 0xe0, 0, 0x10, b'J', b'F', b'I', b'F', 0, 1, 1];
    std::fs::write(place.path("photo.jpg"), jpeg).unwrap();
    for command in ["inspect photo.jpg", "predict photo.jpg data.features", "forget photo.jpg ant"]
    {
        assert_eq!(
            refused(&place, command),
            "error: photo.jpg: this is a JPEG image, not a model\n",
            "{command}"
        );
    }
}

#[test]
fn a_value_that_is_not_a_number() {
    let place = Place::new();
    let mut bytes = std::fs::read(place.path("data.features")).unwrap();
    let end = bytes.len();
    bytes[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    std::fs::write(place.path("nan.features"), &bytes).unwrap();
    insta::assert_snapshot!(refused(&place, "run nan.features --out o"), @"error: nan.features: test: row 23, layer third, view 270: NaN is not a finite number within ±1e15");
}

#[test]
fn views_and_layers_that_are_missing() {
    let place = Place::new();
    insta::assert_snapshot!(refused(&place, "learn m.ivoro data.features --variant iVoro-F"), @"
    error: iVoro-F needs the views 0,0m, the features have 0,90,180,270
    hint: store those views too, or choose variants without AC, AI (rotated) and F (mirrored)
    ");
    let message = refused(&place, "learn m.ivoro data.features --layers last --variant iVoro-L");
    insta::assert_snapshot!(message, @"
    error: iVoro-L needs two layers (the last and the block before it), the features have last
    hint: store a second layer's features too, or choose variants without 3 and L
    ");
}

#[test]
fn a_class_that_returns_or_is_not_there() {
    let place = Place::new();
    place.learn("m.ivoro", "ant,bee", "--variant iVoro").good();
    insta::assert_snapshot!(refused(&place, "learn m.ivoro data.features --classes bee,cat"), @"
    error: class bee was already learned in phase 1; use update to add samples to it
    hint: `ivoro update MODEL FEATURES`
    ");
    insta::assert_snapshot!(refused(&place, "learn m.ivoro data.features --classes yak"), @"error: data.features: no class yak; there are ant, bee, cat, dog, eel, fox");
    insta::assert_snapshot!(refused(&place, "update m.ivoro data.features --classes cat"), @"error: class cat is not in the model; `ivoro learn` takes new classes and known ones together");
}

#[test]
fn a_setting_out_of_range() {
    let place = Place::new();
    insta::assert_snapshot!(refused(&place, "learn m.ivoro data.features --gamma 0"), @"error: gamma = 0: must be finite and not 0");
    insta::assert_snapshot!(refused(&place, "learn m.ivoro data.features --ridge=-1 --variant iVoro-W"), @"error: ridge = -1: must be finite and not negative");
    place.learn("m.ivoro", "ant,bee", "--variant iVoro").good();
    let message = place.ivoro("predict m.ivoro data.features --burst 0").bad(2);
    assert!(message.contains("invalid value '0' for '--burst <M>'"), "{message}");
    insta::assert_snapshot!(refused(&place, "predict m.ivoro data.features --reject=2"), @"error: --reject=2: expected a share of known queries from 0.001 to 0.999; nothing was measured beyond");
    for share in ["0", "0.0009", "1"] {
        let text = refused(&place, &format!("predict m.ivoro data.features --reject={share}"));
        assert!(text.starts_with(&format!("error: --reject={share}: expected")), "{text}");
    }
}

/// Thresholds of large shares are as far apart as those of small ones.
#[test]
fn a_larger_share_rejects_more() {
    let place = Place::new();
    place.learn("m.ivoro", "ant,bee,cat,dog,eel,fox", "--variant iVoro").good();
    let rejected = |share: &str| {
        let done = place.ivoro(&format!("predict m.ivoro data.features --reject={share}"));
        done.good().matches(" unknown\n").count()
    };
    let shares = ["0.001", "0.3", "0.5", "0.9", "0.999"].map(rejected);
    assert!(shares.is_sorted() && shares[1] < shares[2] && shares[2] < shares[3], "{shares:?}");
}

#[test]
fn a_rejection_without_a_threshold() {
    let place = Place::new();
    place.write("few.features", &samples(4, 0..1, 1), None);
    place.ivoro("learn m.ivoro few.features --variant iVoro").good();
    insta::assert_snapshot!(refused(&place, "predict m.ivoro data.features --reject"), @"error: rejection needs to know how far samples lie from their class: a second class, or a second sample that differs");
}

#[test]
fn a_flag_for_images_beside_features() {
    let place = Place::new();
    let text = refused(&place, "run data.features --variants iVoro --views upright --epochs 3");
    assert!(
        text.contains(
            "data.features holds features; only for a data set of images: --views, --epochs"
        ),
        "{text}"
    );
    let text = refused(&place, "run --variants iVoro --skip-broken");
    assert!(text.contains("of images: --skip-broken"), "{text}");
    // a folder that is not there holds nothing
    let text = refused(&place, "run nowhere --epochs 3");
    assert!(text.contains("nowhere") && !text.contains("features;"), "{text}");
    let text = place.ivoro("learn model.ivoro data.features --size 32").bad(2);
    assert!(text.contains("--size is for images; data.features holds features"), "{text}");
    let text = place.ivoro("learn model.ivoro data.features --device cpu").bad(2);
    assert!(text.contains("--device is for images"), "{text}");
}
