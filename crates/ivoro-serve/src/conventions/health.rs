//! Whether the server lives, whether it is ready, and what it counts.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::problem::{Problem, ProblemBody};
use crate::request::Asker;

/// Whether the server lives.
#[utoipa::path(get, path = "/livez", tag = "health", responses((status = 200, body = String)))]
pub(crate) async fn live() -> &'static str {
    "ok"
}

/// Whether the server takes requests; no longer once it was told to stop.
#[utoipa::path(get, path = "/readyz", tag = "health",
    responses((status = 200, body = String), (status = 503, body = ProblemBody)))]
pub(crate) async fn ready(State(app): State<Arc<App>>) -> Result<&'static str, Problem> {
    if app.stopping.load(Ordering::SeqCst) {
        return Err(Problem::busy("the server is stopping"));
    }
    Ok("ok")
}

/// What the server counts, as Prometheus reads it.
#[utoipa::path(get, path = "/metrics", tag = "health", responses((status = 200, body = String)))]
pub(crate) async fn metrics(State(app): State<Arc<App>>, _: Asker) -> Response {
    for hosted in app.store.all() {
        let now = hosted.snapshot();
        let name = hosted.name.as_str();
        app.metrics.gauge("ivoro_model_classes", name, now.classes() as f64);
        app.metrics.gauge("ivoro_model_samples", name, now.samples() as f64);
        app.metrics.gauge("ivoro_model_bytes", name, now.bytes as f64);
        let waiting = hosted.waiting.load(Ordering::SeqCst);
        app.metrics.gauge("ivoro_lessons_waiting", name, waiting as f64);
    }
    let mut response = app.metrics.render().into_response();
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
