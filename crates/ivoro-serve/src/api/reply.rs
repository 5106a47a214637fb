//! Answers as HTTP has them.

use std::sync::Arc;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::access::Caller;
use crate::change::{Applied, Change};
use crate::hosted::{Body, Done, Hosted, Reply, Wanted};
use crate::keys::Key;
use crate::problem::Problem;
use crate::request::Conditions;

/// What a change did to a model.
#[derive(Serialize, ToSchema)]
pub(crate) struct Changed {
    #[serde(flatten)]
    applied: Applied,
    /// Receipts of samples that have another class now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    receipts: Vec<String>,
    /// The hash of the model before.
    hash_before: String,
    /// The hash of the model now.
    hash: String,
    /// Its classes.
    model_classes: usize,
    /// Its samples.
    model_samples: u64,
    /// When, in seconds since 1970 began (UTC).
    time: u64,
}

/// The body of most changes.
pub(crate) fn changed() -> Body {
    Box::new(|done: &Done, receipts| {
        let given = done.applied.receipts.iter().filter(|_| receipts);
        json(&Changed {
            applied: done.applied.clone(),
            receipts: given.map(crate::receipts::Receipt::encode).collect(),
            hash_before: done.hash_before.clone(),
            hash: done.hash.clone(),
            model_classes: done.classes,
            model_samples: done.samples,
            time: done.time,
        })
    })
}

/// JSON that can't fail: maps with names, lists, texts and numbers.
pub(crate) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// A JSON answer with the hash of the model that it is about.
pub(crate) fn tagged(hash: &str, body: impl Into<axum::body::Body>) -> Response {
    let mut response = Response::new(body.into());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{hash}\"")) {
        headers.insert(header::ETAG, tag);
    }
    response
}

impl IntoResponse for Reply {
    fn into_response(self) -> Response {
        let Self { status, body, hash } = self;
        let mut response = tagged(hash.as_deref().unwrap_or_default(), body.to_string());
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
        if hash.is_none() {
            let headers = response.headers_mut();
            headers.remove(header::ETAG);
            headers.insert("idempotency-replayed", HeaderValue::from_static("true"));
        }
        response
    }
}

/// What was answered to the same request before, if it was.
pub(crate) async fn replayed(
    hosted: &Arc<Hosted>,
    key: Option<&Key>,
) -> Result<Option<Reply>, Problem> {
    let Some(key) = key.cloned() else { return Ok(None) };
    let hosted = Arc::clone(hosted);
    // the list is held while it is written
    let known = tokio::task::spawn_blocking(move || hosted.replay(Some(&key)));
    known.await.unwrap_or_else(|_| Err(Problem::internal()))
}

/// Makes a change whose body is small.
pub(crate) async fn make(
    hosted: &Arc<Hosted>,
    caller: &Caller,
    (conditions, content): (&Conditions, &blake3::Hash),
    change: Change,
) -> Result<Reply, Problem> {
    let key = conditions.key(content);
    let (if_match, who, body) = (conditions.if_match.clone(), Arc::clone(&caller.name), changed());
    hosted.change(Wanted { change, if_match, key, who, body }).await
}
