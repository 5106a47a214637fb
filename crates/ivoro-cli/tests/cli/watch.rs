//! `watch` on photos made by hand: rows, bursts, sorting, kills.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use crate::harness::Place;
use crate::images::{CLASSES, picture};

/// A TIFF of one grey row that notes when it was taken: the simplest file with such a note.
fn taken(second: u32, value: u8) -> Vec<u8> {
    let time = format!("2026:05:01 12:00:{second:02}\0");
    let (data, exif) = (8u32, 8 + 64);
    let entry = |tag: u16, kind: u16, count: u32, value: u32| {
        let mut entry = tag.to_le_bytes().to_vec();
        entry.extend(kind.to_le_bytes());
        entry.extend(count.to_le_bytes());
        entry.extend(value.to_le_bytes());
        entry
    };
    let mut file = b"II*\0".to_vec();
    let exif_length = 2 + 12 + 4;
    let first = exif + exif_length + time.len() as u32;
    file.extend(first.to_le_bytes());
    file.extend((0..64).map(|at| if at / 8 == 2 { value } else { 90 }));
    file.extend(1u16.to_le_bytes());
    file.extend(entry(0x9003, 2, time.len() as u32, exif + exif_length));
    file.extend(0u32.to_le_bytes());
    file.extend(time.as_bytes());
    let entries = [
        entry(256, 4, 1, 8),
        entry(257, 4, 1, 8),
        entry(258, 3, 1, 8),
        entry(259, 3, 1, 1),
        entry(262, 3, 1, 1),
        entry(273, 4, 1, data),
        entry(278, 4, 1, 8),
        entry(279, 4, 1, 64),
        entry(0x8769, 4, 1, exif),
    ];
    file.extend((entries.len() as u16).to_le_bytes());
    entries.iter().for_each(|entry| file.extend(entry));
    file.extend(0u32.to_le_bytes());
    file
}

/// A model of two classes of pictures, and an empty folder `in`.
fn place() -> Place {
    let place = Place::new();
    place.pictures();
    place.network();
    let learn = "learn m.ivoro pictures --backbone net.safetensors --variant iVoro-N";
    place.ivoro(learn).good();
    std::fs::create_dir(place.path("in")).unwrap();
    place
}

fn add(place: &Place, name: &str, bytes: &[u8]) {
    let path = place.path("in").join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

const WATCH: &str = "watch m.ivoro in --backbone net.safetensors";

/// The rows of a file by photo; no photo has two.
fn rows(path: &Path) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for line in std::fs::read_to_string(path).unwrap().lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let file = row["file"].as_str().unwrap().to_owned();
        assert!(found.insert(file, row).is_none(), "a photo has two rows: {line}");
    }
    found
}

#[test]
fn each_photo_has_one_row_however_often_it_is_looked_at() {
    let place = place();
    for image in 0..6 {
        add(&place, &format!("{image}.bmp"), &picture(image % 4, image));
    }
    let once = format!("{WATCH} --once --format jsonl");
    let printed = place.ivoro(&once).good();
    assert_eq!(printed.lines().count(), 6);
    let out = format!("{once} --out rows.jsonl");
    assert_eq!(place.ivoro(&out).good(), "");
    assert_eq!(rows(&place.path("rows.jsonl")).len(), 6);
    let before = std::fs::read(place.path("rows.jsonl")).unwrap();
    place.ivoro(&out).good();
    assert_eq!(std::fs::read(place.path("rows.jsonl")).unwrap(), before);
    // another photo of the same name is another photo; half of one is tried again
    add(&place, "deep/er/7.bmp", &picture(2, 3));
    add(&place, "8.bmp", &picture(3, 3)[..100]);
    let done = place.ivoro(&out);
    assert!(done.err.contains("8.bmp") && done.err.contains("tried again when it has changed"));
    assert!(rows(&place.path("rows.jsonl")).contains_key("deep/er/7.bmp"));
    add(&place, "8.bmp", &picture(3, 3));
    place.ivoro(&out).good();
    assert_eq!(rows(&place.path("rows.jsonl")).len(), 8);
    let said = place.ivoro(&format!("{WATCH} --once --out m.ivoro")).bad(2);
    assert!(said.contains("m.ivoro"), "{said}");
    place.ivoro("inspect m.ivoro").good();
}

#[test]
fn photos_taken_together_are_one_query() {
    let place = place();
    for (name, second) in [("a", 0), ("b", 1), ("c", 2), ("d", 30)] {
        add(&place, &format!("{name}.tif"), &taken(second, 220));
    }
    add(&place, "other/e.tif", &taken(1, 220));
    add(&place, "f.bmp", &picture(0, 1));
    place.ivoro(&format!("{WATCH} --once --format jsonl --out r.jsonl --burst-seconds 2")).good();
    let rows = rows(&place.path("r.jsonl"));
    let sizes: Vec<u64> = rows.values().map(|row| row["burst_size"].as_u64().unwrap()).collect();
    assert_eq!(
        rows.keys().collect::<Vec<_>>(),
        ["a.tif", "b.tif", "c.tif", "d.tif", "f.bmp", "other/e.tif"]
    );
    assert_eq!(sizes, [3, 3, 3, 1, 1, 1]);
    assert!(["a.tif", "b.tif", "c.tif"].iter().all(|name| rows[*name]["burst"] == "a.tif"));
    assert_eq!(rows["a.tif"]["taken"], "2026-05-01T12:00:00.000");
    assert_eq!(rows["a.tif"]["class"], rows["c.tif"]["class"]);
    assert_eq!(rows["f.bmp"]["taken"], Value::Null);
}

#[test]
fn sorting_loses_nothing_and_overwrites_nothing() {
    for how in ["--copy", "--move", "--link"] {
        let place = place();
        let mut photos = BTreeMap::new();
        for folder in ["x", "y"] {
            for image in 0..4 {
                let photo = picture(image, image + usize::from(folder == "y"));
                add(&place, &format!("{folder}/{image}.bmp"), &photo);
                photos.insert(format!("{folder}/{image}.bmp"), photo);
            }
        }
        let sort = format!("{WATCH} --once --format jsonl --sort-into sorted {how}");
        place.ivoro(&sort).good();
        place.ivoro(&sort).good();
        let rows = rows(&place.path("sorted/rows.jsonl"));
        assert_eq!(rows.len(), 8, "{how}");
        for (name, photo) in &photos {
            let row = &rows[name];
            let to = row["to"].as_str().unwrap();
            let folder =
                if row["unknown"] == true { "unknown" } else { row["class"].as_str().unwrap() };
            assert!(to.starts_with(&format!("{folder}/")), "{to}");
            assert_eq!(&std::fs::read(place.path("sorted").join(to)).unwrap(), photo, "{how} {to}");
            assert_eq!(place.path("in").join(name).exists(), how != "--move", "{how}");
        }
        let targets: std::collections::BTreeSet<_> =
            rows.values().map(|row| row["to"].to_string()).collect();
        let contents: std::collections::BTreeSet<_> = photos.values().collect();
        assert!(targets.len() >= contents.len() && targets.len() <= 8);
    }
    let said = place().ivoro(&format!("{WATCH} --once --move")).bad(2);
    assert!(said.contains("--sort-into"), "{said}");
}

/// Killed again and again while it works, it ends with one row and one photo for each.
#[test]
fn a_process_killed_at_any_time_neither_loses_nor_repeats() {
    let place = place();
    let count = 40;
    let mut photos = Vec::new();
    for image in 0..count {
        let mut photo = picture(image % 4, image % 6);
        // a byte behind the pixels makes each another photo
        photo.extend([image as u8, 0, 0, 0]);
        add(&place, &format!("{image:02}.bmp"), &photo);
        photos.push(photo);
    }
    let sort = format!("{WATCH} --batch 1 --format jsonl --sort-into sorted --move");
    let mut killed = 0;
    for milliseconds in (0..12).map(|at| 900 + 31 * at) {
        let mut child =
            place.command(&sort).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(milliseconds));
        child.kill().unwrap();
        child.wait().unwrap();
        killed += 1;
        let left = std::fs::read_dir(place.path("in")).unwrap().count();
        if left == 0 {
            break;
        }
    }
    assert!(killed > 0);
    place.ivoro(&format!("{sort} --once")).good();
    let rows = rows(&place.path("sorted/rows.jsonl"));
    assert_eq!(rows.len(), count);
    assert_eq!(std::fs::read_dir(place.path("in")).unwrap().count(), 0);
    let mut sorted = Vec::new();
    for folder in std::fs::read_dir(place.path("sorted")).unwrap().flatten() {
        if folder.path().is_dir() {
            for file in std::fs::read_dir(folder.path()).unwrap().flatten() {
                sorted.push(std::fs::read(file.path()).unwrap());
            }
        }
    }
    sorted.sort();
    photos.sort();
    assert_eq!(sorted, photos, "every photo is there once");
}

/// Two at once would answer each photo twice.
#[test]
fn a_second_process_is_told_so() {
    let place = place();
    let lock = ivoro_io::FileLock::acquire(&place.path("r.csv")).unwrap();
    let said = place.ivoro(&format!("{WATCH} --once --out r.csv")).bad(2);
    assert!(said.contains("r.csv"), "{said}");
    drop(lock);
    place.ivoro(&format!("{WATCH} --once --out r.csv")).good();
    assert!(CLASSES.contains(&"bright"));
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_it_at_once() {
    let place = place();
    let mut child =
        place.command(WATCH).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    let interrupted = std::process::Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(interrupted.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
