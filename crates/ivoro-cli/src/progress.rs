//! Progress on standard error, and Ctrl-C that lets the step in hand finish.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

static STOPPED: AtomicBool = AtomicBool::new(false);

/// From now on Ctrl-C asks to stop; a second one ends the program at once.
pub(crate) fn catch_interrupts() {
    let handler = || {
        if STOPPED.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
    };
    // a second handler can't be set; then the first one serves
    let _ = ctrlc::set_handler(handler);
}

/// Whether Ctrl-C was pressed.
pub(crate) fn interrupted() -> bool {
    STOPPED.load(Ordering::SeqCst)
}

/// A bar with the time left; it shows only on a terminal.
pub(crate) fn bar(steps: usize) -> ProgressBar {
    let bar = ProgressBar::new(steps as u64);
    let style = "{bar:30} {pos}/{len}  {elapsed} gone, about {eta} left  {wide_msg}";
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// A spinner for one step of unknown length.
pub(crate) fn spinner(message: &str) -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    bar.set_message(message.to_owned());
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
