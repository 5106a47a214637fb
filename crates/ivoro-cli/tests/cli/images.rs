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

pub(crate) const CLASSES: [&str; 4] = ["lying", "standing", "bright", "dark"];

pub(crate) fn picture(class: usize, image: usize) -> Vec<u8> {
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
    pub(crate) fn pictures(&self) {
        for (class, name) in CLASSES.iter().enumerate() {
            let folder = self.path("pictures").join(name);
            std::fs::create_dir_all(&folder).unwrap();
            for image in 0..10 {
                std::fs::write(folder.join(format!("{image}.bmp")), picture(class, image)).unwrap();
            }
        }
    }

    /// A network trained on `bright` and `dark`, which come first in the alphabet.
    pub(crate) fn network(&self) {
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
        // the seconds, and the views behind them, are left out
        text.lines().map(|line| line.rsplitn(3, ',').last().unwrap().to_owned()).collect()
    };
    assert_eq!(accuracies(&again.good()), accuracies(&first));
    // what was kept and is damaged is made again
    for end in ["safetensors", "features"] {
        let kept = std::fs::read_dir(place.path("kept")).unwrap().map(|one| one.unwrap().path());
        for path in kept.filter(|path| path.extension().is_some_and(|e| e == end)) {
            let whole = std::fs::read(&path).unwrap();
            std::fs::write(&path, &whole[..whole.len() - 7]).unwrap();
        }
        let mended = place.ivoro(run);
        assert!(mended.err.contains("it is made again"), "{end}: {}", mended.err);
        assert_eq!(accuracies(&mended.good()), accuracies(&first), "{end}");
    }
}

#[test]
fn an_image_that_can_not_be_read_is_found_before_training() {
    let place = Place::new();
    place.pictures();
    std::fs::write(place.path("pictures/dark/3.bmp"), b"BM no picture").unwrap();
    let run = "run pictures --network small --epochs 1 --batch 4 --protocol 2,2 --order identity \
               --cache kept --variants iVoro";
    let said = place.ivoro(run).bad(2);
    assert!(said.contains("3.bmp") && said.contains("--skip-broken"), "{said}");
    assert!(!said.contains("training on"), "{said}");
    // of the cells of a grid the hint is told as well
    let done = place.ivoro("reproduce pictures --quick --cache kept");
    assert_eq!(done.code, Some(1), "{}", done.err);
    assert!(done.err.contains("hint: `--skip-broken`"), "{}", done.err);
}

#[test]
fn settings_are_tuned_on_classes_that_a_second_network_has_not_seen() {
    let place = Place::new();
    place.pictures();
    let run = "run pictures --network small --epochs 1 --batch 2 --protocol 3,1 --order identity \
               --cache kept --variants iVoro-N --out runs";
    let tuned = format!("{run} --tune-on=held-out-classes");
    let first = place.ivoro(&tuned);
    // 8 images of each base class are for training, and 6 of them teach the second network
    assert!(first.err.contains("with a network of 2 of 3 base classes"), "{}", first.err);
    assert!(first.err.contains("training on 12 images"), "{}", first.err);
    assert!(first.good().contains("settings chosen with a network trained on half"));
    let text = std::fs::read_to_string(place.path("runs/run.json")).unwrap();
    let record: Value = serde_json::from_str(&text).unwrap();
    let set = record["judge"].as_str().unwrap();
    assert!(set.starts_with("a network trained on half of the base classes ("), "{set}");
    assert_eq!(record["methods"][0]["choices"][0]["setting"], "lambda");
    let kept: Vec<_> = std::fs::read_dir(place.path("kept")).unwrap().flatten().collect();
    let ending = |name: &str| kept.iter().filter(|e| e.path().extension().unwrap() == name).count();
    assert_eq!((ending("safetensors"), ending("features")), (2, 2));
    // a run without it does not take over what was chosen so
    assert!(!place.ivoro(run).err.contains("finished methods"));
    let said = place.ivoro("run --tune-on --variants iVoro").bad(2);
    assert!(said.contains("--tune-on=FILE"), "{said}");
    // the flag's former name and words
    for former in ["--judge", "--judge=network"] {
        assert_eq!(place.ivoro(&format!("run {former} --variants iVoro")).bad(2), said);
    }
    // the very features of the run hold later classes
    place.network();
    place.ivoro("extract pictures --backbone net.safetensors --out own.features").good();
    let leak = "run own.features --protocol 3,1 --order identity --variants iVoro-N";
    let said = place.ivoro(&format!("{leak} --tune-on=own.features")).bad(2);
    assert!(said.contains("is no base class"), "{said}");
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
    // the same images through another network are another language
    let other = "train pictures --network small --epochs 1 --batch 4 --training-seed 9 --size 8 \
                 --protocol 2,2 --order identity --out other.safetensors";
    place.ivoro(other).good();
    for command in ["predict", "update"] {
        let command = format!("{command} m.ivoro --backbone other.safetensors pictures");
        let said = place.ivoro(&command).bad(2);
        assert!(said.contains("taught with another network"), "{said}");
    }
}

#[test]
fn a_baseline_that_computed_something_else_is_trained_again_and_it_alone() {
    let place = Place::new();
    place.pictures();
    let run = "run pictures --network small --embedding 2 --epochs 1 --batch 4 --protocol 2,2 \
               --order identity --cache kept --variants none --baselines fine-tuning,lwf --out out";
    place.ivoro(run).good();
    let file = place.path("out/run.json");
    let read =
        || -> Value { serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap() };
    let mut record = read();
    let revision = |record: &Value| record["methods"][1]["settings"]["revision"].as_u64().unwrap();
    let present = revision(&record);
    record["methods"][1]["settings"]["revision"] = (present - 1).into();
    std::fs::write(&file, record.to_string()).unwrap();
    place.ivoro("report out --out report").good();
    let csv = std::fs::read_to_string(place.path("report/tables.csv")).unwrap();
    let outdated: Vec<&str> = csv.lines().filter(|line| line.ends_with(",true,1")).collect();
    assert!(outdated.len() == 1 && outdated[0].contains(",LwF,"), "{csv}");
    let again = place.ivoro(run);
    assert!(again.err.contains("LwF was trained in another way"), "{}", again.err);
    assert!(!again.err.contains("fine-tuning was"), "{}", again.err);
    assert_eq!(revision(&read()), present);
}

#[test]
fn baselines_train_the_network_on_and_leave_record_and_pictures() {
    let place = Place::new();
    place.pictures();
    let run = "run pictures --network small --embedding 2 --epochs 1 --batch 4 --protocol 2,2 \
               --order identity --cache kept --variants none \
               --baselines fine-tuning,icarl-nme,icarl-cnn --pictures --out out";
    let table = place.ivoro(run).good();
    assert!(table.contains("iCaRL-NME *") && table.contains("keeps samples"), "{table}");
    let text = std::fs::read_to_string(place.path("out/run.json")).unwrap();
    let record: Value = serde_json::from_str(&text).unwrap();
    let kept: Vec<(&str, &str, Option<u64>)> = record["methods"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| {
            (m["name"].as_str().unwrap(), m["kind"].as_str().unwrap(), m["exemplars"].as_u64())
        })
        .collect();
    let expected = [
        ("fine-tuning", "baseline", None),
        ("iCaRL-NME", "baseline", Some(20)),
        ("iCaRL-CNN", "baseline", Some(20)),
    ];
    assert_eq!(kept, expected);
    let scene = std::fs::read_to_string(place.path("out/fine-tuning.scene.json")).unwrap();
    let scene: Value = serde_json::from_str(&scene).unwrap();
    let sites = |phase: usize| scene["phases"][phase]["sites"].as_array().unwrap().len();
    assert_eq!((sites(0), sites(1)), (2, 4));
    // finished ones are not trained again
    let again = place.ivoro(run);
    assert!(again.err.contains("3 finished methods"), "{}", again.err);
    // with another recipe they are, whether or not there are variants beside them
    for variants in ["none", "iVoro"] {
        let mixed = run.replace("--variants none", &format!("--variants {variants}"));
        let mixed = mixed.replace("--out out", &format!("--out {variants}"));
        place.ivoro(&mixed).good();
        let other = place.ivoro(&format!("{mixed} --phase-epochs 2"));
        let said = ["other data, options", "trained in another way"];
        assert!(said.iter().any(|said| other.err.contains(said)), "{variants}: {}", other.err);
        let record: Value = serde_json::from_str(
            &std::fs::read_to_string(place.path(&format!("{variants}/run.json"))).unwrap(),
        )
        .unwrap();
        let last = record["methods"].as_array().unwrap().last().unwrap();
        assert_eq!(last["settings"]["recipe"]["epochs"], 2);
        assert_eq!(other.code, Some(0));
    }
    // variants alone, then with baselines: what was finished stays in one file
    let alone = run.replace("--baselines fine-tuning,icarl-nme,icarl-cnn --pictures", "");
    let alone = alone.replace("--variants none", "--variants iVoro").replace("out out", "out both");
    place.ivoro(&alone).good();
    let more = place.ivoro(&format!("{alone} --baselines fine-tuning"));
    assert!(more.err.contains("1 finished methods"), "{}", more.err);
    let again = place.ivoro(&alone);
    assert!(again.err.contains("2 finished methods"), "{}", again.err);
    assert!(!place.path("both/run.json.before").exists());
    let said = place.ivoro("run data.features --baselines ewc --variants none").bad(2);
    assert!(said.contains("data set of images"), "{said}");
    let said = place.ivoro("run pictures --baselines ewk --variants none").bad(2);
    assert!(said.contains("no baseline called"), "{said}");
}

#[test]
fn two_processes_do_not_train_into_one_file() {
    let place = Place::new();
    place.pictures();
    let held = ivoro_io::FileLock::acquire(&place.path("net.safetensors")).unwrap();
    let train =
        "train pictures --network small --epochs 1 --batch 4 --size 8 --out net.safetensors";
    let said = place.ivoro(train).bad(2);
    assert!(said.contains("another ivoro is writing here"), "{said}");
    drop(held);
    let held = ivoro_io::FileLock::acquire(&place.path("out/run"));
    assert!(held.is_err(), "there is no such folder yet");
    std::fs::create_dir(place.path("out")).unwrap();
    let _held = ivoro_io::FileLock::acquire(&place.path("out/run")).unwrap();
    let said = place.ivoro("run --variants iVoro --out out").bad(2);
    assert!(said.contains("another ivoro is writing here"), "{said}");
}

#[test]
fn the_same_training_leaves_the_same_file() {
    let place = Place::new();
    place.pictures();
    place.network();
    let first = std::fs::read(place.path("net.safetensors")).unwrap();
    std::fs::remove_file(place.path("net.safetensors")).unwrap();
    place.network();
    assert!(std::fs::read(place.path("net.safetensors")).unwrap() == first);
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
    said("extract pictures --backbone absent --out x.features", &["absent", "efficientnet-lite0"]);
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

/// The pictures of one class, and one more of each of two classes.
fn ask(place: &Place, command: &str) -> Vec<Value> {
    let answers = place.ivoro(&format!("{command} --format jsonl")).good();
    answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn photos_need_no_flag_with_the_network_that_ships() {
    let place = Place::new();
    place.pictures();
    // three commands, none with more than four words; the model's name is taken as it is
    let learned = place.ivoro("learn shapes pictures").good();
    assert!(learned.contains("shapes: learned 4 classes from 32 samples"), "{learned}");
    let answers = ask(&place, "predict shapes pictures/dark/3.bmp pictures/standing");
    assert_eq!(answers.len(), 11);
    assert_eq!(answers[0]["top"][0]["class"], "dark");
    // unknown is judged without a flag, and not with this one
    assert!(answers.iter().all(|answer| answer["unknown"].is_boolean()), "{answers:?}");
    let answers = ask(&place, "predict shapes pictures/dark/3.bmp --no-reject");
    assert!(answers[0]["unknown"].is_null(), "{answers:?}");
    let told = place.ivoro("inspect shapes").good();
    assert!(told.contains("efficientnet-lite0, 224×224, centre of 256, mean 0.498"), "{told}");
    place.ivoro("update shapes pictures --classes dark").good();
    place.ivoro("calibrate shapes pictures").good();
    place.ivoro("retract shapes pictures --classes bright --inexact").good();
    let table = place.ivoro("predict shapes pictures/dark/3.bmp").good();
    assert!(table.starts_with("file"), "{table}");
}

#[test]
fn a_model_keeps_to_the_way_its_pictures_were_looked_at() {
    let place = Place::new();
    place.pictures();
    place.network();
    place.ivoro("learn m pictures --backbone net.safetensors --size 16 --variant iVoro").good();
    // nothing need be said again
    assert_eq!(ask(&place, "predict m pictures/dark").len(), 10);
    place.ivoro("update m pictures --classes dark").good();
    // what is said and differs is refused with both values, wherever it is said
    for command in ["predict m pictures", "update m pictures", "calibrate m pictures"] {
        let said = place.ivoro(&format!("{command} --size 8")).bad(2);
        assert!(said.contains("16×16") && said.contains("8×8"), "{said}");
        let said = place.ivoro(&format!("{command} --backbone efficientnet-lite0")).bad(2);
        assert!(said.contains("another network"), "{said}");
        place.ivoro(&format!("{command} --size 16")).good();
    }
    // the features of the same pictures, brought to the network so and otherwise
    let extract = "extract pictures --backbone net.safetensors --views upright --layers last";
    place.ivoro(&format!("{extract} --size 16 --out same.features")).good();
    place.ivoro(&format!("{extract} --size 8 --out other.features")).good();
    for command in ["predict m", "update m", "calibrate m"] {
        let said = place.ivoro(&format!("{command} other.features")).bad(2);
        assert!(said.contains("16×16") && said.contains("8×8"), "{said}");
    }
    place.ivoro("predict m same.features").good();
    // a model taught with features that say where they come from can be asked with pictures
    place.ivoro("learn f same.features --variant iVoro").good();
    assert_eq!(ask(&place, "predict f pictures/dark").len(), 10);
    // two models that looked otherwise are not merged
    let learn =
        "learn n pictures --backbone net.safetensors --variant iVoro --classes dark --size 8";
    place.ivoro(learn).good();
    let said = place.ivoro("merge m n --out both").bad(2);
    assert!(said.contains("16×16") && said.contains("8×8"), "{said}");
    // the network is gone, and said to be; then it is there again under a name
    std::fs::create_dir(place.path("elsewhere")).unwrap();
    std::fs::rename(place.path("net.safetensors"), place.path("elsewhere/x.safetensors")).unwrap();
    let said = place.ivoro("predict m pictures/dark").bad(2);
    assert!(said.contains("net, hash") && said.contains("--backbone"), "{said}");
    let add = "networks add elsewhere/x.safetensors --name small --size 16 --licence MIT";
    place.ivoro(add).good();
    std::fs::remove_dir_all(place.path("elsewhere")).unwrap();
    assert_eq!(ask(&place, "predict m pictures/dark").len(), 10);
    let listed = place.ivoro("networks").good();
    assert!(listed.contains("efficientnet-lite0 (default)"), "{listed}");
    assert!(listed.contains("small") && listed.contains("MIT"), "{listed}");
    place.ivoro("learn k pictures --backbone small --variant iVoro").good();
    let listed: Value = serde_json::from_str(&place.ivoro("networks --json").good()).unwrap();
    assert_eq!(listed["networks"][1]["network"]["width"], 16);
}

#[test]
fn features_of_unknown_origin_are_taken_with_a_note() {
    let place = Place::new();
    place.pictures();
    place.ivoro("learn m data.features --variant iVoro").good();
    let said = place.ivoro("predict m pictures/dark").bad(2);
    assert!(said.contains("which network made them") && said.contains("--backbone"), "{said}");
    assert!(!place.ivoro("inspect m").good().contains("network"));
}
