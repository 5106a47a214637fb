//! Photos, looked at by the network that ships.

use serde_json::json;

use crate::api::{FORM, form};
use crate::harness::{Place, around, lesson, model};

/// A BMP of one colour with a little pattern.
pub(crate) fn picture(width: u32, height: u32, [red, green, blue]: [u8; 3]) -> Vec<u8> {
    let row = (3 * width).next_multiple_of(4);
    let mut file = b"BM".to_vec();
    file.extend((54 + row * height).to_le_bytes());
    file.extend([0; 4]);
    file.extend(54u32.to_le_bytes());
    file.extend(40u32.to_le_bytes());
    file.extend(width.to_le_bytes());
    file.extend(height.to_le_bytes());
    file.extend([1, 0, 24, 0]);
    file.extend([0; 4]);
    file.extend((row * height).to_le_bytes());
    file.extend([0; 16]);
    for y in 0..height {
        for x in 0..width {
            let light = if (x / 8 + y / 8) % 3 == 0 { 40 } else { 0 };
            file.extend([blue, green, red].map(|value: u8| value.saturating_add(light)));
        }
        file.extend(vec![0; (row - 3 * width) as usize]);
    }
    file
}

pub(crate) const RED: [u8; 3] = [200, 20, 20];
pub(crate) const BLUE: [u8; 3] = [20, 20, 200];

#[test]
fn photos_are_taught_asked_and_taken_back() {
    let mut place = Place::with(|options| options.beginning.variant = None);
    let shades = |[red, green, blue]: [u8; 3]| {
        [0, 6, 12].map(|more| picture(64, 48, [red, green + more, blue]))
    };
    let (reds, blues) = (shades(RED), shades(BLUE));
    let mut parts: Vec<(&str, &str, &[u8])> = vec![("class", "", b"red")];
    parts.extend(reds.iter().map(|photo| ("image", "r.bmp", photo.as_slice())));
    parts.push(("class", "", b"blue"));
    parts.extend(blues.iter().map(|photo| ("image", "b.bmp", photo.as_slice())));
    parts.push(("image", "note.txt", b"hello"));
    let kind = [("Content-Type", FORM)];
    let taught = place.send("POST", &model("samples"), &kind, &form(&parts)).good();
    assert_eq!((&taught["classes"], &taught["samples"]), (&json!(2), &json!(6)));
    assert_eq!(taught["skipped"][0]["name"], "note.txt");
    // a class can also be the folder of a file
    let one = form(&[("image", "blue/one.bmp", &picture(64, 48, [20, 23, 200]))]);
    let one = place.send("POST", &model("samples"), &kind, &one).good();
    assert_eq!(one["taught"][0]["asked"]["right"], true);

    let query = form(&[("image", "who.bmp", &picture(90, 70, [210, 30, 25]))]);
    let answer = place.send("POST", &model("ask"), &kind, &query).good();
    assert_eq!(answer["answers"][0]["name"], "who.bmp");
    assert_eq!(answer["answers"][0]["top"][0]["class"], "red");
    let details = place.get("/api/v1/models/pets").good();
    assert_eq!(details["network"], "efficientnet-lite0");
    assert!(details["network_description"]["path"].is_null());

    // one photo of a lesson is taken back, after a restart
    place.again();
    let before = place.hash();
    let receipt = taught["taught"][1]["receipt"].clone();
    place.post(&model("retract"), &json!({"receipts": [receipt]})).good();
    assert_eq!(place.classes()[0].1 + place.classes()[1].1, 6);
    assert_ne!(place.hash(), before);
    let answer = place.send("POST", &model("ask"), &kind, &query).good();
    assert_eq!(answer["answers"][0]["top"][0]["class"], "red");
}

#[test]
fn a_model_of_features_looks_at_no_photo() {
    let place = Place::new();
    place.teach("dog", &around(0.0, 0.0));
    let photo = form(&[("image", "who.bmp", &picture(32, 32, RED))]);
    let refused = place.send("POST", &model("ask"), &[("Content-Type", FORM)], &photo);
    assert!(refused.refused(409).contains("answers feature vectors and no images"));
    let more = place.post(&model("samples"), &lesson("cat", &around(9.0, 9.0)));
    assert_eq!(more.status, 200);
}

/// The beginning of a picture of 60,000 by 60,000 pixels in each format.
fn bombs() -> Vec<(&'static str, Vec<u8>)> {
    let side = 60_000u32;
    let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    png.extend(side.to_be_bytes());
    png.extend(side.to_be_bytes());
    png.extend([8, 2, 0, 0, 0]);
    let mut crc = flate2::Crc::new();
    crc.update(&png[12..]);
    png.extend(crc.sum().to_be_bytes());
    let mut bmp = picture(8, 8, RED);
    bmp[18..22].copy_from_slice(&side.to_le_bytes());
    bmp[22..26].copy_from_slice(&side.to_le_bytes());
    let [low, high] = (side as u16).to_le_bytes();
    let gif = [
        b"GIF89a".as_slice(),
        &[low, high, low, high, 0, 0, 0, 0x2c, 0, 0, 0, 0, low, high, low, high, 0, 2, 0, 0x3b],
    ]
    .concat();
    let pnm = format!("P6\n{side} {side}\n255\n").into_bytes();
    let mut jpeg = vec![0xff, 0xd8, 0xff, 0xc0, 0, 17, 8];
    jpeg.extend((side as u16).to_be_bytes());
    jpeg.extend((side as u16).to_be_bytes());
    jpeg.extend([
        3, 1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1, 0xff, 0xda, 0, 12, 3, 1, 0, 2, 0x11, 3, 0x11, 0, 63,
        0, 0xff, 0xd9,
    ]);
    vec![("a.png", png), ("a.bmp", bmp), ("a.gif", gif), ("a.ppm", pnm), ("a.jpg", jpeg)]
}

#[test]
fn pictures_that_claim_too_many_pixels_are_refused() {
    let place = Place::new();
    for (name, bomb) in bombs() {
        let kind = [("Content-Type", FORM)];
        let answer = place.send(
            "POST",
            &format!("{}?class=x", model("samples")),
            &kind,
            &form(&[("image", name, &bomb)]),
        );
        assert!(matches!(answer.status, 413 | 422), "{name}: {}", answer.status);
        let beside = form(&[("image", name, &bomb), ("image", "fine.bmp", &picture(32, 32, RED))]);
        let answer =
            place.send("POST", &format!("{}?class=x", model("samples")), &kind, &beside).good();
        assert_eq!(answer["skipped"][0]["name"], name);
    }
}

#[test]
fn an_archive_brings_its_classes() {
    use std::io::Write as _;
    let place = Place::new();
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    for (name, colour) in [
        ("red/1.bmp", RED),
        ("red/2.bmp", [190, 25, 30]),
        ("blue/1.bmp", BLUE),
        ("../../blue/2.bmp", [15, 30, 190]),
    ] {
        archive.start_file(name, options).unwrap();
        archive.write_all(&picture(40, 40, colour)).unwrap();
    }
    archive.start_file("red/cut.bmp", options).unwrap();
    archive.write_all(&picture(40, 40, RED)[..100]).unwrap();
    let archive = archive.finish().unwrap().into_inner();
    let body = form(&[("archive", "album.zip", &archive)]);
    let taught = place.send("POST", &model("samples"), &[("Content-Type", FORM)], &body).good();
    assert_eq!(taught["samples"], 4);
    assert!(taught["skipped"][0]["name"].as_str().unwrap().contains("red/cut.bmp"), "{taught}");
    let all = taught.to_string();
    assert!(!all.contains(&std::env::temp_dir().display().to_string()), "{all}");
    let mut classes = place.classes();
    classes.sort();
    assert_eq!(classes, [("blue".to_owned(), 2), ("red".to_owned(), 2)]);
}
