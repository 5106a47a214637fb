//! The verbs that start from images, on small pictures made by hand.

use serde_json::Value;

use crate::harness::Place;

/// A grey 24-bit BMP: the simplest format there is.
fn bitmap(side: usize, value: impl Fn(usize, usize) -> u8) -> Vec<u8> {
    let stride = (3 * side).next_multiple_of(4);
    let mut file = b"BM".to_vec();
    let number = |file: &mut Vec<u8>, value: usize| file.extend((value as u32).to_le_bytes());
    number(&mut file, 54 + stride * side);
    for value in [0, 54, 40, side, side] {
        number(&mut file, value);
    }
    file.extend([1, 0, 24, 0]);
    for value in [0, stride * side, 0, 0, 0, 0] {
        number(&mut file, value);
    }
    for y in (0..side).rev() {
        let start = file.len();
        (0..side).for_each(|x| file.extend([value(y, x); 3]));
        file.resize(start + stride, 0);
    }
    file
}

const CLASSES: [&str; 4] = ["lying", "standing", "bright", "dark"];

fn picture(class: usize, image: usize) -> Vec<u8> {
    let place = 1 + image % 6;
    bitmap(8, |y, x| match class {
        0 if y == place => 220,
        1 if x == place => 220,
        2 => 180 + image as u8,
        3 => 20 + image as u8,
        _ => 90,
    })
}

impl Place {
    /// `pictures/CLASS/N.bmp`.
    fn pictures(&self) {
        for (class, name) in CLASSES.iter().enumerate() {
            let folder = self.path("pictures").join(name);
            std::fs::create_dir_all(&folder).unwrap();
            for image in 0..10 {
                std::fs::write(folder.join(format!("{image}.bmp")), picture(class, image)).unwrap();
            }
        }
    }

    /// A network trained on `bright` and `dark`, which come first in the alphabet.
    fn network(&self) {
        let train = "train pictures --out net.safetensors --network small --protocol 2,2 \
                     --order identity --epochs 2 --batch 4";
        self.ivoro(train).good();
    }
}

#[test]
fn from_pictures_to_the_table_and_again_from_the_cache() {
    let place = Place::new();
    place.pictures();
    let run = "run pictures --network small --epochs 1 --batch 4 --protocol 2,2 --order identity \
               --cache kept --variants iVoro,iVoro-AI --csv -";
    let first = place.ivoro(run);
    assert!(first.err.contains("training on 16 images"), "{}", first.err);
    let first = first.good();
    assert_eq!(first.lines().count(), 3, "{first}");
    let again = place.ivoro(run);
    assert!(again.err.contains("weights from") && again.err.contains("features from"));
    let accuracies = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.rsplit_once(',').unwrap().0.to_owned()).collect()
    };
    assert_eq!(accuracies(&again.good()), accuracies(&first));
}

#[test]
fn a_model_is_taught_and_asked_with_pictures() {
    let place = Place::new();
    place.pictures();
    place.network();
    assert!(place.path("net.safetensors.log.jsonl").exists());
    assert!(!place.path("net.safetensors.checkpoint").exists());
    let learn = |classes: &str| {
        let command = format!(
            "learn m.ivoro pictures --backbone net.safetensors --variant iVoro --classes {classes}"
        );
        place.ivoro(&command).good()
    };
    assert!(learn("bright,dark").contains("learned 2 classes from 20 samples"));
    learn("lying,standing");
    let ask = "predict m.ivoro --backbone net.safetensors --format jsonl pictures/dark \
               pictures/lying/3.bmp";
    let answers: Vec<Value> =
        place.ivoro(ask).good().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), 11);
    assert!(answers[0]["file"].as_str().unwrap().ends_with("0.bmp"));
    let dark = answers[..10].iter().filter(|answer| answer["top"][0]["class"] == "dark").count();
    assert!(dark >= 8, "{dark} of 10 dark pictures were recognised");
    let update = "update m.ivoro pictures --backbone net.safetensors --classes dark";
    assert!(place.ivoro(update).good().contains("dark: 10 samples added"));
}

#[test]
fn features_are_extracted_and_learned_from() {
    let place = Place::new();
    place.pictures();
    place.network();
    let extract = "extract pictures --backbone net.safetensors --out p.features --views \
                   rotations,flips --layers last,block2";
    assert!(place.ivoro(extract).good().contains("features of 40 images"));
    let run = "run p.features --protocol 2,2 --order identity --variants iVoro-FAIL --csv -";
    assert!(place.ivoro(run).good().contains("iVoro-FAIL"));
}

#[test]
fn what_is_wrong_with_images_is_said_in_one_sentence() {
    let place = Place::new();
    place.pictures();
    place.network();
    let said = |command: &str, words: &[&str]| {
        let text = place.ivoro(command).bad(2);
        for word in words {
            assert!(text.contains(word), "{command}\n{text}");
        }
    };
    said("train nothing --out x.safetensors", &["nothing"]);
    said("train pictures --out x.safetensors --device gpu", &["cpu, cuda"]);
    said("train pictures --out x.safetensors --device cuda", &["no device", "hint"]);
    said("train pictures --out x.safetensors --rate=-1", &["rate"]);
    said("extract pictures --out x.features", &["--backbone"]);
    said(
        "extract pictures --backbone net.safetensors --layers block7 --out x.features",
        &["block7", "block2"],
    );
    said("predict m.ivoro --backbone net.safetensors pictures", &["m.ivoro"]);
    std::fs::write(place.path("pictures/dark/0.bmp"), b"BM no picture").unwrap();
    said(
        "extract pictures --backbone net.safetensors --out x.features",
        &["dark", "0.bmp", "--skip-broken"],
    );
    let skip = "extract pictures --backbone net.safetensors --skip-broken --out x.features";
    let done = place.ivoro(skip);
    assert!(done.err.contains("left out") && done.err.contains("0.bmp"), "{}", done.err);
    assert!(done.good().contains("features of 39 images"));
    std::fs::write(place.path("net.safetensors"), b"no network").unwrap();
    said("extract pictures --backbone net.safetensors --out y.features", &["net.safetensors"]);
    std::fs::create_dir(place.path("pictures/empty")).unwrap();
    said("train pictures --out x.safetensors --network small", &["empty"]);
}
