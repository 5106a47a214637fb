//! The last changes of a model, for a while, in memory: what undoes them.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::change::{Applied, Inverse};

/// Changes kept.
const MOST: usize = 20;
/// Bytes of samples kept for that.
const MOST_BYTES: usize = 64 << 20;
/// How long they are kept.
const FOR: Duration = Duration::from_secs(15 * 60);

/// What can be undone, the last change last.
#[derive(Default)]
pub(crate) struct Undo {
    kept: VecDeque<(Instant, usize, Inverse)>,
}

impl Undo {
    pub(crate) fn push(&mut self, inverse: Inverse) {
        let bytes = inverse.change.bytes();
        self.kept.push_back((Instant::now(), bytes, inverse));
        self.expire();
        let held =
            |kept: &VecDeque<(Instant, usize, Inverse)>| kept.iter().map(|it| it.1).sum::<usize>();
        while self.kept.len() > MOST || held(&self.kept) > MOST_BYTES {
            self.kept.pop_front();
        }
    }

    /// What was done last can't be undone, and so nothing before it.
    pub(crate) fn clear(&mut self) {
        self.kept.clear();
    }

    /// What would be undone.
    pub(crate) fn last(&mut self) -> Option<&Applied> {
        self.expire();
        self.kept.back().map(|(_, _, inverse)| &inverse.of)
    }

    pub(crate) fn pop(&mut self) -> Option<Inverse> {
        self.expire();
        self.kept.pop_back().map(|(_, _, inverse)| inverse)
    }

    pub(crate) fn put_back(&mut self, inverse: Inverse) {
        self.push(inverse);
    }

    pub(crate) fn len(&self) -> usize {
        self.kept.len()
    }

    fn expire(&mut self) {
        while self.kept.front().is_some_and(|(since, ..)| since.elapsed() > FOR) {
            self.kept.pop_front();
        }
    }
}
