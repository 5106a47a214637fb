//! Photos as people have them: taught, asked about, left out and counted.

use std::io::Write;
use std::process::Stdio;

use serde_json::Value;

use crate::harness::{Done, Place};
use crate::images::picture;

/// A network, and a model that knows `lying` and `standing`.
fn begun() -> Place {
    let place = Place::new();
    place.pictures();
    place.network();
    let learn = "learn m.ivoro pictures --backbone net.safetensors --variant iVoro \
                 --classes lying,standing";
    place.ivoro(learn).good();
    place
}

fn json(place: &Place, name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(place.path(name)).unwrap()).unwrap()
}

/// How many samples a model has of each class.
fn counts(place: &Place) -> Vec<(String, u64)> {
    let text = place.ivoro("inspect m.ivoro --json").good();
    let value: Value = serde_json::from_str(&text).unwrap();
    let class = |class: &Value| {
        (class["name"].as_str().unwrap().to_owned(), class["samples"].as_u64().unwrap())
    };
    value["classes"].as_array().unwrap().iter().map(class).collect()
}

fn expected(counts: &[(&str, u64)]) -> Vec<(String, u64)> {
    counts.iter().map(|(class, count)| ((*class).to_owned(), *count)).collect()
}

#[test]
fn new_and_known_classes_are_taught_together_and_taken_back_as_one_lesson() {
    let place = begun();
    let before = std::fs::read(place.path("m.ivoro")).unwrap();
    std::fs::create_dir_all(place.path("more/lying/2024")).unwrap();
    std::fs::create_dir_all(place.path("more/dark")).unwrap();
    for image in 20..23 {
        std::fs::write(place.path(&format!("more/lying/2024/{image}.bmp")), picture(0, image))
            .unwrap();
        std::fs::write(place.path(&format!("more/dark/{image}.bmp")), picture(3, image)).unwrap();
    }
    // lying pictures repeat after six images: 20, 21 and 22 are 2, 3 and 4 of those taught
    let done = place.ivoro("learn m.ivoro more --backbone net.safetensors");
    assert!(done.err.contains("taught 6 photos"), "{}", done.err);
    let out = done.good();
    let said = "m.ivoro: learned 1 class from 3 samples, added 3 samples to 1 known class; now 3 classes \
                in 2 phases\n  lying: 3 samples added\n";
    assert_eq!(out, said);
    let now = expected(&[("lying", 9), ("standing", 6), ("dark", 3)]);
    assert_eq!(counts(&place), now);
    // again the very same: it is said, and it can be taken back once
    let again = place.ivoro("learn m.ivoro more --backbone net.safetensors");
    assert!(again.err.contains("exactly these samples were given on"), "{}", again.err);
    for _ in 0..2 {
        let back = place.ivoro("retract m.ivoro more --backbone net.safetensors");
        assert!(back.err.contains("took back 6 photos"), "{}", back.err);
        back.good();
    }
    assert_eq!(counts(&place), expected(&[("lying", 6), ("standing", 6)]));
    // a failure changes nothing
    std::fs::write(place.path("m.ivoro"), &before).unwrap();
    std::fs::write(place.path("more/dark/0.bmp"), b"BM no picture").unwrap();
    let refused = place.ivoro("learn m.ivoro more --backbone net.safetensors --strict").bad(2);
    assert!(refused.contains("0.bmp: not a readable image"), "{refused}");
    assert!(std::fs::read(place.path("m.ivoro")).unwrap() == before);
}

#[test]
fn what_is_left_out_is_counted_listed_and_written() {
    let place = begun();
    std::fs::write(place.path("pictures/dark/x.heic"), b"\0\0\0\x1cftypavif\0\0\0\0avif").unwrap();
    std::fs::write(place.path("pictures/dark/y.jpg"), b"no picture").unwrap();
    std::fs::write(place.path("pictures/dark/Thumbs.db"), b"nothing").unwrap();
    std::fs::create_dir(place.path("pictures/empty")).unwrap();
    let learn = "learn new.ivoro pictures --backbone net.safetensors --variant iVoro";
    let done = place.ivoro(learn);
    // of ten pictures of a line at one of six places six differ
    let said = "taught 32 photos, skipped 2 (AVIF 1, unreadable 1), left out 8 duplicates, passed over \
                1 other file; -v lists them\nnote: no photo in empty";
    assert!(done.err.contains(said), "{}", done.err);
    done.good();
    let learn = "learn all.ivoro pictures --backbone net.safetensors --variant iVoro \
                 --keep-duplicates -v --left-out told.json";
    let done = place.ivoro(learn);
    for line in [
        "taught 40 photos",
        "skipped: pictures/dark/x.heic: an image in the format AVIF",
        "passed over: pictures/dark/Thumbs.db",
    ] {
        assert!(done.err.contains(line), "{line}\n{}", done.err);
    }
    let told = json(&place, "told.json");
    assert_eq!((&told["taught"], &told["skipped"][0]["kind"]), (&40.into(), &"AVIF".into()));
    assert_eq!(told["empty_folders"][0], "empty");
    // the name of the flag before
    place
        .ivoro("predict all.ivoro pictures/dark --backbone net.safetensors --json asked.json")
        .good();
    assert_eq!(json(&place, "asked.json")["skipped"][0]["kind"], "AVIF");
    let evaluated =
        "evaluate all.ivoro pictures --backbone net.safetensors --left-out e.json --json n.json";
    place.ivoro(evaluated).good();
    assert_eq!(json(&place, "e.json")["labelled"]["photos"], 40);
    assert_eq!(json(&place, "n.json")["queries"], 40);
    // an existing data set is as strict as before
    let text = place.ivoro("extract pictures --backbone net.safetensors --out x.features").bad(2);
    assert!(text.contains("pictures/dark/Thumbs.db"), "{text}");
}

#[test]
fn a_list_of_photos_keeps_them_from_counting_twice() {
    let place = begun();
    let learn = "learn m.ivoro pictures --backbone net.safetensors --remember m.photos";
    let first = place.ivoro(&format!("{learn} --classes bright"));
    assert!(first.err.contains("taught 10 photos"), "{}", first.err);
    let again = place.ivoro(&format!("{learn} --classes bright,dark"));
    let said = "taught 10 photos, left out 10 duplicates, 10 of them taught before";
    assert!(again.err.contains(said), "{}", again.err);
    let now = expected(&[("lying", 6), ("standing", 6), ("bright", 10), ("dark", 10)]);
    assert_eq!(counts(&place), now);
    let list = std::fs::read_to_string(place.path("m.photos")).unwrap();
    let mut lines = list.lines();
    assert_eq!(lines.next(), Some("ivoro photos 1, 8×8 colour, stretch"));
    let hashes: Vec<&str> = lines.collect();
    assert!(hashes.len() == 20 && hashes.is_sorted(), "{list}");
    let back =
        "retract m.ivoro pictures --classes dark --backbone net.safetensors --remember m.photos";
    place.ivoro(back).good();
    assert_eq!(std::fs::read_to_string(place.path("m.photos")).unwrap().lines().count(), 11);
    let none = place.ivoro(&format!("{learn} --classes bright")).bad(2);
    assert!(none.contains("left out 10 duplicates"), "{none}");
    assert!(none.contains("error: pictures: nothing new, all photos were taught before"), "{none}");
}

#[test]
fn single_photos_and_lists_have_their_class_from_the_command() {
    let place = begun();
    let class = "learn m.ivoro pictures/dark/1.bmp pictures/dark/2.bmp --class night \
                 --backbone net.safetensors";
    assert!(place.ivoro(class).good().contains("learned 1 class from 2 samples"));
    let without = "learn m.ivoro pictures/dark/1.bmp --backbone net.safetensors";
    let said = place.ivoro(without).bad(2);
    assert!(said.contains("no class is known") && said.contains("--class"), "{said}");
    let mut command = place.command("learn m.ivoro - --backbone net.safetensors");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let list = b"pictures/bright/0.bmp\npictures/dark/3.bmp\tnight\n";
    child.stdin.take().unwrap().write_all(list).unwrap();
    let out = Done::of(child.wait_with_output().unwrap()).good();
    assert!(
        out.contains("learned 1 class from 1 sample, added 1 sample to 1 known class"),
        "{out}"
    );
    let features = place.ivoro("learn m.ivoro data.features --class night").bad(2);
    assert!(features.contains("--class is for photos"), "{features}");
}

#[test]
fn a_folder_with_labels_is_scored_and_an_empty_one_is_an_error() {
    let place = begun();
    let done = place.ivoro("predict m.ivoro pictures --backbone net.safetensors --format csv");
    assert!(done.err.contains("of 20 right by their folders ("), "{}", done.err);
    assert!(done.err.contains("20 of folders that are no class of the model"), "{}", done.err);
    assert!(done.err.contains("answered 40 photos"), "{}", done.err);
    let out = done.good();
    let labels: Vec<&str> =
        out.lines().skip(1).map(|line| line.split(',').nth(1).unwrap()).collect();
    assert_eq!(labels.iter().filter(|label| **label == "lying").count(), 10);
    assert_eq!(labels.iter().filter(|label| **label == "dark").count(), 10);
    std::fs::create_dir(place.path("none")).unwrap();
    for name in ["a.avif", "b.avif"] {
        let bytes = b"\0\0\0\x1cftypavif\0\0\0\0avif";
        std::fs::write(place.path("none").join(name), bytes).unwrap();
    }
    let ask = "predict m.ivoro none --backbone net.safetensors";
    let said = place.ivoro(ask).bad(2);
    let expected = "none: 2 files, none is a photo that this program reads: AVIF 2";
    assert!(said.contains(expected), "{said}");
    let jsonl = "predict m.ivoro none pictures/dark --backbone net.safetensors --format jsonl";
    std::fs::write(place.path("pictures/dark/0.bmp"), &picture(3, 0)[..60]).unwrap();
    let out = place.ivoro(jsonl).good();
    let skipped: Vec<Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|line: &Value| line.get("skipped").is_some())
        .collect();
    assert_eq!(skipped.len(), 1, "{out}");
    assert_eq!(skipped[0]["skipped"], "truncated");
}

#[test]
fn what_is_wrong_with_one_photo_or_class_is_said_at_once() {
    let place = begun();
    std::fs::write(place.path("half.jpg"), b"\xff\xd8\xff\xe0 and no more").unwrap();
    let ask = "predict m.ivoro half.jpg --backbone net.safetensors";
    let said = place.ivoro(ask).bad(2);
    assert!(
        said.ends_with("error: half.jpg: the image is cut off: a JPEG without its end, 16 bytes\n"),
        "{said}"
    );
    let learn = "learn m.ivoro pictures --backbone net.safetensors --classes lyin";
    let said = place.ivoro(learn).bad(2);
    assert!(
        said.contains("pictures: no class lyin; there are bright, dark, lying, standing"),
        "{said}"
    );
    let said = place.ivoro("update m.ivoro pictures --backbone net.safetensors").bad(2);
    let expected =
        "class bright is not in the model; `ivoro learn` takes new classes and known ones together";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn class_folders_may_be_named_one_by_one() {
    let place = begun();
    std::fs::create_dir_all(place.path("pictures/dark/2024")).unwrap();
    std::fs::write(place.path("pictures/dark/2024/40.bmp"), picture(3, 40)).unwrap();
    let learn = "--backbone net.safetensors --variant iVoro --keep-duplicates";
    place.ivoro(&format!("learn two.ivoro pictures/bright pictures/dark {learn}")).good();
    let classes = |model: &str| {
        let text = place.ivoro(&format!("inspect {model} --json")).good();
        let value: Value = serde_json::from_str(&text).unwrap();
        let class = |it: &Value| (it["name"].to_string(), it["samples"].as_u64().unwrap());
        value["classes"].as_array().unwrap().iter().map(class).collect::<Vec<_>>()
    };
    let expected = [("\"bright\"".to_owned(), 10), ("\"dark\"".to_owned(), 11)];
    assert_eq!(classes("two.ivoro"), expected);
    let last = format!("learn last.ivoro pictures/bright pictures/dark --class-from last {learn}");
    place.ivoro(&last).good();
    let names: Vec<String> = classes("last.ivoro").into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["\"2024\"", "\"bright\"", "\"dark\""]);
    // one folder of photos is no class by itself
    let said = place.ivoro(&format!("learn one.ivoro pictures/bright {learn}")).bad(2);
    assert!(said.contains("no class is known"), "{said}");
}

#[cfg(unix)]
#[test]
fn a_pipe_among_photos_does_not_stop_the_rest() {
    let place = begun();
    let pipe = place.path("pictures/dark/x.jpg");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    std::os::unix::fs::symlink("../pictures/dark", place.path("pictures/linked")).unwrap();
    let done = place.ivoro("predict m.ivoro pictures/dark --backbone net.safetensors -v");
    assert!(done.err.contains("found a named pipe"), "{}", done.err);
    assert!(done.err.contains("answered 10 photos, skipped 1 (no file 1)"), "{}", done.err);
    done.good();
}
