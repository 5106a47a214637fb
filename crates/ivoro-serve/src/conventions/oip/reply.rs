//! Answers as the protocol has them: JSON, and of an error its sentence.

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::problem::Problem;

/// Why a request is refused.
pub(super) struct Refused(Problem);

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl From<ivoro::Error> for Refused {
    fn from(error: ivoro::Error) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let body = json!({ "error": self.0.detail() }).to_string();
        // the status and when to try again are the same
        let (mut parts, _) = self.0.into_response().into_parts();
        parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        parts.headers.remove(header::CONTENT_LENGTH);
        Response::from_parts(parts, body.into())
    }
}

/// A JSON answer, with the hash of the model that gave it.
pub(super) fn answer(hash: Option<&str>, body: &Value) -> Response {
    let mut response = Response::new(body.to_string().into());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let tag = hash.and_then(|hash| HeaderValue::from_str(&format!("\"{hash}\"")).ok());
    if let Some(tag) = tag {
        headers.insert(header::ETAG, tag);
    }
    response
}
