//! Asking.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::map::{Size, places};
use super::reply::{json, tagged};
use crate::answers::{Answer, AskReply, options};
use crate::app::App;
use crate::content::Content;
use crate::given::{Given, JsonSamples, Seen};
use crate::held::hold;
use crate::hosted::Hosted;
use crate::problem::{Problem, ProblemBody};
use crate::request::{Asker, Path, Query};
use crate::snapshot::Snapshot;

/// How queries are asked.
#[derive(Clone, Debug, Deserialize, IntoParams, ToSchema)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Asking {
    /// How many classes are named.
    pub(crate) top: usize,
    /// Share of known queries that may be called unknown.
    pub(crate) false_rejection: f64,
    /// Whether rejected queries are kept to be named, where the server keeps any.
    pub(crate) keep_unknown: bool,
    /// Whether the answer says where the query lies in the map …
    pub(crate) map: bool,
    /// … of this width …
    pub(crate) width: f64,
    /// … and height.
    pub(crate) height: f64,
}

impl Default for Asking {
    fn default() -> Self {
        let Size { width, height } = Size::default();
        Self { top: 3, false_rejection: 0.05, keep_unknown: false, map: false, width, height }
    }
}

/// Asks what images or feature vectors are: `image` parts of a multipart body, or vectors as JSON, NumPy or Arrow.
#[utoipa::path(post, path = "/api/v1/models/{model}/ask", tag = "ask", params(("model" = String, Path), Asking),
    request_body(content((JsonSamples = "application/json"), (Vec<u8> = "multipart/form-data"), (Vec<u8> = "application/x-npy"),
        (Vec<u8> = "application/vnd.apache.arrow.stream"))),
    responses((status = 200, body = AskReply), (status = 422, body = ProblemBody), (status = 503, body = ProblemBody)))]
pub(crate) async fn ask(
    State(app): State<Arc<App>>,
    Path(model): Path<String>,
    Query(asking): Query<Asking>,
    _: Asker,
    content: Content,
) -> Result<Response, Problem> {
    let hosted = app.store.get(&model)?;
    let (given, _) = Given::read(&content, &app.limits).await?;
    let now = hosted.held();
    if now.is_empty() {
        return Err(Problem::conflict("empty", "the model knows no class yet; teach it one first"));
    }
    let reply = if given.is_heavy(&now) {
        let (shared, hosted, now) = (Arc::clone(&app), Arc::clone(&hosted), Arc::clone(&now));
        app.heavy(move || {
            let _content = content;
            answered(&shared, &hosted, &now, given, &asking)
        })
        .await?
    } else {
        answered(&app, &hosted, &now, given, &asking)?
    };
    Ok(tagged(&now.hash, json(&reply)))
}

fn answered(
    app: &App,
    hosted: &Hosted,
    now: &Snapshot,
    given: Given,
    asking: &Asking,
) -> Result<AskReply, Problem> {
    let seen = look(app, hosted, now, given)?;
    let Some(points) = seen.points else {
        return Err(nothing(&seen.skipped));
    };
    let began = Instant::now();
    let predictions = now.model.ask(&points, options(now, asking.top, asking.false_rejection))?;
    app.metrics.asked(&predictions, began.elapsed());
    let threshold =
        now.can_reject.then(|| now.model.threshold(asking.false_rejection)).transpose()?;
    let named = predictions.into_iter().zip(seen.names);
    let mut answers: Vec<Answer> =
        named.map(|(prediction, name)| Answer::of(now, prediction, name, threshold)).collect();
    if asking.map {
        let size = Size { width: asking.width, height: asking.height };
        let places = places(now, &points, size)?;
        answers.iter_mut().zip(places).for_each(|(answer, place)| answer.point = Some(place));
    }
    if asking.keep_unknown {
        let time = (app.clock)();
        let mut unknowns = hold(&hosted.unknowns);
        for (row, answer) in
            answers.iter_mut().enumerate().filter(|(_, it)| it.unknown == Some(true))
        {
            let nearest = answer.top.first().map_or("", |near| &near.class);
            answer.unknown_id =
                unknowns.add((nearest, time), answer.strangeness, points.select(&[row]));
        }
    }
    Ok(AskReply { hash: now.hash.clone(), answers, skipped: seen.skipped })
}

/// What a model sees in what was given.
pub(crate) fn look(
    app: &App,
    hosted: &Hosted,
    now: &Snapshot,
    given: Given,
) -> Result<Seen, Problem> {
    let needs = given.needs_network();
    let network = needs.then(|| app.shelf.network(now, hosted.path.parent())).transpose()?;
    given.look(now, network.as_deref(), &app.limits)
}

/// Nothing could be read.
pub(crate) fn nothing(skipped: &[crate::given::Skipped]) -> Problem {
    let why = skipped.first().map_or("nothing was given", |skipped| &skipped.reason);
    Problem::unprocessable(why)
}
