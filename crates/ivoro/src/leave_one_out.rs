//! Every sample asked by the model that never saw it, in closed form.
//!
//! A model that keeps sums can take a sample z of class k, of which there are n, away again. Its mean
//! m becomes m − r / (n − 1) with r = z − m, and the scatter A of all classes loses n / (n − 1) · r rᵀ,
//! one matrix of rank one (Sherman and Morrison). So the distances of all samples, each from the
//! model without it, come from the metric of all samples and one product.
//!
//! The class that lost a sample has a worse mean than the others, which makes all distances to own
//! classes too large. What that amounts to on average is taken off again: [`Prepared::fair_distances`].

use rayon::prelude::*;

use crate::error::Result;
use crate::head::{Composed, Place, Settings, Stage, Variant, add_ridge, compose, scales_columns};
use crate::lift::LiftCache;
use crate::linalg::{Symmetric, squared_distance, times_transposed};
use crate::matrix::Matrix;
use crate::samples::Samples;

/// Samples asked, at most: a share of them is then known to a point or so, and paired differences of
/// candidates to much less.
const ASKED: usize = 2048;

/// Samples that each can be left out.
#[derive(Debug)]
pub(crate) struct LeaveOneOut {
    samples: Samples,
    /// Rows that are asked: of classes with two samples or more.
    asked: Vec<usize>,
}

/// The samples under one transformation: what does not depend on the ridge.
pub(crate) struct Prepared<'a> {
    of: &'a LeaveOneOut,
    layers: usize,
    blocks: Vec<Block>,
}

/// One view of one layer.
struct Block {
    /// The rows that are asked and the means of the classes, both around the mean of all samples.
    asked: Matrix,
    means: Matrix,
    /// The pooled covariance and its degrees of freedom, where distances are measured in it.
    covariance: Option<(Symmetric, f64)>,
    place: Place,
}

impl LeaveOneOut {
    /// Of these rows, of which each list is a class; labels become places among the lists. `None`
    /// where there are no two classes, or no class has two samples.
    pub(crate) fn of(samples: &Samples, rows: &[Vec<usize>]) -> Option<Self> {
        if rows.len() < 2 {
            return None;
        }
        let all: Vec<usize> = rows.iter().flatten().copied().collect();
        let mut to = vec![0; samples.classes().len()];
        for (place, rows) in rows.iter().enumerate() {
            rows.iter().for_each(|&row| to[samples.labels()[row] as usize] = place as u32);
        }
        let names = rows.iter().filter_map(|rows| {
            let label = samples.labels()[*rows.first()?];
            samples.classes().get(label as usize).cloned()
        });
        let names: Vec<String> = names.collect();
        let samples = samples.select(&all).relabel(&to, names.into()).ok()?;
        let asked = asked(rows);
        (!asked.is_empty()).then_some(Self { samples, asked })
    }

    /// Whether distances of the variant are those of means in one metric. Votes are taken for sums.
    pub(crate) fn can(variant: Variant) -> bool {
        !(variant.divide || variant.residual || variant.per_class_metric)
    }

    /// The class of every sample that is asked.
    pub(crate) fn labels(&self) -> Vec<u32> {
        self.asked.iter().map(|&row| self.samples.labels()[row]).collect()
    }

    /// Puts the samples through the transformation of these settings.
    pub(crate) fn prepare(&self, variant: Variant, settings: &Settings) -> Result<Prepared<'_>> {
        let lifts = LiftCache::default();
        let Composed { layers, blocks, .. } =
            compose(&self.samples, variant, settings, Stage::Full, &lifts)?;
        let columns = scales_columns(variant, settings);
        let blocks = blocks.into_iter().map(|block| self.block(block, variant, columns)).collect();
        Ok(Prepared { of: self, layers, blocks })
    }

    fn block(&self, mut rows: Matrix, variant: Variant, columns: bool) -> Block {
        let labels = self.samples.labels();
        let place = Place::of(&rows, columns);
        place.put(&mut rows);
        let middle = means(&rows, &vec![0; labels.len()], 1);
        subtract(&mut rows, &middle, |_| 0);
        let means = means(&rows, labels, self.samples.classes().len());
        let asked = rows.select(&self.asked);
        let covariance = variant.is_metric().then(|| {
            subtract(&mut rows, &means, |row| labels[row] as usize);
            let freedom = rows.rows().saturating_sub(means.rows()) as f64;
            let mut scatter = Symmetric::zeros(rows.cols());
            scatter.add_gram(&rows, 1.0 / freedom.max(1.0));
            (scatter, freedom)
        });
        // samples that are all alike say nothing of directions
        let covariance = covariance.filter(|(it, freedom)| {
            *freedom > 1.0 && it.mean_diagonal() > f64::from(f32::EPSILON) * mean_square(&means)
        });
        Block { asked, means, covariance, place }
    }
}

impl Prepared<'_> {
    /// Samples of each class.
    fn counts(&self) -> Vec<f64> {
        let mut counts = vec![0f64; self.of.samples.classes().len()];
        self.of.samples.labels().iter().for_each(|&label| counts[label as usize] += 1.0);
        counts
    }

    /// The same as [`Self::distances`] where the class of the sample that is left out had still as many
    /// samples. A mean of n samples is away from the true one by 1/n of their variance τ, so that the
    /// distance of a new sample is τ·(1 + 1/n) in the mean.
    pub(crate) fn fair_distances(&self, settings: &Settings) -> Result<Matrix> {
        let (mut distances, labels) = (self.distances(settings)?, self.of.labels());
        let counts = self.counts();
        let places = || labels.iter().map(|&label| label as usize).enumerate();
        let spread = |(row, own): (usize, usize)| {
            f64::from(distances.row(row)[own]) * (counts[own] - 1.0) / counts[own]
        };
        let spread = places().map(spread).sum::<f64>() / labels.len().max(1) as f64;
        for (row, own) in places() {
            let more = spread / (counts[own] * (counts[own] - 1.0));
            distances.row_mut(row)[own] -= more as f32;
        }
        Ok(distances)
    }

    /// Distances of every sample that is asked to all classes, itself left out.
    pub(crate) fn distances(&self, settings: &Settings) -> Result<Matrix> {
        let (labels, counts) = (self.of.labels(), self.counts());
        let mut sum = Matrix::zeros(labels.len(), counts.len());
        for (at, block) in self.blocks.iter().enumerate() {
            let (weight, gamma) = match self.layers {
                1 => (1.0, 1.0),
                _ => (settings.layer_weights[at % self.layers] as f32, settings.gamma as f32),
            };
            let found = block.distances(&labels, &counts, settings)?;
            // as in a cluster-to-cluster diagram: a negative γ turns the order round, and its sign back
            let part = |distance: f32| {
                let distance = if gamma == 1.0 { distance } else { distance.powf(gamma) };
                weight * gamma.signum() * distance
            };
            let pairs = sum.as_mut_slice().iter_mut().zip(found.as_slice());
            pairs.for_each(|(sum, &distance)| *sum += part(distance));
        }
        Ok(sum)
    }
}

impl Block {
    fn distances(&self, labels: &[u32], counts: &[f64], settings: &Settings) -> Result<Matrix> {
        let (white, freedom) = match &self.covariance {
            None => (None, f64::INFINITY),
            Some((covariance, freedom)) => {
                let mut covariance = covariance.clone();
                add_ridge(&mut covariance, &self.place, settings);
                let factor = covariance.factor("within-class covariance", settings.ridge)?;
                (Some((factor.whiten(&self.asked), factor.whiten(&self.means))), *freedom)
            }
        };
        let (asked, means) = white.as_ref().map_or((&self.asked, &self.means), |(a, m)| (a, m));
        let (cross, between) = (times_transposed(asked, means), times_transposed(means, means));
        let origin = vec![0.0; asked.cols()];
        let mut out = Matrix::zeros(asked.rows(), means.rows());
        let rows = out.as_mut_slice().par_chunks_exact_mut(means.rows().max(1)).enumerate();
        rows.for_each(|(row, out)| {
            let own = labels[row] as usize;
            let (count, cross) = (counts[own], cross.row(row));
            let away = count / (count - 1.0);
            let length = f64::from(squared_distance(asked.row(row), &origin));
            let near = f64::from(squared_distance(asked.row(row), means.row(own)));
            // what the scatter loses, as a share of what is left in the direction of the sample
            let lost = away / freedom;
            let gain = lost / (1.0 - lost * near).max(f64::from(f32::EPSILON));
            let shrunk = if freedom.is_finite() { (freedom - 1.0) / freedom } else { 1.0 };
            for (class, out) in out.iter_mut().enumerate() {
                let (to, of_class) = (f64::from(cross[class]), between.row(class));
                let plain = (length - 2.0 * to + f64::from(of_class[class])).max(0.0);
                let along = length - to - f64::from(cross[own]) + f64::from(of_class[own]);
                let distance = if class == own {
                    away * away * (near + gain * near * near)
                } else {
                    plain + gain * along * along
                };
                *out = (shrunk * distance) as f32;
            }
        });
        Ok(out)
    }
}

/// Places of the samples that are asked: of all classes alike, as many as there may be.
fn asked(rows: &[Vec<usize>]) -> Vec<usize> {
    let can: Vec<usize> =
        rows.iter().map(|rows| if rows.len() > 1 { rows.len() } else { 0 }).collect();
    let mut most = can.iter().copied().max().unwrap_or(0);
    let count = |most: usize| can.iter().map(|&rows| rows.min(most)).sum::<usize>();
    while most > 1 && count(most) > ASKED {
        most -= 1;
    }
    let mut first = 0;
    let mut places = Vec::new();
    for (rows, &can) in rows.iter().zip(&can) {
        places.extend(first..first + can.min(most));
        first += rows.len();
    }
    places
}

/// The mean of each class, added up in the order of the rows.
fn means(rows: &Matrix, labels: &[u32], classes: usize) -> Matrix {
    let cols = rows.cols();
    let mut sums = vec![0f64; classes * cols];
    let mut counts = vec![0f64; classes];
    for (row, &label) in rows.iter_rows().zip(labels) {
        let sums = &mut sums[label as usize * cols..][..cols];
        sums.iter_mut().zip(row).for_each(|(sum, &value)| *sum += f64::from(value));
        counts[label as usize] += 1.0;
    }
    let mut out = Matrix::zeros(classes, cols);
    for (class, count) in counts.into_iter().enumerate() {
        let sums = &sums[class * cols..][..cols];
        let pairs = out.row_mut(class).iter_mut().zip(sums);
        pairs.for_each(|(mean, sum)| *mean = (sum / count.max(1.0)) as f32);
    }
    out
}

fn subtract(rows: &mut Matrix, means: &Matrix, of: impl Fn(usize) -> usize) {
    for at in 0..rows.rows() {
        let mean = means.row(of(at));
        rows.row_mut(at).iter_mut().zip(mean).for_each(|(value, mean)| *value -= mean);
    }
}

fn mean_square(rows: &Matrix) -> f64 {
    let squares = rows.as_slice().iter().map(|&value| f64::from(value) * f64::from(value));
    squares.sum::<f64>() / rows.as_slice().len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::head::Head;
    use crate::random::normals;
    use crate::samples::{Points, View};

    /// Classes of different sizes in two layers of four views, one of them of a single sample.
    fn samples() -> Samples {
        let sizes = [25, 2, 39, 1, 24];
        let labels: Vec<u32> = (0u32..).zip(sizes).flat_map(|(c, n)| vec![c; n]).collect();
        let mut drawn = normals(5, 0);
        let mut block = |dim: usize| {
            let value = |at: usize| {
                let (row, col) = (at / dim, at % dim);
                let centre = if labels[row] as usize % dim == col { 3.0 } else { 0.0 };
                (40.0 + centre + drawn.next().unwrap() * (1.0 + col as f64)) as f32
            };
            Matrix::new(labels.len(), dim, (0..labels.len() * dim).map(value).collect()).unwrap()
        };
        let blocks = [6, 6, 6, 6, 4, 4, 4, 4].map(&mut block).into();
        let layers = vec!["last".to_owned(), "third".to_owned()];
        let points = Points::new("test", layers, View::ROTATIONS.to_vec(), blocks).unwrap();
        let names: Vec<String> = (0..sizes.len()).map(|class| class.to_string()).collect();
        Samples::new(points, labels, names.into()).unwrap()
    }

    #[test]
    fn distances_are_those_of_a_head_that_never_saw_the_sample() {
        let samples = samples();
        let rows: Vec<Vec<usize>> = (0..samples.classes().len() as u32)
            .map(|class| (0..samples.len()).filter(|&r| samples.labels()[r] == class).collect())
            .collect();
        let all = LeaveOneOut::of(&samples, &rows).unwrap();
        assert_eq!(all.asked.len(), samples.len() - 1);
        let settings = Settings { ridge: 0.3, layer_weights: [0.7, 0.3], ..Settings::default() };
        for name in ["iVoro", "iVoro-N", "iVoro-NAIL", "iVoro-W", "iVoro-NWL", "iVoro-NWAIL"] {
            let variant: Variant = name.parse().unwrap();
            let found = all.prepare(variant, &settings).unwrap().distances(&settings).unwrap();
            for (place, &row) in all.asked.iter().enumerate() {
                let others: Vec<usize> = (0..samples.len()).filter(|&at| at != row).collect();
                let mut head = Head::new(variant, settings.clone()).unwrap();
                head.learn(&samples.select(&others)).unwrap();
                let expected = head.ask(&samples.select(&[row]), true).unwrap().distances;
                let scale = expected.as_slice().iter().fold(0f32, |most, d| most.max(d.abs()));
                // the ridge is held at that of all samples
                let tolerance = if variant.is_metric() { 0.06 } else { 1e-4 };
                for (found, expected) in found.row(place).iter().zip(expected.row(0)) {
                    let error = (found - expected).abs();
                    assert!(error <= tolerance * scale, "{name} {row}: {found} {expected}");
                }
            }
        }
    }

    /// Two samples of each class say as much of a model of two samples as held-out ones would.
    #[test]
    fn a_class_that_lost_a_sample_is_at_no_disadvantage() {
        let mut drawn = normals(8, 0);
        let (classes, dim) = (40, 60);
        let centres: Vec<f64> = (0..classes * dim).map(|_| drawn.next().unwrap()).collect();
        let mut sample = |each: usize| {
            let value = |at: usize| {
                let (row, col) = (at / dim, at % dim);
                (centres[row / each * dim + col] + 2.0 * drawn.next().unwrap()) as f32
            };
            let rows = classes * each;
            let points = Matrix::new(rows, dim, (0..rows * dim).map(value).collect()).unwrap();
            let labels = (0..rows).map(|row| (row / each) as u32).collect();
            Samples::single("test", points, labels, classes).unwrap()
        };
        let (train, test) = (sample(2), sample(20));
        let rows: Vec<Vec<usize>> =
            (0..classes).map(|class| vec![2 * class, 2 * class + 1]).collect();
        let all = LeaveOneOut::of(&train, &rows).unwrap();
        let (plain, settings) = (Variant::PLAIN, Settings::default());
        let prepared = all.prepare(plain, &settings).unwrap();
        let right = |distances: &Matrix, labels: &[u32]| {
            let rows = distances.iter_rows().zip(labels);
            let right = rows.filter(|(row, label)| crate::vectors::least(row) == **label as usize);
            right.count() as f64 / labels.len() as f64
        };
        let fair = right(&prepared.fair_distances(&settings).unwrap(), &all.labels());
        let unfair = right(&prepared.distances(&settings).unwrap(), &all.labels());
        let mut head = Head::new(plain, settings).unwrap();
        head.learn(&train).unwrap();
        let true_share = right(&head.distances(&test).unwrap(), test.labels());
        // 80 samples: one standard error is 0.055
        assert!((fair - true_share).abs() < 0.2, "{fair} {true_share}");
        assert!(unfair < true_share - 0.3, "{unfair} {true_share}");
    }

    #[test]
    fn too_few_samples_can_not_be_left_out() {
        let samples = samples();
        assert!(LeaveOneOut::of(&samples, &[vec![0, 1]]).is_none());
        assert!(LeaveOneOut::of(&samples, &[vec![0], vec![25], vec![27]]).is_none());
        assert_eq!(LeaveOneOut::of(&samples, &[vec![0], vec![25, 26]]).unwrap().labels(), [1, 1]);
    }

    #[test]
    fn of_many_samples_as_many_of_each_class_are_asked() {
        let rows: Vec<Vec<usize>> = vec![(0..4000).collect(), (4000..4010).collect(), vec![4010]];
        let places = asked(&rows);
        assert_eq!(places.len(), ASKED);
        assert_eq!(places.iter().filter(|&&place| place >= 4000).count(), 10);
    }
}
