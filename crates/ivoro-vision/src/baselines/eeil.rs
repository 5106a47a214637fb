//! End-to-end incremental learning: cross-entropy over all classes with kept images, old outputs
//! distilled, then a while of training on as many images of every class, all outputs distilled from
//! the network as it was before that.

use ivoro::Matrix;

use super::classroom::Classroom;
use super::exemplars::Memory;
use super::head::Head;
use super::losses::{cross_entropy, distil};
use super::lwf::TEMPERATURE;
use super::method::{Lesson, Loss, Method, Phase, on_outputs};
use crate::error::Result;

/// Share of a phase's epochs that are trained on kept images alone, afterwards.
const BALANCED: f64 = 0.3;

#[derive(Default)]
pub(super) struct Eeil {
    memory: Memory,
}

impl Method for Eeil {
    fn memory(&self) -> Option<&Memory> {
        Some(&self.memory)
    }

    fn needs_before(&self) -> bool {
        true
    }

    fn teach(&mut self, lesson: &Lesson<'_>, points: &Matrix, head: &mut Head) -> Result<Loss> {
        let (old, all) = (0..lesson.old, 0..head.len());
        Ok(on_outputs(points, head, |outputs, gradient| {
            let mut value = cross_entropy(outputs, lesson.labels, &all, 1.0, 1.0, gradient);
            if let Some(before) = lesson.before {
                let wanted = before.head.outputs(&before.points);
                value += distil(outputs, &wanted, &old, TEMPERATURE, 1.0, gradient);
            }
            value
        }))
    }

    fn finish(&mut self, phase: &Phase, room: &mut Classroom<'_, '_>, _: &mut Head) -> Result<()> {
        if self.memory.classes() < phase.classes.end {
            room.keep(&mut self.memory)?;
        }
        Ok(())
    }

    fn balanced(&self) -> Option<f64> {
        Some(BALANCED)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{dataset, network, school_of};
    use super::*;
    use crate::baselines::Baseline;

    /// EEIL that writes down which outputs were distilled in each step, of how many.
    #[derive(Default)]
    struct Watched {
        inner: Eeil,
        distilled: Vec<(usize, usize)>,
    }

    impl Method for Watched {
        fn memory(&self) -> Option<&Memory> {
            self.inner.memory()
        }

        fn needs_before(&self) -> bool {
            true
        }

        fn teach(&mut self, lesson: &Lesson<'_>, points: &Matrix, head: &mut Head) -> Result<Loss> {
            if let Some(before) = lesson.before {
                assert_eq!(before.head.len(), lesson.old);
                self.distilled.push((lesson.old, head.len()));
            }
            self.inner.teach(lesson, points, head)
        }

        fn finish(
            &mut self,
            phase: &Phase,
            room: &mut Classroom<'_, '_>,
            head: &mut Head,
        ) -> Result<()> {
            self.inner.finish(phase, room, head)
        }

        fn balanced(&self) -> Option<f64> {
            self.inner.balanced()
        }
    }

    #[test]
    fn new_outputs_are_distilled_too_while_kept_images_alone_are_trained_on() {
        let data = dataset();
        let weights = network(&data);
        let school = school_of(&data, &weights, vec![0..4, 4..6]);
        let mut watched = Watched::default();
        school.teach_by(&mut watched, &[Baseline::Eeil], &mut |_| true).unwrap();
        let mut stages = watched.distilled.clone();
        stages.dedup();
        assert_eq!(stages, [(4, 6), (6, 6)]);
    }
}
