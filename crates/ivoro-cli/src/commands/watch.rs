//! The verb `watch`: photos answered as they come into a folder.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anstream::eprintln;
use ivoro_io::{FileLock, load};
use ivoro_vision::Recogniser;
use ivoro_vision::recogniser::Classifier as _;
use ivoro_vision::watch::{Format, Rows, Sorter, Step, WatchOptions, Watcher, header};

use crate::args::{RowFormat, WatchArguments};
use crate::failure::Failure;
use crate::table::visible;
use crate::{output, progress};

/// How long a photo's size has to stand still.
const SETTLE: Duration = Duration::from_millis(900);
/// How often it is seen whether Ctrl-C was pressed, while nothing comes.
const NAP: Duration = Duration::from_millis(50);

/// Watches a folder.
pub(crate) fn watch(arguments: &WatchArguments) -> Result<(), Failure> {
    let every = Duration::try_from_secs_f64(arguments.every)
        .map_err(|_| Failure::Usage(format!("--every {}: not a time", arguments.every)))?;
    if arguments.burst_seconds.is_some_and(|seconds| !(0.0..=86_400.0).contains(&seconds)) {
        return Err(Failure::Usage("--burst-seconds: from 0 to 86400".to_owned()));
    }
    let model = load(&arguments.model)?;
    let reject = match model.threshold(arguments.reject) {
        Ok(_) => Some(arguments.reject),
        Err(ivoro::Error::Unsupported { what }) => {
            eprintln!("note: nothing is rejected: {what}");
            None
        }
        Err(error) => return Err(error.into()),
    };
    let network = arguments.look.open(model.taught())?;
    let recogniser = Recogniser::new(model, network)?;
    let format = match arguments.format {
        RowFormat::Csv => Format::Csv,
        RowFormat::Jsonl => Format::Jsonl,
    };
    let place = place_of_rows(arguments);
    if let Some(target) = &arguments.sort_into {
        output::make_folder(target)?;
    }
    // held until the end: two processes would write each photo twice
    let _lock = place.as_deref().map(FileLock::acquire).transpose()?;
    let sorter = match &arguments.sort_into {
        Some(target) => Some(Sorter::open(target, arguments.keep.keep())?),
        None => None,
    };
    let rows = place.as_deref().map(|path| Rows::open(path, format)).transpose()?;
    let options = WatchOptions {
        folder: arguments.folder.clone(),
        settle: SETTLE,
        burst_seconds: arguments.burst_seconds,
        reject,
    };
    let watcher = Watcher::new(recogniser, &options, rows, sorter)?;
    if place.is_none() && format == Format::Csv {
        output::print(&header())?;
    }
    run(arguments, watcher, place.is_none().then_some(format), every)
}

/// Where rows are kept; none where they go to standard output.
fn place_of_rows(arguments: &WatchArguments) -> Option<PathBuf> {
    let name = if arguments.format == RowFormat::Csv { "rows.csv" } else { "rows.jsonl" };
    let beside = arguments.sort_into.as_ref().map(|target| target.join(name));
    arguments.out.clone().or(beside)
}

/// Looks again and again. Rows are printed in this format, where no file takes them.
fn run(
    arguments: &WatchArguments,
    mut watcher: Watcher,
    printed: Option<Format>,
    every: Duration,
) -> Result<(), Failure> {
    progress::catch_interrupts();
    let start = Instant::now();
    let go_on = || !progress::interrupted();
    let (mut answered, mut trouble) = (0, None);
    for look in 0.. {
        // the second look of --once is the last: what stood still since the first is whole
        let last = arguments.once && look > 0;
        let step = watcher.step(start.elapsed(), last, &go_on)?;
        answered += step.rows.len();
        if let Some(format) = printed {
            let lines: String = step.rows.iter().map(|row| row.line(format)).collect();
            output::print(&lines)?;
        }
        tell(&step, &mut trouble);
        if let (Some(text), true) = (&step.trouble, arguments.once) {
            return Err(Failure::Usage(text.clone()));
        }
        if progress::interrupted() {
            return Err(Failure::Interrupted);
        }
        if last {
            told(answered, step.waiting);
            return Ok(());
        }
        nap(if arguments.once { SETTLE } else { every })?;
    }
    Ok(())
}

fn tell(step: &Step, trouble: &mut Option<String>) {
    for why in &step.unreadable {
        eprintln!("note: {}; tried again when it has changed", visible(why));
    }
    if step.trouble != *trouble {
        if let Some(text) = &step.trouble {
            eprintln!("note: {}; tried again", visible(text));
        }
        trouble.clone_from(&step.trouble);
    }
}

fn told(answered: usize, waiting: usize) {
    let more = if waiting > 0 { format!(", {waiting} still being written") } else { String::new() };
    eprintln!("{answered} answered{more}");
}

/// Waits, and ends at once on Ctrl-C.
fn nap(time: Duration) -> Result<(), Failure> {
    let end = Instant::now() + time;
    loop {
        if progress::interrupted() {
            return Err(Failure::Interrupted);
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        std::thread::sleep(left.min(NAP));
    }
}
