//! What a server is told when it begins.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ivoro::{Budget, Model, ModelOptions, Variant};
use ivoro_vision::Networks;

/// All that a server can be told. [`Options::of`] has defaults for everything but the place.
#[derive(Clone)]
pub struct Options {
    /// A model file, begun if there is none; or a folder whose models are all served.
    pub place: PathBuf,
    /// Where to listen.
    pub listen: SocketAddr,
    /// TLS, if it is wanted.
    pub tls: Option<Tls>,
    /// Tokens and their rights. Without, only this machine is served.
    pub token_file: Option<PathBuf>,
    /// Names that this server is called by, beside the address it listens on.
    pub hosts: Vec<String>,
    /// Pages of other places that may use it.
    pub origins: Vec<String>,
    /// Whether nothing may be changed.
    pub read_only: bool,
    /// Whether rejected queries are kept, in memory and for a while, to be named later.
    pub keep_unknowns: bool,
    /// Threads that answer.
    pub threads: usize,
    /// How much is taken from a client.
    pub limits: Limits,
    /// How a model begins that is not there yet.
    pub beginning: Beginning,
    /// Networks at hand.
    pub networks: Networks,
    /// Seconds since 1970, for journals.
    pub clock: fn() -> u64,
    /// Is told what happens, a sentence at a time.
    pub notice: Arc<dyn Fn(&str) + Send + Sync>,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("place", &self.place)
            .field("listen", &self.listen)
            .finish_non_exhaustive()
    }
}

impl Options {
    /// A server of a model or a folder, for this machine alone, on port 8080.
    pub fn of(place: PathBuf) -> Self {
        let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        Self {
            place,
            listen: SocketAddr::new(IpAddr::from([127, 0, 0, 1]), PORT),
            tls: None,
            token_file: None,
            hosts: Vec::new(),
            origins: Vec::new(),
            read_only: false,
            keep_unknowns: false,
            threads,
            limits: Limits::default(),
            beginning: Beginning::default(),
            networks: Networks::of_user(),
            clock,
            notice: Arc::new(|_| ()),
        }
    }
}

/// The port where none is given.
pub const PORT: u16 = 8080;

/// Seconds since 1970 began (UTC).
fn clock() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |since| since.as_secs())
}

/// Which certificate is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tls {
    /// One of this server's own, made on first use and kept in this folder.
    Own(PathBuf),
    /// Files in PEM.
    Given {
        /// The certificate, and those above it.
        certificate: PathBuf,
        /// Its private key.
        key: PathBuf,
    },
}

/// How much is taken from a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a body.
    pub body: usize,
    /// Parts of a multipart body, vectors of other bodies times 100.
    pub parts: usize,
    /// Pixels of an image.
    pub pixels: u64,
    /// Connections at once.
    pub connections: usize,
    /// Requests at once that compute with a network or with many vectors.
    pub heavy: usize,
    /// Requests that may wait for that.
    pub waiting: usize,
    /// Lessons that may wait for being written.
    pub queue: usize,
    /// Bytes of all lessons that wait.
    pub queue_bytes: usize,
    /// Bytes of the name of a class.
    pub name: usize,
    /// Bytes of an uploaded model.
    pub model: usize,
    /// How long headers may take, and how long a body may pause.
    pub slow: Duration,
    /// How long a request may take.
    pub time: Duration,
    /// Wrong tokens of one address in a minute.
    pub wrong_tokens: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: 64 << 20,
            parts: 1000,
            pixels: 50_000_000,
            connections: 1024,
            heavy: 2,
            waiting: 64,
            queue: 256,
            queue_bytes: 256 << 20,
            name: 256,
            model: 1 << 30,
            slow: Duration::from_secs(15),
            time: Duration::from_secs(300),
            wrong_tokens: 10,
        }
    }
}

/// How a model begins.
#[derive(Clone, Debug, Default)]
pub struct Beginning {
    /// Its variant; without, the one that suits the first lesson.
    pub variant: Option<Variant>,
    /// Its settings.
    pub options: ModelOptions,
    /// What a class may cost, where the variant is chosen.
    pub budget: Budget,
}

impl Beginning {
    pub(crate) fn model(&self) -> Model {
        let options = self.options.clone();
        match self.variant {
            Some(variant) => Model::new(variant, options),
            None => Model::choosing(options, self.budget),
        }
    }
}
