//! The machine learning backend of Label Studio: predictions for its tasks, and lessons from its annotations.
//!
//! Label Studio asks again once the version of the model is another, so the version is the hash of the model.

mod config;
mod event;
mod images;
mod payload;

use std::sync::Arc;

use axum::Json;
use axum::extract::{OptionalFromRequestParts, Path, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::routing::{get, post};
use serde_json::{Value, json};
use utoipa_axum::router::OpenApiRouter;

use self::config::Labelling;
use self::payload::{PredictRequest, SetupRequest};
use crate::answers::options;
use crate::api::look;
use crate::app::App;
use crate::content::Content;
use crate::given::{Given, GivenPhoto};
use crate::hosted::Hosted;
use crate::problem::Problem;
use crate::request::{Asker, Teacher};
use crate::snapshot::Snapshot;

/// All routes of a backend: for each model, and without a name where a single one is served. Label Studio
/// describes them.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    let mut routes = OpenApiRouter::new();
    for base in ["", "/label-studio/{model}"] {
        routes = routes
            .route(&format!("{base}/health"), get(health))
            .route(&format!("{base}/setup"), post(setup))
            .route(&format!("{base}/predict"), post(predict))
            .route(&format!("{base}/webhook"), post(webhook));
    }
    routes
}

/// The model that the address names, or the only one.
struct Named(Arc<Hosted>);

impl axum::extract::FromRequestParts<Arc<App>> for Named {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let named =
            <Path<String> as OptionalFromRequestParts<_>>::from_request_parts(parts, app).await;
        match named {
            Ok(Some(Path(name))) => app.store.get(&name).map(Self),
            _ => app.store.single().map(Self).ok_or_else(|| {
                let detail = "several models are served here: the address of this backend is \
                              /label-studio/ and the name of a model";
                Problem::not_found("unknown-model", detail)
            }),
        }
    }
}

/// What Label Studio takes for a version: another one for every state.
fn version(now: &Snapshot) -> String {
    now.hash.chars().take(16).collect()
}

async fn health(_: Named) -> Json<Value> {
    Json(json!({ "status": "UP", "model_class": "iVoro" }))
}

/// The name of a project, its labels, and an address with a token: of these none is used or kept here.
async fn setup(_: Asker, Named(hosted): Named, content: Content) -> Result<Json<Value>, Problem> {
    let _: SetupRequest = content.any_json()?;
    Ok(Json(json!({ "model_version": version(&hosted.snapshot()) })))
}

/// Answers one result for each task, an empty one where nothing can be said.
async fn predict(
    State(app): State<Arc<App>>,
    _: Asker,
    Named(hosted): Named,
    content: Content,
) -> Result<Json<Value>, Problem> {
    let request: PredictRequest = content.any_json()?;
    if request.tasks.len() > app.limits.parts {
        let (found, most) = (request.tasks.len(), app.limits.parts);
        return Err(Problem::too_large(format!("{found} tasks, at most {most} are taken at once")));
    }
    let labelling = Labelling::parse(&request.label_config)?;
    let now = hosted.held();
    let version = version(&now);
    let images = images::of_tasks(&request.tasks, &labelling);
    let empty = json!({ "result": [], "score": 0.0, "model_version": version });
    if now.is_empty() || images.iter().all(Result::is_err) {
        let why = images.iter().find_map(|image| image.as_ref().err());
        if let (false, Some(why)) = (now.is_empty(), why) {
            // of images that can't be read at all, Label Studio shows why
            return Err(Problem::unprocessable(why));
        }
        return Ok(Json(json!({ "results": vec![empty; images.len()] })));
    }
    let shared = Arc::clone(&app);
    let results = app.heavy(move || {
        let _content = content;
        let mut results = vec![empty; images.len()];
        let photo = |(at, image): (usize, Result<_, String>)| {
            Some(GivenPhoto::of(at.to_string(), image.ok()?))
        };
        let photos = images.into_iter().enumerate().filter_map(photo).collect();
        let seen = look(&shared, &hosted, &now, Given::Photos { photos, archives: Vec::new() })?;
        let Some(points) = seen.points else { return Ok(results) };
        let predictions = now.model.ask(&points, options(&now, 1, 0.05))?;
        for (prediction, name) in predictions.iter().zip(&seen.names) {
            let place = name.as_ref().and_then(|name| name.parse::<usize>().ok());
            let place = place.and_then(|at| results.get_mut(at));
            if let (Some(place), Some(result)) = (place, labelling.result(prediction, &version)) {
                *place = result;
            }
        }
        Ok(results)
    });
    Ok(Json(json!({ "results": results.await? })))
}

/// Teaches what was annotated, corrects what was changed, takes back what was deleted.
async fn webhook(
    State(app): State<Arc<App>>,
    Teacher(caller): Teacher,
    Named(hosted): Named,
    content: Content,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let event: Value = content.any_json()?;
    let Some(event) = payload::Event::read(event)? else {
        return Ok((StatusCode::OK, Json(json!({ "status": "Unknown event" }))));
    };
    // Label Studio waits a second and goes: what was begun is finished all the same
    let making = Arc::clone(&hosted);
    let taken = tokio::spawn(async move { event::take(&app, &making, &caller, event).await });
    let done = taken.await.unwrap_or_else(|_| Err(Problem::internal()))?;
    let version = version(&hosted.snapshot());
    let body = json!({ "status": "ok", "result": done, "model_version": version });
    Ok((StatusCode::CREATED, Json(body)))
}
