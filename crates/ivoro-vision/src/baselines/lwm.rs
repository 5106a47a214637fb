//! Learning without memorizing: as LwF, and the network goes on looking where the network of the
//! phase before looked for the old class it saw in a new image.

use ivoro::Matrix;
use ivoro::vectors::add;

use super::attention::{direction_of_attention, keep_attention};
use super::head::Head;
use super::lwf::learn_without_forgetting;
use super::method::{Loss, Method, Step};
use crate::error::Result;

/// Weights of the distillation and of the attention. The paper (Dhar et al., CVPR 2019) has both as
/// β and γ and gives no values; these are the defaults of FACIL, a public comparison.
const DISTILLATION: f64 = 1.0;
const ATTENTION: f64 = 1.0;

pub(super) struct Lwm {
    /// Weight of the attention.
    attention: f64,
}

impl Default for Lwm {
    fn default() -> Self {
        Self { attention: ATTENTION }
    }
}

impl Method for Lwm {
    fn needs_before(&self) -> bool {
        true
    }

    fn looks_at_maps(&self) -> bool {
        true
    }

    fn loss(&mut self, step: &Step<'_>, points: &Matrix, head: &mut Head) -> Result<Loss> {
        Ok(learn_without_forgetting(step, points, head, (1.0, DISTILLATION)))
    }

    fn map_loss(
        &mut self,
        step: &Step<'_>,
        (maps, old_maps): (&Matrix, &Matrix),
        head: &mut Head,
    ) -> Result<(f64, Matrix)> {
        let Some(before) = step.before else {
            return Ok((0.0, Matrix::zeros(maps.rows(), maps.cols())));
        };
        let seen = top_classes(&before.head.outputs(&before.points));
        let wanted = direction_of_attention(old_maps, &weights_of(before.head, &seen)?);
        let weights = weights_of(head, &seen)?;
        let (value, gradients) = keep_attention(maps, &weights, &wanted, self.attention);
        let width = weights.cols() + 1;
        for (&class, of_weights) in seen.iter().zip(gradients.weights.iter_rows()) {
            add(&mut head.gradient_mut()[class * width..][..width - 1], of_weights, 1.0);
        }
        Ok((value, gradients.maps))
    }
}

/// The largest output of each row, the first of equals.
fn top_classes(outputs: &Matrix) -> Vec<usize> {
    let top = |row: &[f32]| {
        let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        row.iter().position(|&value| value == largest).unwrap_or(0)
    };
    outputs.iter_rows().map(top).collect()
}

/// The head's weights of these outputs, a row for each.
fn weights_of(head: &Head, outputs: &[usize]) -> Result<Matrix> {
    let rows: Vec<&[f32]> = head.rows().map(|(row, _)| row).collect();
    let columns = rows.first().map_or(0, |row| row.len());
    let values = outputs.iter().flat_map(|&output| rows[output].iter().copied());
    Ok(Matrix::new(outputs.len(), columns, values.collect())?)
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::super::tests::{dataset, network, trainer_of};
    use super::*;
    use crate::baselines::Baseline;
    use crate::baselines::attention::attention;
    use crate::baselines::exemplars::between;
    use crate::baselines::method::Before;
    use crate::recipe::Recipe;

    /// What each step's maps were told.
    struct Watched {
        inner: Lwm,
        values: Vec<f64>,
        longest: f32,
    }

    impl Method for Watched {
        fn needs_before(&self) -> bool {
            true
        }

        fn looks_at_maps(&self) -> bool {
            true
        }

        fn loss(&mut self, step: &Step<'_>, points: &Matrix, head: &mut Head) -> Result<Loss> {
            self.inner.loss(step, points, head)
        }

        fn map_loss(
            &mut self,
            step: &Step<'_>,
            maps: (&Matrix, &Matrix),
            head: &mut Head,
        ) -> Result<(f64, Matrix)> {
            let (value, gradient) = self.inner.map_loss(step, maps, head)?;
            self.values.push(value);
            let largest = gradient.as_slice().iter().map(|slope| slope.abs()).fold(0.0, f32::max);
            self.longest = self.longest.max(largest);
            Ok((value, gradient))
        }
    }

    /// The loss of attention over the last quarter of the steps, per unit of its weight.
    fn apart_at_the_end(attention: f64) -> (f64, f32) {
        let data = dataset();
        let weights = network(&data);
        let trainer = trainer_of(&data, &weights, vec![0..4, 4..6]);
        let mut watched = Watched { inner: Lwm { attention }, values: Vec::new(), longest: 0.0 };
        trainer.run_method(&mut watched, &[Baseline::Lwm], &mut |_| true).unwrap();
        let last: Range<usize> =
            between(&[watched.values.len() * 3 / 4, watched.values.len()]).last().unwrap();
        let count = last.len() as f64;
        (watched.values[last].iter().sum::<f64>() / (count * attention), watched.longest)
    }

    #[test]
    fn the_network_goes_on_looking_where_it_looked() {
        // so small a weight teaches nothing, and still measures
        let (free, _) = apart_at_the_end(1e-6);
        let (held, longest) = apart_at_the_end(ATTENTION);
        assert!(longest > 1e-4, "no gradient flows: {longest}");
        assert!(held < 0.8 * free, "{held} held, {free} free");
    }

    #[test]
    fn the_old_network_says_which_class_is_looked_at() {
        let mut old = Head::new(2);
        old.grow(2, 1);
        old.set(0, &[1.0, 0.0]);
        old.set(1, &[0.0, 1.0]);
        let mut head = old.clone();
        head.grow(1, 2);
        let recipe = Recipe::default();
        // two pixels; the first image is seen as the old class 1, whatever the new network says
        let maps = Matrix::new(1, 4, vec![0.3, 1.0, 0.2, 0.5]).unwrap();
        let old_maps = Matrix::new(1, 4, vec![0.5, 2.0, 0.5, 0.0]).unwrap();
        let points = Matrix::new(1, 2, vec![0.5, 1.0]).unwrap();
        let before = Before { points, head: &old };
        let labels = [2];
        let step = Step {
            labels: &labels,
            before: Some(&before),
            old: 2,
            recipe: &recipe,
            rate: 0.0,
            index: 0,
        };
        Lwm::default().map_loss(&step, (&maps, &old_maps), &mut head).unwrap();
        let weights = weights_of(&old, &[1]).unwrap();
        assert_eq!(attention(&old_maps, &weights).row(0), [2.0, 0.0]);
        let moved: Vec<bool> = head
            .gradient_mut()
            .chunks(3)
            .map(|row| row.iter().any(|&slope| slope != 0.0))
            .collect();
        assert_eq!(moved, [false, true, false]);
    }
}
