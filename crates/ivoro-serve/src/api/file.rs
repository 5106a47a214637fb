//! The model file: take it with you, put another one in its place, merge one.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use ivoro::{Model, codec};

use super::reply::{Changed, changed, replayed, tagged};
use crate::app::App;
use crate::change::Change;
use crate::content::{LargeContent, Part};
use crate::hosted::{Reply, Wanted};
use crate::options::Limits;
use crate::problem::{Problem, ProblemBody};
use crate::request::{Admin, Asker, Conditions, Path};

/// The model file. Its ETag is its hash.
#[utoipa::path(get, path = "/api/v1/models/{model}/file", tag = "file", params(("model" = String, Path)),
    responses((status = 200, content_type = "application/octet-stream"), (status = 409, body = ProblemBody)))]
pub(crate) async fn get_file(
    State(app): State<Arc<App>>,
    Path(model): Path<String>,
    _: Asker,
) -> Result<Response, Problem> {
    let hosted = app.store.get(&model)?;
    let name = hosted.name.to_string();
    let now = hosted.held();
    if now.is_empty() {
        let detail = "the model knows no class yet, so there is no file";
        return Err(Problem::conflict("empty", detail));
    }
    let hash = now.hash.clone();
    let bytes = app.heavy(move || Ok(now.file(&hosted.path)?)).await?;
    let mut response = tagged(&hash, bytes);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    if let Ok(value) = HeaderValue::from_str(&format!("attachment; filename=\"{name}.ivoro\"")) {
        headers.insert(header::CONTENT_DISPOSITION, value);
    }
    Ok(response)
}

/// Puts another model in the place of this one. It is checked like any file.
#[utoipa::path(put, path = "/api/v1/models/{model}/file", tag = "file", params(("model" = String, Path)),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 200, body = Changed), (status = 422, body = ProblemBody)))]
pub(crate) async fn put_file(
    State(app): State<Arc<App>>,
    Path(model): Path<String>,
    Admin(caller): Admin,
    conditions: Conditions,
    LargeContent(content): LargeContent,
) -> Result<Reply, Problem> {
    let hosted = app.store.get(&model)?;
    let key = conditions.key(&content.hash(None));
    if let Some(reply) = replayed(&hosted, key.as_ref()).await? {
        return Ok(reply);
    }
    let limits = app.limits;
    let other = app.heavy(move || decoded("the uploaded model", &content.bytes, &limits)).await?;
    let change = Change::Replace { other: Box::new(other) };
    let (if_match, who) = (conditions.if_match, Arc::clone(&caller.name));
    hosted.change(Wanted { change, if_match, key, who, body: changed() }).await
}

/// Merges a model: afterwards this one has learned what both have. Parts: `model`, and `ancestor` where both began as
/// copies of one.
#[utoipa::path(post, path = "/api/v1/models/{model}/merge", tag = "file", params(("model" = String, Path)),
    request_body(content = Vec<u8>, content_type = "multipart/form-data"),
    responses((status = 200, body = Changed), (status = 409, body = ProblemBody), (status = 422, body = ProblemBody)))]
pub(crate) async fn merge(
    State(app): State<Arc<App>>,
    Path(model): Path<String>,
    Admin(caller): Admin,
    conditions: Conditions,
    LargeContent(content): LargeContent,
) -> Result<Reply, Problem> {
    let hosted = app.store.get(&model)?;
    if !content.is_multipart() {
        return Err(content.other_kind("multipart/form-data"));
    }
    let parts = content.parts(2).await?;
    let key = conditions.key(&content.hash(Some(&parts)));
    if let Some(reply) = replayed(&hosted, key.as_ref()).await? {
        return Ok(reply);
    }
    let limits = app.limits;
    let change = app.heavy(move || merging(&parts, &limits)).await?;
    let (if_match, who) = (conditions.if_match, Arc::clone(&caller.name));
    hosted.change(Wanted { change, if_match, key, who, body: changed() }).await
}

fn merging(parts: &[Part], limits: &Limits) -> Result<Change, Problem> {
    let named = |name: &str| parts.iter().find(|part| part.name == name);
    let other = named("model").ok_or_else(|| Problem::bad("expected a part called model"))?;
    let other = Box::new(decoded("the uploaded model", &other.bytes, limits)?);
    let ancestor =
        named("ancestor").map(|part| decoded("the uploaded ancestor", &part.bytes, limits));
    Ok(Change::Merge { other, ancestor: ancestor.transpose()?.map(Box::new) })
}

/// A model of a client: every size in it is checked against its bytes before memory is taken.
fn decoded(name: &str, bytes: &[u8], limits: &Limits) -> Result<Model, Problem> {
    let model = codec::decode(name.as_ref(), bytes)?;
    for class in model.head().classes() {
        crate::names::check_class(&class.name, limits.name.max(4096))?;
    }
    Ok(model)
}
