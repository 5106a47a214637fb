//! Teaching.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::State;
use ivoro::{Points, Samples};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::ask::{look, nothing};
use super::reply::{json, replayed};
use crate::access::Caller;
use crate::answers::options;
use crate::app::App;
use crate::change::Change;
use crate::content::Content;
use crate::given::{Given, JsonSamples, Seen, Skipped};
use crate::held::hold;
use crate::hosted::{Body, Done, Hosted, Reply, Wanted};
use crate::keys::Key;
use crate::names::check_class;
use crate::problem::{Problem, ProblemBody};
use crate::receipts::Receipt;
use crate::record::AskedFirst;
use crate::request::{Conditions, Path, Query, Teacher};
use crate::snapshot::Snapshot;

/// How a lesson is given.
#[derive(Clone, Debug, Deserialize, IntoParams, ToSchema)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Teaching {
    /// The class of samples that say none.
    pub(crate) class: Option<String>,
    /// Whether the answer has receipts, which take samples back.
    pub(crate) receipts: bool,
}

impl Default for Teaching {
    fn default() -> Self {
        Self { class: None, receipts: true }
    }
}

/// What was taught.
#[derive(Serialize, ToSchema)]
pub(crate) struct TaughtReply {
    /// One for each sample that could be read.
    taught: Vec<TaughtSample>,
    /// What could not be read.
    skipped: Vec<Skipped>,
    /// The hash of the model before.
    hash_before: String,
    /// The hash of the model now.
    hash: String,
    /// Its classes.
    classes: usize,
    /// Its samples.
    samples: u64,
    /// When, in seconds since 1970 began (UTC).
    time: u64,
}

/// A sample that was taught.
#[derive(Clone, Serialize, ToSchema)]
pub(crate) struct TaughtSample {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    class: String,
    /// What the model said of it before it learned it; nothing where it knew no class.
    asked: Option<FirstAnswer>,
    /// Takes it back, or gives it another class. Whoever has it knows the features of the sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt: Option<String>,
}

/// What the model said of a sample before it learned it.
#[derive(Clone, Serialize, ToSchema)]
pub(crate) struct FirstAnswer {
    class: String,
    probability: Option<f64>,
    unknown: Option<bool>,
    /// Missing where the class was new, so that no answer could have been right.
    #[serde(skip_serializing_if = "Option::is_none")]
    right: Option<bool>,
}

/// Teaches samples: `class` and `image` parts of a multipart body, or an `archive` part with a zip of CLASS/IMAGE; or
/// vectors as JSON, NumPy or Arrow. New classes begin with their first sample. The answer comes when it is on disk.
#[utoipa::path(post, path = "/api/v1/models/{model}/samples", tag = "teach", params(("model" = String, Path), Teaching),
    request_body(content((JsonSamples = "application/json"), (Vec<u8> = "multipart/form-data"), (Vec<u8> = "application/x-npy"),
        (Vec<u8> = "application/vnd.apache.arrow.stream"))),
    responses((status = 200, body = TaughtReply), (status = 409, body = ProblemBody), (status = 412, body = ProblemBody),
        (status = 422, body = ProblemBody), (status = 503, body = ProblemBody), (status = 507, body = ProblemBody)))]
pub(crate) async fn teach(
    State(app): State<Arc<App>>,
    Path(model): Path<String>,
    Query(teaching): Query<Teaching>,
    Teacher(caller): Teacher,
    conditions: Conditions,
    content: Content,
) -> Result<Reply, Problem> {
    let hosted = app.store.get(&model)?;
    let (given, hash) = Given::read(&content, &app.limits).await?;
    let key = conditions.key(&hash);
    if let Some(reply) = replayed(&hosted, key.as_ref()).await? {
        return Ok(reply);
    }
    let now = hosted.held();
    let lesson = if given.is_heavy(&now) {
        let (shared, hosted, teaching) = (Arc::clone(&app), Arc::clone(&hosted), teaching.clone());
        app.heavy(move || {
            let _content = content;
            Lesson::of(look(&shared, &hosted, &now, given)?, &now, &teaching, shared.limits.name)
        })
        .await?
    } else {
        Lesson::of(look(&app, &hosted, &now, given)?, &now, &teaching, app.limits.name)?
    };
    lesson.give(&hosted, &caller, (conditions.if_match, key), teaching.receipts).await
}

/// Samples with what the model says of them before it learns them.
pub(crate) struct Lesson {
    samples: Samples,
    taught: Vec<TaughtSample>,
    skipped: Vec<Skipped>,
    network: Option<ivoro::NetworkDescription>,
}

impl Lesson {
    pub(crate) fn of(
        seen: Seen,
        now: &Snapshot,
        teaching: &Teaching,
        longest: usize,
    ) -> Result<Self, Problem> {
        let Seen { points, names, classes, skipped, network } = seen;
        let Some(points) = points else { return Err(nothing(&skipped)) };
        let mut known: HashMap<String, u32> = HashMap::new();
        let (mut labels, mut order) = (Vec::with_capacity(names.len()), Vec::new());
        for (row, class) in classes.into_iter().enumerate() {
            let class = class.or_else(|| teaching.class.clone()).ok_or_else(|| {
                Problem::unprocessable(format!(
                    "sample {row} has no class: a field class, or ?class="
                ))
            })?;
            let next = order.len() as u32;
            let label = *known.entry(class.clone()).or_insert(next);
            if label == next {
                check_class(&class, longest)?;
                order.push(class);
            }
            labels.push(label);
        }
        let asked = asked_first(now, &points)?;
        let sample = |(row, name): (usize, Option<String>)| {
            let class = order[labels[row] as usize].clone();
            let asked = asked.get(row).map(|first| first.for_class(now, &class));
            TaughtSample { name, class, asked, receipt: None }
        };
        let taught = names.into_iter().enumerate().map(sample).collect();
        let samples = Samples::new(points, labels, order.into())?;
        Ok(Self { samples, taught, skipped, network })
    }

    /// Has it learned.
    pub(crate) async fn give(
        self,
        hosted: &Arc<Hosted>,
        caller: &Caller,
        (if_match, key): (Option<String>, Option<Key>),
        receipts: bool,
    ) -> Result<Reply, Problem> {
        let Self { samples, taught, skipped, network } = self;
        let asked: Vec<AskedFirst> = taught.iter().filter_map(TaughtSample::record).collect();
        let network = network.map(Box::new);
        let change = Change::Teach { samples, network, again: Vec::new() };
        let (who, body) = (Arc::clone(&caller.name), body(taught, skipped, receipts));
        let reply = hosted.change(Wanted { change, if_match, key, who, body }).await?;
        if reply.hash.is_some() {
            let mut record = hold(&hosted.record);
            asked.iter().for_each(|asked| record.add(asked));
        }
        Ok(reply)
    }
}

fn body(taught: Vec<TaughtSample>, skipped: Vec<Skipped>, wanted: bool) -> Body {
    Box::new(move |done: &Done, kept| {
        let mut taught = taught.clone();
        if wanted && kept {
            let receipts = done.applied.receipts.iter().map(Receipt::encode);
            taught.iter_mut().zip(receipts).for_each(|(sample, text)| sample.receipt = Some(text));
        }
        json(&TaughtReply {
            taught,
            skipped: skipped.clone(),
            hash_before: done.hash_before.clone(),
            hash: done.hash.clone(),
            classes: done.classes,
            samples: done.samples,
            time: done.time,
        })
    })
}

impl TaughtSample {
    /// What counts for how good the model is: nothing of the first samples of a class.
    fn record(&self) -> Option<AskedFirst> {
        let asked = self.asked.as_ref()?;
        asked.right?;
        Some(AskedFirst {
            class: self.class.clone(),
            answer: asked.class.clone(),
            probability: asked.probability,
            unknown: asked.unknown == Some(true),
        })
    }
}

impl FirstAnswer {
    fn for_class(&self, now: &Snapshot, class: &str) -> Self {
        let known = now.model.head().classes().iter().any(|it| it.name == class);
        Self { right: known.then_some(self.class == class), ..self.clone() }
    }
}

/// What the model says of samples that it has not learned yet.
fn asked_first(now: &Snapshot, points: &Points) -> Result<Vec<FirstAnswer>, Problem> {
    if now.is_empty() {
        return Ok(Vec::new());
    }
    let answers = now.model.ask(points, options(now, 1, 0.05))?;
    let first = answers.into_iter().map(|answer| {
        let unknown = answer.unknown;
        let nearest = answer.top.into_iter().next();
        let (class, probability) =
            nearest.map_or_else(Default::default, |it| (it.class, it.probability));
        FirstAnswer { class, probability, unknown, right: None }
    });
    Ok(first.collect())
}
