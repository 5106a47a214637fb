//! Rejected queries that wait to be named.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::samples::{Lesson, TaughtReply, Teaching};
use crate::app::App;
use crate::content::Content;
use crate::given::Seen;
use crate::held::hold;
use crate::hosted::Reply;
use crate::problem::{Problem, ProblemBody};
use crate::request::{Asker, Conditions, Path, Teacher};
use crate::unknowns::FOR;

/// The rejected queries of a model.
#[derive(Serialize, ToSchema)]
pub(crate) struct UnknownList {
    /// Whether the server keeps any.
    kept: bool,
    unknowns: Vec<UnknownLine>,
}

/// A rejected query, of which the features are kept.
#[derive(Serialize, ToSchema)]
pub(crate) struct UnknownLine {
    id: u64,
    /// What it was nearest to.
    nearest: String,
    strangeness: Option<f64>,
    /// When it was asked, in seconds since 1970 began (UTC).
    time: u64,
    /// Seconds until it is gone.
    seconds_left: u64,
}

/// The rejected queries that wait to be named.
#[utoipa::path(get, path = "/api/v1/models/{model}/unknowns", tag = "unknowns", params(("model" = String, Path)),
    responses((status = 200, body = UnknownList)))]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Path(model): Path<String>,
    _: Asker,
) -> Result<Json<UnknownList>, Problem> {
    let hosted = app.store.get(&model)?;
    let mut unknowns = hold(&hosted.unknowns);
    let kept = unknowns.are_wanted();
    let line = |unknown: &crate::unknowns::Unknown| UnknownLine {
        id: unknown.id,
        nearest: unknown.nearest.clone(),
        strangeness: unknown.strangeness,
        time: unknown.time,
        seconds_left: FOR.saturating_sub(unknown.since.elapsed()).as_secs(),
    };
    Ok(Json(UnknownList { kept, unknowns: unknowns.all().map(line).collect() }))
}

/// What an unknown is.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Named {
    class: String,
}

/// Teaches a rejected query, now that it has a name.
#[utoipa::path(post, path = "/api/v1/models/{model}/unknowns/{id}", tag = "unknowns",
    params(("model" = String, Path), ("id" = u64, Path)), request_body = Named,
    responses((status = 200, body = TaughtReply), (status = 404, body = ProblemBody)))]
pub(crate) async fn name(
    State(app): State<Arc<App>>,
    Path((model, id)): Path<(String, u64)>,
    Teacher(caller): Teacher,
    conditions: Conditions,
    content: Content,
) -> Result<Reply, Problem> {
    let hosted = app.store.get(&model)?;
    let Named { class } = content.json()?;
    let key = conditions.key(&content.hash(None));
    if let Some(reply) = super::reply::replayed(&hosted, key.as_ref()).await? {
        return Ok(reply);
    }
    let unknown = hold(&hosted.unknowns).get(id).ok_or_else(|| gone(id))?;
    let now = hosted.held();
    let network =
        now.model.network_description().cloned().filter(|_| now.model.network().is_some());
    let (names, classes) = (vec![None], vec![Some(class)]);
    let seen = Seen { points: Some(unknown.points), names, classes, network, ..Seen::default() };
    let lesson = Lesson::of(seen, &now, &Teaching::default(), app.limits.name)?;
    let reply = lesson.give(&hosted, &caller, (conditions.if_match, key), true).await?;
    hold(&hosted.unknowns).remove(id);
    Ok(reply)
}

/// Drops a rejected query.
#[utoipa::path(delete, path = "/api/v1/models/{model}/unknowns/{id}", tag = "unknowns",
    params(("model" = String, Path), ("id" = u64, Path)), responses((status = 204), (status = 404, body = ProblemBody)))]
pub(crate) async fn drop_one(
    State(app): State<Arc<App>>,
    Path((model, id)): Path<(String, u64)>,
    _: Teacher,
) -> Result<StatusCode, Problem> {
    let hosted = app.store.get(&model)?;
    if hold(&hosted.unknowns).remove(id) { Ok(StatusCode::NO_CONTENT) } else { Err(gone(id)) }
}

fn gone(id: u64) -> Problem {
    Problem::not_found(
        "no-unknown",
        format!("no rejected query has the number {id}; they are kept for 15 minutes"),
    )
}
