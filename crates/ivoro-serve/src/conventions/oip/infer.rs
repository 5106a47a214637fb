//! Answers to tensors.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use ivoro::{Matrix, Points, Prediction};
use serde_json::{Value, json};

use super::Caller;
use super::reply::{Refused, answer};
use super::tensor::{InferRequest, Rows, Tensor};
use crate::answers::options;
use crate::api::look;
use crate::app::App;
use crate::content::Content;
use crate::features::assembled;
use crate::given::{Given, GivenPhoto};
use crate::hosted::Hosted;
use crate::names::visible;
use crate::options::Limits;
use crate::problem::Problem;
use crate::request::Path;
use crate::snapshot::Snapshot;

/// Says where the JSON ends and the bytes of tensors begin.
const JSON_LENGTH: &str = "inference-header-content-length";
/// Queries of a request for each part that a multipart body may have.
const ROWS_PER_PART: usize = 100;

/// Answers one input: images as BYTES, or features as FP32 or FP64.
pub(super) async fn infer(
    State(app): State<Arc<App>>,
    Path(model): Path<String>,
    caller: Caller,
    headers: HeaderMap,
    content: Result<Content, Problem>,
) -> Result<Response, Refused> {
    caller?;
    let content = content?;
    let hosted = app.store.get(&model)?;
    let (request, input) = read(&headers, &content, &app.limits)?;
    let now = hosted.held();
    if now.is_empty() {
        return Err(
            Problem::conflict("empty", "the model knows no class yet; teach it one first").into()
        );
    }
    let given = input.given(&now)?;
    let asked = Asked::of(request, model, &now)?;
    let body = if given.is_heavy(&now) {
        let (shared, now) = (Arc::clone(&app), Arc::clone(&now));
        app.heavy(move || {
            let _content = content;
            answered(&shared, &hosted, &now, given, &asked)
        })
        .await?
    } else {
        answered(&app, &hosted, &now, given, &asked)?
    };
    Ok(answer(Some(&now.hash), &body))
}

/// What a request asks for besides its input.
struct Asked {
    model: String,
    id: Option<String>,
    top: usize,
    false_rejection: f64,
    wanted: Option<Vec<String>>,
}

impl Asked {
    fn of(request: InferRequest, model: String, now: &Snapshot) -> Result<Self, Problem> {
        let top = request.parameters.top.unwrap_or(1);
        if top == 0 {
            return Err(Problem::bad("the parameter top: expected 1 or more, found 0"));
        }
        let wanted: Option<Vec<String>> =
            request.outputs.map(|outputs| outputs.into_iter().map(|output| output.name).collect());
        let known = ["class", "probability", "unknown", "strangeness"];
        for name in wanted.iter().flatten() {
            if !known.contains(&name.as_str()) {
                let (name, known) = (visible(name), known.join(", "));
                return Err(Problem::bad(format!(
                    "the output {name} is not known; expected {known}"
                )));
            }
        }
        Ok(Self {
            model,
            id: request.id,
            top: top.min(now.classes()),
            false_rejection: request.parameters.false_rejection.unwrap_or(0.05),
            wanted,
        })
    }
}

/// What a request asks about.
pub(super) enum Input {
    Images(Vec<Bytes>),
    /// A matrix for each layer and view.
    Features(Vec<Matrix>),
}

impl Input {
    /// The same as this model is asked it.
    fn given(self, now: &Snapshot) -> Result<Given, Problem> {
        match self {
            Self::Images(images) => {
                let photo = |(at, bytes)| GivenPhoto::of(format!("image {at}"), bytes);
                let photos = images.into_iter().enumerate().map(photo).collect();
                Ok(Given::Photos { photos, archives: Vec::new() })
            }
            Self::Features(blocks) => {
                let points = assembled("features", now.model.head().variant(), blocks)?;
                Ok(Given::Table { classes: vec![None; points.len()], points })
            }
        }
    }
}

/// The request, and what it asks about.
fn read(
    headers: &HeaderMap,
    content: &Content,
    limits: &Limits,
) -> Result<(InferRequest, Input), Problem> {
    let length = headers.get(JSON_LENGTH).map(|value| {
        let length = value.to_str().ok().and_then(|text| text.trim().parse::<usize>().ok());
        let length = length.filter(|length| *length <= content.bytes.len());
        length.ok_or_else(|| {
            Problem::bad("Inference-Header-Content-Length: expected a length within the body")
        })
    });
    let at = length.transpose()?.unwrap_or(content.bytes.len());
    parse(&content.bytes, at, limits)
}

/// The same of bytes of which the first `at` are JSON.
pub(super) fn parse(
    bytes: &[u8],
    at: usize,
    limits: &Limits,
) -> Result<(InferRequest, Input), Problem> {
    let (text, mut rest) = bytes.split_at(at);
    let mut request: InferRequest = serde_json::from_slice(text)
        .map_err(|error| Problem::bad(format!("not the JSON of an inference request: {error}")))?;
    let Some(input) = request.inputs.pop().filter(|_| request.inputs.is_empty()) else {
        return Err(Problem::bad("expected one input: image, or features"));
    };
    let raw = input.take(&mut rest)?;
    let input = input_of(input, raw, limits)?;
    Ok((request, input))
}

fn input_of(input: Tensor, raw: Option<&[u8]>, limits: &Limits) -> Result<Input, Problem> {
    let too_many = |found: usize, most: usize| {
        Problem::too_large(format!("{found} queries, at most {most} are taken at once"))
    };
    match input.datatype.as_str() {
        "BYTES" => {
            let images = input.images(raw)?;
            if images.len() > limits.parts {
                return Err(too_many(images.len(), limits.parts));
            }
            Ok(Input::Images(images))
        }
        "FP32" | "FP64" => {
            let rows = input.rows(raw)?;
            if rows.count > limits.parts * ROWS_PER_PART {
                return Err(too_many(rows.count, limits.parts * ROWS_PER_PART));
            }
            Ok(Input::Features(matrices(&rows)?))
        }
        other => {
            let (name, found) = (visible(&input.name), visible(other));
            let detail = format!("datatype of {name}: expected BYTES, FP32 or FP64, found {found}");
            Err(Problem::bad(detail))
        }
    }
}

/// A matrix for each layer and view.
fn matrices(given: &Rows) -> Result<Vec<Matrix>, Problem> {
    let Rows { count: rows, blocks, dim, numbers } = given;
    if *rows == 0 {
        return Err(Problem::bad("no query was given"));
    }
    let matrix = |block: usize| {
        let of_row = |row: usize| &numbers[(row * blocks + block) * dim..][..*dim];
        Ok(Matrix::new(*rows, *dim, (0..*rows).flat_map(of_row).copied().collect())?)
    };
    (0..*blocks).map(matrix).collect()
}

fn answered(
    app: &App,
    hosted: &Hosted,
    now: &Snapshot,
    given: Given,
    asked: &Asked,
) -> Result<Value, Problem> {
    let seen = look(app, hosted, now, given)?;
    if let Some(skipped) = seen.skipped.first() {
        return Err(Problem::unprocessable(format!("{}: {}", skipped.name, skipped.reason)));
    }
    let points: Points = seen.points.ok_or_else(|| Problem::bad("no query was given"))?;
    let began = Instant::now();
    let predictions = now.model.ask(&points, options(now, asked.top, asked.false_rejection))?;
    app.metrics.asked(&predictions, began.elapsed());
    let outputs = outputs(&predictions, asked)?;
    let mut body = json!({ "model_name": asked.model, "outputs": outputs, "parameters": { "hash": now.hash } });
    if let Some(id) = &asked.id {
        body["id"] = json!(id);
    }
    Ok(body)
}

fn outputs(predictions: &[Prediction], asked: &Asked) -> Result<Vec<Value>, Problem> {
    let rows = predictions.len();
    let top = predictions.first().map_or(0, |prediction| prediction.top.len());
    let near = || predictions.iter().flat_map(|prediction| &prediction.top);
    let classes: Vec<&str> = near().map(|near| near.class.as_str()).collect();
    let probabilities: Option<Vec<f64>> = near().map(|near| near.probability).collect();
    let unknown: Option<Vec<bool>> = predictions.iter().map(|it| it.unknown).collect();
    let strangeness: Option<Vec<f64>> = predictions.iter().map(|it| it.strangeness).collect();
    let all = [
        ("class", "BYTES", json!([rows, top]), Some(json!(classes))),
        ("probability", "FP32", json!([rows, top]), probabilities.map(|it| json!(it))),
        ("unknown", "BOOL", json!([rows]), unknown.map(|it| json!(it))),
        ("strangeness", "FP32", json!([rows]), strangeness.map(|it| json!(it))),
    ];
    let mut outputs = Vec::new();
    for (name, datatype, shape, data) in all {
        let is_named = asked.wanted.as_ref().map(|wanted| wanted.iter().any(|it| it == name));
        match (is_named, data) {
            (Some(false), _) | (None, None) => {}
            (_, Some(data)) => {
                outputs.push(
                    json!({ "name": name, "datatype": datatype, "shape": shape, "data": data }),
                );
            }
            (Some(true), None) => {
                let detail =
                    format!("{name} can't be said yet: the model has too few samples for it");
                return Err(Problem::conflict("not-yet", detail));
            }
        }
    }
    Ok(outputs)
}
