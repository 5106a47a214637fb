//! Who may do what: the page shows nothing that would be refused.

use ivoro_serve::{Right, new_token};

use crate::chromium::Browser;
use crate::page::Visitor;
use crate::pictures::Thing;
use crate::served::Served;

#[test]
fn the_page_asks_for_a_token_and_shows_what_it_allows() {
    let (teacher, teaching) = new_token("anna", Right::Teach).unwrap();
    let (asker, asking) = new_token("guest", Right::Ask).unwrap();
    let served = Served::with(|folder, options| {
        let tokens = folder.join("tokens");
        std::fs::write(&tokens, format!("{teaching}\n{asking}\n")).unwrap();
        options.token_file = Some(tokens);
    });
    let visitor = Visitor { browser: Browser::start(&[]), served };
    let browser = &visitor.browser;
    browser.open(&visitor.served.address());
    browser.wait("document.querySelector('#token-dialog').open");
    browser.type_into("#token", "wrong");
    browser.click_text("#token-dialog button", "Continue");
    browser.wait_text("#token-error", "not known");
    browser.type_into("#token", &teacher);
    browser.click_text("#token-dialog button", "Continue");
    browser.wait_text("#state", "0 classes");
    visitor.teach("ball", &visitor.photos(Thing::Ball, 0..4));
    visitor.teach("board", &visitor.photos(Thing::Board, 0..4));
    // who teaches may not replace the model
    visitor.go("keep");
    browser.wait_text("#journal", "anna");
    assert_eq!(browser.value("document.querySelector('#merge-form').checkVisibility()"), false);
    browser.script(&format!("sessionStorage.setItem('ivoro-token', {asker:?})"));
    browser.reload();
    browser.wait_text("#rights-note", "may ask");
    assert_eq!(
        browser.value("document.querySelector('nav a[href=\"#teach\"]').checkVisibility()"),
        false
    );
    assert_eq!(visitor.nearest(Thing::Ball, 9), "ball");
    assert_eq!(browser.value("document.querySelectorAll('#answers form').length"), 0);
}

#[test]
fn a_server_that_only_reads_says_so() {
    let mut visitor = Visitor::arrive();
    visitor.teach("ball", &visitor.photos(Thing::Ball, 0..4));
    visitor.teach("board", &visitor.photos(Thing::Board, 0..4));
    visitor.served.stop();
    visitor.served.options.read_only = true;
    visitor.served.again();
    visitor.browser.reload();
    visitor.browser.wait_text("#rights-note", "read-only");
    assert_eq!(visitor.nearest(Thing::Board, 9), "board");
    assert_eq!(visitor.browser.value("document.querySelectorAll('#answers form').length"), 0);
    visitor.go("keep");
    visitor.browser.click("#download");
    visitor.browser.downloaded("pets.ivoro");
}
