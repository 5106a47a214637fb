//! What a person does on the page, step by step.

use std::path::PathBuf;

use crate::chromium::Browser;
use crate::pictures::{Thing, photos};
use crate::served::Served;

/// A person at the page.
pub(crate) struct Visitor {
    pub(crate) browser: Browser,
    pub(crate) served: Served,
}

impl Visitor {
    /// Somebody who opens the page of a new model.
    pub(crate) fn arrive() -> Self {
        Self::arrive_at(Served::start(), &[])
    }

    /// Somebody with a browser of these flags who opens the page.
    pub(crate) fn arrive_at(served: Served, flags: &[&str]) -> Self {
        let visitor = Self { browser: Browser::start(flags), served };
        visitor.browser.open(&visitor.served.address());
        visitor.browser.wait_text("#state", "photo");
        visitor
    }

    pub(crate) fn go(&self, section: &str) {
        self.browser.open(&self.served.section(section));
        self.browser.wait(&format!("document.querySelector('#{section}').checkVisibility()"));
    }

    pub(crate) fn photos(&self, thing: Thing, seeds: std::ops::Range<u32>) -> Vec<PathBuf> {
        photos(self.served.folder(), thing, seeds)
    }

    /// Teaches photos under a name, and waits until they are learned.
    pub(crate) fn teach(&self, name: &str, files: &[PathBuf]) {
        self.go("teach");
        self.browser.type_into("#teach-name", name);
        self.browser.choose("#teach-files", files);
        self.browser.wait_text("#teach-go", &format!("Teach {}", counted(files.len())));
        self.browser.click("#teach-go");
        self.browser.wait_text("#lesson-done h3", &format!("Learned {}", counted(files.len())));
    }

    /// Teaches a ball, stripes and a board.
    pub(crate) fn teach_three(&self, each: u32) {
        for thing in [Thing::Ball, Thing::Stripes, Thing::Board] {
            self.teach(thing.name(), &self.photos(thing, 0..each));
        }
    }

    /// Asks about one photo and returns what the answer says first.
    pub(crate) fn ask(&self, thing: Thing, seed: u32) -> String {
        self.go("ask");
        let before = self.answers();
        self.browser.choose("#ask-files", &self.photos(thing, seed..seed + 1));
        self.browser.wait(&format!("document.querySelectorAll('#answers .top').length > {before}"));
        self.browser.text("#answers article:first-child .verdict").replace('\u{a0}', " ")
    }

    /// The nearest class of the photo asked last. One known photo in twenty is called unknown all the same.
    pub(crate) fn nearest(&self, thing: Thing, seed: u32) -> String {
        self.ask(thing, seed);
        self.browser.text("#answers article:first-child .top li:first-child .name")
    }

    fn answers(&self) -> u64 {
        self.browser.value("document.querySelectorAll('#answers .top').length").as_u64().unwrap()
    }

    /// Waits until the page lists these classes.
    pub(crate) fn wait_for_classes(&self, expected: &[(&str, u64)]) {
        self.go("correct");
        let mut lines: Vec<String> =
            expected.iter().map(|(name, count)| format!("{name}:{count}")).collect();
        lines.sort();
        let lines = lines.join(",");
        self.browser.wait(&format!(
            "[...document.querySelectorAll('#class-table li')].map((row) => row.querySelector('.name').innerText.trim() + ':' + row.querySelector('.numbers').innerText.split(' ')[0]).sort().join() === {lines:?}"
        ));
    }

    /// Answers the question that the page asks.
    pub(crate) fn answer(&self, text: Option<&str>) {
        self.browser.wait("document.querySelector('#question').open");
        if let Some(text) = text {
            self.browser.type_into("#question-input", text);
        }
        self.browser.click("#question-yes");
        self.browser.wait("!document.querySelector('#question').open");
    }

    /// The console has no error, and nothing was asked of anybody else.
    pub(crate) fn was_quiet(&self) {
        let errors: Vec<_> =
            self.browser.log().into_iter().filter(|(level, _)| level == "SEVERE").collect();
        assert!(errors.is_empty(), "{errors:?}");
        let own_address = self.served.address();
        let own = |address: &String| {
            let begins = |with: &&str| address.starts_with(*with);
            [own_address.as_str(), "blob:", "data:", "chrome://", "about:"].iter().any(begins)
        };
        let elsewhere: Vec<String> =
            self.browser.requests().into_iter().filter(|it| !own(it)).collect();
        assert!(elsewhere.is_empty(), "{elsewhere:?}");
    }
}

fn counted(photos: usize) -> String {
    if photos == 1 { "1 photo".to_owned() } else { format!("{photos} photos") }
}
