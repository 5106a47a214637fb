//! The camera: a film in the place of a real one.

use std::time::Duration;

use crate::page::Visitor;
use crate::pictures::{Thing, film};
use crate::served::Served;

#[test]
fn the_camera_teaches_while_its_button_is_held_and_asks_live() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("camera.mjpeg");
    film(&path, Thing::Board, 20);
    let flag = format!("--use-file-for-fake-video-capture={}", path.display());
    let visitor = Visitor::arrive_at(Served::start(), &[&flag]);
    let browser = &visitor.browser;
    visitor.teach("ball", &visitor.photos(Thing::Ball, 0..12));
    visitor.go("teach");
    browser.type_into("#teach-name", "board");
    browser.click("#teach-camera-button");
    browser.wait("document.querySelector('#teach-camera video')?.videoWidth > 0");
    browser.hold("#teach-camera .hold", Duration::from_millis(2600));
    browser.wait_text("#tray", "photos");
    let taken =
        browser.value("Number(document.querySelector('#tray .numbers').innerText.split(' ')[0])");
    assert!((6..=14).contains(&taken.as_u64().unwrap()), "{taken}");
    // the key that presses a button holds it too
    browser.value("document.querySelector('#teach-camera .hold').focus()");
    browser.press(" ");
    let expected = taken.as_u64().unwrap() + 1;
    browser.wait_text("#teach-go", &format!("Teach {expected} photos"));
    browser.click("#teach-go");
    browser.wait_text("#lesson-done h3", &format!("Learned {expected} photos of board"));
    // the light of the camera goes out
    browser.wait("!document.querySelector('video')");
    visitor.go("ask");
    browser.click("#ask-camera-button");
    browser.wait_text("#ask-camera .verdict", "board");
    browser.click_text("#ask-camera button", "Keep this answer");
    browser.wait_text("#answers .top li:first-child", "board");
    visitor.go("correct");
    browser.wait("!document.querySelector('video')");
    visitor.was_quiet();
}

#[test]
fn where_no_camera_can_work_a_file_field_takes_over() {
    let served = Served::with(|_, options| options.hosts.push("phone.test".to_owned()));
    let visitor = Visitor::arrive_at(served, &["--host-resolver-rules=MAP phone.test 127.0.0.1"]);
    let browser = &visitor.browser;
    let address = visitor.served.address().replace("127.0.0.1", "phone.test");
    browser.open(&format!("{address}#teach"));
    browser.wait_text("#teach-camera-button", "The camera needs https or localhost");
    assert_eq!(browser.value("document.querySelector('#teach-camera-button').disabled"), true);
    assert_eq!(
        browser
            .value("document.querySelector('#teach-drop input[capture]').getAttribute('capture')"),
        "environment"
    );
    browser.type_into("#teach-name", "ball");
    browser.choose("#teach-drop input[capture]", &visitor.photos(Thing::Ball, 0..2));
    browser.wait_text("#teach-go", "Teach 2 photos");
    browser.click("#teach-go");
    browser.wait_text("#lesson-done h3", "Learned 2 photos of ball");
    browser.open(&format!("{address}#ask"));
    browser.wait_text("#ask-camera-button", "The camera needs https or localhost");
}
