//! What annotations do to a model: a new one teaches, a changed one relabels, a deleted one is taken back.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::config::Labelling;
use super::images;
use super::payload::{Annotation, Event, Task, What};
use crate::access::Caller;
use crate::annotations::{Id, Ledger};
use crate::api::{Lesson, Teaching, changed, look, replayed};
use crate::app::App;
use crate::change::Change;
use crate::given::{Given, GivenPhoto};
use crate::held::hold;
use crate::hosted::{Hosted, Wanted};
use crate::keys::Key;
use crate::names::check_class;
use crate::problem::Problem;
use crate::receipts::Receipt;

/// What an event did.
#[derive(Debug, Default, Serialize)]
pub(super) struct Done {
    taught: usize,
    relabelled: usize,
    taken_back: usize,
}

/// Of a lesson's answer: what takes it back.
#[derive(Deserialize)]
struct TaughtBody {
    taught: Vec<ReceiptOnly>,
}

#[derive(Deserialize)]
struct ReceiptOnly {
    receipt: Option<String>,
}

/// Of a correction's answer: the new receipts.
#[derive(Deserialize)]
struct ChangedBody {
    #[serde(default)]
    receipts: Vec<String>,
}

/// Whoever makes the changes, and of which model.
struct Making<'a> {
    app: &'a Arc<App>,
    hosted: &'a Arc<Hosted>,
    caller: &'a Caller,
}

/// Does what an event says. Events of a model come one after the other.
pub(super) async fn take(
    app: &Arc<App>,
    hosted: &Arc<Hosted>,
    caller: &Caller,
    event: Event,
) -> Result<Done, Problem> {
    let making = Making { app, hosted, caller };
    let ledger = app.annotations.of(hosted);
    let mut ledger = ledger.lock().await;
    let ledger = match &mut *ledger {
        Some(ledger) => ledger,
        none => none.insert(Ledger::open(hosted)?),
    };
    let mut done = Done::default();
    match event.what {
        What::Deleted(ids) => {
            for id in ids {
                making.take_back(ledger, (event.project, id), &mut done).await?;
            }
        }
        What::Said { label_config, annotations } => {
            let labelling = Labelling::parse(&label_config)?;
            for (annotation, task) in annotations {
                let id = (event.project, annotation.id);
                making.said(ledger, id, (&annotation, &task), &labelling, &mut done).await?;
            }
        }
    }
    Ok(done)
}

impl Making<'_> {
    /// Somebody says what a task is.
    async fn said(
        &self,
        ledger: &mut Ledger,
        id: Id,
        (annotation, task): (&Annotation, &Task),
        labelling: &Labelling,
        done: &mut Done,
    ) -> Result<(), Problem> {
        let Some(class) = labelling.class_of(annotation) else {
            return self.take_back(ledger, id, done).await;
        };
        check_class(&class, self.app.limits.name)?;
        let known = match ledger.receipt(id)? {
            Some(receipt) => Some(receipt),
            None => self.teach(ledger, id, task, (&class, labelling), done).await?,
        };
        let Some(receipt) = known.map(|text| Receipt::decode(&text)).transpose()? else {
            return Ok(());
        };
        if receipt.class == class {
            return Ok(());
        }
        let change = Change::Relabel { receipts: vec![receipt], class, again: Vec::new() };
        let body = self.make(change).await?;
        ledger.keep(id, body.receipts.into_iter().next())?;
        done.relabelled += 1;
        Ok(())
    }

    /// Teaches the image of a task. Was this very annotation taught, and the server stopped before it could keep the
    /// receipt, then this is the receipt.
    async fn teach(
        &self,
        ledger: &mut Ledger,
        id: Id,
        task: &Task,
        (class, labelling): (&str, &Labelling),
        done: &mut Done,
    ) -> Result<Option<String>, Problem> {
        let mut round = 0;
        let key = loop {
            let key = key(id, round);
            let Some(reply) = replayed(self.hosted, Some(&key)).await? else { break key };
            let receipt = receipt_of(&reply.body)?;
            if !hold(&self.hosted.keys).is_spent(&Receipt::decode(&receipt)?.id) {
                ledger.keep(id, Some(receipt.clone()))?;
                return Ok(Some(receipt));
            }
            // it was taken back since, and is said again
            round += 1;
        };
        let bytes = images::of_task(task, labelling).map_err(Problem::unprocessable)?;
        let (app, hosted, now) =
            (Arc::clone(self.app), Arc::clone(self.hosted), self.hosted.held());
        let teaching = Teaching { class: Some(class.to_owned()), receipts: true };
        let lesson = self.app.heavy(move || {
            let photos = vec![GivenPhoto::of(format!("annotation {}", id.1), bytes)];
            let seen = look(&app, &hosted, &now, Given::Photos { photos, archives: Vec::new() })?;
            Lesson::of(seen, &now, &teaching, app.limits.name)
        });
        let reply = lesson.await?.give(self.hosted, self.caller, (None, Some(key)), true).await?;
        ledger.keep(id, Some(receipt_of(&reply.body)?))?;
        done.taught += 1;
        Ok(None)
    }

    /// Takes back what an annotation taught, if it taught anything.
    async fn take_back(&self, ledger: &mut Ledger, id: Id, done: &mut Done) -> Result<(), Problem> {
        let Some(text) = ledger.receipt(id)? else { return Ok(()) };
        let change = Change::Retract { receipts: vec![Receipt::decode(&text)?] };
        self.make(change).await?;
        ledger.keep(id, None)?;
        done.taken_back += 1;
        Ok(())
    }

    async fn make(&self, change: Change) -> Result<ChangedBody, Problem> {
        let (who, body) = (Arc::clone(&self.caller.name), changed());
        let wanted = Wanted { change, if_match: None, key: None, who, body };
        let reply = self.hosted.change(wanted).await?;
        serde_json::from_str(&reply.body).map_err(|_| Problem::internal())
    }
}

/// An annotation teaches once, or once more each time it was taken back.
fn key((project, annotation): Id, round: u32) -> Key {
    let text = format!("label-studio.{project}.{annotation}.{round}");
    let request = blake3::hash(text.as_bytes()).to_hex()[..32].to_owned();
    Key { text, request }
}

fn receipt_of(body: &str) -> Result<String, Problem> {
    let body: TaughtBody = serde_json::from_str(body).map_err(|_| Problem::internal())?;
    let receipt = body.taught.into_iter().next().and_then(|taught| taught.receipt);
    receipt.ok_or_else(Problem::internal)
}
