//! Receipts: the exact sums that a lesson added, for whoever gave it. They take the lesson back on any
//! machine, without a sample.

use std::collections::HashSet;

use super::Model;
use crate::error::{Error, ReceiptRefusal, Result};
use crate::head::{Head, Retracted, Retraction, Variant};
use crate::journal::Verb;
use crate::samples::Samples;

/// What a lesson added to a model: of each class the number of its samples and their sums, under W and Q
/// their second moments too, so that each class can be taken back alone.
///
/// It belongs to whoever gave the samples, and no model keeps it: the receipt of a single sample *is* that
/// sample's features, and one of a few samples says much about them.
///
/// ```
/// # use ivoro::{Matrix, Model, Samples, Variant};
/// # let points = Matrix::new(4, 2, vec![0.0, 0.1, 0.1, 0.0, 5.0, 5.1, 5.1, 5.0])?;
/// # let monday = Samples::single("monday", points, vec![0, 0, 1, 1], 2)?;
/// # let mut model = Model::new("iVoro".parse::<Variant>()?, Default::default());
/// # model.learn(&monday)?;
/// use ivoro::codec;
/// let before = model.head().clone();
/// let receipt = model.update_with_receipt(&monday.select(&[1, 2]))?;
/// let file = codec::encode_receipt(&receipt)?;
/// // later, and elsewhere
/// let receipt = codec::decode_receipt("monday.receipt".as_ref(), &file)?;
/// model.retract_receipt(&receipt, Default::default())?;
/// assert!(*model.head() == before);
/// # Ok::<(), ivoro::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Receipt {
    /// A model that learned this lesson alone.
    pub(crate) lesson: Model,
    /// Classes that were known before the lesson.
    pub(crate) updated: HashSet<String>,
}

impl Receipt {
    /// The classes with the number of their samples.
    pub fn classes(&self) -> impl Iterator<Item = (&str, u64)> {
        let classes = self.lesson.head.classes().iter();
        classes.map(|class| (class.name.as_str(), class.statistics.count))
    }

    /// The number of samples.
    pub fn samples(&self) -> u64 {
        self.lesson.head.samples()
    }

    /// The variant of the model.
    pub fn variant(&self) -> Variant {
        self.lesson.head.variant()
    }

    /// Hash of the network whose features they are, where that was told.
    pub fn network(&self) -> Option<&str> {
        self.lesson.network()
    }

    /// The receipt of some of its classes alone; none of them may be missing.
    pub fn of_classes(&self, wanted: &[String]) -> Result<Self> {
        let head = self.lesson.head.selected(wanted)?;
        let lesson = Model { head, ..self.lesson.clone() };
        Ok(Self { lesson, updated: self.updated.clone() })
    }

    /// The same for a class that has got another name since.
    pub fn rename(&mut self, class: &str, name: &str) -> Result<()> {
        self.lesson.head.rename(class, name)?;
        if self.updated.remove(class) {
            self.updated.insert(name.to_owned());
        }
        Ok(())
    }
}

impl Model {
    /// Learns new classes as [`Model::learn`] does, and gives a receipt.
    pub fn learn_with_receipt(&mut self, phase: &Samples) -> Result<Receipt> {
        self.with_receipt(phase, |model| model.learn(phase))
    }

    /// Adds samples as [`Model::update`] does, and gives a receipt.
    pub fn update_with_receipt(&mut self, samples: &Samples) -> Result<Receipt> {
        self.with_receipt(samples, |model| model.update(samples).map(drop))
    }

    /// Learns as [`Model::teach`] does, and gives a receipt.
    pub fn teach_with_receipt(&mut self, samples: &Samples) -> Result<Receipt> {
        self.with_receipt(samples, |model| model.teach(samples))
    }

    fn with_receipt(
        &mut self,
        samples: &Samples,
        change: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<Receipt> {
        let mut changed = self.clone();
        change(&mut changed)?;
        if changed.head.variant().keeps_compact(changed.head.settings().scatter) {
            let what = "a receipt with a compact scatter: samples can't be taken away from its classes; \
                        forget takes a class out without one";
            return Err(Error::Unsupported { what: what.to_owned() });
        }
        // after the change: a model that is begun has its range of values only then
        let head = changed.head.of_a_lesson(samples)?;
        let known = self.head.places();
        let names = head.classes().iter().map(|class| class.name.clone());
        let updated = names.filter(|name| known.contains_key(name.as_str())).collect();
        let lesson = Self::from_parts(head, None, Vec::new(), changed.network.clone());
        let lesson = Self { description: changed.description.clone(), ..lesson };
        *self = changed;
        Ok(Receipt { lesson, updated })
    }

    /// Takes back what a receipt says was given, on any machine and without a sample. On an error nothing
    /// has changed.
    pub fn retract_receipt(&mut self, receipt: &Receipt, how: Retraction) -> Result<Retracted> {
        self.check_network_of(&receipt.lesson)?;
        let given = &receipt.lesson.head;
        if let Some((what, own, other)) = self.head.unlike(given) {
            let reason = ReceiptRefusal::Differs { what, own, other };
            return Err(Error::Receipt { reason });
        }
        let (learned, taken) = self.journal.lesson(&given.lesson());
        if taken >= learned.max(1) {
            return Err(Error::Receipt { reason: ReceiptRefusal::Used });
        }
        let names = receipt.classes().map(|(name, _)| name.to_owned()).collect();
        self.taking_back(names, |head| head.subtract(given, how, &receipt.updated))
    }

    /// Forgets a class whose samples can't be told from others in what is kept, with the receipts of all of
    /// them. On an error nothing has changed.
    pub fn forget_with_receipts(
        &mut self,
        class: &str,
        receipts: &[Receipt],
        how: Retraction,
    ) -> Result<()> {
        let wanted = [class.to_owned()];
        self.entered(Verb::Forget, wanted.to_vec(), None, |model| {
            let mut changed = model.clone();
            let all = changed.head.samples_of(class);
            let all = all.ok_or_else(|| Error::UnknownClass { class: class.to_owned() })?;
            for receipt in receipts {
                changed.now = None;
                changed.retract_receipt(&receipt.of_classes(&wanted)?, how)?;
            }
            if let Some(left) = changed.head.samples_of(class) {
                let reason = ReceiptRefusal::Incomplete { class: class.to_owned(), left, all };
                return Err(Error::Receipt { reason });
            }
            *model = Self { now: model.now, ..changed };
            Ok(())
        })
    }
}

impl Head {
    /// A head of the same frame that knows these samples alone, with second moments of its own for every
    /// class.
    fn of_a_lesson(&self, samples: &Samples) -> Result<Self> {
        self.emptied().with_scatter_per_class().alone(samples)
    }
}
