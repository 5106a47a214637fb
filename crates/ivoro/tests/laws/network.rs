//! What a model remembers of its network: kept by every file, compared by every way in.

use std::path::Path;

use ivoro::network::ImageFit;
use ivoro::{Error, Model, ModelOptions, NetworkDescription, Retraction, Samples, codec};

use crate::data::{phases, small, train, variant};

fn described(of: usize) -> NetworkDescription {
    NetworkDescription {
        version: NetworkDescription::VERSION,
        name: "a network".to_owned(),
        hash: "5a".repeat(32),
        path: Some("/there/net.onnx".to_owned()),
        outputs: vec!["features".to_owned()],
        height: 224,
        width: 224,
        fit: ImageFit::Centre { of },
        mean: vec![0.498; 3],
        deviation: vec![0.502; 3],
        engine: "ivoro".to_owned(),
    }
}

fn begun() -> Model {
    Model::new(variant("iVoro"), ModelOptions { settings: small(), ..ModelOptions::default() })
}

fn taught(network: &NetworkDescription, phase: &Samples) -> Model {
    let mut model = begun();
    model.use_described_network(network).unwrap();
    model.learn(phase).unwrap();
    model
}

fn refused<T>(outcome: &Result<T, Error>) -> bool {
    matches!(outcome, Err(Error::OtherImages { what: "fit", .. }))
}

#[test]
fn what_is_remembered_is_saved_read_and_handed_on() {
    let phases = phases(&train());
    let (own, other) = (described(256), described(240));
    let model = taught(&own, &phases[0]);
    let file = codec::encode(&model).unwrap();
    // a program that overlooks it would take images in any way
    let version = br#""version":"2""#;
    assert!(file.windows(version.len()).any(|part| part == version));
    let read = codec::decode(Path::new("m"), &file).unwrap();
    assert_eq!(read.network_description(), Some(&own));
    assert_eq!(read.network(), Some(own.hash.as_str()));
    assert_eq!(codec::encode(&read).unwrap(), file);
    let predictor = codec::decode_predictor(Path::new("m"), &file).unwrap();
    predictor.check_described_network(&own).unwrap();
    assert!(refused(&predictor.check_described_network(&other)));
    assert_eq!(model.emptied().network_description(), Some(&own));
    let mut later = model.clone();
    let moved = NetworkDescription { path: None, engine: "rten".to_owned(), ..own.clone() };
    later.use_described_network(&moved).unwrap();
    assert_eq!(later.network_description(), Some(&own), "the first stays");
    assert!(refused(&later.use_described_network(&other)));
}

#[test]
fn models_and_receipts_of_other_images_are_refused() {
    let phases = phases(&train());
    let (own, other) = (described(256), described(240));
    let mut model = taught(&own, &phases[0]);
    let before = model.head().clone();
    let theirs = taught(&other, &phases[1]);
    assert!(refused(&model.merge(&theirs, None)));
    let mut lent = begun();
    lent.use_described_network(&other).unwrap();
    let receipt = lent.learn_with_receipt(&phases[0]).unwrap();
    let receipt = codec::encode_receipt(&receipt).unwrap();
    let receipt = codec::decode_receipt(Path::new("r"), &receipt).unwrap();
    assert!(refused(&model.retract_receipt(&receipt, Retraction::default())));
    assert!(*model.head() == before);
    model.merge(&taught(&own, &phases[1]), None).unwrap();
}

#[test]
fn what_is_not_known_is_taken_over_only_where_the_hash_vouches_for_it() {
    let phases = phases(&train());
    let own = described(256);
    // a model of version 0.1
    let mut hashed = begun();
    hashed.use_network(&own.hash).unwrap();
    hashed.learn(&phases[0]).unwrap();
    hashed.use_described_network(&own).unwrap();
    assert_eq!(hashed.network_description(), Some(&own));
    // features of unknown origin
    let mut unknown = begun();
    unknown.learn(&phases[0]).unwrap();
    unknown.use_described_network(&own).unwrap();
    assert_eq!((unknown.network_description(), unknown.network()), (None, None));
    // features of a file can be had again to the last bit, so they are taken back exactly
    let mut file = begun();
    file.use_described_features(&own).unwrap();
    file.learn(&phases[0]).unwrap();
    assert_eq!((file.network_description(), file.network()), (Some(&own), None));
    let read = codec::decode(Path::new("m"), &codec::encode(&file).unwrap()).unwrap();
    assert_eq!((read.network_description(), read.network()), (Some(&own), None));
    let some = phases[0].select(&[0, 1]);
    file.retract(&some, Retraction::default()).unwrap();
    assert!(matches!(file.check_network("another"), Err(Error::OtherNetwork { .. })));
}
