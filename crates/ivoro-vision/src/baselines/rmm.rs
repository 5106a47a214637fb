//! Reinforced memory management (Liu, Schiele and Sun, NeurIPS 2021) on top of a method that keeps
//! images: a policy shares the memory between images of old classes and those of the next phase, and
//! between classes that are hard and easy to tell. It is learned before the first phase, on
//! pseudo-phases made of base classes.

use ivoro::Matrix;
use ivoro::random::{mix, unit};
use ivoro::softmax::Softened;
use ivoro::tune::Choice;

use super::Baseline;
use super::exemplars::{EACH, Memory};
use super::head::Head;
use super::icarl::Icarl;
use super::method::{Loss, Method, Phase, Step};
use super::phase_data::PhaseData;
use super::pseudo_phases::{BasePhase, EachStep};
use super::ucir::Ucir;
use crate::error::Result;

/// Which share of the room of the next phase's images kept ones may take. The first is that of the
/// method without a policy.
const OLD: [f64; 5] = [0.0, 0.2, 0.4, 0.6, 0.8];
/// By which share more images are kept of a class that is hard to tell, and fewer of an easy one.
const HARD: [f64; 3] = [0.0, 0.2, -0.2];
/// Times that the pseudo-phases are gone through, the first one without a policy.
const EPISODES: u64 = 12;
/// By how much a preference grows for each point of accuracy above the mean, and points that count
/// at most: a single lucky draw must not decide.
const STEP: f64 = 0.5;
const MOST_POINTS: f64 = 2.0;
/// Mixed into the seed.
const DRAWS: u64 = 0x706F_6C69;

/// How the memory is divided at the end of a phase, as places in [`OLD`] and [`HARD`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Shares {
    old: usize,
    hard: usize,
}

/// Those for the end of the base phase, when all its images are at hand, and those for later.
type TwoShares = [Shares; 2];

/// What the policy prefers, learned by the gradient of the reward: the more it prefers a share, the
/// more often it is drawn.
#[derive(Clone, Debug, Default)]
struct Policy {
    old: [[f32; OLD.len()]; 2],
    hard: [[f32; HARD.len()]; 2],
    rewards: Vec<f64>,
}

impl Policy {
    /// Shares drawn by how much they are preferred.
    fn draw(&self, seed: u64) -> TwoShares {
        let draw = |preferences: &[f32], at: u64| {
            let mut left = unit(seed, at) as f32;
            let chances = Softened::of(preferences, 1.0).chances;
            let reached = chances.iter().position(|chance| {
                left -= chance;
                left < 0.0
            });
            reached.unwrap_or(0)
        };
        [0, 1].map(|state: usize| Shares {
            old: draw(&self.old[state], 2 * state as u64),
            hard: draw(&self.hard[state], 2 * state as u64 + 1),
        })
    }

    /// Moves preferences towards what was drawn if it did better than the mean so far; the first
    /// `states` of the shares had a part in it.
    fn learn(&mut self, drawn: TwoShares, reward: f64, states: usize) {
        let count = self.rewards.len();
        let mean = self.rewards.iter().sum::<f64>() / count.max(1) as f64;
        self.rewards.push(reward);
        if count == 0 {
            return;
        }
        let push = (STEP * (reward - mean).clamp(-MOST_POINTS, MOST_POINTS)) as f32;
        for (state, Shares { old, hard }) in drawn.into_iter().enumerate().take(states) {
            strengthen(&mut self.old[state], old, push);
            strengthen(&mut self.hard[state], hard, push);
        }
    }

    /// The shares that are preferred most, the first of equals.
    fn best(&self) -> TwoShares {
        [0, 1].map(|state: usize| Shares {
            old: most_preferred(&self.old[state]),
            hard: most_preferred(&self.hard[state]),
        })
    }
}

/// The gradient of the logarithm of a softmax's chance, times `push`.
fn strengthen(preferences: &mut [f32], drawn: usize, push: f32) {
    let chances = Softened::of(preferences, 1.0).chances;
    for (at, (preference, chance)) in preferences.iter_mut().zip(chances).enumerate() {
        *preference += push * (f32::from(u8::from(at == drawn)) - chance);
    }
}

fn most_preferred(preferences: &[f32]) -> usize {
    let most = preferences.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    preferences.iter().position(|&preference| preference == most).unwrap_or(0)
}

/// A method that keeps images, and the policy that says how many of which class.
pub(super) struct Rmm {
    make: fn() -> Box<dyn Method>,
    inner: Box<dyn Method>,
    /// The way to answer that is rewarded.
    rewarded: Baseline,
    /// None until it is learned.
    shares: Option<TwoShares>,
    choices: Vec<Choice>,
    /// Which classes are hard to tell, in order of arrival.
    hard: Vec<bool>,
    /// Images of a base class, on average.
    per_class: f64,
}

impl Rmm {
    /// On top of iCaRL; what its outputs say is rewarded.
    pub(super) fn icarl() -> Self {
        Self::new(|| Box::<Icarl>::default(), Baseline::RmmIcarlCnn)
    }

    /// On top of UCIR.
    pub(super) fn ucir() -> Self {
        Self::new(|| Box::<Ucir>::default(), Baseline::RmmUcir)
    }

    fn new(make: fn() -> Box<dyn Method>, rewarded: Baseline) -> Self {
        let (choices, hard) = (Vec::new(), Vec::new());
        Self { make, inner: make(), rewarded, shares: None, choices, hard, per_class: 0.0 }
    }

    /// The same with shares that are given.
    fn with_shares(&self, shares: TwoShares) -> Self {
        Self { shares: Some(shares), ..Self::new(self.make, self.rewarded) }
    }

    fn shares_after(&self, phase: &Phase) -> Shares {
        self.shares.unwrap_or_default()[usize::from(phase.index > 0)]
    }

    /// Notes how many images a base class has, and which classes of a phase are hard to tell: those
    /// whose images are further from their own class, measured against the nearest other one, than
    /// the median class's.
    fn look_at(&mut self, phase: &Phase, data: &mut PhaseData<'_, '_>, head: &Head) -> Result<()> {
        if phase.index == 0 {
            self.per_class = phase.rows.len() as f64 / phase.classes.len().max(1) as f64;
        }
        let own = data.points()?;
        let distances = self.distances(self.rewarded, &own.points, head);
        let mut sums = vec![(0.0, 0usize); phase.classes.len()];
        for (row, &label) in distances.iter_rows().zip(&own.labels) {
            let (sum, count) = &mut sums[label - phase.classes.start];
            *sum += behind(row, label);
            *count += 1;
        }
        let means: Vec<f64> =
            sums.iter().map(|(sum, count)| sum / (*count).max(1) as f64).collect();
        let mut sorted = means.clone();
        sorted.sort_by(f64::total_cmp);
        let median = sorted.get(sorted.len() / 2).copied().unwrap_or(0.0);
        self.hard.extend(means.into_iter().map(|mean| mean >= median));
        Ok(())
    }
}

/// Shares as a record tells them: of the next phase's room and for hard classes, after the base phase
/// and later.
fn told(shares: TwoShares) -> String {
    let [first, later] = shares.map(|Shares { old, hard }| format!("{}/{}", OLD[old], HARD[hard]));
    format!("{first} then {later}")
}

/// By how much the own class is further away than the nearest other one.
fn behind(distances: &[f32], label: usize) -> f64 {
    let others = distances.iter().enumerate().filter(|(class, _)| *class != label);
    let nearest = others.map(|(_, &distance)| distance).fold(f32::INFINITY, f32::min);
    if nearest.is_finite() { f64::from(distances[label] - nearest) } else { 0.0 }
}

/// How many images may be kept of each class: `room` in all, a class that is hard to tell having
/// `tilt` more than the mean and an easy one as much less.
fn quotas(hard: &[bool], room: f64, tilt: f64) -> Vec<usize> {
    let weight = |hard: bool| if hard { 1.0 + tilt } else { 1.0 - tilt };
    let total: f64 = hard.iter().map(|&hard| weight(hard)).sum();
    hard.iter().map(|&hard| (room * weight(hard) / total).floor() as usize).collect()
}

impl Method for Rmm {
    fn sisters(&self) -> usize {
        self.inner.sisters()
    }

    fn memory(&self) -> Option<&Memory> {
        self.inner.memory()
    }

    fn needs_before(&self) -> bool {
        self.inner.needs_before()
    }

    fn prepare(&mut self, base: &BasePhase<'_, '_>, each_step: EachStep<'_>) -> Result<bool> {
        if self.shares.is_some() || !base.has_pseudo_phases() {
            return Ok(true);
        }
        let Some(pseudo) = base.pseudo_phases(each_step)? else { return Ok(false) };
        let (mut policy, mut candidates) = (Policy::default(), Vec::new());
        for episode in 0..EPISODES {
            let seed = mix(base.seed() ^ DRAWS, episode);
            let drawn = if episode == 0 { TwoShares::default() } else { policy.draw(seed) };
            let mut method = self.with_shares(drawn);
            let reward = pseudo.accuracy(&mut method, self.rewarded, each_step)?;
            let Some(reward) = reward else { return Ok(false) };
            policy.learn(drawn, reward, pseudo.arrivals());
            candidates.push((told(drawn), reward));
        }
        let shares = policy.best();
        self.shares = Some(shares);
        self.choices = vec![Choice {
            setting: "shares".to_owned(),
            value: told(shares),
            candidates,
            rule: "policy gradient on pseudo-phases of the base phase".to_owned(),
            ..Choice::default()
        }];
        Ok(true)
    }

    fn loss(&mut self, step: &Step<'_>, points: &Matrix, head: &mut Head) -> Result<Loss> {
        self.inner.loss(step, points, head)
    }

    fn begin(
        &mut self,
        phase: &Phase,
        data: &mut PhaseData<'_, '_>,
        head: &mut Head,
    ) -> Result<()> {
        self.inner.begin(phase, data, head)
    }

    fn finish(
        &mut self,
        phase: &Phase,
        data: &mut PhaseData<'_, '_>,
        head: &mut Head,
    ) -> Result<()> {
        self.look_at(phase, data, head)?;
        let Shares { old, hard } = self.shares_after(phase);
        let next = OLD[old] * self.per_class * data.classes_to_come() as f64;
        let room = (EACH * phase.classes.end) as f64 + next;
        data.quotas = Some(quotas(&self.hard, room, HARD[hard]));
        self.inner.finish(phase, data, head)
    }

    fn distances(&self, reading: Baseline, points: &Matrix, head: &Head) -> Matrix {
        self.inner.distances(reading.without_policy(), points, head)
    }

    fn is_linear(&self) -> bool {
        self.inner.is_linear()
    }

    fn bytes(&self) -> usize {
        self.inner.bytes()
    }

    fn choices(&self) -> &[Choice] {
        &self.choices
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_recorder::TestRecorder;
    use super::super::tests::{dataset, network, trainer_of};
    use super::*;

    #[test]
    fn quotas_add_up_to_no_more_than_the_room() {
        let hard = [true, false, false, true, false];
        for tilt in HARD {
            let quotas = quotas(&hard, 103.0, tilt);
            let sum: usize = quotas.iter().sum();
            assert!((99..=103).contains(&sum), "{tilt}: {quotas:?}");
            assert_eq!(quotas[0] > quotas[1], tilt > 0.0);
        }
    }

    #[test]
    fn what_is_rewarded_is_preferred() {
        let mut policy = Policy::default();
        assert_eq!(policy.best(), TwoShares::default());
        for episode in 0..200 {
            let drawn = policy.draw(mix(7, episode));
            // the third share of old classes, whichever classes are hard
            let reward = if drawn[0].old == 2 { 61.0 } else { 60.0 };
            policy.learn(drawn, reward, 1);
        }
        assert_eq!((policy.best()[0].old, policy.best()[1]), (2, Shares::default()));
    }

    #[test]
    fn old_images_take_the_room_of_new_ones_and_no_more() {
        let data = dataset();
        let weights = network(&data);
        let trainer = trainer_of(&data, &weights, vec![0..4, 4..5, 5..6]);
        let each = trainer.rows(&(4..5)).len();
        let run = |shares: TwoShares| {
            let mut recorder = TestRecorder::of(Box::new(Rmm::icarl().with_shares(shares)));
            let readings = [Baseline::RmmIcarlNme];
            let trained = trainer.run_method(&mut recorder, &readings, &mut |_| true).unwrap();
            (recorder.at_hand, trained.unwrap())
        };
        // without a policy: 20 of each class, and all new images
        assert_eq!(run(TwoShares::default()).0, [(each, 80), (each, 100)]);
        let (at_hand, trained) = run([Shares { old: 4, hard: 1 }; 2]);
        assert!(at_hand[0].0 < each && at_hand[0].1 > 80, "{at_hand:?}");
        for (old, (new, kept)) in [4, 5].into_iter().zip(at_hand) {
            assert!(new + kept <= EACH * old + each, "{new} and {kept}");
        }
        // when nothing is to come, no more than 20 of each class on average
        assert!(trained[2].kept <= EACH * 6, "{}", trained[2].kept);
    }

    #[test]
    fn the_policy_is_learned_before_the_first_phase() {
        let data = dataset();
        let weights = network(&data);
        let trainer = trainer_of(&data, &weights, vec![0..4, 4..6]);
        let base = BasePhase::new(&trainer);
        let mut rmm = Rmm::ucir();
        assert!(rmm.prepare(&base, &mut |_| true).unwrap());
        let [choice] = rmm.choices() else { panic!("{:?}", rmm.choices()) };
        assert_eq!(choice.candidates.len(), EPISODES as usize);
        assert_eq!(choice.candidates[0].0, "0/0 then 0/0");
        assert!(choice.candidates.iter().all(|(_, accuracy)| *accuracy > 30.0), "{choice:?}");
        // the same once more
        let mut again = Rmm::ucir();
        again.prepare(&base, &mut |_| true).unwrap();
        assert_eq!(again.shares, rmm.shares);
        // one that is stopped has learned nothing
        let mut stopped = Rmm::ucir();
        assert!(!stopped.prepare(&base, &mut |_| false).unwrap());
        assert_eq!(stopped.shares, None);
    }
}
