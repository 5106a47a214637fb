//! What all requests share.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::{Semaphore, watch};

use crate::access::Access;
use crate::annotations::Ledgers;
use crate::gate::Gate;
use crate::metrics::Metrics;
use crate::options::{Limits, Options};
use crate::problem::Problem;
use crate::shelf::Shelf;
use crate::start_error::StartError;
use crate::store::Store;

/// Bytes that one permit of the budget for bodies stands for.
pub(crate) const PERMIT: usize = 1 << 10;
/// Bodies at once are at most so many times the longest one.
const BODIES: usize = 8;

/// What all requests share.
pub(crate) struct App {
    pub(crate) store: Store,
    pub(crate) access: Access,
    pub(crate) gate: Gate,
    pub(crate) shelf: Shelf,
    pub(crate) limits: Limits,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) read_only: bool,
    pub(crate) clock: fn() -> u64,
    pub(crate) stopping: AtomicBool,
    /// Tells those who listen to events that the end has come.
    pub(crate) closing: watch::Sender<bool>,
    /// Memory for bodies that are being read and worked on.
    pub(crate) bodies: Arc<Semaphore>,
    /// What annotations of Label Studio taught.
    pub(crate) annotations: Ledgers,
    heavy: Arc<Semaphore>,
    waiting: AtomicUsize,
    /// The description of the API.
    pub(crate) openapi: std::sync::OnceLock<String>,
}

impl App {
    pub(crate) fn open(options: &Options, address: SocketAddr) -> Result<Arc<Self>, StartError> {
        let metrics = Arc::new(Metrics::new());
        let limits = options.limits;
        let access = Access::open(options.token_file.as_deref(), limits.wrong_tokens)?;
        if access.is_open() && !address.ip().is_loopback() {
            return Err(StartError::NeedsTokens { address });
        }
        let permits =
            (BODIES * limits.body.max(limits.model / BODIES) / PERMIT).min(Semaphore::MAX_PERMITS);
        Ok(Arc::new(Self {
            store: Store::open(options, &metrics)?,
            access,
            gate: Gate::new(options, address),
            shelf: Shelf::new(options.networks.clone()),
            limits,
            metrics,
            read_only: options.read_only,
            clock: options.clock,
            stopping: AtomicBool::new(false),
            closing: watch::Sender::new(false),
            bodies: Arc::new(Semaphore::new(permits)),
            annotations: Ledgers::default(),
            heavy: Arc::new(Semaphore::new(limits.heavy.max(1))),
            waiting: AtomicUsize::new(0),
            openapi: std::sync::OnceLock::new(),
        }))
    }

    /// Refuses changes where there may be none.
    pub(crate) fn writable(&self) -> Result<(), Problem> {
        if self.read_only {
            let detail = "this server was started with --read-only: nothing can be changed";
            return Err(Problem::forbidden(detail));
        }
        if self.stopping.load(Ordering::SeqCst) {
            return Err(Problem::busy("the server is stopping"));
        }
        Ok(())
    }

    /// Computes beside those who answer, few at a time; those for whom there is no room are told so.
    pub(crate) async fn heavy<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let busy =
            || Problem::busy("too many images or large batches at once; try again in a moment");
        if self.waiting.fetch_add(1, Ordering::SeqCst) >= self.limits.waiting {
            self.waiting.fetch_sub(1, Ordering::SeqCst);
            return Err(busy());
        }
        let leaving = Leaving(&self.waiting);
        let permit = Arc::clone(&self.heavy).acquire_owned().await;
        drop(leaving);
        let permit = permit.map_err(|_| busy())?;
        let done = tokio::task::spawn_blocking(move || {
            let outcome = work();
            drop(permit);
            outcome
        });
        done.await.unwrap_or_else(|_| Err(Problem::internal()))
    }
}

/// Counts down, also where whoever waited has gone.
struct Leaving<'a>(&'a AtomicUsize);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
