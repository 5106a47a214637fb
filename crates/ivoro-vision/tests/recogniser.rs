//! Network and model together: the same answers for paths, bytes and pixels, from any thread.

use std::path::{Path, PathBuf};

use image::{Rgb, RgbImage};
use ivoro::model::AskOptions;
use ivoro::{Model, ModelOptions, Retraction, Variant};
use ivoro_vision::dataset::{Broken, Dataset, ImageInput, OpenOptions, Photo, Photos};
use ivoro_vision::network::{Architecture, Normalisation, Precision, Weights};
use ivoro_vision::photos::{Looking, PhotoReport};
use ivoro_vision::shape::{Fit, How, Shape};
use ivoro_vision::{Error, FrozenNetwork, NetworkOptions, Recogniser};

const SHAPE: Shape = Shape { height: 16, width: 16, channels: 3 };

/// A network with random weights for images of 16×16, in a file.
fn network(folder: &Path) -> PathBuf {
    let normalisation = Normalisation { mean: vec![0.5; 3], deviation: vec![0.25; 3] };
    let mut weights = Weights::random(Architecture::small(3, 4), normalisation, 3);
    weights.set_fit(Fit { shape: SHAPE, how: How::Resize });
    let path = folder.join("net.safetensors");
    weights.write(&path, Precision::Full).unwrap();
    path
}

/// A picture of one colour with a pattern that depends on its number.
fn picture(folder: &Path, class: &str, number: u32) -> PathBuf {
    let pixel = |x: u32, y: u32| {
        let wave = ((x * 3 + y * 5 + number * 7) % 16) as u8;
        match class {
            "red" => Rgb([200 + wave, 20, 30 + wave]),
            "green" => Rgb([20, 200 + wave, 30 + wave]),
            _ => Rgb([20 + wave, 30, 200 + wave]),
        }
    };
    let path = folder.join(class).join(format!("{number}.png"));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    RgbImage::from_fn(20, 24, pixel).save(&path).unwrap();
    path
}

fn taught(folder: &Path, variant: &str) -> Recogniser {
    let network = FrozenNetwork::open(&network(folder), &NetworkOptions::default()).unwrap();
    let variant: Variant = variant.parse().unwrap();
    let mut recogniser =
        Recogniser::new(Model::new(variant, ModelOptions::default()), network).unwrap();
    let paths: Vec<(PathBuf, &str)> = ["red", "green"]
        .into_iter()
        .flat_map(|class| (0..6).map(move |number| (class, number)))
        .map(|(class, number)| (picture(folder, class, number), class))
        .collect();
    let images: Vec<(ImageInput<'_>, &str)> =
        paths.iter().map(|(path, class)| (ImageInput::Path(path), *class)).collect();
    recogniser.learn(&images).unwrap();
    recogniser
}

#[test]
fn paths_bytes_and_pixels_get_the_same_answer_from_many_threads() {
    let folder = tempfile::tempdir().unwrap();
    for variant in ["iVoro-N", "iVoro-NF", "iVoro-AI"] {
        let recogniser = taught(folder.path(), variant);
        let path = picture(folder.path(), "green", 40);
        let bytes = std::fs::read(&path).unwrap();
        let decoded = image::open(&path).unwrap().into_rgb8();
        let (name, shape) = (Path::new("query"), Shape { height: 24, width: 20, channels: 3 });
        let inputs = [
            ImageInput::Path(&path),
            ImageInput::Bytes { name, bytes: &bytes },
            ImageInput::Pixels { name, shape, pixels: decoded.as_raw() },
        ];
        let expected = recogniser.ask(&inputs[..1], AskOptions::default()).unwrap();
        assert_eq!(expected[0].top[0].class, "green", "{variant}");
        std::thread::scope(|scope| {
            for input in inputs {
                let (recogniser, expected) = (&recogniser, &expected);
                scope.spawn(move || {
                    let found = recogniser.ask(&[input], AskOptions::default()).unwrap();
                    assert_eq!(&found, expected);
                });
            }
        });
        // an answer does not depend on what else is asked
        let all = recogniser.ask(&inputs, AskOptions::default()).unwrap();
        assert!(all.iter().all(|answer| answer == &expected[0]), "{variant}");
    }
}

#[test]
fn what_was_learned_is_saved_and_opened_again_and_knows_its_network() {
    let folder = tempfile::tempdir().unwrap();
    let mut recogniser = taught(folder.path(), "iVoro-N");
    let blue: Vec<PathBuf> = (0..3).map(|at| picture(folder.path(), "blue", at)).collect();
    let more: Vec<_> = blue.iter().map(|path| (ImageInput::Path(path), "blue")).collect();
    assert!(recogniser.update(&more).is_err(), "blue is not known yet");
    recogniser.learn(&more).unwrap();
    let added = recogniser.update(&more[..1]).unwrap();
    assert_eq!(added, [("blue".to_owned(), 1)]);
    let model = folder.path().join("model.ivoro");
    recogniser.save(&model).unwrap();
    let open = || {
        FrozenNetwork::open(&folder.path().join("net.safetensors"), &NetworkOptions::default())
            .unwrap()
    };
    let query = [ImageInput::Path(&blue[2])];
    let expected = recogniser.ask(&query, AskOptions::default()).unwrap();
    assert_eq!(expected[0].top[0].class, "blue");
    let opened = Recogniser::open(&model, open()).unwrap();
    assert_eq!(opened.ask(&query, AskOptions::default()).unwrap(), expected);
    let asking = Recogniser::open_to_ask(&model, open()).unwrap();
    assert_eq!(asking.ask(&query, AskOptions::default()).unwrap(), expected);
    // another network is refused
    let normalisation = Normalisation { mean: vec![0.5; 3], deviation: vec![0.25; 3] };
    let other = Weights::random(Architecture::small(3, 4), normalisation, 4);
    let path = folder.path().join("other.safetensors");
    other.write(&path, Precision::Full).unwrap();
    let other = FrozenNetwork::open(&path, &NetworkOptions::default()).unwrap();
    let refused = Recogniser::open(&model, other).err().unwrap().to_string();
    assert!(refused.contains("taught with another network"), "{refused}");
}

#[test]
fn broken_images_fail_or_are_left_out_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let recogniser = taught(folder.path(), "iVoro-N");
    let whole = picture(folder.path(), "red", 50);
    let broken = folder.path().join("broken.png");
    std::fs::write(&broken, "no image").unwrap();
    let inputs = [ImageInput::Path(&broken), ImageInput::Path(&whole)];
    let refused = recogniser.ask(&inputs, AskOptions::default()).unwrap_err().to_string();
    assert!(refused.contains("broken.png"), "{refused}");
    let seen = recogniser.ask_readable(&inputs, AskOptions::default(), Broken::Skip).unwrap();
    assert_eq!((seen.rows, seen.of.unwrap().len(), seen.broken.len()), (vec![1], 1, 1));
    let none = recogniser.ask_readable(&inputs[..1], AskOptions::default(), Broken::Skip).unwrap();
    assert!(none.of.is_none());
}

#[test]
fn a_folder_by_class_gives_the_samples_of_its_images_whatever_the_batch() {
    let folder = tempfile::tempdir().unwrap();
    let photos = folder.path().join("photos");
    for number in 0..5 {
        picture(&photos, "red", number);
        picture(&photos, "blue", number);
    }
    std::fs::write(photos.join("red").join("9.png"), "no image").unwrap();
    let options = OpenOptions { test_share: 0.0, broken: Broken::Skip, ..OpenOptions::default() };
    let dataset = Dataset::open(&photos, &options).unwrap();
    let rows: Vec<usize> = (0..dataset.train.len()).collect();
    let path = network(folder.path());
    let seen = [1, 3, 64].map(|batch| {
        let options = NetworkOptions { batch, ..NetworkOptions::default() };
        let network = FrozenNetwork::open(&path, &options).unwrap();
        let mut done = Vec::new();
        let seen = network
            .samples(Variant::PLAIN, &dataset, &rows, Broken::Skip, &mut |at| done.push(at))
            .unwrap();
        assert_eq!(done.last(), Some(&rows.len()));
        seen
    });
    let [first, others @ ..] = seen;
    assert_eq!(first.broken.len(), 1);
    let samples = first.of.unwrap();
    assert_eq!(samples.len(), 10);
    for other in others {
        let other = other.of.unwrap();
        assert_eq!(other.labels(), samples.labels());
        let block = |samples: &ivoro::Samples| {
            samples.block(0, ivoro::View::UPRIGHT).unwrap().as_slice().to_vec()
        };
        assert_eq!(block(&other), block(&samples));
    }
}

#[test]
fn images_are_taken_back_as_they_were_given_or_inexactly() {
    let folder = tempfile::tempdir().unwrap();
    let first = taught(folder.path(), "iVoro-NW");
    let network = FrozenNetwork::open(&network(folder.path()), &NetworkOptions::default()).unwrap();
    let mut model = first.into_model();
    model.set_time(1);
    let before = model.head().clone();
    let mut recogniser = Recogniser::new(model, network).unwrap();
    let paths: Vec<PathBuf> =
        (20..30).map(|number| picture(folder.path(), "green", number)).collect();
    let images: Vec<(ImageInput<'_>, &str)> =
        paths.iter().map(|path| (ImageInput::Path(path), "green")).collect();
    recogniser.update(&images).unwrap();
    let refused = recogniser.retract(&images[..3], Retraction::default());
    let Err(Error::Method(ivoro::Error::OtherFeatures { networks: true })) = refused else {
        panic!("{refused:?}")
    };
    recogniser.retract(&images, Retraction::default()).unwrap();
    assert!(*recogniser.model().head() == before);
    recogniser.update(&images).unwrap();
    let inexact = Retraction { inexact: true, ..Retraction::default() };
    for image in images.chunks(3) {
        recogniser.retract(image, inexact).unwrap();
    }
    let counts = |head: &ivoro::head::Head| {
        head.classes().iter().map(|class| class.statistics.count).collect::<Vec<_>>()
    };
    assert_eq!(counts(recogniser.model().head()), counts(&before));
}

#[test]
fn every_way_to_teach_notes_the_network() {
    let folder = tempfile::tempdir().unwrap();
    let path = picture(folder.path(), "red", 1);
    let image = [(ImageInput::Path(&path), "red")];
    let network = network(folder.path());
    let begun = || {
        let network = FrozenNetwork::open(&network, &NetworkOptions::default()).unwrap();
        let model = Model::new(Variant::PLAIN, ModelOptions::default());
        Recogniser::new(model, network).unwrap()
    };
    let (mut learned, mut taught) = (begun(), begun());
    learned.learn(&image).unwrap();
    taught.teach(&image).unwrap();
    let description = |recogniser: &Recogniser| recogniser.model().network_description().cloned();
    assert!(description(&learned).is_some());
    assert_eq!(description(&learned), description(&taught));
}

#[test]
fn photos_in_files_and_in_memory_are_one() {
    let folder = tempfile::tempdir().unwrap();
    let network = FrozenNetwork::open(&network(folder.path()), &NetworkOptions::default()).unwrap();
    let path = picture(folder.path(), "red", 1);
    let pixels = image::open(&path).unwrap().into_rgb8().into_raw();
    let (shape, class) = (Shape { height: 24, width: 20, channels: 3 }, || Some("red".to_owned()));
    let name = PathBuf::from("in memory");
    let mut found = Photos::of(vec![
        Photo::file(path.clone(), class()),
        Photo::bytes(name.clone(), std::fs::read(&path).unwrap().into(), class()),
        Photo::pixels(name.clone(), shape, pixels.into(), class()),
        Photo::bytes(name, [1, 2, 3].into(), class()),
    ]);
    let mut report = PhotoReport::of(&mut found);
    let looking = Looking { decoding: Broken::Skip.into(), ..Looking::default() };
    let seen = network.photo_samples(Variant::PLAIN, &found.photos, looking, &mut |_| ()).unwrap();
    let (samples, _) = report.add_seen(&found.photos, seen);
    assert_eq!((samples.unwrap().len(), report.done), (1, 1));
    let told = report.to_json("taught");
    assert_eq!((&told["taught"], &told["skipped"][0]["kind"]), (&1.into(), &"unreadable".into()));
    assert_eq!(told["duplicates"].as_array().unwrap().len(), 2);
}
