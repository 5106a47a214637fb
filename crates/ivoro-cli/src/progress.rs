//! Progress on standard error, and Ctrl-C that is answered at once.

use std::io::{IsTerminal, stderr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anstream::eprintln;
use indicatif::{HumanDuration, ProgressBar, ProgressStyle};

static STOPPED: AtomicBool = AtomicBool::new(false);
/// Whether the program has seen that, and is putting in order what is finished.
static SEEN: AtomicBool = AtomicBool::new(false);

/// Whether all that the command changes is written at its end, in one step.
static WRITES_AT_THE_END: AtomicBool = AtomicBool::new(false);
/// Whether that is being written: Ctrl-C comes too late.
static WRITING: AtomicBool = AtomicBool::new(false);

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
        if WRITING.load(Ordering::SeqCst) {
            return;
        }
        ivoro::interrupt::request();
        std::thread::spawn(|| {
            std::thread::sleep(GRACE);
            if !SEEN.load(Ordering::SeqCst) {
                eprintln!("{}", stopped());
                std::process::exit(130);
            }
        });
    };
    // a second handler can't be set; then the first one serves
    let _ = ctrlc::set_handler(handler);
}

/// The same for a command that changes nothing until [`begin_writing`].
pub(crate) fn catch_interrupts_until_written() {
    WRITES_AT_THE_END.store(true, Ordering::SeqCst);
    catch_interrupts();
}

/// From now on the command ends what it does, whoever presses Ctrl-C; `false` if that was pressed before.
pub(crate) fn begin_writing() -> bool {
    // in this order: either the handler sees that it is too late, or this sees that it is not
    WRITING.store(true, Ordering::SeqCst);
    !interrupted()
}

/// What became of a command that Ctrl-C has stopped.
pub(crate) fn stopped() -> &'static str {
    if WRITES_AT_THE_END.load(Ordering::SeqCst) {
        "stopped; nothing was changed"
    } else {
        "stopped; what was finished is kept"
    }
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

/// A bar with the time left; where there is no terminal, a line now and then.
pub(crate) fn bar(steps: usize) -> ProgressBar {
    let bar = ProgressBar::new(steps as u64);
    let style = "{bar:30} {pos}/{len}  {elapsed} gone, about {eta} left  {wide_msg}";
    if let Ok(style) = ProgressStyle::with_template(style) {
        bar.set_style(style);
    }
    shown(bar)
}

/// A spinner for one step of unknown length.
pub(crate) fn spinner(message: &str) -> ProgressBar {
    begun(ProgressBar::new_spinner(), message)
}

/// The same of a spinner that was made before its step began.
pub(crate) fn begun(spinner: ProgressBar, message: &str) -> ProgressBar {
    spinner.set_message(message.to_owned());
    shown(spinner)
}

fn shown(bar: ProgressBar) -> ProgressBar {
    if stderr().is_terminal() {
        bar.enable_steady_tick(Duration::from_millis(200));
    } else {
        print_lines(&bar);
    }
    bar
}

/// What takes less prints no line.
const SOON: Duration = Duration::from_secs(2);
/// From one line to the next.
const PERIOD: Duration = Duration::from_secs(10);
/// How often is looked whether it has ended.
const LOOK: Duration = Duration::from_millis(100);

/// Prints lines about a step until it has ended, beside it.
fn print_lines(bar: &ProgressBar) {
    let (seen, begun) = (bar.downgrade(), Instant::now());
    std::thread::spawn(move || {
        let mut next = SOON;
        loop {
            std::thread::sleep(LOOK);
            let Some(bar) = seen.upgrade().filter(|bar| !bar.is_finished()) else { return };
            let gone = begun.elapsed();
            if gone >= next {
                next = if next == SOON { PERIOD } else { next + PERIOD };
                eprintln!("{}", line((bar.position(), bar.length()), gone, &bar.message()));
            }
        }
    });
}

/// "iVoro-N: 3 of 9, 30 seconds gone, about 60 seconds left".
fn line((done, all): (u64, Option<u64>), gone: Duration, message: &str) -> String {
    let mut text = format!("{} gone", HumanDuration(gone));
    if let Some(all) = all {
        let left = gone.mul_f64(all.saturating_sub(done) as f64 / done.max(1) as f64);
        let left =
            if done == 0 { String::new() } else { format!(", about {} left", HumanDuration(left)) };
        text = format!("{done} of {all}, {text}{left}");
    }
    if message.is_empty() { text } else { format!("{message}: {text}") }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::line;

    #[test]
    fn a_line_says_how_far_it_is_and_what_is_left() {
        let gone = Duration::from_secs(30);
        assert_eq!(line((0, Some(4)), gone, ""), "0 of 4, 30 seconds gone");
        let some = line((3, Some(9)), gone, "images");
        assert_eq!(some, "images: 3 of 9, 30 seconds gone, about 60 seconds left");
        assert_eq!(
            line((12, Some(12)), gone, ""),
            "12 of 12, 30 seconds gone, about 0 seconds left"
        );
        assert_eq!(line((0, None), gone, "choosing ridge"), "choosing ridge: 30 seconds gone");
    }
}
