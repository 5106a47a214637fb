//! What is reported of a phase besides single numbers: curves, bins and boxes, small enough to be
//! kept in a record for every phase.

use crate::record::{BurstOutcome, ReliabilityBin};
use ivoro::Matrix;
use ivoro::vectors::least;

/// Points of a risk–coverage curve.
const COVERAGES: usize = 20;
/// Most points of a ROC curve.
const ROC_POINTS: usize = 50;
/// Images in a burst.
const BURST: usize = 4;

/// Four significant digits: more is noise, and records are kept.
pub fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let factor = 10f64.powi(3 - value.abs().log10().floor() as i32);
    let rounded = (value * factor).round() / factor;
    if rounded.is_finite() { rounded } else { value }
}

/// The 5, 25, 50, 75 and 95 % quantiles, for a box with whiskers; `None` without values.
pub fn five_numbers(values: &[f64]) -> Option<[f64; 5]> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    Some([0.05, 0.25, 0.5, 0.75, 0.95].map(|share| {
        let place = share * last as f64;
        let (low, high) = (place.floor() as usize, place.ceil() as usize);
        sorted[low] + place.fract() * (sorted[high] - sorted[low])
    }))
}

/// Mean confidence and share of right answers in equal bins of the confidence; empty bins are left
/// out.
pub fn reliability(confidence: &[f64], correct: &[bool], bins: usize) -> Vec<ReliabilityBin> {
    let mut sums = vec![(0usize, 0f64, 0usize); bins];
    for (&confidence, &correct) in confidence.iter().zip(correct) {
        let bin = &mut sums[((confidence * bins as f64) as usize).min(bins - 1)];
        *bin = (bin.0 + 1, bin.1 + confidence, bin.2 + usize::from(correct));
    }
    let filled = sums.into_iter().filter(|bin| bin.0 > 0);
    let bins = filled.map(|(count, confidence, correct)| ReliabilityBin {
        count,
        confidence: rounded(confidence / count as f64),
        accuracy: rounded(correct as f64 / count as f64),
    });
    bins.collect()
}

/// [coverage, share of wrong answers] where the least sure answers are left out, for twenty
/// coverages. Answers that are equally sure count as equally often wrong.
pub fn risk_coverage(confidence: &[f64], correct: &[bool]) -> Vec<[f64; 2]> {
    let mut order: Vec<usize> = (0..confidence.len()).collect();
    order.sort_by(|&a, &b| confidence[b].total_cmp(&confidence[a]));
    let mut errors = Vec::with_capacity(order.len());
    let mut total = 0f64;
    for tied in order.chunk_by(|&a, &b| confidence[a] == confidence[b]) {
        let wrong = tied.iter().filter(|&&at| !correct[at]).count() as f64 / tied.len() as f64;
        for _ in tied {
            total += wrong;
            errors.push(total);
        }
    }
    let point = |step: usize| {
        let kept = (errors.len() * step).div_ceil(COVERAGES);
        [rounded(kept as f64 / errors.len() as f64), rounded(errors[kept - 1] / kept as f64)]
    };
    let mut points: Vec<[f64; 2]> = match errors.len() {
        0 => Vec::new(),
        _ => (1..=COVERAGES).map(point).collect(),
    };
    points.dedup();
    points
}

/// [share of known queries rejected, share of unknown ones rejected], from (0, 0) to (1, 1), as the
/// threshold on the strangeness falls. Empty without both kinds.
pub fn rejection_roc(known: &[f64], unknown: &[f64]) -> Vec<[f64; 2]> {
    if known.is_empty() || unknown.is_empty() {
        return Vec::new();
    }
    let mut all: Vec<(f64, bool)> = known.iter().map(|&score| (score, false)).collect();
    all.extend(unknown.iter().map(|&score| (score, true)));
    all.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
    let (mut points, mut counts) = (vec![[0.0, 0.0]], [0usize; 2]);
    for tied in all.chunk_by(|a, b| a.0 == b.0) {
        tied.iter().for_each(|(_, unknown)| counts[usize::from(*unknown)] += 1);
        let share = |at: usize, of: usize| rounded(counts[at] as f64 / of as f64);
        points.push([share(0, known.len()), share(1, unknown.len())]);
    }
    thinned(points)
}

/// At most [`ROC_POINTS`] points at equal steps along the curve, its ends among them.
fn thinned(points: Vec<[f64; 2]>) -> Vec<[f64; 2]> {
    let step = 2.0 / (ROC_POINTS - 2) as f64;
    let (mut kept, mut next) = (Vec::with_capacity(ROC_POINTS), 0.0);
    let last = points.len() - 1;
    for (at, point) in points.into_iter().enumerate() {
        let length = point[0] + point[1];
        if length >= next || at == last {
            kept.push(point);
            next = length + step;
        }
    }
    kept
}

/// How well bursts of four different images of one class are named: `rows` are the queries of known
/// classes, `truth` their classes. Images that do not fill a burst are left out.
pub fn bursts(distances: &Matrix, rows: &[usize], truth: &[usize]) -> Option<BurstOutcome> {
    let classes = distances.cols();
    let mut waiting: Vec<Vec<usize>> = vec![Vec::with_capacity(BURST); classes];
    let (mut queries, mut sums, mut votes) = (0usize, 0usize, 0usize);
    for (&row, &class) in rows.iter().zip(truth) {
        waiting[class].push(row);
        if waiting[class].len() < BURST {
            continue;
        }
        let (sum, vote) = name_burst(distances, &waiting[class]);
        waiting[class].clear();
        queries += 1;
        sums += usize::from(sum == class);
        votes += usize::from(vote == class);
    }
    let percent = |right: usize| rounded(100.0 * right as f64 / queries as f64);
    let outcome =
        || BurstOutcome { size: BURST, queries, sum: percent(sums), vote: percent(votes) };
    (queries > 0).then(outcome)
}

/// The class by added distances, and the class by votes, ties going to the smaller sum.
fn name_burst(distances: &Matrix, rows: &[usize]) -> (usize, usize) {
    let mut sum = vec![0f32; distances.cols()];
    let mut votes = vec![0usize; distances.cols()];
    for &row in rows {
        sum.iter_mut().zip(distances.row(row)).for_each(|(sum, value)| *sum += value);
        votes[least(distances.row(row))] += 1;
    }
    let most = votes.iter().copied().max().unwrap_or(0);
    let tied = (0..votes.len()).filter(|&class| votes[class] == most);
    let voted = tied.min_by(|&a, &b| sum[a].total_cmp(&sum[b])).unwrap_or(0);
    (least(&sum), voted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_digits_are_kept() {
        assert_eq!(rounded(0.000_123_456), 0.000_123_5);
        assert_eq!(rounded(-98_765.4), -98_770.0);
        assert_eq!(rounded(0.0), 0.0);
        assert!(rounded(f64::NAN).is_nan());
        assert_eq!(rounded(f64::MIN_POSITIVE), f64::MIN_POSITIVE);
    }

    // numpy.quantile([1, 2, 3, 4], [.05, .25, .5, .75, .95])
    #[test]
    fn quantiles_are_those_of_numpy() {
        let found = five_numbers(&[4.0, 2.0, 3.0, 1.0, f64::NAN]).unwrap();
        for (found, expected) in found.into_iter().zip([1.15, 1.75, 2.5, 3.25, 3.85]) {
            assert!((found - expected).abs() < 1e-12);
        }
        assert_eq!(five_numbers(&[]), None);
    }

    #[test]
    fn reliability_leaves_out_empty_bins() {
        let bins = reliability(&[0.9, 0.7, 0.1, 1.0], &[true, false, false, true], 2);
        assert_eq!(bins[0], ReliabilityBin { count: 1, confidence: 0.1, accuracy: 0.0 });
        assert_eq!(bins[1], ReliabilityBin { count: 3, confidence: 0.8667, accuracy: 0.6667 });
        assert_eq!(reliability(&[0.9], &[true], 15).len(), 1);
    }

    #[test]
    fn the_sure_answers_come_first_and_ties_share_their_errors() {
        let curve = risk_coverage(&[0.9, 0.8, 0.7, 0.7], &[true, true, false, true]);
        assert_eq!(curve.first(), Some(&[0.25, 0.0]));
        assert_eq!(curve.last(), Some(&[1.0, 0.25]));
        assert!(curve.contains(&[0.75, 0.1667]));
        assert!(risk_coverage(&[], &[]).is_empty());
    }

    #[test]
    fn the_area_under_the_points_is_the_area() {
        let known: Vec<f64> = (0..200).map(|at| f64::from(at * 37 % 200)).collect();
        let unknown: Vec<f64> = (0..150).map(|at| f64::from(at * 53 % 150) + 80.0).collect();
        let points = rejection_roc(&known, &unknown);
        assert!(points.len() <= ROC_POINTS);
        assert_eq!((points[0], points[points.len() - 1]), ([0.0, 0.0], [1.0, 1.0]));
        let area: f64 =
            points.windows(2).map(|p| (p[1][0] - p[0][0]) * (p[1][1] + p[0][1]) / 2.0).sum();
        let exact = crate::metrics::area_under_roc(&known, &unknown).unwrap();
        assert!((area - exact).abs() < 0.003, "{area} {exact}");
        assert!(rejection_roc(&[], &[1.0]).is_empty());
    }

    #[test]
    fn a_burst_adds_or_votes() {
        // two of four vote for class 0 and are close; the sum prefers class 1
        let rows = [[0.0, 1.0, 9.0], [0.0, 1.0, 9.0], [9.0, 0.0, 5.0], [9.0, 6.0, 5.0], [0.0; 3]];
        let distances = Matrix::new(5, 3, rows.concat()).unwrap();
        let found = bursts(&distances, &[0, 1, 2, 3, 4], &[1, 1, 1, 1, 0]).unwrap();
        assert_eq!((found.size, found.queries, found.sum, found.vote), (4, 1, 100.0, 0.0));
        assert_eq!(bursts(&distances, &[4], &[0]), None);
    }
}
