//! Correcting: taking samples back, giving them another class, undoing.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::reply::{Changed, make};
use crate::app::App;
use crate::change::{Applied, Change};
use crate::content::Content;
use crate::held::hold;
use crate::hosted::Reply;
use crate::names::check_class;
use crate::problem::{Problem, ProblemBody};
use crate::receipts::Receipt;
use crate::request::{Asker, Conditions, Path, Teacher};

/// Samples by their receipts.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ByReceipts {
    /// Receipts, as teaching gave them.
    receipts: Vec<String>,
    /// The class that they are to have.
    #[serde(default)]
    class: Option<String>,
}

impl ByReceipts {
    fn decoded(&self) -> Result<Vec<Receipt>, Problem> {
        self.receipts.iter().map(|text| Receipt::decode(text)).collect()
    }
}

/// Takes samples back: afterwards the model is, bit for bit, the one that never saw them. The body is JSON with
/// receipts, or a receipt file that `ivoro learn --receipt` wrote.
#[utoipa::path(post, path = "/api/v1/models/{model}/retract", tag = "correct", params(("model" = String, Path)),
    request_body(content((ByReceipts = "application/json"), (Vec<u8> = "application/octet-stream"))),
    responses((status = 200, body = Changed), (status = 409, body = ProblemBody), (status = 422, body = ProblemBody)))]
pub(crate) async fn retract(
    State(app): State<Arc<App>>,
    Path(model): Path<String>,
    Teacher(caller): Teacher,
    conditions: Conditions,
    content: Content,
) -> Result<Reply, Problem> {
    let hosted = app.store.get(&model)?;
    let change = if content.kind == "application/octet-stream" {
        let receipt = ivoro::codec::decode_receipt("receipt".as_ref(), &content.bytes)?;
        Change::RetractLesson { receipt: Box::new(receipt) }
    } else {
        let given: ByReceipts = content.json()?;
        Change::Retract { receipts: given.decoded()? }
    };
    make(&hosted, &caller, (&conditions, &content.hash(None)), change).await
}

/// Gives samples another class, which may be new. The answer has new receipts; the old ones are of no use any more.
#[utoipa::path(post, path = "/api/v1/models/{model}/relabel", tag = "correct", params(("model" = String, Path)),
    request_body = ByReceipts,
    responses((status = 200, body = Changed), (status = 409, body = ProblemBody), (status = 422, body = ProblemBody)))]
pub(crate) async fn relabel(
    State(app): State<Arc<App>>,
    Path(model): Path<String>,
    Teacher(caller): Teacher,
    conditions: Conditions,
    content: Content,
) -> Result<Reply, Problem> {
    let hosted = app.store.get(&model)?;
    let given: ByReceipts = content.json()?;
    let receipts = given.decoded()?;
    let class = given.class.ok_or_else(|| Problem::bad("expected class: what the samples are"))?;
    check_class(&class, app.limits.name)?;
    let change = Change::Relabel { receipts, class, again: Vec::new() };
    make(&hosted, &caller, (&conditions, &content.hash(None)), change).await
}

/// Undoes what was done last: a lesson, a correction or a name. Kept for 15 minutes, in memory.
#[utoipa::path(post, path = "/api/v1/models/{model}/undo", tag = "correct", params(("model" = String, Path)),
    responses((status = 200, body = Changed), (status = 409, body = ProblemBody)))]
pub(crate) async fn undo(
    State(app): State<Arc<App>>,
    Path(model): Path<String>,
    Teacher(caller): Teacher,
    conditions: Conditions,
    content: Content,
) -> Result<Reply, Problem> {
    let hosted = app.store.get(&model)?;
    make(&hosted, &caller, (&conditions, &content.hash(None)), Change::Undo).await
}

/// What would be undone.
#[derive(Serialize, ToSchema)]
pub(crate) struct Undoable {
    /// The last change; nothing where nothing can be undone.
    #[serde(flatten)]
    last: Option<Applied>,
    /// How many changes can be undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<usize>,
}

/// What would be undone.
#[utoipa::path(get, path = "/api/v1/models/{model}/undo", tag = "correct", params(("model" = String, Path)),
    responses((status = 200, body = Undoable)))]
pub(crate) async fn last(
    State(app): State<Arc<App>>,
    Path(model): Path<String>,
    _: Asker,
) -> Result<Json<Undoable>, Problem> {
    let hosted = app.store.get(&model)?;
    let mut undo = hold(&hosted.undo);
    let last = undo.last().cloned();
    let changes = last.as_ref().map(|_| undo.len());
    Ok(Json(Undoable { last, changes }))
}
