//! UCIR: a classifier by cosine, points that keep their direction, and a margin between the kept
//! images of old classes and the new classes nearest to them. Rows of old classes stay where they
//! are, those of new ones begin at the mean direction of their images. What cosines are multiplied
//! by is learned too.

use ivoro::Matrix;
use ivoro::linalg::times_transposed;
use ivoro::vectors::dot;

use super::Baseline;
use super::exemplars::Memory;
use super::head::Head;
use super::losses::{cross_entropy, direction, normalised, through_normalised};
use super::method::{Loss, Method, Phase, Step};
use super::phase_data::PhaseData;
use super::trainer::mean_length;
use crate::engine::{State, cpu};
use crate::error::Result;
use crate::recipe::Recipe;

/// Cosines are multiplied by this before the softmax, to begin with.
const SCALE: f32 = 16.0;
/// Weight of the points' direction, times √(old classes / new classes).
const DIRECTION: f64 = 5.0;
/// By how much an old class's cosine should be above that of a new one.
const MARGIN: f32 = 0.5;
/// New classes that an old image is kept apart from.
const RIVALS: usize = 2;

#[derive(Default)]
pub(super) struct Ucir {
    memory: Memory,
    factor: Factor,
}

/// What cosines are multiplied by: one number, learned as the head is.
struct Factor(State);

impl Default for Factor {
    fn default() -> Self {
        let (first, second) = (vec![0.0], vec![0.0]);
        Self(State { learned: vec![SCALE], first, second, ..State::default() })
    }
}

impl Factor {
    fn value(&self) -> f32 {
        self.0.learned[0]
    }

    /// Forgets the optimiser's memory, as a phase begins.
    fn begin(&mut self) {
        self.0 = State { learned: vec![self.value()], ..Self::default().0 };
    }

    fn change(&mut self, slope: f32, recipe: &Recipe, rate: f32) {
        self.0.steps += 1;
        cpu::change(&mut self.0, &[slope], recipe.optimiser, rate, recipe.decay);
    }
}

/// Points and rows of the head at length 1, and their cosines.
struct Cosines {
    points: (Matrix, Vec<f32>),
    rows: (Matrix, Vec<f32>),
    values: Matrix,
}

impl Cosines {
    fn new(points: &Matrix, head: &Head) -> Result<Self> {
        let rows: Vec<f32> = head.rows().flat_map(|(row, _)| row.iter().copied()).collect();
        let rows = normalised(&Matrix::new(head.len(), points.cols(), rows)?);
        let points = normalised(points);
        let values = times_transposed(&points.0, &rows.0);
        Ok(Self { points, rows, values })
    }

    /// From the gradient of the cosines to that of the points; the head's is added to.
    fn backward(&self, gradient: &Matrix, head: &mut Head) -> Result<Matrix> {
        let (points, rows) = (&self.points.0, &self.rows.0);
        let of_points = times_transposed(gradient, &transposed(rows)?);
        let of_rows = times_transposed(&transposed(gradient)?, &transposed(points)?);
        let of_rows = through_normalised(rows, &self.rows.1, &of_rows);
        let to = head.gradient_mut().chunks_exact_mut(points.cols() + 1);
        for (to, from) in to.zip(of_rows.iter_rows()) {
            to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        }
        Ok(through_normalised(points, &self.points.1, &of_points))
    }
}

fn transposed(matrix: &Matrix) -> Result<Matrix> {
    let values = (0..matrix.cols()).flat_map(|at| matrix.iter_rows().map(move |row| row[at]));
    Ok(Matrix::new(matrix.cols(), matrix.rows(), values.collect())?)
}

impl Method for Ucir {
    fn memory(&self) -> Option<&Memory> {
        Some(&self.memory)
    }

    fn needs_before(&self) -> bool {
        true
    }

    fn loss(&mut self, step: &Step<'_>, points: &Matrix, head: &mut Head) -> Result<Loss> {
        let cosines = Cosines::new(points, head)?;
        let mut gradient = Matrix::zeros(points.rows(), head.len());
        let all = 0..head.len();
        let factor = self.factor.value();
        let values = &cosines.values;
        let mut value = cross_entropy(values, step.labels, &all, 1.0 / factor, 1.0, &mut gradient);
        let slope = dot(gradient.as_slice(), values.as_slice()) as f32 / factor;
        self.factor.change(slope, step.recipe, step.rate);
        if step.old > 0 {
            value += keep_apart(values, step, &mut gradient);
        }
        let mut back = cosines.backward(&gradient, head)?;
        if let Some(before) = step.before {
            let new = (head.len() - step.old).max(1) as f64;
            let weight = DIRECTION * (step.old as f64 / new).sqrt();
            value += keep_direction(&cosines, &before.points, weight, &mut back);
        }
        Ok(Loss { value, points: back })
    }

    fn begin(
        &mut self,
        phase: &Phase,
        data: &mut PhaseData<'_, '_>,
        head: &mut Head,
    ) -> Result<()> {
        head.fix(phase.classes.start);
        self.factor.begin();
        let long = mean_length(head.rows().take(phase.classes.start).map(|(row, _)| row));
        for (class, points) in phase.classes.clone().zip(data.points_by_class()?) {
            // a class whose images are all broken begins at random
            if points.rows() > 0 {
                let row: Vec<f32> = direction(&points)?.iter().map(|value| long * value).collect();
                head.set(class, &row);
            }
        }
        Ok(())
    }

    fn finish(&mut self, _: &Phase, data: &mut PhaseData<'_, '_>, _: &mut Head) -> Result<()> {
        data.keep(&mut self.memory)
    }

    fn distances(&self, _: Baseline, points: &Matrix, head: &Head) -> Matrix {
        let cosines = Cosines::new(points, head).map(|cosines| cosines.values);
        let mut distances = cosines.unwrap_or_default();
        distances.as_mut_slice().iter_mut().for_each(|value| *value = 1.0 - *value);
        distances
    }

    fn is_linear(&self) -> bool {
        false
    }
}

/// Mean of 1 − cosine between points and those of the network before, times `weight`.
fn keep_direction(cosines: &Cosines, before: &Matrix, weight: f64, back: &mut Matrix) -> f64 {
    let (unit, lengths) = &cosines.points;
    let (wanted, _) = normalised(before);
    let factor = weight / unit.rows().max(1) as f64;
    let along: f64 =
        unit.as_slice().iter().zip(wanted.as_slice()).map(|(a, b)| f64::from(a * b)).sum();
    let mut gradient = wanted;
    gradient.as_mut_slice().iter_mut().for_each(|value| *value *= -factor as f32);
    let through = through_normalised(unit, lengths, &gradient);
    let sums = back.as_mut_slice().iter_mut().zip(through.as_slice());
    sums.for_each(|(sum, value)| *sum += value);
    weight - factor * along
}

/// Mean over kept images of what a new class's cosine is above the own one's less the margin.
fn keep_apart(cosines: &Matrix, step: &Step<'_>, gradient: &mut Matrix) -> f64 {
    let old = step.labels.iter().enumerate().filter(|(_, label)| **label < step.old);
    let old: Vec<(usize, usize)> = old.map(|(row, &label)| (row, label)).collect();
    let weight = 1.0 / (old.len() * RIVALS).max(1) as f32;
    let mut loss = 0.0;
    for (row, label) in old {
        let own = cosines.row(row)[label];
        let mut rivals: Vec<usize> = (step.old..cosines.cols()).collect();
        rivals.sort_by(|&a, &b| cosines.row(row)[b].total_cmp(&cosines.row(row)[a]));
        for &rival in rivals.iter().take(RIVALS) {
            let above = MARGIN - own + cosines.row(row)[rival];
            if above > 0.0 {
                loss += f64::from(weight * above);
                gradient.row_mut(row)[label] -= weight;
                gradient.row_mut(row)[rival] += weight;
            }
        }
    }
    loss
}

#[cfg(test)]
mod tests {
    use super::super::test_recorder::TestRecorder;
    use super::super::tests::{dataset, network, trainer_of};
    use super::*;

    #[test]
    fn the_factor_of_cosines_is_learned() {
        // cosines of ±1 with the right sign: the larger the factor, the smaller the loss
        let points = Matrix::new(2, 2, vec![1.0, 0.0, -1.0, 0.0]).unwrap();
        let mut head = Head::new(2);
        head.grow(2, 3);
        head.set(0, &[1.0, 0.0]);
        head.set(1, &[-1.0, 0.0]);
        let recipe = Recipe { decay: 0.0, ..Recipe::default() };
        let mut trained = |labels: &[usize]| {
            let mut ucir = Ucir::default();
            ucir.factor.0.learned[0] = 1.0;
            let step = Step { labels, before: None, old: 0, recipe: &recipe, rate: 0.1, index: 0 };
            ucir.loss(&step, &points, &mut head).unwrap();
            ucir.factor.value()
        };
        assert!((trained(&[0, 1]) - 1.1).abs() < 1e-3);
        assert!((trained(&[1, 0]) - 0.9).abs() < 1e-3);
    }

    #[test]
    fn points_are_turned_back_to_the_direction_they_had() {
        let value = |seed: u64| {
            let of = |at: u64| (2.0 * ivoro::random::unit(seed, at) - 1.0) as f32;
            Matrix::new(3, 4, (0..12).map(of).collect()).unwrap()
        };
        let (points, before) = (value(1), value(2));
        let mut head = Head::new(4);
        head.grow(2, 3);
        let loss = |points: &Matrix, back: &mut Matrix| {
            keep_direction(&Cosines::new(points, &head).unwrap(), &before, 3.0, back)
        };
        let mut gradient = Matrix::zeros(3, 4);
        let start = loss(&points, &mut gradient);
        let mut unused = Matrix::zeros(3, 4);
        for at in 0..12 {
            let mut moved = points.clone();
            moved.as_mut_slice()[at] += 1e-2;
            let above = loss(&moved, &mut unused);
            moved.as_mut_slice()[at] -= 2e-2;
            let slope = (above - loss(&moved, &mut unused)) / 2e-2;
            assert!((slope - f64::from(gradient.as_slice()[at])).abs() < 5e-3, "{at}: {slope}");
        }
        // nothing is lost where they point the same way, whatever their length
        let mut longer = before.clone();
        longer.as_mut_slice().iter_mut().for_each(|value| *value *= 7.0);
        assert!(start > 0.1 && loss(&longer, &mut unused).abs() < 1e-5);
    }

    #[test]
    fn an_old_image_is_moved_away_from_the_nearest_new_classes_only() {
        let cosines = Matrix::new(1, 5, vec![0.9, 0.1, 0.8, 0.2, 0.7]).unwrap();
        let recipe = Recipe::default();
        let step =
            Step { labels: &[0], before: None, old: 2, recipe: &recipe, rate: 0.0, index: 0 };
        let mut gradient = Matrix::zeros(1, 5);
        let loss = keep_apart(&cosines, &step, &mut gradient);
        assert!((loss - 0.35).abs() < 1e-6, "{loss}");
        assert_eq!(gradient.row(0), [-1.0, 0.0, 0.5, 0.0, 0.5]);
        // a new class's own image is not held apart
        let step = Step { labels: &[3], ..step };
        assert_eq!(keep_apart(&cosines, &step, &mut gradient), 0.0);
    }

    #[test]
    fn old_rows_stay_and_new_ones_begin_at_the_direction_of_their_images() {
        let data = dataset();
        let weights = network(&data);
        let trainer = trainer_of(&data, &weights, vec![0..4, 4..6]);
        let mut recorder = TestRecorder::new(Baseline::Ucir);
        trainer.run_method(&mut recorder, &[Baseline::Ucir], &mut |_| true).unwrap();
        let width = recorder.ended[0].len() / 4;
        let old = ..4 * width;
        assert_eq!(recorder.ended[1][old], recorder.ended[0][old]);
        assert_ne!(recorder.ended[1][4 * width..], recorder.begun[0][4 * width..]);
        for (row, wanted) in recorder.begun[0].chunks(width).skip(4).zip(&recorder.wanted) {
            let length = row.iter().map(|value| value * value).sum::<f32>().sqrt();
            let same = row.iter().zip(wanted).all(|(value, to)| (value / length - to).abs() < 1e-5);
            assert!(same && length > 0.0, "{row:?}\n{wanted:?}");
        }
    }
}
