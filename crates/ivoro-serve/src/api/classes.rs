//! The classes of a model.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::reply::{Changed, json, make, tagged};
use crate::app::App;
use crate::change::Change;
use crate::content::Content;
use crate::held::hold;
use crate::hosted::Reply;
use crate::names::check_class;
use crate::problem::{Problem, ProblemBody};
use crate::receipts::Receipt;
use crate::request::{Asker, Conditions, Path, Teacher};

/// A class.
#[derive(Serialize, ToSchema)]
pub(crate) struct ClassLine {
    name: String,
    samples: u64,
    /// Whether it keeps no sums, so that no sample can be added or taken away.
    sealed: bool,
    prequential: Asked,
}

/// How many samples were asked before they were learned, and how many of them were right.
#[derive(Serialize, ToSchema)]
pub(crate) struct Asked {
    asked: u64,
    right: u64,
}

/// The classes of a model, in the order in which they came.
#[utoipa::path(get, path = "/api/v1/models/{model}/classes", tag = "classes", params(("model" = String, Path)),
    responses((status = 200, body = Vec<ClassLine>), (status = 404, body = ProblemBody)))]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Path(model): Path<String>,
    _: Asker,
) -> Result<Response, Problem> {
    let hosted = app.store.get(&model)?;
    let now = hosted.held();
    let record = hold(&hosted.record);
    let line = |class: &ivoro::head::LearnedClass| {
        let tally = record.of(&class.name);
        let prequential = Asked { asked: tally.asked, right: tally.right };
        let (name, samples, sealed) =
            (class.name.clone(), class.statistics.count, class.is_sealed());
        ClassLine { name, samples, sealed, prequential }
    };
    let lines: Vec<ClassLine> = now.model.head().classes().iter().map(line).collect();
    Ok(tagged(&now.hash, json(&lines)))
}

/// Another name for a class, or the class that it becomes a part of.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewName {
    /// Gives the class another name; nothing else changes.
    name: Option<String>,
    /// Makes all its samples samples of this class.
    into: Option<String>,
}

/// Gives a class another name, or makes it part of another one.
#[utoipa::path(patch, path = "/api/v1/models/{model}/classes/{class}", tag = "classes",
    params(("model" = String, Path), ("class" = String, Path)), request_body = NewName,
    responses((status = 200, body = Changed), (status = 404, body = ProblemBody), (status = 409, body = ProblemBody)))]
pub(crate) async fn change(
    State(app): State<Arc<App>>,
    Path((model, class)): Path<(String, String)>,
    Teacher(caller): Teacher,
    conditions: Conditions,
    content: Content,
) -> Result<Reply, Problem> {
    let hosted = app.store.get(&model)?;
    let change = match content.json()? {
        NewName { name: Some(name), into: None } => {
            check_class(&name, app.limits.name)?;
            Change::Rename { class, name }
        }
        NewName { name: None, into: Some(into) } => Change::Join { class, into },
        _ => return Err(Problem::bad("expected either name or into")),
    };
    make(&hosted, &caller, (&conditions, &content.hash(None)), change).await
}

/// What forgetting may need.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Forgetting {
    /// Receipts of all samples of the class, where the model keeps one scatter for all classes.
    #[serde(default)]
    receipts: Vec<String>,
    /// Whether the name of the class goes out of the journals too.
    #[serde(default)]
    strike: bool,
}

/// Forgets a class: afterwards the model is the one that never saw it. The answer is a receipt, with the hashes of the
/// model before and after.
#[utoipa::path(delete, path = "/api/v1/models/{model}/classes/{class}", tag = "classes",
    params(("model" = String, Path), ("class" = String, Path)), request_body = Option<Forgetting>,
    responses((status = 200, body = Changed), (status = 404, body = ProblemBody), (status = 409, body = ProblemBody)))]
pub(crate) async fn forget(
    State(app): State<Arc<App>>,
    Path((model, class)): Path<(String, String)>,
    Teacher(caller): Teacher,
    conditions: Conditions,
    content: Content,
) -> Result<Reply, Problem> {
    let hosted = app.store.get(&model)?;
    let Forgetting { receipts, strike } =
        if content.bytes.is_empty() { Forgetting::default() } else { content.json()? };
    let receipts = receipts.iter().map(|text| Receipt::decode(text)).collect::<Result<_, _>>()?;
    let change = Change::Forget { class, receipts, strike };
    make(&hosted, &caller, (&conditions, &content.hash(None)), change).await
}
