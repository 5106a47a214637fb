//! What Label Studio sends.

use serde::Deserialize;
use serde_json::Value;

use crate::problem::Problem;

/// Sent when a backend is connected. Besides there are an address and a token, which are not taken from a request.
#[derive(Debug, Deserialize)]
pub(super) struct SetupRequest {}

/// Tasks to be predicted.
#[derive(Debug, Deserialize)]
pub(super) struct PredictRequest {
    pub(super) tasks: Vec<Task>,
    pub(super) label_config: String,
}

/// A thing to be labelled.
#[derive(Debug, Deserialize)]
pub(super) struct Task {
    pub(super) data: Value,
}

/// What somebody said of a task.
#[derive(Debug, Deserialize)]
pub(super) struct Annotation {
    pub(super) id: u64,
    #[serde(default)]
    pub(super) result: Vec<Region>,
    /// Whether the task was skipped.
    #[serde(default)]
    pub(super) was_cancelled: bool,
}

/// A part of an annotation.
#[derive(Debug, Deserialize)]
pub(super) struct Region {
    #[serde(default)]
    pub(super) from_name: String,
    #[serde(default)]
    pub(super) value: Value,
}

#[derive(Debug, Deserialize)]
struct Project {
    id: u64,
    #[serde(default)]
    label_config: String,
}

/// The body of an event.
#[derive(Debug, Deserialize)]
struct Body {
    project: Project,
    annotation: Option<OneOrMore<Annotation>>,
    annotations: Option<Vec<Deleted>>,
    task: Option<OneOrMore<Task>>,
}

#[derive(Debug, Deserialize)]
struct Deleted {
    id: u64,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum OneOrMore<T> {
    One(T),
    More(Vec<T>),
}

impl<T> OneOrMore<T> {
    fn list(self) -> Vec<T> {
        match self {
            Self::One(one) => vec![one],
            Self::More(more) => more,
        }
    }
}

/// What happened in a project.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) project: u64,
    pub(super) what: What,
}

#[derive(Debug)]
pub(super) enum What {
    /// Annotations that are new or changed, with their tasks.
    Said { label_config: String, annotations: Vec<(Annotation, Task)> },
    /// Annotations that are gone.
    Deleted(Vec<u64>),
}

impl Event {
    /// An event that something is learned of, if it is one.
    pub(super) fn read(mut body: Value) -> Result<Option<Self>, Problem> {
        let action = body.get_mut("action").map(Value::take);
        let action = action.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
        let is_deletion = match action.as_str() {
            "ANNOTATION_CREATED" | "ANNOTATIONS_CREATED" | "ANNOTATION_UPDATED" => false,
            "ANNOTATION_DELETED" | "ANNOTATIONS_DELETED" => true,
            _ => return Ok(None),
        };
        let malformed = |error: serde_json::Error| Problem::bad(format!("{action}: {error}"));
        let Body { project, annotation, annotations, task } =
            serde_json::from_value(body).map_err(malformed)?;
        let annotation = annotation.map_or_else(Vec::new, OneOrMore::list);
        let what = if is_deletion {
            let ids = annotations.unwrap_or_default().into_iter().map(|it| it.id);
            What::Deleted(ids.chain(annotation.into_iter().map(|it| it.id)).collect())
        } else {
            let tasks = task.map_or_else(Vec::new, OneOrMore::list);
            if tasks.len() != annotation.len() {
                let (expected, found) = (annotation.len(), tasks.len());
                let detail = format!(
                    "{action}: expected a task for each annotation: {expected}, found {found}"
                );
                return Err(Problem::bad(detail));
            }
            let annotations = annotation.into_iter().zip(tasks).collect();
            What::Said { label_config: project.label_config, annotations }
        };
        Ok(Some(Self { project: project.id, what }))
    }
}
