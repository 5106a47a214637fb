//! Sealing, and what a model keeps.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use ivoro::SealOptions;
use ivoro::head::audit::{NOT_KEPT, audit as list_kept};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::reply::{Changed, make};
use crate::app::App;
use crate::change::Change;
use crate::content::Content;
use crate::hosted::Reply;
use crate::problem::{Problem, ProblemBody};
use crate::request::{Admin, Asker, Conditions, Path};

/// What is to be sealed, and how.
#[derive(Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ToSeal {
    /// Which classes; without, all.
    classes: Option<Vec<String>>,
    /// Directions per class.
    rank: Option<usize>,
    /// Bits of each number, 8 or 16.
    bits: Option<u8>,
}

/// Seals classes of a model with the letter Q: they keep few numbers, can be asked and forgotten, and no sample can be
/// added to them any more. There is no way back.
#[utoipa::path(post, path = "/api/v1/models/{model}/seal", tag = "keep", params(("model" = String, Path)), request_body = ToSeal,
    responses((status = 200, body = Changed), (status = 409, body = ProblemBody)))]
pub(crate) async fn seal(
    State(app): State<Arc<App>>,
    Path(model): Path<String>,
    Admin(caller): Admin,
    conditions: Conditions,
    content: Content,
) -> Result<Reply, Problem> {
    let hosted = app.store.get(&model)?;
    let ToSeal { classes, rank, bits } =
        if content.bytes.is_empty() { ToSeal::default() } else { content.json()? };
    let change = Change::Seal { classes, options: SealOptions { rank, bits } };
    make(&hosted, &caller, (&conditions, &content.hash(None)), change).await
}

/// Every number that a model keeps, and what it does not keep.
#[derive(Serialize, ToSchema)]
pub(crate) struct Audit {
    hash: String,
    kept: Vec<Kept>,
    bytes: usize,
    not_kept: Vec<&'static str>,
    /// What this server keeps beside the model.
    server: Vec<&'static str>,
}

/// One kind of number.
#[derive(Serialize, ToSchema)]
pub(crate) struct Kept {
    owner: String,
    what: &'static str,
    numbers: usize,
    bytes: usize,
}

/// What the server keeps besides.
const SERVER: [&str; 5] = [
    "beside the model for 24 hours: answers to requests with an Idempotency-Key, with the receipts in them where they are short",
    "beside the model: numbers of receipts that were used, and who changed what when",
    "beside the model and only with Label Studio: features of what each annotation taught, with its class",
    "in memory for 15 minutes: features of the last 20 lessons, to undo them",
    "in memory for 15 minutes and only with --keep-unknowns: features of rejected queries",
];

/// Every number that a model keeps, and what it does not keep.
#[utoipa::path(get, path = "/api/v1/models/{model}/audit", tag = "keep", params(("model" = String, Path)),
    responses((status = 200, body = Audit), (status = 404, body = ProblemBody)))]
pub(crate) async fn audit(
    State(app): State<Arc<App>>,
    Path(model): Path<String>,
    _: Asker,
) -> Result<Json<Audit>, Problem> {
    let hosted = app.store.get(&model)?;
    let now = hosted.held();
    let lines = list_kept(now.model.head());
    let bytes = lines.iter().map(|line| line.bytes).sum();
    let kept = lines.into_iter().map(|line| {
        let (owner, what) = (line.owner, line.what);
        Kept { owner, what, numbers: line.numbers, bytes: line.bytes }
    });
    let (not_kept, server) = (NOT_KEPT.to_vec(), SERVER.to_vec());
    Ok(Json(Audit { hash: now.hash.clone(), kept: kept.collect(), bytes, not_kept, server }))
}
