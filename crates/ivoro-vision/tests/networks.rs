//! Networks at hand: the one that ships, and those in a folder; a model finds its own again.

use std::path::{Path, PathBuf};

use ivoro::model::AskOptions;
use ivoro::network::ImageFit;
use ivoro::{Model, ModelOptions, Variant};
use ivoro_vision::dataset::ImageInput;
use ivoro_vision::network::{Architecture, Normalisation, Precision, Weights};
use ivoro_vision::networks::Asked;
use ivoro_vision::recogniser::{Classifier as _, Taught};
use ivoro_vision::shape::{Fit, FitHow, Fitting, How, Shape};
use ivoro_vision::{FrozenNetwork, NetworkOptions, Networks, Recogniser, shipped};

const TINY: &[u8] = include_bytes!("data/tiny.onnx");

/// A network with random weights for images of 16×16, in a file.
fn weights(folder: &Path, seed: u64) -> PathBuf {
    let normalisation = Normalisation { mean: vec![0.5; 3], deviation: vec![0.25; 3] };
    let mut weights = Weights::random(Architecture::small(3, 4), normalisation, seed);
    let shape = Shape { height: 16, width: 16, channels: 3 };
    weights.set_fit(Fit { shape, how: How::Resize });
    let path = folder.join(format!("net{seed}.safetensors"));
    weights.write(&path, Precision::Full).unwrap();
    path
}

/// A grey picture with a stripe.
fn pixels(place: usize) -> Vec<u8> {
    (0..16 * 16 * 3).map(|at| if at / 48 == place { 230 } else { 90 }).collect()
}

const SHAPE: Shape = Shape { height: 16, width: 16, channels: 3 };

/// A model that was taught two pictures of two classes.
fn taught(network: FrozenNetwork) -> Model {
    let model = Model::new("iVoro".parse::<Variant>().unwrap(), ModelOptions::default());
    let mut recogniser = Recogniser::new(model, network).unwrap();
    let pictures: Vec<Vec<u8>> = (0..4).map(|at| pixels(at * 3)).collect();
    let name = Path::new("picture");
    let images: Vec<(ImageInput<'_>, &str)> = pictures
        .iter()
        .enumerate()
        .map(|(at, pixels)| {
            let image = ImageInput::Pixels { name, shape: SHAPE, pixels };
            (image, if at < 2 { "above" } else { "below" })
        })
        .collect();
    recogniser.learn(&images).unwrap();
    recogniser.into_model()
}

fn asked(network: Option<&Path>) -> Asked<'_> {
    Asked { network, ..Asked::default() }
}

#[test]
fn a_new_model_looks_with_the_network_that_ships() {
    let folder = tempfile::tempdir().unwrap();
    let networks = Networks::at(folder.path().join("none"));
    let network = networks.open(&asked(None), Taught::Nothing).unwrap();
    assert_eq!((network.name(), network.fingerprint()), (shipped::NAME, shipped::HASH));
    let described = network.describe_queries().unwrap();
    assert_eq!((described.width, described.height), (224, 224));
    assert_eq!(described.fit, ImageFit::Centre { of: 256 });
    assert_eq!(described.path, None);
    let layers = network.backbone().layers();
    let expected = [("last", 1280), ("block11", 672), ("block5", 240)];
    assert!(layers.iter().map(|(name, size)| (name.as_str(), *size)).eq(expected));
    // and the model finds it again by its hash, whatever else there is
    let model = taught(network);
    let again = networks.open(&asked(None), model.taught()).unwrap();
    assert_eq!(again.describe_queries().unwrap(), *model.network_description().unwrap());
    let query = pixels(1);
    let image = ImageInput::Pixels { name: Path::new("q"), shape: SHAPE, pixels: &query };
    let recogniser = Recogniser::new(model, again).unwrap();
    assert_eq!(recogniser.ask(&[image], AskOptions::default()).unwrap()[0].top[0].class, "above");
    // other sizes are not for it
    let size = Fitting { size: Some(160), how: None };
    let options = NetworkOptions { fitting: size, ..NetworkOptions::default() };
    let other = networks.open(&Asked { options, ..asked(None) }, Taught::Nothing).unwrap();
    let refused = Recogniser::new(recogniser.into_model(), other).err().unwrap().to_string();
    assert!(refused.contains("224×224") && refused.contains("160×160"), "{refused}");
}

#[test]
fn a_moved_network_is_found_by_its_hash_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = weights(folder.path(), 1);
    let networks = Networks::at(folder.path().join("networks"));
    let open = |model: &Model, near: Option<&Path>| {
        networks.open(&Asked { near, ..asked(None) }, model.taught())
    };
    let model = taught(networks.open(&asked(Some(&file)), Taught::Nothing).unwrap());
    let described = model.network_description().unwrap().clone();
    assert_eq!(described.path.as_deref(), file.to_str());
    assert_eq!(open(&model, None).unwrap().describe_queries().unwrap(), described);
    // beside the model
    let near = folder.path().join("moved");
    std::fs::create_dir(&near).unwrap();
    std::fs::rename(&file, near.join("net1.safetensors")).unwrap();
    let refused = open(&model, None).err().unwrap().to_string();
    assert!(refused.contains("net1") && refused.contains(&described.hash[..12]), "{refused}");
    assert_eq!(open(&model, Some(&near)).unwrap().fingerprint(), described.hash);
    // another file of that name is not it
    let other = weights(folder.path(), 2);
    std::fs::rename(&other, &file).unwrap();
    assert!(open(&model, None).is_err());
    // added under a name of its own
    let kept = near.join("net1.safetensors");
    networks.add(&kept, "mine", &NetworkOptions::default(), None).unwrap();
    std::fs::remove_file(&kept).unwrap();
    let found = open(&model, None).unwrap();
    assert_eq!((found.name(), found.fingerprint()), ("mine", described.hash.as_str()));
    Recogniser::new(model, found).unwrap();
}

#[test]
fn what_was_said_when_a_network_was_added_holds_wherever_it_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tiny.onnx");
    std::fs::write(&file, TINY).unwrap();
    let networks = Networks::at(folder.path().join("networks"));
    let normalisation = Normalisation { mean: vec![0.4; 3], deviation: vec![0.3; 3] };
    let options = NetworkOptions {
        normalisation: Some(normalisation),
        onnx_outputs: vec!["active".to_owned()],
        ..NetworkOptions::default()
    };
    let licence = Some("MIT".to_owned());
    let card = networks.add(&file, "tiny", &options, licence.clone()).unwrap();
    assert_eq!(
        (card.network.outputs.as_slice(), &card.licence),
        (&["active".to_owned()][..], &licence)
    );
    let (cards, broken) = networks.list().unwrap();
    assert!(broken.is_empty() && cards.len() == 2, "{cards:?} {broken:?}");
    assert_eq!((cards[0].network.name.as_str(), &cards[1]), (shipped::NAME, &card));
    let named = networks.open(&asked(Some(Path::new("tiny"))), Taught::Nothing).unwrap();
    let described = named.describe_queries().unwrap();
    assert_eq!((described.mean[0], described.deviation[0]), (0.4, 0.3));
    assert!(matches!(described.fit, ImageFit::Centre { .. }), "{}", described.fit);
    // the same name again, names that lead elsewhere, and names that nothing has
    for name in ["tiny", shipped::NAME, "../tiny", "", ".x", "a/b", "-x"] {
        let refused = networks.add(&file, name, &options, None).unwrap_err().to_string();
        assert!(refused.contains(name), "{refused}");
    }
    let refused = networks.open(&asked(Some(Path::new("absent"))), Taught::Nothing);
    let refused = refused.err().unwrap().to_string();
    assert!(refused.contains("absent") && refused.contains("tiny"), "{refused}");
    // a file that is not the one that was added
    let stored = networks.folder().join("tiny").join("tiny.onnx");
    let mut bytes = std::fs::read(&stored).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&stored, bytes).unwrap();
    assert!(networks.open(&asked(Some(Path::new("tiny"))), Taught::Nothing).is_err());
}

#[test]
fn a_card_that_is_none_is_passed_over_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let networks = Networks::at(folder.path().to_owned());
    let file = weights(folder.path(), 1);
    networks.add(&file, "good", &NetworkOptions::default(), None).unwrap();
    let text = std::fs::read_to_string(folder.path().join("good/network.json")).unwrap();
    let path = "net1.safetensors";
    assert!(text.contains(path));
    for (name, text) in [
        ("empty", String::new()),
        ("renamed", text.clone()),
        ("leads-away", text.replace("\"good\"", "\"leads-away\"").replace(path, "../good/x")),
        (
            "later",
            text.replace("\"good\"", "\"later\"").replacen("\"version\": 1", "\"version\": 7", 1),
        ),
    ] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
        std::fs::write(folder.path().join(name).join("network.json"), text).unwrap();
    }
    let (cards, broken) = networks.list().unwrap();
    let names: Vec<&str> = cards.iter().map(|card| card.network.name.as_str()).collect();
    assert_eq!((names, broken.len()), (vec![shipped::NAME, "good"], 4), "{broken:?}");
}

#[test]
fn images_brought_to_the_network_otherwise_are_refused_with_both_values() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tiny.onnx");
    std::fs::write(&file, TINY).unwrap();
    let networks = Networks::at(folder.path().join("networks"));
    let model = taught(networks.open(&asked(Some(&file)), Taught::Nothing).unwrap());
    let refusal = |options: NetworkOptions| {
        let asked = Asked { network: Some(&file), options, near: None };
        let network = networks.open(&asked, model.taught()).unwrap();
        Recogniser::new(model.clone(), network).err().map(|error| error.to_string())
    };
    assert_eq!(refusal(NetworkOptions::default()), None);
    let normalisation = Some(Normalisation { mean: vec![0.5; 3], deviation: vec![0.5; 3] });
    let said = refusal(NetworkOptions { normalisation, ..NetworkOptions::default() }).unwrap();
    assert!(said.contains("mean 0.485,0.456,0.406") && said.contains("0.5,0.5,0.5"), "{said}");
    let fitting = Fitting { size: None, how: Some(FitHow::Stretch) };
    let said = refusal(NetworkOptions { fitting, ..NetworkOptions::default() }).unwrap();
    assert!(said.contains("centre of") && said.contains("stretch"), "{said}");
    let fitting = Fitting { size: None, how: Some(FitHow::Centre) };
    assert_eq!(refusal(NetworkOptions { fitting, ..NetworkOptions::default() }), None);
    let onnx_outputs = vec!["active".to_owned()];
    let said = refusal(NetworkOptions { onnx_outputs, ..NetworkOptions::default() }).unwrap();
    assert!(said.contains("layers"), "{said}");
}

#[test]
fn models_of_version_0_1_know_a_hash_and_take_over_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tiny.onnx");
    std::fs::write(&file, TINY).unwrap();
    let networks = Networks::at(folder.path().join("networks"));
    let new = networks.open(&asked(Some(&file)), Taught::Nothing).unwrap();
    let old = networks.open(&asked(Some(&file)), Taught::Hash(new.fingerprint())).unwrap();
    // their photos were stretched
    assert_eq!(old.describe_queries().unwrap().fit, ImageFit::Stretch);
    let refused = networks.open(&asked(None), Taught::Hash(new.fingerprint())).err().unwrap();
    assert!(refused.to_string().contains(&new.fingerprint()[..12]), "{refused}");
    let refused = networks.open(&asked(None), Taught::Features).err().unwrap();
    assert!(refused.to_string().contains("which network"), "{refused}");
}
