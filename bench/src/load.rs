//! Sends requests to a server over connections that stay open, and measures how long each takes.
//!
//! The same for every server that is measured. A thread for each connection, which sends the next request when the
//! answer is there.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// What is sent.
struct Plan {
    address: String,
    connections: usize,
    requests: Vec<Vec<u8>>,
}

/// What came back.
#[derive(Default)]
struct Outcome {
    seconds: Vec<f32>,
    statuses: BTreeMap<u16, usize>,
    lost: usize,
}

/// How far the asking is; lessons keep pace with it.
struct Progress {
    end: Instant,
    asked: AtomicUsize,
    taught: AtomicUsize,
    over: AtomicBool,
}

/// Longer than any answer should take.
const PATIENCE: Duration = Duration::from_mins(1);
/// A load never lasts longer.
const LONGEST: f64 = 900.0;

/// Runs the plan in a file and says how many requests were answered, how, and how fast.
pub(crate) fn run(file: &Path) -> std::io::Result<Value> {
    let given: Value = serde_json::from_slice(&fs::read(file)?)?;
    let asking = plan(&given, &given["address"])?;
    let lessons =
        given.get("lessons").map(|lessons| plan(lessons, &given["address"])).transpose()?;
    let every = given["lessons"]["every"].as_u64().unwrap_or(20) as usize;
    let seconds = given["seconds"].as_f64().unwrap_or(1.0).min(LONGEST);
    let began = Instant::now();
    let progress = Progress {
        end: began + Duration::from_secs_f64(seconds),
        asked: AtomicUsize::new(0),
        taught: AtomicUsize::new(0),
        over: AtomicBool::new(false),
    };
    let (asked, taught) = std::thread::scope(|scope| {
        let progress = &progress;
        let askers = (0..asking.connections).map(|at| {
            let asking = &asking;
            scope.spawn(move || ask(asking, at, progress))
        });
        let askers: Vec<_> = askers.collect();
        let teachers =
            lessons.iter().flat_map(|plan| (0..plan.connections).map(move |at| (plan, at)));
        let teachers =
            teachers.map(|(plan, at)| scope.spawn(move || teach(plan, at, every, progress)));
        let teachers: Vec<_> = teachers.collect();
        let asked = all(askers);
        progress.over.store(true, Ordering::Relaxed);
        (asked, all(teachers))
    });
    let took = began.elapsed().as_secs_f64();
    let mut summary = asked.summary(took);
    if lessons.is_some() {
        summary["lessons"] = taught.summary(took);
    }
    Ok(summary)
}

fn all(threads: Vec<std::thread::ScopedJoinHandle<'_, Outcome>>) -> Outcome {
    let mut whole = Outcome::default();
    for thread in threads {
        let Ok(part) = thread.join() else { continue };
        whole.seconds.extend(part.seconds);
        whole.lost += part.lost;
        for (status, count) in part.statuses {
            *whole.statuses.entry(status).or_default() += count;
        }
    }
    whole
}

/// Asks until the time is over.
fn ask(plan: &Plan, first: usize, progress: &Progress) -> Outcome {
    let mut connection = Connection::new(&plan.address);
    let mut outcome = Outcome::default();
    let mut at = first;
    while Instant::now() < progress.end {
        outcome.note(&mut connection, &plan.requests[at % plan.requests.len()]);
        progress.asked.fetch_add(1, Ordering::Relaxed);
        at += plan.connections;
    }
    outcome
}

/// Teaches whenever enough was asked since.
fn teach(plan: &Plan, first: usize, every: usize, progress: &Progress) -> Outcome {
    let mut connection = Connection::new(&plan.address);
    let mut outcome = Outcome::default();
    let mut at = first;
    while !progress.over.load(Ordering::Relaxed) {
        let due = progress.asked.load(Ordering::Relaxed) / every;
        let mine = progress.taught.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taught| {
            (taught < due).then_some(taught + 1)
        });
        if mine.is_err() {
            std::thread::sleep(Duration::from_micros(500));
            continue;
        }
        outcome.note(&mut connection, &plan.requests[at % plan.requests.len()]);
        at += plan.connections;
    }
    outcome
}

impl Outcome {
    /// Sends a request and notes what became of it.
    fn note(&mut self, connection: &mut Connection, request: &[u8]) {
        let began = Instant::now();
        if let Ok(status) = connection.exchange(request) {
            self.seconds.push(began.elapsed().as_secs_f32());
            *self.statuses.entry(status).or_default() += 1;
            if status == 503 {
                // as it was told: later
                std::thread::sleep(Duration::from_millis(20));
            }
        } else {
            self.lost += 1;
            connection.close();
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn summary(mut self, took: f64) -> Value {
        self.seconds.sort_by(f32::total_cmp);
        let at = |share: f64| {
            let last = self.seconds.len().saturating_sub(1);
            self.seconds.get((last as f64 * share).round() as usize).copied()
        };
        let good = self.statuses.get(&200).copied().unwrap_or_default();
        json!({
            "answered": self.seconds.len(),
            "good": good,
            "rate": good as f64 / took,
            "p50": at(0.5),
            "p99": at(0.99),
            "statuses": self.statuses,
            "lost": self.lost,
        })
    }
}

/// A connection that stays open.
struct Connection<'a> {
    address: &'a str,
    stream: Option<TcpStream>,
    buffer: Vec<u8>,
}

impl<'a> Connection<'a> {
    fn new(address: &'a str) -> Self {
        Self { address, stream: None, buffer: vec![0; 64 << 10] }
    }

    fn close(&mut self) {
        self.stream = None;
    }

    /// Sends a request and reads the whole answer; gives its status.
    fn exchange(&mut self, request: &[u8]) -> std::io::Result<u16> {
        let Self { address, stream, buffer } = self;
        let stream = match stream {
            Some(stream) => stream,
            none => {
                let opened = TcpStream::connect(*address)?;
                opened.set_nodelay(true)?;
                opened.set_read_timeout(Some(PATIENCE))?;
                none.insert(opened)
            }
        };
        stream.write_all(request)?;
        let malformed = || std::io::Error::other("expected an HTTP answer with its length");
        let mut filled = 0;
        let (head, status, length) = loop {
            let read = stream.read(buffer.get_mut(filled..).ok_or_else(malformed)?)?;
            if read == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            filled += read;
            let Some(head) = buffer[..filled].windows(4).position(|it| it == b"\r\n\r\n") else {
                continue;
            };
            let text = std::str::from_utf8(&buffer[..head]).map_err(|_| malformed())?;
            let (status, length) = parse(text).ok_or_else(malformed)?;
            break (head + 4, status, length);
        };
        let mut left = (head + length).saturating_sub(filled);
        while left > 0 {
            let most = left.min(buffer.len());
            let read = stream.read(&mut buffer[..most])?;
            if read == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            left -= read;
        }
        Ok(status)
    }
}

/// The status and the length of an answer.
fn parse(head: &str) -> Option<(u16, usize)> {
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let length = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    })?;
    Some((status, length))
}

fn wrong(what: &str) -> std::io::Error {
    std::io::Error::other(format!("the plan: {what}"))
}

/// Requests as a plan describes them.
fn plan(given: &Value, address: &Value) -> std::io::Result<Plan> {
    let text = |name: &str| {
        let found = given[name].as_str();
        found.ok_or_else(|| wrong(&format!("expected a text for {name}")))
    };
    let address = address.as_str().ok_or_else(|| wrong("expected a text for address"))?.to_owned();
    let (path, kind) = (text("path")?, text("kind")?);
    let bodies = fs::read(text("bodies")?)?;
    let mut rest = bodies.as_slice();
    let mut requests = Vec::new();
    while let Some(length) = rest.split_off(..4).and_then(|it| it.try_into().ok()) {
        let body = rest.split_off(..u32::from_le_bytes(length) as usize);
        let body = body.ok_or_else(|| wrong("the bodies are cut off"))?;
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        requests.push([head.as_bytes(), body].concat());
    }
    if requests.is_empty() {
        return Err(wrong("there is no body"));
    }
    let connections = given["connections"].as_u64().unwrap_or(1).clamp(1, 4096) as usize;
    Ok(Plan { address, connections, requests })
}
