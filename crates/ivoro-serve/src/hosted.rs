//! A served model: what is asked, and the queue to the one thread that changes it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use arc_swap::{ArcSwap, Guard};
use ivoro_io::FileLock;
use serde::Serialize;
use tokio::sync::{broadcast, oneshot};
use utoipa::ToSchema;

use crate::change::{Applied, Change};
use crate::held::hold;
use crate::keys::{Key, Keys, Known, beside};
use crate::metrics::Metrics;
use crate::names::ModelName;
use crate::options::Options;
use crate::problem::Problem;
use crate::record::Record;
use crate::snapshot::{NO_HASH, Snapshot};
use crate::start_error::StartError;
use crate::undo::Undo;
use crate::unknowns::Unknowns;
use crate::who::Who;

/// Events that a slow listener may miss at most before it is told the newest.
const EVENTS: usize = 16;

/// A change that was made.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Event {
    /// How many changes there were since the server began.
    pub(crate) generation: u64,
    /// The hash of the model.
    pub(crate) hash: String,
    /// Its classes.
    pub(crate) classes: usize,
    /// Its samples.
    pub(crate) samples: u64,
}

impl Event {
    pub(crate) fn of(snapshot: &Snapshot) -> Self {
        let (generation, hash) = (snapshot.generation, snapshot.hash.clone());
        Self { generation, hash, classes: snapshot.classes(), samples: snapshot.samples() }
    }
}

/// What a change led to.
pub(crate) struct Done {
    pub(crate) applied: Applied,
    pub(crate) hash_before: String,
    pub(crate) hash: String,
    pub(crate) classes: usize,
    pub(crate) samples: u64,
    pub(crate) time: u64,
}

/// What a client is answered.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Arc<str>,
    /// The hash of the model afterwards; none where an earlier answer is repeated.
    pub(crate) hash: Option<String>,
}

/// Makes the body of an answer, with receipts or, where it would be too long to be kept, without.
pub(crate) type Body = Box<dyn Fn(&Done, bool) -> String + Send>;

/// A change that waits for being made.
pub(crate) struct Job {
    pub(crate) change: Change,
    pub(crate) if_match: Option<String>,
    pub(crate) key: Option<Key>,
    pub(crate) who: Arc<str>,
    pub(crate) body: Body,
    pub(crate) reply: oneshot::Sender<Result<Reply, Problem>>,
    /// Bytes that it holds.
    pub(crate) bytes: usize,
}

/// What a client wants done, and under which conditions.
pub(crate) struct Wanted {
    pub(crate) change: Change,
    pub(crate) if_match: Option<String>,
    pub(crate) key: Option<Key>,
    pub(crate) who: Arc<str>,
    pub(crate) body: Body,
}

/// What the thread needs that makes the changes of a model.
pub(crate) struct ForWriter {
    pub(crate) jobs: Receiver<Job>,
    /// Keeps other programs from changing the file.
    pub(crate) lock: Option<FileLock>,
}

/// A served model.
pub(crate) struct Hosted {
    pub(crate) name: ModelName,
    pub(crate) path: PathBuf,
    now: ArcSwap<Snapshot>,
    pub(crate) keys: Mutex<Keys>,
    pub(crate) undo: Mutex<Undo>,
    pub(crate) who: Who,
    pub(crate) record: Mutex<Record>,
    pub(crate) unknowns: Mutex<Unknowns>,
    events: broadcast::Sender<Event>,
    queue: Mutex<Option<SyncSender<Job>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
    /// Bytes that wait.
    pub(crate) waiting_bytes: AtomicUsize,
    /// Changes that wait.
    pub(crate) waiting: AtomicUsize,
    most_bytes: usize,
    pub(crate) metrics: Arc<Metrics>,
}

impl Hosted {
    /// Opens or begins the model at `path`, which is from now on locked; a writer has to be given to it.
    pub(crate) fn open(
        path: &Path,
        name: ModelName,
        options: &Options,
        metrics: &Arc<Metrics>,
    ) -> Result<(Arc<Self>, ForWriter), StartError> {
        // what is never changed needs no lock, and may lie where no file can be made
        let lock = (!options.read_only).then(|| FileLock::acquire(path)).transpose()?;
        let snapshot = read(path, options)?;
        let (keys, now) = (Keys::path_of(path), (options.clock)());
        let sidecar = |error: std::io::Error| {
            let (path, what) = (keys.clone(), error.to_string());
            StartError::Sidecar { path, what }
        };
        let kept = match lock {
            Some(_) => Keys::open(keys.clone(), &snapshot.hash, now).map_err(sidecar)?,
            None => Keys::none(keys.clone()),
        };
        let (sender, jobs) = sync_channel(options.limits.queue.max(1));
        let hosted = Arc::new(Self {
            name,
            path: path.to_owned(),
            now: ArcSwap::from_pointee(snapshot),
            keys: Mutex::new(kept),
            undo: Mutex::default(),
            who: Who::at(beside(path, "who")),
            record: Mutex::default(),
            unknowns: Mutex::new(Unknowns::new(options.keep_unknowns)),
            events: broadcast::Sender::new(EVENTS),
            queue: Mutex::new(Some(sender)),
            writer: Mutex::new(None),
            waiting_bytes: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            most_bytes: options.limits.queue_bytes,
            metrics: Arc::clone(metrics),
        });
        Ok((hosted, ForWriter { jobs, lock }))
    }

    /// The thread that makes its changes.
    pub(crate) fn written_by(&self, thread: JoinHandle<()>) {
        *hold(&self.writer) = Some(thread);
    }

    /// What is asked now.
    pub(crate) fn snapshot(&self) -> Guard<Arc<Snapshot>> {
        self.now.load()
    }

    /// The same to be held for long.
    pub(crate) fn held(&self) -> Arc<Snapshot> {
        self.now.load_full()
    }

    /// From now on this is asked.
    pub(crate) fn swap(&self, snapshot: Snapshot) {
        let event = Event::of(&snapshot);
        self.now.store(Arc::new(snapshot));
        // nobody may be listening
        let _ = self.events.send(event);
    }

    pub(crate) fn listen(&self) -> broadcast::Receiver<Event> {
        self.events.subscribe()
    }

    /// What was answered to a request with this key.
    pub(crate) fn replay(&self, key: Option<&Key>) -> Result<Option<Reply>, Problem> {
        let Some(key) = key else { return Ok(None) };
        match hold(&self.keys).known(key)? {
            Known::Nothing => Ok(None),
            Known::Answer(answered) => {
                let (status, body) = (answered.status(), answered.body());
                Ok(Some(Reply { status, body, hash: None }))
            }
        }
    }

    /// Has a change made, and waits until it is on disk.
    pub(crate) async fn change(&self, wanted: Wanted) -> Result<Reply, Problem> {
        let Wanted { change, if_match, key, who, body } = wanted;
        let bytes = change.bytes();
        let (reply, answer) = oneshot::channel();
        let job = Job { change, if_match, key, who, body, reply, bytes };
        self.send(job)?;
        answer.await.unwrap_or_else(|_| Err(Problem::internal()))
    }

    fn send(&self, job: Job) -> Result<(), Problem> {
        let full = || Problem::busy("too many lessons wait to be written; try again in a moment");
        let bytes = job.bytes;
        let waiting = self.waiting_bytes.fetch_add(bytes, Ordering::SeqCst);
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let give_up = |problem| {
            self.waiting_bytes.fetch_sub(bytes, Ordering::SeqCst);
            self.waiting.fetch_sub(1, Ordering::SeqCst);
            Err(problem)
        };
        // one that is larger than all may wait alone
        if waiting > 0 && waiting + bytes > self.most_bytes {
            return give_up(full());
        }
        let queue = hold(&self.queue);
        let Some(sender) = queue.as_ref() else {
            return give_up(Problem::busy("the server is stopping"));
        };
        match sender.try_send(job) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(_)) => give_up(full()),
            Err(TrySendError::Disconnected(_)) => give_up(Problem::internal()),
        }
    }

    /// A job has left the queue.
    pub(crate) fn taken(&self, job: &Job) {
        self.waiting_bytes.fetch_sub(job.bytes, Ordering::SeqCst);
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }

    /// Refuses further changes, and waits until those that were taken are written.
    pub(crate) fn stop(&self) {
        drop(hold(&self.queue).take());
        if let Some(writer) = hold(&self.writer).take() {
            // what it had to say, it said to those who wait
            let _ = writer.join();
        }
    }
}

/// The model in a file, or a new one.
fn read(path: &Path, options: &Options) -> Result<Snapshot, StartError> {
    if !path.exists() {
        return Ok(Snapshot::new(options.beginning.model(), NO_HASH.to_owned(), 0, 0));
    }
    let bytes = fs_err::read(path)?;
    let model = ivoro::codec::decode(path, &bytes)?;
    let hash = blake3::hash(&bytes).to_hex().to_string();
    Ok(Snapshot::new(model, hash, 0, bytes.len() as u64))
}
