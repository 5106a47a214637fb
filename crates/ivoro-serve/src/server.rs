//! Connections: taken, limited, and at the end let finish.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt as _;

use crate::app::App;
use crate::gate::Peer;
use crate::options::Options;
use crate::router::router;
use crate::start_error::StartError;
use crate::tls;

/// Headers of a request.
const HEADERS: usize = 64;
/// Bytes of all headers.
const HEADER_BYTES: usize = 32 << 10;
/// How long those who are being answered may take after the end was asked for.
const GRACE: Duration = Duration::from_secs(30);
/// From one look at the counters to the next.
const SETTLE: Duration = Duration::from_secs(5);

/// A server that runs. Dropping it does not stop it; [`Server::stop`] does.
pub struct Server {
    address: SocketAddr,
    scheme: &'static str,
    fingerprint: Option<String>,
    app: Arc<App>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Server {
    /// Opens the models and begins to listen. Whatever is wrong is said here.
    pub fn start(options: &Options) -> Result<Self, StartError> {
        let listener = listen(options.listen)?;
        let address = listener.local_addr()?;
        let tls = options.tls.as_ref().map(|tls| tls::acceptor(tls, options)).transpose()?;
        let app = App::open(options, address)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(options.threads.max(1))
            .max_blocking_threads(options.limits.heavy + 14)
            .thread_name("answer")
            .enable_all()
            .build()?;
        let (acceptor, fingerprint) = tls.unzip();
        let (stop, stopped) = oneshot::channel();
        let serving = Serving { app: Arc::clone(&app), router: router(Arc::clone(&app)), acceptor };
        let thread = std::thread::Builder::new().name("serve".to_owned()).spawn(move || {
            // a listener that the runtime refuses accepts nobody
            let _ = runtime.block_on(serving.run(listener, stopped));
            runtime.shutdown_timeout(Duration::from_secs(1));
        })?;
        warm(&app);
        let scheme = if options.tls.is_some() { "https" } else { "http" };
        let (stop, thread) = (Some(stop), Some(thread));
        Ok(Self { address, scheme, fingerprint, app, stop, thread })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What a browser on this machine opens.
    pub fn url(&self) -> String {
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip([127, 0, 0, 1].into());
        }
        format!("{}://{address}/", self.scheme)
    }

    /// The SHA-256 of its own certificate, to be compared on the first visit.
    pub fn fingerprint(&self) -> Option<&str> {
        self.fingerprint.as_deref()
    }

    /// The models that are served, with their classes.
    pub fn models(&self) -> Vec<(String, usize)> {
        let models = self.app.store.all();
        models.iter().map(|hosted| (hosted.name.to_string(), hosted.snapshot().classes())).collect()
    }

    /// Serves until Ctrl-C or SIGTERM; then as [`Server::stop`]. `stopping` is told that the end has begun.
    pub fn run_until_signal(self, stopping: impl FnOnce()) -> Result<(), StartError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(signal())?;
        stopping();
        self.stop();
        Ok(())
    }

    /// Refuses what comes, finishes what runs, writes what was taken, and ends.
    pub fn stop(mut self) {
        self.app.stopping.store(true, Ordering::SeqCst);
        self.app.closing.send_replace(true);
        if let Some(stop) = self.stop.take() {
            // it may have ended by itself
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        self.app.store.stop();
    }
}

#[cfg(unix)]
async fn signal() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}

#[cfg(not(unix))]
async fn signal() -> std::io::Result<()> {
    tokio::signal::ctrl_c().await
}

fn listen(address: SocketAddr) -> Result<std::net::TcpListener, StartError> {
    let listener = std::net::TcpListener::bind(address).map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => StartError::AddressTaken { address },
        _ => StartError::Address { address, what: error.to_string() },
    })?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Opens the networks beside the first requests, which would have to wait for them.
fn warm(app: &Arc<App>) {
    let app = Arc::clone(app);
    let open = move || {
        for hosted in app.store.all().iter().take(4) {
            // whoever sends an image is told what is wrong
            let _ = app.shelf.network(&hosted.held(), hosted.path.parent());
        }
    };
    // without this thread the first request opens it
    let _ = std::thread::Builder::new().name("open networks".to_owned()).spawn(open);
}

struct Serving {
    app: Arc<App>,
    router: Router,
    acceptor: Option<TlsAcceptor>,
}

impl Serving {
    async fn run(
        self,
        listener: std::net::TcpListener,
        mut stopped: oneshot::Receiver<()>,
    ) -> std::io::Result<()> {
        let listener = TcpListener::from_std(listener)?;
        let room = Arc::new(Semaphore::new(self.app.limits.connections.max(1)));
        let graceful = GracefulShutdown::new();
        let serving = Arc::new(self);
        let mut settle = tokio::time::interval(SETTLE);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = settle.tick() => {
                    serving.app.metrics.settle();
                    continue;
                }
                _ = &mut stopped => break,
            };
            let Ok((stream, peer)) = accepted else {
                // too many open files: those that are there have to end first
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            };
            let permit = tokio::select! {
                permit = Arc::clone(&room).acquire_owned() => permit,
                _ = &mut stopped => break,
            };
            let Ok(permit) = permit else { break };
            let (serving, watcher) = (Arc::clone(&serving), graceful.watcher());
            tokio::spawn(async move {
                serving.connection(stream, peer, watcher).await;
                drop(permit);
            });
        }
        drop(listener);
        let _ = tokio::time::timeout(GRACE, graceful.shutdown()).await;
        Ok(())
    }

    async fn connection(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        watcher: hyper_util::server::graceful::Watcher,
    ) {
        // small answers go at once
        let _ = stream.set_nodelay(true);
        let Some(acceptor) = &self.acceptor else { return self.http(stream, peer, watcher).await };
        let shaken = tokio::time::timeout(self.app.limits.slow, acceptor.accept(stream)).await;
        if let Ok(Ok(stream)) = shaken {
            self.http(stream, peer, watcher).await;
        }
    }

    async fn http<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        &self,
        stream: S,
        peer: SocketAddr,
        watcher: hyper_util::server::graceful::Watcher,
    ) {
        let router = self.router.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(Peer(peer.ip()));
            router.clone().oneshot(request)
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.app.limits.slow)
            .max_headers(HEADERS)
            .max_header_size(HEADER_BYTES)
            .serve_connection(TokioIo::new(stream), service);
        // a client that breaks off is not worth a line
        let _ = watcher.watch(connection).await;
    }
}
