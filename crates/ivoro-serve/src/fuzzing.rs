//! One request to a server of its own, without a connection: what a fuzzer calls.

use std::sync::OnceLock;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use tower::ServiceExt as _;

use crate::app::App;
use crate::options::Options;
use crate::router::router;

struct Alone {
    runtime: tokio::runtime::Runtime,
    router: Router,
    _folder: tempfile::TempDir,
}

fn alone() -> Option<Alone> {
    let folder = tempfile::tempdir().ok()?;
    let options = Options::of(folder.path().join("fuzz.ivoro"));
    let app = App::open(&options, options.listen).ok()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    Some(Alone { runtime, router: router(app), _folder: folder })
}

/// The status that a request is answered with, of a server that begins with an empty model called `fuzz`.
pub fn answer(method: &str, path: &str, kind: &str, body: &[u8]) -> Option<StatusCode> {
    static ALONE: OnceLock<Option<Alone>> = OnceLock::new();
    let alone = ALONE.get_or_init(alone).as_ref()?;
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::HOST, "127.0.0.1")
        .header(header::CONTENT_TYPE, kind)
        .body(Body::from(body.to_vec()))
        .ok()?;
    let answered = alone.runtime.block_on(alone.router.clone().oneshot(request));
    answered.map(|response| response.status()).ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_request_is_answered_without_a_connection() {
        let status = super::answer("POST", "/api/v1/models/fuzz/ask", "application/json", b"{");
        assert_eq!(status.unwrap(), 400);
        assert_eq!(super::answer("GET", "/livez", "text/plain", b"").unwrap(), 200);
    }
}
