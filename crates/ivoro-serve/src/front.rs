//! What stands before all routes: who gets in, what browsers are told, what is counted.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::problem::Problem;

/// Checks a request before anything else, and says in the answer what a browser may do with it.
pub(crate) async fn check(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let refused = "requests for another host are refused; --host NAME names those of this server";
    let admitted = match app.gate.host(request.headers()) {
        Some(host) => app.gate.admits(request.headers(), host),
        None => Err(Problem::new(StatusCode::FORBIDDEN, "host", refused)),
    };
    let mut response = match admitted {
        Err(problem) => problem.into_response(),
        Ok(Some(origin)) => {
            let is_question = request.method() == Method::OPTIONS;
            let mut response = if is_question {
                StatusCode::NO_CONTENT.into_response()
            } else {
                next.run(request).await
            };
            allow(response.headers_mut(), origin);
            response
        }
        Ok(None) => next.run(request).await,
    };
    protect(response.headers_mut());
    let route = route.as_deref().unwrap_or("other");
    app.metrics.answered(route, response.status().as_u16(), began.elapsed());
    response
}

/// Lets a page of another place read the answer.
fn allow(headers: &mut HeaderMap, origin: HeaderValue) {
    for (name, value) in [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, PUT, PATCH, DELETE"),
        (
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            "authorization, content-type, if-match, idempotency-key",
        ),
        (header::ACCESS_CONTROL_EXPOSE_HEADERS, "etag, retry-after"),
        (header::ACCESS_CONTROL_MAX_AGE, "600"),
        (header::VARY, "origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
}

/// What nothing that this server sends may do in a browser, unless it is a page and says so itself.
fn protect(headers: &mut HeaderMap) {
    const RESOURCE: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
    const OPENER: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (RESOURCE, "same-origin"),
        (OPENER, "same-origin"),
    ] {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
}
