//! PASS: prototype augmentation and self-supervision. Rotated images are classes of their own, the
//! points of new images stay near those of the network before, and noisy means of old classes keep
//! the old outputs in place.

use ivoro::Matrix;
use ivoro::random::{mix, normals, unit};

use super::head::Head;
use super::losses::{cross_entropy, distance_loss, mean};
use super::method::{Loss, Method, Phase, Step, on_outputs};
use super::phase_data::PhaseData;
use crate::error::Result;

/// Weight of the distance to the points of the network before.
const DISTILLATION: f64 = 10.0;
/// Weight of the loss of old classes' noisy means.
const PROTOTYPES: f64 = 10.0;
const SISTERS: usize = 4;

#[derive(Default)]
pub(super) struct Pass {
    /// Mean point of every class known.
    means: Vec<Vec<f32>>,
    /// Deviation of a value of a point from its class's mean, measured in the base phase.
    radius: f32,
}

impl Method for Pass {
    fn sisters(&self) -> usize {
        SISTERS
    }

    fn needs_before(&self) -> bool {
        true
    }

    fn loss(&mut self, step: &Step<'_>, points: &Matrix, head: &mut Head) -> Result<Loss> {
        let all = 0..head.len();
        let mut loss = on_outputs(points, head, |outputs, gradient| {
            cross_entropy(outputs, step.labels, &all, 1.0, 1.0, gradient)
        });
        let Some(before) = step.before else { return Ok(loss) };
        loss.value += distance_loss(points, &before.points, DISTILLATION, &mut loss.points);
        let (noisy, labels) = self.noisy_means(points.rows() / SISTERS, step);
        if labels.is_empty() {
            return Ok(loss);
        }
        let means = on_outputs(&noisy, head, |outputs, gradient| {
            cross_entropy(outputs, &labels, &all, 1.0, PROTOTYPES, gradient)
        });
        loss.value += means.value;
        Ok(loss)
    }

    fn finish(&mut self, phase: &Phase, data: &mut PhaseData<'_, '_>, _: &mut Head) -> Result<()> {
        let (mut squares, mut seen) = (0.0, 0);
        for points in data.points_by_class()? {
            let (mean, square) = mean_and_square(&points);
            squares += square;
            seen += usize::from(points.rows() > 0);
            self.means.push(mean);
        }
        if phase.index == 0 {
            self.radius = (squares / seen.max(1) as f64).sqrt() as f32;
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        4 * self.means.iter().map(Vec::len).sum::<usize>() + 4
    }
}

impl Pass {
    /// Means of old classes drawn at random, with noise, and their unturned outputs.
    fn noisy_means(&self, count: usize, step: &Step<'_>) -> (Matrix, Vec<usize>) {
        // a class whose images are all broken has no mean
        let old: Vec<usize> =
            (0..step.old / SISTERS).filter(|&class| !self.means[class].is_empty()).collect();
        let count = if old.is_empty() { 0 } else { count };
        let dims = old.first().map_or(0, |&class| self.means[class].len());
        // the recipe's seed is another one in every phase
        let seed = mix(mix(0x7061_7373, step.recipe.seed), step.index);
        let class = |at: usize| old[(unit(seed, at as u64) * old.len() as f64) as usize];
        // Behind the draws of classes.
        let draws = count.div_ceil(2) as u64;
        let mut noise = normals(seed, draws);
        let mut noisy = Matrix::zeros(count, dims);
        for at in 0..count {
            let values = noisy.row_mut(at).iter_mut().zip(&self.means[class(at)]);
            for ((value, mean), noise) in values.zip(&mut noise) {
                *value = mean + self.radius * noise as f32;
            }
        }
        (noisy, (0..count).map(|at| class(at) * SISTERS).collect())
    }
}

/// The mean of points, and the mean square of how far a value is from it.
fn mean_and_square(points: &Matrix) -> (Vec<f32>, f64) {
    let count = points.rows().max(1) as f64;
    let mean = mean(points);
    let mut square = 0.0;
    for row in points.iter_rows() {
        let off = row.iter().zip(&mean).map(|(&value, mean)| (f64::from(value) - mean).powi(2));
        square += off.sum::<f64>();
    }
    let mean = mean.into_iter().map(|value| value as f32).collect();
    (mean, square / (count * points.cols().max(1) as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipe::Recipe;

    #[test]
    fn old_classes_are_drawn_around_their_means() {
        let means = vec![vec![5.0; 64], vec![-5.0; 64]];
        let pass = Pass { means, radius: 0.5 };
        let recipe = Recipe::default();
        let step = Step { labels: &[], before: None, old: 8, recipe: &recipe, rate: 0.0, index: 3 };
        let (points, labels) = pass.noisy_means(200, &step);
        assert!(labels.contains(&0) && labels.contains(&4));
        let mut square = 0.0;
        for (row, label) in points.iter_rows().zip(&labels) {
            let mean = if *label == 0 { 5.0 } else { -5.0 };
            square += row.iter().map(|value| (value - mean).powi(2)).sum::<f32>() / 64.0;
        }
        let spread = (square / 200.0).sqrt();
        assert!((spread - 0.5).abs() < 0.02, "{spread}");
    }

    #[test]
    fn a_class_without_images_is_not_drawn() {
        let pass = Pass { means: vec![Vec::new(), vec![-5.0; 4]], radius: 0.5 };
        let recipe = Recipe::default();
        let step = Step { labels: &[], before: None, old: 8, recipe: &recipe, rate: 0.0, index: 3 };
        let (points, labels) = pass.noisy_means(20, &step);
        assert_eq!((points.rows(), points.cols()), (20, 4));
        assert!(labels.iter().all(|&label| label == 4));
    }

    #[test]
    fn the_radius_is_a_values_deviation() {
        let points = Matrix::new(2, 2, vec![0.0, 2.0, 4.0, 2.0]).unwrap();
        assert_eq!(mean_and_square(&points), (vec![2.0, 2.0], 2.0));
    }
}
