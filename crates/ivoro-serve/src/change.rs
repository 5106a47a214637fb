//! What can be done to a model, and what undoes it. Each change is one call of the library.

use std::collections::HashSet;
use std::fmt::Write as _;

use ivoro::journal::Verb;
use ivoro::{
    Error, Forgetting, Model, NetworkDescription, Receipt as LessonReceipt, Retraction, Samples,
    SealOptions,
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::problem::Problem;
use crate::receipts::{self, Receipt, ReceiptId};

/// One change of a model.
pub(crate) enum Change {
    /// Learn new classes, add to the others.
    Teach {
        samples: Samples,
        network: Option<Box<NetworkDescription>>,
        again: Vec<ReceiptId>,
    },
    /// Take samples back.
    Retract {
        receipts: Vec<Receipt>,
    },
    /// Take a whole lesson back, by the file that the library gave for it.
    RetractLesson {
        receipt: Box<LessonReceipt>,
    },
    /// Give samples another class.
    Relabel {
        receipts: Vec<Receipt>,
        class: String,
        again: Vec<ReceiptId>,
    },
    Rename {
        class: String,
        name: String,
    },
    /// Make two classes one.
    Join {
        class: String,
        into: String,
    },
    /// Forget a class; with receipts of all its samples where one can't be told from the others.
    Forget {
        class: String,
        receipts: Vec<Receipt>,
        strike: bool,
    },
    Seal {
        classes: Option<Vec<String>>,
        options: SealOptions,
    },
    Merge {
        other: Box<Model>,
        ancestor: Option<Box<Model>>,
    },
    /// Put another model in the place of this one.
    Replace {
        other: Box<Model>,
    },
    /// Undo what was done last; see [`crate::undo`].
    Undo,
}

/// What a change did.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub(crate) struct Applied {
    /// What was done.
    pub(crate) verb: &'static str,
    /// Classes that it was done to.
    pub(crate) classes: Vec<String>,
    /// Samples that came, went or changed their class.
    pub(crate) samples: u64,
    /// Classes without any sample left: they are gone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) emptied: Vec<String>,
    /// What the samples or the class are called since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) into: Option<String>,
    /// What the library says besides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
    /// Receipts of samples that were taught or have another class now.
    #[serde(skip)]
    pub(crate) receipts: Vec<Receipt>,
    /// Receipts that can't be used again.
    #[serde(skip)]
    pub(crate) spent: Vec<ReceiptId>,
    /// Receipts that can.
    #[serde(skip)]
    pub(crate) unspent: Vec<ReceiptId>,
}

/// Whether a receipt was used.
pub(crate) type Spent<'a> = &'a (dyn Fn(&ReceiptId) -> bool + Sync);

/// What undoes a change, and what that change was.
pub(crate) struct Inverse {
    pub(crate) change: Change,
    pub(crate) of: Applied,
}

/// Whether an inverse is known: of some changes it is, and some are for good.
pub(crate) enum Undoing {
    By(Box<Change>),
    /// It was the undoing of this.
    Undone(Box<Inverse>),
    Never,
}

const KEPT: Retraction =
    Retraction { probes: Forgetting::Exact, inexact: false, recomputed: false, kept: true };

impl Change {
    /// Whether it has to stand alone, so that the hashes before and after it are its own.
    pub(crate) fn stands_alone(&self) -> bool {
        !matches!(
            self,
            Self::Teach { .. } | Self::Retract { .. } | Self::Relabel { .. } | Self::Rename { .. }
        )
    }

    /// Bytes that it holds while it waits, about.
    pub(crate) fn bytes(&self) -> usize {
        let of = |receipts: &[Receipt]| {
            receipts.iter().flat_map(|receipt| &receipt.blocks).map(|block| block.len() * 4).sum()
        };
        match self {
            Self::Teach { samples, .. } => {
                let dims: usize = (0..samples.layers().len()).map(|layer| samples.dim(layer)).sum();
                samples.len() * samples.views().len() * dims * 4
            }
            Self::Retract { receipts }
            | Self::Relabel { receipts, .. }
            | Self::Forget { receipts, .. } => of(receipts),
            Self::Merge { other, .. } | Self::Replace { other } => other.head().bytes(),
            _ => 0,
        }
    }

    /// Does it. On an error nothing has changed.
    pub(crate) fn apply(
        &self,
        model: &mut Model,
        time: u64,
        spent: Spent<'_>,
    ) -> Result<(Applied, Undoing), Problem> {
        model.set_time(time);
        match self {
            Self::Teach { samples, network, again } => {
                teach(model, samples, network.as_deref(), again)
            }
            Self::Retract { receipts } => retract(model, receipts, spent),
            Self::RetractLesson { receipt } => {
                let retracted = model.retract_receipt(receipt, KEPT)?;
                Ok((of_retracted("retract", retracted), Undoing::Never))
            }
            Self::Relabel { receipts, class, again } => {
                relabel(model, (receipts, again), class, spent)
            }
            Self::Rename { class, name } => {
                model.rename(class, name)?;
                let back = Self::Rename { class: name.clone(), name: class.clone() };
                Ok((about("rename", class, Some(name)), Undoing::By(Box::new(back))))
            }
            Self::Join { class, into } => {
                let samples = count_of(model, class);
                model.join(class, into, Forgetting::Exact)?;
                Ok((Applied { samples, ..about("join", class, Some(into)) }, Undoing::Never))
            }
            Self::Forget { class, receipts, strike } => {
                forget(model, class, (receipts, spent), *strike)
            }
            Self::Seal { classes, options } => {
                let sealing = model.seal(classes.as_deref(), *options)?;
                let note = format!("{} directions of {} bits", sealing.rank, sealing.bits);
                let done = Applied {
                    verb: "seal",
                    classes: sealing.classes,
                    note: Some(note),
                    ..Applied::default()
                };
                Ok((done, Undoing::Never))
            }
            Self::Merge { other, ancestor } => merge(model, other, ancestor.as_deref()),
            Self::Replace { other } => {
                *model = Model::clone(other);
                let samples =
                    model.head().classes().iter().map(|class| class.statistics.count).sum();
                Ok((Applied { verb: "replace", samples, ..Applied::default() }, Undoing::Never))
            }
            Self::Undo => Err(Problem::internal()),
        }
    }
}

fn about(verb: &'static str, class: &str, into: Option<&String>) -> Applied {
    Applied { verb, classes: vec![class.to_owned()], into: into.cloned(), ..Applied::default() }
}

fn count_of(model: &Model, class: &str) -> u64 {
    let found = model.head().classes().iter().find(|it| it.name == class);
    found.map_or(0, |it| it.statistics.count)
}

fn of_retracted(verb: &'static str, retracted: ivoro::head::Retracted) -> Applied {
    let samples = retracted.samples.iter().map(|(_, count)| count).sum();
    let classes = retracted.samples.into_iter().map(|(class, _)| class).collect();
    Applied { verb, classes, samples, emptied: retracted.emptied, ..Applied::default() }
}

fn teach(
    model: &mut Model,
    samples: &Samples,
    network: Option<&NetworkDescription>,
    again: &[ReceiptId],
) -> Result<(Applied, Undoing), Problem> {
    // what a model is told of a network stays, even where the lesson is refused
    let mut changed = model.head().classes().is_empty().then(|| model.clone());
    let target = changed.as_mut().unwrap_or(model);
    if let Some(network) = network {
        target.use_described_network(network)?;
    }
    target.teach(samples)?;
    if let Some(changed) = changed {
        *model = changed;
    }
    let mut receipts = receipts::give(samples, position(model))?;
    // a lesson that comes back has the receipts that it had
    receipts.iter_mut().zip(again).for_each(|(receipt, id)| receipt.id = *id);
    let classes: HashSet<&String> = receipts.iter().map(|receipt| &receipt.class).collect();
    let mut classes: Vec<String> = classes.into_iter().cloned().collect();
    classes.sort();
    let unspent = again.to_vec();
    let undo = Change::Retract { receipts: receipts.clone() };
    let done = Applied {
        verb: "teach",
        classes,
        samples: samples.len() as u64,
        receipts,
        unspent,
        ..Applied::default()
    };
    Ok((done, Undoing::By(Box::new(undo))))
}

/// What the class of a receipt is called now: names change, and classes become part of others.
fn name_now(model: &Model, receipt: &Receipt) -> Result<String, Problem> {
    let journal = model.journal();
    let earlier = journal.earlier().map_or(0, |earlier| earlier.entries);
    let mut name = receipt.class.clone();
    let mut known = usize::MAX;
    for (at, entry) in journal.entries().enumerate() {
        let before = std::mem::replace(&mut known, entry.known);
        let is_later = earlier + at as u64 >= receipt.position;
        let [class] = &entry.classes[..] else { continue };
        if !is_later || *class != name {
            continue;
        }
        match (entry.verb, &entry.into) {
            (Verb::Rename, Some(into)) => name.clone_from(into),
            // of single samples the others stay; here the whole class went
            (Verb::Relabel, Some(into)) if entry.known < before => name.clone_from(into),
            (Verb::Forget, _) => {
                let detail = format!("class {name} was forgotten, and this sample with it");
                return Err(Problem::conflict("forgotten", detail));
            }
            _ => {}
        }
    }
    Ok(name)
}

/// Entries of the journal so far.
fn position(model: &Model) -> u64 {
    let earlier = model.journal().earlier().map_or(0, |earlier| earlier.entries);
    earlier + model.journal().entries().count() as u64
}

fn check_unspent(receipts: &[Receipt], spent: Spent<'_>) -> Result<Vec<ReceiptId>, Problem> {
    let mut seen = HashSet::new();
    for receipt in receipts {
        if spent(&receipt.id) || !seen.insert(receipt.id) {
            let reason = ivoro::error::ReceiptRefusal::Used;
            return Err(Error::Receipt { reason }.into());
        }
    }
    Ok(receipts.iter().map(|receipt| receipt.id).collect())
}

fn retract(
    model: &mut Model,
    receipts: &[Receipt],
    spent: Spent<'_>,
) -> Result<(Applied, Undoing), Problem> {
    let ids = check_unspent(receipts, spent)?;
    let variant = model.head().variant();
    let samples = receipts::samples(receipts, variant, |receipt| name_now(model, receipt))?;
    let retracted = model.retract(&samples, KEPT)?;
    let network = model.network_description().filter(|_| model.network().is_some());
    let network = network.cloned().map(Box::new);
    let undo = Change::Teach { samples, network, again: ids.clone() };
    let done = Applied { spent: ids, ..of_retracted("retract", retracted) };
    Ok((done, Undoing::By(Box::new(undo))))
}

fn relabel(
    model: &mut Model,
    (receipts, again): (&[Receipt], &[ReceiptId]),
    class: &str,
    spent: Spent<'_>,
) -> Result<(Applied, Undoing), Problem> {
    let ids = check_unspent(receipts, spent)?;
    let variant = model.head().variant();
    let samples = receipts::samples(receipts, variant, |receipt| name_now(model, receipt))?;
    let from: HashSet<String> = samples.classes().iter().cloned().collect();
    if from.contains(class) {
        let text = format!("a sample is of class {class} already");
        return Err(Problem::conflict("same-class", text));
    }
    let retracted = model.relabel(&samples, class, KEPT)?;
    let relabelled =
        samples.relabel(&vec![0; samples.classes().len()], [class.to_owned()].into())?;
    let mut given = receipts::give(&relabelled, position(model))?;
    given.iter_mut().zip(again).for_each(|(receipt, id)| receipt.id = *id);
    // of several classes none is the one to go back to
    let mut from: Vec<String> = from.into_iter().collect();
    let undo = match (from.pop(), from.is_empty()) {
        (Some(only), true) => Undoing::By(Box::new(Change::Relabel {
            receipts: given.clone(),
            class: only,
            again: ids.clone(),
        })),
        _ => Undoing::Never,
    };
    let into = Some(class.to_owned());
    let unspent = again.to_vec();
    let done = Applied {
        into,
        receipts: given,
        spent: ids,
        unspent,
        ..of_retracted("relabel", retracted)
    };
    Ok((done, undo))
}

fn forget(
    model: &mut Model,
    class: &str,
    (receipts, spent): (&[Receipt], Spent<'_>),
    strike: bool,
) -> Result<(Applied, Undoing), Problem> {
    let samples = count_of(model, class);
    let mut done = Applied { samples, ..about("forget", class, None) };
    let mut changed = model.clone();
    match changed.forget(class, Forgetting::Exact) {
        Err(Error::ForgetInexact { .. }) if !receipts.is_empty() => {
            done.spent = check_unspent(receipts, spent)?;
            let variant = changed.head().variant();
            let given = receipts::samples(receipts, variant, |receipt| name_now(model, receipt))?;
            if given.classes().iter().any(|name| name != class) {
                let text = format!("a receipt is of another class than {class}");
                return Err(Problem::unprocessable(text));
            }
            let left = samples.saturating_sub(given.len() as u64);
            if left > 0 {
                let class = class.to_owned();
                let reason = ivoro::error::ReceiptRefusal::Incomplete { class, left, all: samples };
                return Err(Error::Receipt { reason }.into());
            }
            changed.retract(&given, KEPT)?;
        }
        outcome => outcome?,
    }
    if strike {
        changed.strike_from_journal(class);
    }
    *model = changed;
    Ok((done, Undoing::Never))
}

fn merge(
    model: &mut Model,
    other: &Model,
    ancestor: Option<&Model>,
) -> Result<(Applied, Undoing), Problem> {
    if model.head().classes().is_empty() {
        *model = other.clone();
        let classes = model.head().classes().iter().map(|class| class.name.clone()).collect();
        return Ok((Applied { verb: "merge", classes, ..Applied::default() }, Undoing::Never));
    }
    let report = model.merge(other, ancestor)?;
    let mut note = format!(
        "{} added, {} combined, {} forgotten since the ancestor",
        report.added.len(),
        report.combined.len(),
        report.forgotten.len()
    );
    for setting in &report.settings {
        let _ = write!(note, "; {} stays {}, not {}", setting.name, setting.own, setting.other);
    }
    let classes = [report.added, report.combined].concat();
    Ok((Applied { verb: "merge", classes, note: Some(note), ..Applied::default() }, Undoing::Never))
}
