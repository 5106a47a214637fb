//! The browser that the tests of the served page drive.

use std::process::Command;

use crate::command::succeeds;
use crate::debian;

/// What Debian calls them.
const PACKAGES: [&str; 2] = ["chromium", "chromium-driver"];
/// What both bring, as it is called.
const PROGRAMS: [&str; 2] = ["chromium", "chromedriver"];

/// Finds Chromium and its driver; installs them where that is possible.
pub(crate) fn environment() -> Option<()> {
    if !found() && debian::may_install() {
        debian::install(&PACKAGES)?;
    }
    if found() {
        return Some(());
    }
    eprintln!("the tests of the page need Chromium and its driver:");
    eprintln!("  sudo apt-get install {}", PACKAGES.join(" "));
    None
}

fn found() -> bool {
    PROGRAMS.iter().all(|program| succeeds(Command::new(program).arg("--version")))
}
