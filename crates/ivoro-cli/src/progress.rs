//! Progress on standard error, and Ctrl-C that is answered at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anstream::eprintln;
use indicatif::{ProgressBar, ProgressStyle};

use crate::failure::Failure;

static STOPPED: AtomicBool = AtomicBool::new(false);
/// Whether the program has seen that, and is putting in order what is finished.
static SEEN: AtomicBool = AtomicBool::new(false);

/// How long the step in hand may take to end, after it was asked to.
const GRACE: Duration = Duration::from_millis(150);

/// From now on Ctrl-C asks to stop. What computes ends within milliseconds; a step that can't be asked,
/// as one of another library, is given up, since all that is finished lies on the disk already. A second
/// Ctrl-C ends the program whatever it does.
pub(crate) fn catch_interrupts() {
    let handler = || {
        if STOPPED.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
        ivoro::interrupt::request();
        std::thread::spawn(|| {
            std::thread::sleep(GRACE);
            if !SEEN.load(Ordering::SeqCst) {
                eprintln!("{}", Failure::Interrupted.sentence());
                std::process::exit(130);
            }
        });
    };
    // a second handler can't be set; then the first one serves
    let _ = ctrlc::set_handler(handler);
}

/// Whether Ctrl-C was pressed.
pub(crate) fn interrupted() -> bool {
    let stopped = STOPPED.load(Ordering::SeqCst);
    if stopped {
        seen();
    }
    stopped
}

/// The computation has ended: what follows only puts in order what is finished.
pub(crate) fn seen() {
    ivoro::interrupt::clear();
    SEEN.store(true, Ordering::SeqCst);
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
