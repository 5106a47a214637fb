//! How many threads a call may use, and thread pools that survive a fork of the process.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Thread;
use std::time::Duration;

use ivoro::interrupt;
use pyo3::Python;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::types::PyAnyMethods as _;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::failure::{Failure, Outcome};

/// Pools by process and size. A child process has none of its parent's threads, so it must never
/// wait for a pool of the parent's.
static POOLS: Mutex<BTreeMap<(u32, usize), Arc<ThreadPool>>> = Mutex::new(BTreeMap::new());

/// Variables that bound the threads where no argument does, the first that is set.
const VARIABLES: [&str; 2] = ["RAYON_NUM_THREADS", "OMP_NUM_THREADS"];

/// How often signals are looked for.
const LOOK: Duration = Duration::from_millis(50);

/// More threads than that nobody wants.
const MOST: i64 = 1024;

/// Does the work without the interpreter's lock, on so many threads.
pub(crate) fn detached<T: Send>(
    py: Python<'_>,
    threads: Option<i64>,
    work: impl FnOnce() -> Outcome<T> + Send,
) -> Outcome<T> {
    beside(py, threads, |pool| pool.install(work))
}

/// The same for work that takes a lock before it goes to the pool. In the pool it must not: a thread
/// that waits there for a part of its work takes up other work meanwhile, and if that wanted the lock
/// which the thread itself holds, both would wait for ever.
pub(crate) fn beside<T: Send>(
    py: Python<'_>,
    threads: Option<i64>,
    work: impl FnOnce(&ThreadPool) -> Outcome<T> + Send,
) -> Outcome<T> {
    let pool = pool(count(threads)?)?;
    interruptible(py, || work(&pool))
}

/// Does the work on a thread of its own, without the interpreter's lock, while this one looks for
/// signals: Ctrl-C stops the work within milliseconds, and raises `KeyboardInterrupt`.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Outcome<T> + Send,
) -> Outcome<T> {
    let done = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        let waiting = std::thread::current();
        let worker = scope.spawn(move || {
            let end = End { done, waiting };
            let outcome = interrupt::catch(work);
            drop(end);
            outcome
        });
        let mut signal = None;
        while !done.load(Ordering::SeqCst) {
            py.detach(|| std::thread::park_timeout(LOOK));
            if signal.is_none()
                && let Err(raised) = py.check_signals()
            {
                interrupt::request();
                signal = Some(raised);
            }
        }
        let outcome = worker.join();
        if let Some(raised) = signal {
            interrupt::clear();
            let whole = matches!(outcome, Ok(Ok(Ok(_))));
            if !(whole && raised.is_instance_of::<PyKeyboardInterrupt>(py)) {
                return Err(raised.into());
            }
            // The work was done before it noticed. What it changed stands, so the caller has to hear of
            // it; Ctrl-C is raised right after.
            py.import("_thread")?.call_method0("interrupt_main")?;
        }
        match outcome {
            Ok(Ok(outcome)) => outcome,
            // another thread of Python was asked to stop, and so was all that computes
            Ok(Err(interrupt::Interrupted)) => {
                Err(PyKeyboardInterrupt::new_err("stopped with another call").into())
            }
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Wakes who waits for a piece of work when it ends, however that comes.
struct End<'a> {
    done: &'a AtomicBool,
    waiting: Thread,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.done.store(true, Ordering::SeqCst);
        self.waiting.unpark();
    }
}

/// The number of threads that a call with this argument uses.
pub(crate) fn count(threads: Option<i64>) -> Outcome<usize> {
    let cores = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    match threads {
        None => Ok(from_environment().map_or_else(cores, |count| count.min(MOST as usize))),
        Some(-1) => Ok(cores()),
        Some(threads @ 1..=MOST) => Ok(threads as usize),
        Some(other) => Err(Failure::value(format!(
            "threads = {other}: expected a positive number, -1 for all cores, or None"
        ))),
    }
}

fn from_environment() -> Option<usize> {
    VARIABLES.iter().find_map(|name| {
        let text = std::env::var(name).ok()?;
        // OpenMP allows one number for each level of nesting
        text.split(',').next()?.trim().parse().ok().filter(|&count| count > 0)
    })
}

fn pool(threads: usize) -> Outcome<Arc<ThreadPool>> {
    let key = (std::process::id(), threads);
    let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(pool) = pools.get(&key) {
        return Ok(Arc::clone(pool));
    }
    let named = |index| format!("ivoro-{index}");
    let built = ThreadPoolBuilder::new().num_threads(threads).thread_name(named).build();
    let refused = |error| Failure::value(format!("threads = {threads}: {error}"));
    let pool = Arc::new(built.map_err(refused)?);
    pools.insert(key, Arc::clone(&pool));
    Ok(pool)
}
