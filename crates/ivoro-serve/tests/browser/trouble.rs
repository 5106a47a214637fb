//! When the server goes away in the middle.

use crate::page::Visitor;
use crate::pictures::Thing;

#[test]
fn a_lesson_waits_for_a_server_that_was_lost_and_counts_once() {
    let mut visitor = Visitor::arrive();
    visitor.teach("ball", &visitor.photos(Thing::Ball, 0..8));
    visitor.go("teach");
    let photos = visitor.photos(Thing::Board, 0..20);
    visitor.browser.type_into("#teach-name", "board");
    visitor.browser.choose("#teach-files", &photos);
    visitor.browser.wait_text("#teach-go", "Teach 20 photos");
    visitor.served.stop();
    visitor.browser.click("#teach-go");
    visitor.browser.wait_text("#lost", "The server does not answer");
    visitor.served.again();
    visitor.browser.wait_text("#lesson-done h3", "Learned 20 photos of board");
    visitor.browser.wait("document.querySelector('#lost').hidden");
    visitor.wait_for_classes(&[("ball", 8), ("board", 20)]);
}

#[test]
fn an_answer_that_was_lost_on_its_way_does_not_teach_twice() {
    let visitor = Visitor::arrive();
    visitor.go("teach");
    let browser = &visitor.browser;
    // the first answer to a lesson never arrives
    browser.script(
        "const real = window.fetch; let lost = 0; window.fetch = async (address, options) => { const answer = await real(address, options); if (options?.method === 'POST' && String(address).includes('/samples') && lost++ === 0) throw new TypeError('lost'); return answer; };",
    );
    browser.type_into("#teach-name", "ball");
    browser.choose("#teach-files", &visitor.photos(Thing::Ball, 0..6));
    browser.wait_text("#teach-go", "Teach 6 photos");
    browser.click("#teach-go");
    browser.wait_text("#lesson-done h3", "Learned 6 photos of ball");
    visitor.wait_for_classes(&[("ball", 6)]);
    // the repeated answer has the receipts too
    browser.wait("document.querySelectorAll('#gallery .choice').length === 6");
}

#[test]
fn what_the_server_refuses_is_said_in_its_words() {
    let visitor = Visitor::arrive();
    visitor.go("teach");
    let browser = &visitor.browser;
    let path = visitor.served.path("broken.png");
    std::fs::write(&path, b"no photo").unwrap();
    browser.type_into("#teach-name", "ball");
    browser.choose("#teach-files", &[path]);
    browser.click("#teach-go");
    browser.wait_text("#lesson-done h3", "Nothing was learned");
    browser.wait_text("#lesson-done", "broken.png");
    visitor.teach_three(3);
    visitor.go("correct");
    browser.click("#class-table [aria-label='Rename ball']");
    browser.wait("document.querySelector('#question').open");
    browser.type_into("#question-input", "board");
    browser.click("#question-yes");
    browser.wait_text("#question-error", "There is a class board already");
    browser.click("#question-no");
    visitor.wait_for_classes(&[("ball", 3), ("board", 3), ("stripes", 3)]);
}
