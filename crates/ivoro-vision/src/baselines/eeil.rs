//! End-to-end incremental learning: cross-entropy over all classes with kept images, the outputs of
//! each old phase distilled, then a while of training on as many images of every class, the outputs
//! of all phases distilled from the network as it was before that.

use std::ops::Range;

use ivoro::Matrix;

use super::exemplars::{Memory, between};
use super::head::Head;
use super::losses::{cross_entropy, distil};
use super::lwf::TEMPERATURE;
use super::method::{Loss, Method, Phase, Step, on_outputs};
use super::phase_data::PhaseData;
use crate::error::Result;

/// Share of a phase's epochs that are trained on kept images alone, afterwards.
const BALANCED: f64 = 0.3;

#[derive(Default)]
pub(super) struct Eeil {
    memory: Memory,
    /// Where the outputs of each phase end.
    ends: Vec<usize>,
}

impl Eeil {
    /// The outputs of each phase that a network with so many of them has learned.
    fn phases(&self, outputs: usize) -> impl Iterator<Item = Range<usize>> {
        between(&self.ends).filter(move |phase| phase.end <= outputs)
    }
}

impl Method for Eeil {
    fn memory(&self) -> Option<&Memory> {
        Some(&self.memory)
    }

    fn needs_before(&self) -> bool {
        true
    }

    fn loss(&mut self, step: &Step<'_>, points: &Matrix, head: &mut Head) -> Result<Loss> {
        let all = 0..head.len();
        Ok(on_outputs(points, head, |outputs, gradient| {
            let mut value = cross_entropy(outputs, step.labels, &all, 1.0, 1.0, gradient);
            if let Some(before) = step.before {
                let wanted = before.head.outputs(&before.points);
                for phase in self.phases(step.old) {
                    value += distil(outputs, &wanted, &phase, TEMPERATURE, 1.0, gradient);
                }
            }
            value
        }))
    }

    fn finish(&mut self, phase: &Phase, data: &mut PhaseData<'_, '_>, _: &mut Head) -> Result<()> {
        // of a phase that has been balanced images are chosen once more, as the network sees them now
        self.memory.truncate(phase.classes.start);
        self.ends.truncate(phase.index);
        self.ends.push(phase.classes.end);
        data.keep(&mut self.memory)
    }

    fn balanced(&self) -> Option<f64> {
        Some(BALANCED)
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_recorder::TestRecorder;
    use super::super::tests::{dataset, network, trainer_of};
    use super::*;
    use crate::baselines::Baseline;
    use crate::baselines::method::Before;
    use crate::recipe::Recipe;

    /// A sum of distillations, each among the outputs of one phase: a number added to all old
    /// outputs of one phase is no difference, whatever the other phases say.
    #[test]
    fn the_outputs_of_every_phase_are_distilled_among_themselves() {
        let mut eeil = Eeil { ends: vec![2, 5, 7], ..Eeil::default() };
        let ranges = |eeil: &Eeil, outputs: usize| eeil.phases(outputs).collect::<Vec<_>>();
        assert_eq!(ranges(&eeil, 5), [0..2, 2..5]);
        assert_eq!(ranges(&eeil, 7), [0..2, 2..5, 5..7]);
        let points = Matrix::new(1, 1, vec![1.0]).unwrap();
        let mut old = Head::new(1);
        old.grow(5, 3);
        let mut shifted = old.clone();
        for output in 2..5 {
            let value = old.rows().nth(output).map(|(row, bias)| row[0] + bias).unwrap();
            shifted.set(output, &[value + 2.0]);
        }
        let before = Before { points: points.clone(), head: &old };
        let recipe = Recipe::default();
        let step = Step {
            labels: &[9],
            before: Some(&before),
            old: 5,
            recipe: &recipe,
            rate: 0.0,
            index: 0,
        };
        // the label is none of the outputs, so that distillation alone speaks
        let pushed = eeil.loss(&step, &points, &mut shifted).unwrap();
        assert!(pushed.points.as_slice()[0].abs() < 1e-5, "{:?}", pushed.points);
        assert!(shifted.gradient_mut().iter().all(|value| value.abs() < 1e-5));
    }

    #[test]
    fn images_of_a_phase_are_chosen_once_more_and_kept_once() {
        let data = dataset();
        let weights = network(&data);
        let trainer = trainer_of(&data, &weights, vec![0..4, 4..5, 5..6]);
        let mut eeil = Eeil::default();
        trainer.run_method(&mut eeil, &[Baseline::Eeil], &mut |_| true).unwrap();
        assert_eq!(eeil.ends, [4, 5, 6]);
        let kept: Vec<&[usize]> = eeil.memory.by_class().collect();
        assert_eq!(kept.len(), 6);
        for (class, rows) in kept.into_iter().enumerate() {
            assert_eq!(rows.len(), 20);
            assert!(rows.iter().all(|&row| trainer.place(row) == Some(class)));
        }
    }

    #[test]
    fn new_outputs_are_distilled_too_while_kept_images_alone_are_trained_on() {
        let data = dataset();
        let weights = network(&data);
        let trainer = trainer_of(&data, &weights, vec![0..4, 4..6]);
        let mut recorder = TestRecorder::new(Baseline::Eeil);
        trainer.run_method(&mut recorder, &[Baseline::Eeil], &mut |_| true).unwrap();
        let mut stages = recorder.distilled.clone();
        stages.dedup();
        assert_eq!(stages, [(4, 6), (6, 6)]);
    }
}
