//! Without a pointer.

use crate::chromium::{Browser, ENTER, TAB};
use crate::page::Visitor;
use crate::pictures::Thing;

/// What has the focus.
fn focused(browser: &Browser) -> String {
    let code = "(() => { const one = document.activeElement; return one.id || one.getAttribute('aria-label') || one.hash || one.innerText.trim(); })()";
    browser.value(code).as_str().unwrap().to_owned()
}

/// Presses the tab key until this has the focus, which has to be seen.
#[track_caller]
fn tab_to(browser: &Browser, wanted: &str) {
    let mut passed = Vec::new();
    for _ in 0..80 {
        browser.press(TAB);
        let name = focused(browser);
        let seen = "(() => { const one = document.activeElement; const ring = (it) => it && getComputedStyle(it).outlineStyle !== 'none' && parseFloat(getComputedStyle(it).outlineWidth) >= 2; return one === document.body || ring(one) || ring(one.closest('label')); })()";
        assert_eq!(browser.value(seen), true, "the focus on {name} can't be seen");
        if name == wanted {
            return;
        }
        passed.push(name);
    }
    panic!("{wanted} can't be reached by the tab key, only {passed:?}");
}

#[test]
fn everything_is_done_by_keys() {
    let visitor = Visitor::arrive();
    let browser = &visitor.browser;
    for thing in [Thing::Ball, Thing::Stripes] {
        visitor.go("teach");
        browser.value("document.activeElement.blur()");
        browser.choose("#teach-files", &visitor.photos(thing, 0..4));
        browser.wait_text("#teach-go", "Teach 4 photos");
        tab_to(browser, "teach-name");
        browser.press(thing.name());
        browser.press(ENTER);
        browser.wait_text("#lesson-done h3", &format!("Learned 4 photos of {}", thing.name()));
        // the focus does not get lost
        assert!(focused(browser).starts_with("Learned"), "{}", focused(browser));
    }
    tab_to(browser, "#correct");
    browser.press(ENTER);
    browser.wait("document.activeElement.id === 'correct-h'");
    tab_to(browser, "Rename ball");
    browser.press(ENTER);
    browser.wait("document.querySelector('#question').open");
    assert_eq!(focused(browser), "question-input");
    browser.press("globe");
    browser.press(ENTER);
    visitor.wait_for_classes(&[("globe", 4), ("stripes", 4)]);
    browser.value("document.activeElement.blur()");
    tab_to(browser, "#quality");
    browser.press(ENTER);
    browser.wait("document.querySelectorAll('#map polygon').length === 2");
    let map = browser.value("document.querySelector('#map svg').getAttribute('aria-label')");
    tab_to(browser, map.as_str().unwrap());
    let view = || browser.value("document.querySelector('#map svg').getAttribute('viewBox')");
    let whole = view();
    browser.press("+");
    browser.press("\u{e014}");
    assert_ne!(view(), whole);
    browser.press("0");
    assert_eq!(view(), whole);
    visitor.was_quiet();
}
