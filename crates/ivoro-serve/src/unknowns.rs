//! Rejected queries that wait to be named: their features, in memory alone, for a while, and only if wanted.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use ivoro::Points;

/// Queries kept.
const MOST: usize = 200;
/// How long.
pub(crate) const FOR: Duration = Duration::from_secs(15 * 60);

/// A rejected query.
#[derive(Clone, Debug)]
pub(crate) struct Unknown {
    pub(crate) id: u64,
    pub(crate) since: Instant,
    /// Seconds since 1970.
    pub(crate) time: u64,
    /// What it was nearest to.
    pub(crate) nearest: String,
    pub(crate) strangeness: Option<f64>,
    pub(crate) points: Points,
}

/// Those of a model.
#[derive(Debug)]
pub(crate) struct Unknowns {
    wanted: bool,
    next: u64,
    kept: VecDeque<Unknown>,
}

impl Unknowns {
    pub(crate) fn new(wanted: bool) -> Self {
        Self { wanted, next: 1, kept: VecDeque::new() }
    }

    pub(crate) fn are_wanted(&self) -> bool {
        self.wanted
    }

    pub(crate) fn add(
        &mut self,
        (nearest, time): (&str, u64),
        strangeness: Option<f64>,
        points: Points,
    ) -> Option<u64> {
        if !self.wanted {
            return None;
        }
        self.expire();
        if self.kept.len() >= MOST {
            self.kept.pop_front();
        }
        let id = self.next;
        self.next += 1;
        let (since, nearest) = (Instant::now(), nearest.to_owned());
        self.kept.push_back(Unknown { id, since, time, nearest, strangeness, points });
        Some(id)
    }

    pub(crate) fn all(&mut self) -> impl Iterator<Item = &Unknown> {
        self.expire();
        self.kept.iter()
    }

    pub(crate) fn get(&mut self, id: u64) -> Option<Unknown> {
        self.expire();
        self.kept.iter().find(|unknown| unknown.id == id).cloned()
    }

    /// Whether it was there.
    pub(crate) fn remove(&mut self, id: u64) -> bool {
        let before = self.kept.len();
        self.kept.retain(|unknown| unknown.id != id);
        self.kept.len() < before
    }

    fn expire(&mut self) {
        while self.kept.front().is_some_and(|unknown| unknown.since.elapsed() > FOR) {
            self.kept.pop_front();
        }
    }
}
