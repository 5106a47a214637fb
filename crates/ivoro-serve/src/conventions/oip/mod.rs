//! The Open Inference Protocol, version 2, over REST: what KServe, Triton and their clients speak.

mod infer;
mod reply;
mod tensor;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::extract::State;
use axum::response::Response;
use axum::routing::{get, post};
use serde_json::{Value, json};
use utoipa_axum::router::OpenApiRouter;

use self::reply::{Refused, answer};
use crate::app::App;
use crate::problem::Problem;
use crate::request::{Asker, Path};
use crate::snapshot::Snapshot;

/// All routes of the protocol. Its own document describes them, so this server's does not.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .route("/v2", get(server))
        .route("/v2/", get(server))
        .route("/v2/health/live", get(live))
        .route("/v2/health/ready", get(ready))
        .route("/v2/models/{model}", get(metadata))
        .route("/v2/models/{model}/ready", get(model_ready))
        .route("/v2/models/{model}/infer", post(infer::infer))
}

/// Whoever may ask; others are refused as the protocol has it.
type Caller = Result<Asker, Problem>;

async fn server(caller: Caller) -> Result<Response, Refused> {
    caller?;
    let version = env!("CARGO_PKG_VERSION");
    Ok(answer(None, &json!({ "name": "ivoro", "version": version, "extensions": [] })))
}

async fn live() -> Response {
    answer(None, &json!({ "live": true }))
}

async fn ready(State(app): State<Arc<App>>) -> Result<Response, Refused> {
    if app.stopping.load(Ordering::SeqCst) {
        return Err(Problem::busy("the server is stopping").into());
    }
    // the text of the protocol says live, servers and clients say ready
    Ok(answer(None, &json!({ "ready": true, "live": true })))
}

/// A model is ready once it knows a class.
async fn model_ready(
    State(app): State<Arc<App>>,
    Path(model): Path<String>,
    caller: Caller,
) -> Result<Response, Refused> {
    caller?;
    let hosted = app.store.get(&model)?;
    let now = hosted.held();
    if now.is_empty() {
        return Err(Problem::busy("the model knows no class yet; teach it one first").into());
    }
    Ok(answer(Some(&now.hash), &json!({ "name": model, "ready": true })))
}

async fn metadata(
    State(app): State<Arc<App>>,
    Path(model): Path<String>,
    caller: Caller,
) -> Result<Response, Refused> {
    caller?;
    let hosted = app.store.get(&model)?;
    let now = hosted.held();
    let body = json!({
        "name": model,
        "platform": "ivoro_ivoro",
        "inputs": inputs(&now),
        "outputs": outputs(),
    });
    Ok(answer(Some(&now.hash), &body))
}

/// Either of these is sent, never both.
fn inputs(now: &Snapshot) -> Vec<Value> {
    let tensor = |name, datatype, shape: Value| json!({ "name": name, "datatype": datatype, "shape": shape });
    let head = now.model.head();
    let mut inputs = Vec::new();
    // features of an unknown network are answered, and images are not
    let is_of_network = now.model.network_description().is_some() || now.model.network().is_some();
    if now.is_empty() || is_of_network {
        inputs.push(tensor("image", "BYTES", json!([-1])));
    }
    if let [(_, dim), others @ ..] = head.layers() {
        let blocks = head.layers().len() * head.variant().views().len();
        if blocks == 1 {
            inputs.push(tensor("features", "FP32", json!([-1, dim])));
        } else if others.iter().all(|(_, other)| other == dim) {
            inputs.push(tensor("features", "FP32", json!([-1, blocks, dim])));
        }
    }
    inputs
}

fn outputs() -> Value {
    json!([
        { "name": "class", "datatype": "BYTES", "shape": [-1, -1] },
        { "name": "probability", "datatype": "FP32", "shape": [-1, -1] },
        { "name": "unknown", "datatype": "BOOL", "shape": [-1] },
        { "name": "strangeness", "datatype": "FP32", "shape": [-1] },
    ])
}
