use std::path::Path;

use ivoro::codec::{decode, decode_predictor, encode};
use ivoro::model::AskOptions;
use ivoro::{Matrix, Model, ModelOptions, Samples};

use crate::data::{blobs, half, phase, queries, small, train, variant};

fn model(name: &str, phases: &[Samples]) -> Model {
    let options = ModelOptions { settings: small(), ..ModelOptions::default() };
    let mut model = Model::new(variant(name), options);
    for phase in phases {
        model.learn(phase).unwrap();
    }
    model
}

fn file_size(model: &Model) -> usize {
    encode(model).unwrap().len()
}

fn saved_and_loaded(model: &Model) -> Model {
    decode(Path::new("model.ivoro"), &encode(model).unwrap()).unwrap()
}

#[test]
fn what_is_loaded_is_what_was_saved() {
    let (train, queries) = (train(), queries());
    let phases: Vec<Samples> = (0..3).map(|at| phase(&train, at)).collect();
    for name in [
        "iVoro",
        "iVoro-N",
        "iVoro-W",
        "iVoro-Q",
        "iVoro-NFQAIL",
        "iVoro-NKW",
        "iVoro-D",
        "iVoro-R",
        "iVoro3-NDR",
        "iVoro-NDACL",
        "iVoro-FWDRAI",
    ] {
        let model = model(name, &phases);
        let loaded = saved_and_loaded(&model);
        assert!(loaded.head() == model.head(), "{name}");
        assert!(model.calibration().is_some());
        assert_eq!(loaded.calibration(), model.calibration(), "{name}");
        assert_eq!(loaded.choices(), model.choices(), "{name}");
        let options = AskOptions { top: 3, false_rejection: Some(0.05), ..AskOptions::default() };
        let expected = model.ask(&queries, options).unwrap();
        assert_eq!(loaded.ask(&queries, options).unwrap(), expected, "{name}");
        let asker = decode_predictor(Path::new("model.ivoro"), &encode(&model).unwrap()).unwrap();
        assert_eq!(asker.ask(&queries, options).unwrap(), expected, "{name}");
    }
}

/// Numbers are written as text; every one must come back with all its bits.
#[test]
fn calibrations_of_many_data_sets_come_back_bit_for_bit() {
    for seed in 0..40 {
        let model = model("iVoro", &[blobs(100 + seed, 4, |_| 6)]);
        assert_eq!(saved_and_loaded(&model).calibration(), model.calibration(), "seed {seed}");
    }
}

#[test]
fn the_size_of_a_model_does_not_depend_on_how_many_samples_it_learned() {
    // too few samples of a class to calibrate: the text in the file stays the same, too
    let few = blobs(1, 6, |_| 4);
    let many = blobs(9, 6, |_| 40);
    for name in ["iVoro", "iVoro-W", "iVoro-D", "iVoro-NWDRACL"] {
        let mut model = model(name, std::slice::from_ref(&few));
        let (size, bytes) = (file_size(&model), model.head().bytes());
        model.update(&many).unwrap();
        assert_eq!(file_size(&model), size, "{name}");
        assert_eq!(model.head().bytes(), bytes, "{name}");
        assert_eq!(model.head().classes()[0].statistics.count, 44);
    }
}

#[test]
fn learning_goes_on_after_loading_as_if_nothing_had_happened() {
    let train = train();
    for name in ["iVoro-NKW", "iVoro-NDRAI"] {
        let mut model = model(name, &[half(&phase(&train, 0), 0)]);
        let mut loaded = saved_and_loaded(&model);
        for model in [&mut model, &mut loaded] {
            model.update(&half(&phase(&train, 0), 1)).unwrap();
            model.learn(&phase(&train, 1)).unwrap();
        }
        assert!(loaded.head() == model.head(), "{name}");
    }
}

fn flat(value: impl Fn(usize, usize) -> f32) -> Samples {
    let data = (0..20 * 3).map(|at| value(at / 3, at % 3)).collect();
    let labels = (0..20).map(|row| row / 10).collect();
    Samples::single("flat", Matrix::new(20, 3, data).unwrap(), labels, 2).unwrap()
}

#[track_caller]
fn assert_comes_back(features: &Samples) {
    let model = model("iVoro", std::slice::from_ref(features));
    let loaded = saved_and_loaded(&model);
    assert!(loaded.head() == model.head());
    assert_eq!(loaded.calibration(), model.calibration());
}

#[test]
fn a_model_of_nothing_but_zeros_comes_back() {
    assert_comes_back(&flat(|_, _| 0.0));
}

#[test]
fn a_model_of_tiny_numbers_comes_back() {
    assert_comes_back(&flat(|row, col| (row + col) as f32 * f32::MIN_POSITIVE));
}

/// A class without spread: any other sample that is nearest to it is infinitely strange.
#[test]
fn a_model_with_a_class_of_one_repeated_vector_comes_back() {
    // two samples draw the mean of the second class away from its others
    assert_comes_back(&flat(|row, col| match row {
        0..10 => 0.0,
        10 | 11 => 1000.0,
        row => 3.0 + (row + col) as f32 * 0.1,
    }));
}
