//! From the first photo to a model that was moved, merged and found again.

use std::path::Path;

use serde_json::Value;

use crate::page::Visitor;
use crate::pictures::Thing;
use crate::served::Served;

#[test]
fn a_model_is_taught_asked_corrected_and_moved() {
    let mut visitor = keeping_unknowns();
    teach_and_ask(&visitor);
    correct_by_receipts(&visitor);
    name_an_unknown(&visitor);
    let before = look_at_quality(&visitor);
    rename_and_forget(&visitor);
    download_and_merge(&visitor);
    visitor.was_quiet();
    survive_a_restart(&mut visitor, &before);
}

fn keeping_unknowns() -> Visitor {
    Visitor::arrive_at(Served::with(|_, options| options.keep_unknowns = true), &[])
}

fn teach_and_ask(visitor: &Visitor) {
    let browser = &visitor.browser;
    visitor.go("ask");
    browser.wait_text("#ask-empty", "It knows nothing yet");
    visitor.teach_three(20);
    // photos of a class that is known are asked first
    visitor.teach("ball", &visitor.photos(Thing::Ball, 20..28));
    browser.wait_text("#lesson-done", "Before it learned them, it was right");
    browser.wait_text("#growth", "right");
    visitor.wait_for_classes(&[("ball", 28), ("board", 20), ("stripes", 20)]);
    assert_eq!(visitor.nearest(Thing::Stripes, 70), "stripes");
    assert_eq!(visitor.nearest(Thing::Board, 71), "board");
    let why = browser.text("#answers article:first-child .answer");
    assert!(why.contains("times as far from board"), "{why}");
    assert_eq!(visitor.ask(Thing::Star, 72), "Unknown");
    // the answer was wrong: it is taught, and taken back
    browser.type_into("#answers article:first-child form input", "star");
    browser.click_text("#answers article:first-child button", "Teach it so");
    browser.wait_text("#answers article:first-child", "Learned as star.");
    browser.click_text("#answers article:first-child button", "Undo");
    browser.wait_text("#answers article:first-child", "Undone.");
    visitor.wait_for_classes(&[("ball", 28), ("board", 20), ("stripes", 20)]);
}

fn correct_by_receipts(visitor: &Visitor) {
    let browser = &visitor.browser;
    visitor.teach("ball", &visitor.photos(Thing::Board, 30..33));
    visitor.wait_for_classes(&[("ball", 31), ("board", 20), ("stripes", 20)]);
    // receipts are in the browser, and survive a reload
    browser.reload();
    visitor.wait_for_classes(&[("ball", 31), ("board", 20), ("stripes", 20)]);
    pick(visitor, "board-30.png");
    pick(visitor, "board-31.png");
    browser.wait_text("#picked-text", "2 photos selected");
    browser.type_into("#picked-class", "board");
    browser.click("#picked-move");
    visitor.wait_for_classes(&[("ball", 29), ("board", 22), ("stripes", 20)]);
    pick(visitor, "board-32.png");
    browser.click("#picked-out");
    visitor.wait_for_classes(&[("ball", 28), ("board", 22), ("stripes", 20)]);
    browser.wait_text("#undo-text", "1 photo taken out");
    browser.click("#undo-button");
    visitor.wait_for_classes(&[("ball", 29), ("board", 22), ("stripes", 20)]);
    browser.wait_text("#undo-text", "moved to board");
    browser.click("#undo-button");
    visitor.wait_for_classes(&[("ball", 31), ("board", 20), ("stripes", 20)]);
    for name in ["board-30.png", "board-31.png", "board-32.png"] {
        pick(visitor, name);
    }
    browser.click("#picked-out");
    visitor.wait_for_classes(&[("ball", 28), ("board", 20), ("stripes", 20)]);
}

fn pick(visitor: &Visitor, name: &str) {
    let found = format!(
        "[...document.querySelectorAll('#gallery .choice')].find((one) => one.innerText.includes({name:?}))"
    );
    visitor.browser.wait(&found);
    visitor.browser.script(&format!("{found}.click()"));
}

fn name_an_unknown(visitor: &Visitor) {
    let browser = &visitor.browser;
    assert_eq!(visitor.ask(Thing::Star, 80), "Unknown");
    visitor.go("unknowns");
    browser.wait_text("#unknown-list", "star-80.png");
    let entry = "#unknown-list article:last-of-type";
    browser.type_into(&format!("{entry} input"), "star");
    browser.click_text(&format!("{entry} button"), "Teach");
    browser.wait_text("#state", "4 classes");
    while browser.value("document.querySelectorAll('#unknown-list article').length") != 0 {
        let left = browser.value("document.querySelectorAll('#unknown-list article').length");
        browser.click_text("#unknown-list button", "Drop it");
        browser
            .wait(&format!("document.querySelectorAll('#unknown-list article').length < {left}"));
    }
    browser.wait_text("#unknown-list", "Nothing waits");
    visitor.wait_for_classes(&[("ball", 28), ("board", 20), ("star", 1), ("stripes", 20)]);
}

/// Returns the hash of the model.
fn look_at_quality(visitor: &Visitor) -> String {
    let browser = &visitor.browser;
    visitor.go("quality");
    browser.wait_text("#quality-tiles", "Right, asked before learned");
    browser.wait_text("#quality-classes", "stripes");
    browser.wait("document.querySelectorAll('#map polygon').length === 4");
    // the photo asked last is a point
    browser.wait("document.querySelector('#map .query-point')");
    let wide = browser.value("document.querySelector('#map svg').getAttribute('viewBox')");
    browser.click("#map-in");
    assert_ne!(browser.value("document.querySelector('#map svg').getAttribute('viewBox')"), wide);
    browser.click("#map-all");
    assert_eq!(browser.value("document.querySelector('#map svg').getAttribute('viewBox')"), wide);
    hash(visitor)
}

fn hash(visitor: &Visitor) -> String {
    let details =
        visitor.browser.script("return fetch('api/v1/models/pets').then((one) => one.json())");
    details["hash"].as_str().unwrap().to_owned()
}

fn rename_and_forget(visitor: &Visitor) {
    let browser = &visitor.browser;
    visitor.go("correct");
    browser.click("#class-table [aria-label='Rename stripes']");
    visitor.answer(Some("zebra"));
    visitor.wait_for_classes(&[("ball", 28), ("board", 20), ("star", 1), ("zebra", 20)]);
    let before = hash(visitor);
    browser.click("#class-table [aria-label='Forget star']");
    visitor.answer(None);
    browser.wait_text("#forget-receipt", "star is forgotten");
    visitor.wait_for_classes(&[("ball", 28), ("board", 20), ("zebra", 20)]);
    browser.click_text("#forget-receipt button", "Save receipt");
    let receipt = std::fs::read(browser.downloaded("forgotten-star.json")).unwrap();
    let receipt: Value = serde_json::from_slice(&receipt).unwrap();
    assert_eq!(receipt["hash_before"], before);
    assert_eq!(receipt["hash"], hash(visitor));
}

fn download_and_merge(visitor: &Visitor) {
    let browser = &visitor.browser;
    visitor.go("keep");
    browser.wait_text("#journal", "learned");
    browser.wait_text("#audit", "all classes");
    browser.click("#download");
    let model = browser.downloaded("pets.ivoro");
    assert_eq!(blake3::hash(&std::fs::read(&model).unwrap()).to_hex().as_str(), hash(visitor));
    let names: Vec<String> = ivoro_io::load(&model)
        .unwrap()
        .head()
        .classes()
        .iter()
        .map(|class| class.name.clone())
        .collect();
    assert_eq!(names, ["ball", "board", "zebra"]);
    let copy = learned_elsewhere(&model);
    let ancestor = visitor.served.path("ancestor.ivoro");
    std::fs::copy(&model, &ancestor).unwrap();
    browser.choose("#merge-model", &[copy.path("pets.ivoro")]);
    browser.click("#merge-form summary");
    browser.choose("#merge-ancestor", &[ancestor]);
    browser.click_text("#merge-form button", "Merge");
    browser.wait_text("#state", "4 classes");
    visitor.wait_for_classes(&[("ball", 28), ("board", 20), ("star", 20), ("zebra", 20)]);
    // what is no model is refused with a sentence, of which the console tells too
    visitor.was_quiet();
    visitor.go("keep");
    let photo = visitor.photos(Thing::Ball, 0..1);
    browser.choose("#upload-model", &photo);
    browser.click_text("#upload-form button", "Replace");
    browser.wait("document.querySelector('#question').open");
    browser.click("#question-yes");
    browser.wait("document.querySelector('#question-error').innerText.length > 10");
    browser.click("#question-no");
    browser.log();
}

/// A copy of a model that learned something on another server.
fn learned_elsewhere(model: &Path) -> Served {
    let served = Served::with(|folder, _| {
        std::fs::copy(model, folder.join("pets.ivoro")).unwrap();
    });
    let mut visitor = Visitor::arrive_at(served, &[]);
    visitor.teach("star", &visitor.photos(Thing::Star, 90..110));
    visitor.served.stop();
    visitor.served
}

fn survive_a_restart(visitor: &mut Visitor, earlier: &str) {
    let before = hash(visitor);
    assert_ne!(before, earlier);
    visitor.served.stop();
    visitor.served.again();
    visitor.browser.reload();
    visitor.wait_for_classes(&[("ball", 28), ("board", 20), ("star", 20), ("zebra", 20)]);
    assert_eq!(hash(visitor), before);
    // the receipts are still of use
    pick(visitor, "ball-20.png");
    visitor.browser.click("#picked-out");
    visitor.wait_for_classes(&[("ball", 27), ("board", 20), ("star", 20), ("zebra", 20)]);
}

#[test]
fn folders_and_zips_become_classes() {
    let visitor = Visitor::arrive();
    let things = [Thing::Ball, Thing::Board];
    let archive = visitor.served.path("photos.zip");
    let mut zip = zip::ZipWriter::new(std::fs::File::create(&archive).unwrap());
    let packed = [zip::CompressionMethod::Stored, zip::CompressionMethod::Deflated];
    for (thing, method) in things.into_iter().zip(packed) {
        let options = zip::write::SimpleFileOptions::default().compression_method(method);
        for photo in visitor.photos(thing, 0..6) {
            let name = photo.file_name().unwrap().to_str().unwrap();
            zip.start_file(format!("all/{}/{name}", thing.name()), options).unwrap();
            std::io::Write::write_all(&mut zip, &std::fs::read(&photo).unwrap()).unwrap();
        }
        zip.start_file(format!("all/{}/notes.txt", thing.name()), options).unwrap();
    }
    // the end of it says that it is a photo, and it is none
    zip.start_file("all/ball/broken.jpg", zip::write::SimpleFileOptions::default()).unwrap();
    std::io::Write::write_all(&mut zip, b"no photo").unwrap();
    zip.finish().unwrap();
    let browser = &visitor.browser;
    visitor.go("teach");
    browser.choose("#teach-files", &[archive]);
    browser.wait_text("#teach-go", "Teach 13 photos in 2 classes");
    browser.click("#teach-go");
    browser.wait_text("#lesson-done h3", "Learned 12 photos of ball, board");
    browser.wait_text("#lesson-done", "broken.jpg");
    // one press of undo takes back all that one press of teach did
    browser.click_text("#lesson-done button", "Undo");
    browser.wait_text("#lesson-done", "Undone.");
    browser.wait_text("#state", "0 classes");
    visitor.was_quiet();
}

#[test]
fn photos_and_folders_are_dropped_and_pasted() {
    let visitor = Visitor::arrive();
    let browser = &visitor.browser;
    for thing in [Thing::Ball, Thing::Board] {
        visitor.photos(thing, 0..5);
    }
    let folders = ["ball", "board"].map(|name| visitor.served.path(name));
    std::fs::write(folders[0].join("notes.txt"), "no photo").unwrap();
    visitor.go("teach");
    browser.drop_on("#teach-drop", &folders);
    browser.wait_text("#teach-go", "Teach 10 photos in 2 classes");
    browser.click("#teach-go");
    browser.wait_text("#lesson-done h3", "Learned 10 photos of ball, board");
    visitor.go("ask");
    browser.drop_on("#ask-drop", &visitor.photos(Thing::Board, 40..41));
    browser.wait_text("#answers .top li:first-child", "board");
    // a picture on the clipboard
    visitor.go("teach");
    browser.script(
        "const canvas = document.createElement('canvas'); canvas.width = canvas.height = 64; const clip = new DataTransfer(); return new Promise((done) => canvas.toBlob((blob) => { clip.items.add(new File([blob], 'clip.png', { type: 'image/png' })); document.dispatchEvent(new ClipboardEvent('paste', { clipboardData: clip, bubbles: true })); done(); }));",
    );
    browser.wait_text("#teach-go", "Teach 1 photo");
    visitor.was_quiet();
}

#[test]
fn the_page_follows_what_others_teach() {
    let visitor = Visitor::arrive();
    visitor.teach_three(4);
    visitor.browser.script(
        "return fetch('api/v1/models/pets/classes/ball', { method: 'PATCH', headers: { 'Content-Type': 'application/json' }, body: '{\"name\":\"globe\"}' })",
    );
    visitor.go("teach");
    visitor.browser.wait_text("#known", "globe");
}

#[test]
fn two_visits_share_a_model_and_not_their_receipts() {
    let visitor = Visitor::arrive();
    visitor.teach_three(4);
    let other = crate::chromium::Browser::start(&[]);
    other.open(&visitor.served.section("correct"));
    other.wait_text("#class-table", "stripes");
    other.wait_text("#gallery", "None yet.");
    drop(other);
    // another server has another model
    let elsewhere = Served::start();
    visitor.browser.open(&elsewhere.section("teach"));
    visitor.browser.wait_text("#known", "Nothing yet.");
}
