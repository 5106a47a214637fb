//! What was done to a model, when and by whom.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use ivoro::journal::{Earlier, Entry, Journal};
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::problem::{Problem, ProblemBody};
use crate::request::{Asker, Path};
use crate::who::WhoEntry;

/// What was done to a model.
#[derive(Serialize, ToSchema)]
pub(crate) struct JournalReply {
    /// What came before the entries.
    #[schema(value_type = Option<Object>)]
    earlier: Option<Earlier>,
    /// Of the model's own journal, which goes with its file: oldest first, each with the token that did it here.
    entries: Vec<JournalEntry>,
    /// Which token made which change here. It lies beside the model.
    who: Vec<WhoEntry>,
}

/// One change.
#[derive(Serialize, ToSchema)]
pub(crate) struct JournalEntry {
    #[serde(flatten)]
    #[schema(value_type = Object)]
    entry: Entry,
    /// The name of the token; nothing where it was done elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
}

/// What was done to a model, when and by whom. No image and no feature is in it.
#[utoipa::path(get, path = "/api/v1/models/{model}/journal", tag = "keep", params(("model" = String, Path)),
    responses((status = 200, body = JournalReply), (status = 404, body = ProblemBody)))]
pub(crate) async fn journal(
    State(app): State<Arc<App>>,
    Path(model): Path<String>,
    _: Asker,
) -> Result<Json<JournalReply>, Problem> {
    let hosted = app.store.get(&model)?;
    let read = tokio::task::spawn_blocking(move || {
        let who = hosted.who.entries().map_err(|error| Problem::from(ivoro::Error::from(error)))?;
        Ok(joined(hosted.held().model.journal(), who))
    });
    read.await.unwrap_or_else(|_| Err(Problem::internal())).map(Json)
}

/// Entries with who made them: of the same second, with as many samples of the same classes.
fn joined(journal: &Journal, who: Vec<WhoEntry>) -> JournalReply {
    let mut left: Vec<&WhoEntry> = who.iter().collect();
    let mut entries = Vec::new();
    for entry in journal.entries() {
        let same = |line: &&WhoEntry| {
            let about = line.classes.iter().all(|class| entry.classes.contains(class));
            line.time == entry.when
                && about
                && (line.samples == entry.samples || entry.samples == 0)
        };
        let found = left.iter().position(same).map(|at| left.remove(at).token.clone());
        entries.push(JournalEntry { entry: entry.clone(), token: found });
    }
    JournalReply { earlier: journal.earlier().copied(), entries, who }
}
