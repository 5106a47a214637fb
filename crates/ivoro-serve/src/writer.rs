//! The one thread that changes a model: many lessons share a write, and each is answered when it is on disk.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use ivoro::{Model, codec};
use ivoro_io::FileLock;
use ivoro_io::atomic::write_atomically;
use rayon::ThreadPool;

use crate::change::{Applied, Change, Inverse, Undoing};
use crate::held::hold;
use crate::hosted::{Done, ForWriter, Hosted, Job, Reply};
use crate::keys::{Addition, Answered, Key, MOST_BODY};
use crate::metrics::Metrics;
use crate::names::ModelName;
use crate::options::{Beginning, Options};
use crate::problem::Problem;
use crate::receipts::ReceiptId;
use crate::snapshot::{NO_HASH, Snapshot};
use crate::start_error::StartError;
use crate::who::WhoEntry;

/// Changes that share a write.
const MOST: usize = 64;
/// Bytes of samples that share a write.
const MOST_BYTES: usize = 16 << 20;
/// Between two writes those who ask have the machine for so many times what the first took …
const REST: u32 = 2;
/// … and at most for this long.
const LONGEST_REST: Duration = Duration::from_millis(100);

/// What a change that was made in memory waits for.
struct Made {
    applied: Applied,
    undoing: Undoing,
    job: Job,
}

/// The thread's own.
struct Writer {
    hosted: Arc<Hosted>,
    jobs: Receiver<Job>,
    /// A change that has to stand alone, taken out of the queue too early.
    next: Option<Job>,
    /// Its own threads: queries never wait behind a lesson's parts.
    pool: ThreadPool,
    clock: fn() -> u64,
    beginning: Beginning,
    notice: Arc<dyn Fn(&str) + Send + Sync>,
    rested: Instant,
    /// Whether a change has panicked, so that nobody knows what the model is.
    broken: Cell<bool>,
    _lock: Option<FileLock>,
}

/// Opens or begins a model, with the thread that makes its changes.
pub(crate) fn host(
    path: &Path,
    name: ModelName,
    options: &Options,
    metrics: &Arc<Metrics>,
) -> Result<Arc<Hosted>, StartError> {
    let (hosted, for_writer) = Hosted::open(path, name, options, metrics)?;
    let writer = Writer::new(Arc::clone(&hosted), for_writer, options)?;
    let thread = std::thread::Builder::new().name(format!("write {}", hosted.name));
    hosted.written_by(thread.spawn(move || writer.run())?);
    Ok(hosted)
}

impl Writer {
    fn new(hosted: Arc<Hosted>, given: ForWriter, options: &Options) -> Result<Self, StartError> {
        let threads = options.threads.div_ceil(2).max(1);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool = pool.map_err(|error| StartError::Io(std::io::Error::other(error)))?;
        Ok(Self {
            hosted,
            jobs: given.jobs,
            next: None,
            pool,
            clock: options.clock,
            beginning: options.beginning.clone(),
            notice: Arc::clone(&options.notice),
            rested: Instant::now(),
            broken: Cell::new(false),
            _lock: given.lock,
        })
    }

    /// Until nobody can send any more, and all that was sent is done.
    fn run(mut self) {
        while let Some(batch) = self.gather() {
            let began = Instant::now();
            self.commit(batch);
            self.rested = Instant::now() + (began.elapsed() * REST).min(LONGEST_REST);
        }
        let hash = self.hosted.snapshot().hash.clone();
        hold(&self.hosted.keys).close(&hash);
    }

    /// Changes for one write.
    fn gather(&mut self) -> Option<VecDeque<Job>> {
        let first = match self.next.take() {
            Some(job) => job,
            None => self.take(self.jobs.recv().ok()?),
        };
        let mut batch = VecDeque::from([first]);
        let mut bytes = batch[0].bytes;
        while batch.len() < MOST && bytes < MOST_BYTES && !stands_alone(&batch[0]) {
            let left = self.rested.saturating_duration_since(Instant::now());
            let job = match self.jobs.recv_timeout(left) {
                Ok(job) => self.take(job),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            };
            if stands_alone(&job) {
                self.next = Some(job);
                break;
            }
            bytes += job.bytes;
            batch.push_back(job);
        }
        Some(batch)
    }

    fn take(&self, job: Job) -> Job {
        self.hosted.taken(&job);
        job
    }

    /// Makes changes, writes the model, and then answers.
    fn commit(&mut self, batch: VecDeque<Job>) {
        let snapshot = self.hosted.held();
        let time = (self.clock)();
        let mut model = snapshot.model.clone();
        let mut made: Vec<Made> = Vec::with_capacity(batch.len());
        for job in batch {
            let Some(job) = self.admitted(job, &snapshot.hash, &made) else { continue };
            match self.make(&job, &mut model, time) {
                Ok((applied, undoing)) => made.push(Made { applied, undoing, job }),
                Err(problem) => answer(job, Err(problem)),
            }
            if self.broken.take() {
                // half of it may have been done, and with it what came before in this model
                model = snapshot.model.clone();
                let busy = || Problem::busy("another lesson failed; try again");
                made.drain(..).for_each(|made| self.give_up(made, busy()));
            }
        }
        if made.is_empty() {
            return;
        }
        match self.write(&mut model, &snapshot, &mut made, time) {
            Ok(replies) => {
                let jobs = made.into_iter().map(|made| made.job);
                jobs.zip(replies).for_each(|(job, reply)| answer(job, Ok(reply)));
            }
            Err(problem) => {
                made.into_iter().for_each(|made| self.give_up(made, problem.clone()));
            }
        }
    }

    /// A change that was made in memory alone.
    fn give_up(&self, made: Made, problem: Problem) {
        if let Undoing::Undone(inverse) = made.undoing {
            hold(&self.hosted.undo).put_back(*inverse);
        }
        answer(made.job, Err(problem));
    }

    /// A change that may be made now; of others those who sent it are told why not.
    fn admitted(&self, job: Job, hash: &str, made: &[Made]) -> Option<Job> {
        if let Some(wanted) = job.if_match.as_deref().filter(|wanted| *wanted != hash) {
            let detail =
                format!("the model has changed: If-Match names {wanted}, it is {hash} now");
            let status = axum::http::StatusCode::PRECONDITION_FAILED;
            answer(job, Err(Problem::new(status, "changed", detail)));
            return None;
        }
        let same = |key: &Key| {
            made.iter().any(|it| it.job.key.as_ref().is_some_and(|it| it.text == key.text))
        };
        if job.key.as_ref().is_some_and(same) {
            let problem = Problem::busy("a request with this Idempotency-Key is being done");
            answer(job, Err(problem));
            return None;
        }
        match self.hosted.replay(job.key.as_ref()) {
            Ok(None) => Some(job),
            Ok(Some(reply)) => {
                answer(job, Ok(reply));
                None
            }
            Err(problem) => {
                answer(job, Err(problem));
                None
            }
        }
    }

    /// Makes a change in memory.
    fn make(&self, job: &Job, model: &mut Model, time: u64) -> Result<(Applied, Undoing), Problem> {
        if let Change::Undo = job.change {
            return self.undo(model, time);
        }
        self.applied(&job.change, model, time)
    }

    fn applied(
        &self,
        change: &Change,
        model: &mut Model,
        time: u64,
    ) -> Result<(Applied, Undoing), Problem> {
        let (hosted, pool) = (&*self.hosted, &self.pool);
        let spent = |id: &ReceiptId| hold(&hosted.keys).is_spent(id);
        let apply = || pool.install(|| change.apply(model, time, &spent));
        let outcome = catch_unwind(AssertUnwindSafe(apply));
        outcome.unwrap_or_else(|_| {
            self.broken.set(true);
            Err(Problem::internal())
        })
    }

    fn undo(&self, model: &mut Model, time: u64) -> Result<(Applied, Undoing), Problem> {
        let last = hold(&self.hosted.undo).pop();
        let Some(inverse) = last else {
            let detail = "there is nothing to undo: lessons are kept for 15 minutes, and what was forgotten, \
                          merged, joined or sealed is for good";
            return Err(Problem::conflict("nothing-to-undo", detail));
        };
        let outcome = self.applied(&inverse.change, model, time);
        match outcome {
            Ok((applied, _)) => {
                let note = Some(format!("undone: {}", inverse.of.verb));
                let applied = Applied { note, verb: "undo", ..applied };
                Ok((applied, Undoing::Undone(Box::new(inverse))))
            }
            Err(problem) => {
                hold(&self.hosted.undo).put_back(inverse);
                Err(problem)
            }
        }
    }

    /// Writes the model, and what has to be known of these changes after a crash.
    fn write(
        &self,
        model: &mut Model,
        before: &Snapshot,
        made: &mut [Made],
        time: u64,
    ) -> Result<Vec<Reply>, Problem> {
        let is_empty = model.head().classes().is_empty();
        if is_empty {
            // as after a restart: no file is a new model
            *model = self.beginning.model();
        }
        let bytes = if is_empty { Vec::new() } else { codec::encode(model)? };
        let hash =
            if is_empty { NO_HASH.to_owned() } else { blake3::hash(&bytes).to_hex().to_string() };
        let (classes, samples) = (model.head().classes().len(), count(model));
        let mut replies = Vec::with_capacity(made.len());
        let mut addition = Addition::default();
        for made in made.iter_mut() {
            let applied = std::mem::take(&mut made.applied);
            addition.spent.extend_from_slice(&applied.spent);
            addition.unspent.extend_from_slice(&applied.unspent);
            let hash_before = before.hash.clone();
            let done = Done { applied, hash_before, hash: hash.clone(), classes, samples, time };
            let body = (made.job.body)(&done, true);
            if let Some(key) = &made.job.key {
                let kept =
                    if body.len() > MOST_BODY { &(made.job.body)(&done, false) } else { &body };
                addition.keys.push(Answered::new(key, time, 200, kept));
            }
            replies.push(Reply { status: 200, body: body.into(), hash: Some(hash.clone()) });
            made.applied = done.applied;
        }
        self.store(&bytes, (&before.hash, &hash), addition, time)?;
        let (generation, length) = (before.generation + 1, bytes.len() as u64);
        drop(bytes);
        let snapshot =
            self.pool.install(|| Snapshot::new(model.clone(), hash.clone(), generation, length));
        self.hosted.swap(snapshot);
        self.remember(made, &hash, time);
        Ok(replies)
    }

    fn store(
        &self,
        bytes: &[u8],
        (before, after): (&str, &str),
        addition: Addition,
        time: u64,
    ) -> Result<(), Problem> {
        let path = &self.hosted.path;
        let mut keys = hold(&self.hosted.keys);
        keys.prepare(before, after, &addition).map_err(|error| self.failed(&error))?;
        let written = match (bytes.is_empty(), path.exists()) {
            (true, true) => remove(path).map_err(ivoro::Error::from),
            (true, false) => Ok(()),
            (false, _) => write_atomically(path, |file| Ok(file.write_all(bytes)?)),
        };
        if let Err(error) = written {
            keys.take_back();
            return Err(self.failed(&error));
        }
        keys.done(after, addition, time);
        Ok(())
    }

    fn failed(&self, error: &ivoro::Error) -> Problem {
        (self.notice)(&format!("{}: not written: {error}", self.hosted.name));
        match error {
            ivoro::Error::Io(io) => {
                let kind = io.kind();
                ivoro::Error::Io(kind.into()).into()
            }
            _ => Problem::internal(),
        }
    }

    /// What was counted of classes goes with their names.
    fn note_names(&self, made: &[Made]) {
        let mut record = hold(&self.hosted.record);
        for Made { undoing, job, .. } in made {
            let change = match undoing {
                Undoing::Undone(inverse) => &inverse.change,
                _ => &job.change,
            };
            match change {
                Change::Rename { class, name } | Change::Join { class, into: name } => {
                    record.rename(class, name);
                }
                Change::Forget { class, .. } => record.forget(class),
                Change::Replace { .. } => record.clear(),
                _ => {}
            }
        }
    }

    /// What is kept in memory of changes that are on disk, and who made them.
    fn remember(&self, made: &mut [Made], hash: &str, time: u64) {
        let mut entries = Vec::with_capacity(made.len());
        let mut undo = hold(&self.hosted.undo);
        for Made { applied, undoing, job } in made.iter_mut() {
            entries.push(WhoEntry {
                time,
                token: job.who.to_string(),
                verb: applied.verb.to_owned(),
                classes: applied.classes.clone(),
                samples: applied.samples,
                hash: hash.to_owned(),
            });
            if applied.verb == "teach" {
                self.hosted.metrics.taught(applied.samples);
            }
            let of = Applied { receipts: Vec::new(), ..applied.clone() };
            match std::mem::replace(undoing, Undoing::Never) {
                undone @ Undoing::Undone(_) => *undoing = undone,
                Undoing::By(change) => undo.push(Inverse { change: *change, of }),
                Undoing::Never => undo.clear(),
            }
        }
        drop(undo);
        self.note_names(made);
        self.hosted.metrics.wrote(made.len());
        if let Err(error) = self.hosted.who.add(entries) {
            (self.notice)(&format!(
                "{}: who changed it could not be noted: {error}",
                self.hosted.name
            ));
        }
        for Made { job, .. } in made {
            if let Change::Forget { class, strike: true, .. } = &job.change {
                let _ = self.hosted.who.strike(class);
            }
        }
    }
}

/// Removes a file; after a return without an error it does not come back after a power cut.
fn remove(path: &Path) -> std::io::Result<()> {
    fs_err::remove_file(path)?;
    #[cfg(unix)]
    if let Some(folder) = path.parent() {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        fs_err::File::open(folder)?.sync_all()?;
    }
    Ok(())
}

fn count(model: &Model) -> u64 {
    model.head().classes().iter().map(|class| class.statistics.count).sum()
}

fn stands_alone(job: &Job) -> bool {
    job.if_match.is_some() || job.change.stands_alone()
}

/// Tells whoever waits; who has gone is not waited for.
fn answer(job: Job, reply: Result<Reply, Problem>) {
    let _ = job.reply.send(reply);
}
