//! The served models.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use ivoro::NetworkDescription;
use serde::Serialize;
use utoipa::ToSchema;

use super::reply::{json, tagged};
use crate::access::Right;
use crate::app::App;
use crate::hosted::Hosted;
use crate::problem::{Problem, ProblemBody};
use crate::request::{Admin, Asker, Path};

/// A served model in few words.
#[derive(Serialize, ToSchema)]
pub(crate) struct ModelLine {
    name: String,
    classes: usize,
    samples: u64,
    /// BLAKE3 of the model file, which is also its ETag.
    hash: String,
    /// Bytes of the model file; 0 before the first lesson.
    bytes: u64,
    variant: String,
    /// The network that computes features of images; none where features were taught, or nothing yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    network: Option<String>,
    /// Whether every class is sealed, so that nothing can be taught to them.
    sealed: bool,
    /// Whether it can say that a query is unknown.
    can_reject: bool,
}

/// A served model.
#[derive(Serialize, ToSchema)]
pub(crate) struct ModelDetails {
    #[serde(flatten)]
    line: ModelLine,
    /// Changes since the server began.
    generation: u64,
    /// How images are turned before the network sees them.
    views: Vec<String>,
    /// Layers of the network with their dimensions.
    layers: Vec<(String, usize)>,
    /// How many classes each phase brought.
    phases: Vec<usize>,
    #[schema(value_type = Object)]
    settings: ivoro::Settings,
    #[schema(value_type = Option<Object>)]
    network_description: Option<NetworkDescription>,
    /// Whether nothing can be changed here.
    read_only: bool,
    /// Whether rejected queries are kept to be named.
    keep_unknowns: bool,
    /// What whoever asks may do.
    right: Right,
}

fn line(hosted: &Hosted) -> ModelLine {
    let now = hosted.snapshot();
    let head = now.model.head();
    let network = match now.model.network_description() {
        Some(described) => Some(described.name.clone()),
        None => now.model.network().map(|hash| hash.chars().take(12).collect()),
    };
    ModelLine {
        name: hosted.name.to_string(),
        classes: now.classes(),
        samples: now.samples(),
        hash: now.hash.clone(),
        bytes: now.bytes,
        variant: head.variant().to_string(),
        network,
        sealed: !now.is_empty() && head.classes().iter().all(ivoro::head::LearnedClass::is_sealed),
        can_reject: now.can_reject,
    }
}

/// All models that are served here.
#[utoipa::path(get, path = "/api/v1/models", tag = "models", responses((status = 200, body = Vec<ModelLine>)))]
pub(crate) async fn list(State(app): State<Arc<App>>, _: Asker) -> Json<Vec<ModelLine>> {
    Json(app.store.all().iter().map(|hosted| line(hosted)).collect())
}

/// One model.
#[utoipa::path(get, path = "/api/v1/models/{model}", tag = "models", params(("model" = String, Path)),
    responses((status = 200, body = ModelDetails), (status = 404, body = ProblemBody)))]
pub(crate) async fn describe(
    State(app): State<Arc<App>>,
    Path(model): Path<String>,
    Asker(caller): Asker,
) -> Result<Response, Problem> {
    let hosted = app.store.get(&model)?;
    let now = hosted.held();
    let head = now.model.head();
    let details = ModelDetails {
        line: line(&hosted),
        generation: now.generation,
        views: head.variant().views().iter().map(ToString::to_string).collect(),
        layers: head.layers().to_vec(),
        phases: head.phases(),
        settings: head.settings().clone(),
        network_description: now.model.network_description().cloned().map(|described| {
            // where its file lies is nobody's business
            NetworkDescription { path: None, ..described }
        }),
        read_only: app.read_only,
        keep_unknowns: crate::held::hold(&hosted.unknowns).are_wanted(),
        right: caller.right,
    };
    Ok(tagged(&now.hash, json(&details)))
}

/// Begins a model, where a folder is served.
#[utoipa::path(put, path = "/api/v1/models/{model}", tag = "models", params(("model" = String, Path)),
    responses((status = 201, body = ModelLine), (status = 409, body = ProblemBody)))]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    Path(model): Path<String>,
    _: Admin,
) -> Result<Response, Problem> {
    let begun = tokio::task::spawn_blocking(move || app.store.create(&model)).await;
    let hosted = begun.map_err(|_| Problem::internal())??;
    Ok((StatusCode::CREATED, Json(line(&hosted))).into_response())
}

/// A model that is gone.
#[derive(Serialize, ToSchema)]
pub(crate) struct Deleted {
    name: String,
    /// The hash that it had.
    hash: String,
    classes: usize,
    samples: u64,
}

/// Deletes a model and its files, where a folder is served.
#[utoipa::path(delete, path = "/api/v1/models/{model}", tag = "models", params(("model" = String, Path)),
    responses((status = 200, body = Deleted), (status = 404, body = ProblemBody)))]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    Path(model): Path<String>,
    _: Admin,
) -> Result<Json<Deleted>, Problem> {
    let hosted = app.store.get(&model)?;
    let gone = tokio::task::spawn_blocking(move || {
        app.store.delete(&hosted)?;
        let now = hosted.snapshot();
        let (name, hash) = (hosted.name.to_string(), now.hash.clone());
        Ok(Deleted { name, hash, classes: now.classes(), samples: now.samples() })
    });
    gone.await.unwrap_or_else(|_| Err(Problem::internal())).map(Json)
}
