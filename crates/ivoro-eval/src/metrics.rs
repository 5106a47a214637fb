//! What is reported of a run. Metrics take phases, never label strings, so that phases of any
//! size and number work.

use std::collections::BTreeMap;

/// Accuracy by phase: `matrix[i][j]` is the accuracy, after phase i, on the classes of phase j ≤ i.
pub type AccuracyMatrix = [Vec<f64>];

/// Mean over phases of the accuracy on all classes seen, phase 0 included.
pub fn average(accuracies: &[f64]) -> f64 {
    accuracies.iter().sum::<f64>() / accuracies.len().max(1) as f64
}

/// Average forgetting as PASS reports it after phase i:
/// `Σ_{j≤i} (max_{r≤i} a[r][j] − a[i][j]) / i`.
pub fn forgetting_pass(matrix: &AccuracyMatrix, phase: usize) -> f64 {
    if phase == 0 {
        return 0.0;
    }
    (0..=phase).map(|j| best(matrix, phase, j) - matrix[phase][j]).sum::<f64>() / phase as f64
}

/// Average forgetting as PyCIL reports it: the mean over old phases at the end.
pub fn forgetting_pycil(matrix: &AccuracyMatrix) -> f64 {
    let Some(last) = matrix.len().checked_sub(1).filter(|&last| last > 0) else { return 0.0 };
    average(&(0..last).map(|j| best(matrix, last, j) - matrix[last][j]).collect::<Vec<_>>())
}

/// Backward transfer: how the accuracy on old phases changed since each was learned.
pub fn backward_transfer(matrix: &AccuracyMatrix) -> f64 {
    let Some(last) = matrix.len().checked_sub(1).filter(|&last| last > 0) else { return 0.0 };
    average(&(0..last).map(|j| matrix[last][j] - matrix[j][j]).collect::<Vec<_>>())
}

fn best(matrix: &AccuracyMatrix, until: usize, phase: usize) -> f64 {
    (phase..=until).map(|r| matrix[r][phase]).fold(f64::NEG_INFINITY, f64::max)
}

/// Expected calibration error: mean gap between confidence and accuracy over `bins` equal bins.
pub fn calibration_error(confidence: &[f64], correct: &[bool], bins: usize) -> f64 {
    // most bins are empty where there are more of them than samples
    let mut sums = BTreeMap::<usize, (f64, f64)>::new();
    for (&confidence, &correct) in confidence.iter().zip(correct) {
        let bin = ((confidence * bins as f64) as usize).min(bins - 1);
        let sums = sums.entry(bin).or_default();
        sums.0 += confidence;
        sums.1 += f64::from(u8::from(correct));
    }
    let gap: f64 = sums.values().map(|(confidence, correct)| (confidence - correct).abs()).sum();
    gap / confidence.len().max(1) as f64
}

/// Answers in bins of as many each, by confidence; equally sure ones in the order given. No bin is
/// empty, so there are fewer of them where there are fewer answers.
pub fn mass_bins(confidence: &[f64], bins: usize) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..confidence.len()).collect();
    order.sort_by(|&a, &b| confidence[a].total_cmp(&confidence[b]));
    let bins = bins.clamp(1, order.len().max(1));
    let rows = |bin: usize| &order[bin * order.len() / bins..(bin + 1) * order.len() / bins];
    (0..bins).map(|bin| rows(bin).to_vec()).filter(|rows| !rows.is_empty()).collect()
}

/// The same gap over [`mass_bins`].
pub fn calibration_error_by_mass(confidence: &[f64], correct: &[bool], bins: usize) -> f64 {
    let gap = |rows: &Vec<usize>| {
        let gaps = rows.iter().map(|&row| confidence[row] - f64::from(u8::from(correct[row])));
        gaps.sum::<f64>().abs()
    };
    let gaps: f64 = mass_bins(confidence, bins).iter().map(gap).sum();
    gaps / confidence.len().max(1) as f64
}

/// Share of unknown queries that are taken for known ones where this share of known ones is
/// accepted. `None` without both kinds.
pub fn false_positive_rate(known: &[f64], unknown: &[f64], accepted: f64) -> Option<f64> {
    if known.is_empty() || unknown.is_empty() {
        return None;
    }
    let mut sorted = known.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let place = (accepted.clamp(0.0, 1.0) * sorted.len() as f64).ceil() as usize;
    let threshold = sorted[place.clamp(1, sorted.len()) - 1];
    Some(1.0 - rejected_share(unknown, threshold))
}

/// Share of queries that are stranger than a threshold.
pub fn rejected_share(strangeness: &[f64], threshold: f64) -> f64 {
    let above = strangeness.iter().filter(|&&value| value > threshold).count();
    above as f64 / strangeness.len().max(1) as f64
}

/// Area under the ROC curve: the chance that a random unknown scores above a random known one,
/// ties counting half. `None` without both kinds.
pub fn area_under_roc(known: &[f64], unknown: &[f64]) -> Option<f64> {
    if known.is_empty() || unknown.is_empty() {
        return None;
    }
    let mut all: Vec<(f64, bool)> = known.iter().map(|&score| (score, false)).collect();
    all.extend(unknown.iter().map(|&score| (score, true)));
    all.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let (mut ranks, mut before) = (0f64, 0);
    for tied in all.chunk_by(|a, b| a.0 == b.0) {
        let rank = before as f64 + 0.5 * (tied.len() as f64 + 1.0);
        ranks += rank * tied.iter().filter(|(_, unknown)| *unknown).count() as f64;
        before += tied.len();
    }
    let (n, m) = (unknown.len() as f64, known.len() as f64);
    Some((ranks - n * (n + 1.0) / 2.0) / (n * m))
}

/// Pearson's correlation; `None` where one side does not vary.
pub fn pearson(x: &[f64], y: &[f64]) -> Option<f64> {
    let (mx, my) = (average(x), average(y));
    let pairs = || x.iter().zip(y).map(|(x, y)| (x - mx, y - my));
    let (sxx, syy) =
        (pairs().map(|(a, _)| a * a).sum::<f64>(), pairs().map(|(_, b)| b * b).sum::<f64>());
    let sxy: f64 = pairs().map(|(a, b)| a * b).sum();
    (sxx > 0.0 && syy > 0.0).then(|| sxy / (sxx * syy).sqrt())
}

/// Mean and sample standard deviation.
pub fn mean_deviation(values: &[f64]) -> (f64, f64) {
    let mean = average(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / values.len().saturating_sub(1).max(1) as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forgetting_of_unequal_phases() {
        let matrix =
            vec![vec![0.9], vec![0.7, 0.8], vec![0.75, 0.6, 0.95], vec![0.6, 0.7, 0.9, 0.5]];
        // (0.9−0.6 + 0.8−0.7 + 0.95−0.9 + 0) / 3
        assert!((forgetting_pass(&matrix, 3) - 0.15).abs() < 1e-12);
        assert!((forgetting_pycil(&matrix) - 0.15).abs() < 1e-12);
        assert!((forgetting_pass(&matrix, 1) - 0.2).abs() < 1e-12);
        assert_eq!(forgetting_pass(&matrix, 0), 0.0);
        assert!((backward_transfer(&matrix) - (-0.3 - 0.1 - 0.05) / 3.0).abs() < 1e-12);
        assert_eq!(forgetting_pycil(&matrix[..1]), 0.0);
    }

    #[test]
    fn forgetting_never_is_negative_and_transfer_can_gain() {
        let matrix = vec![vec![0.5], vec![0.9, 0.1]];
        assert_eq!(forgetting_pycil(&matrix), 0.0);
        assert!((backward_transfer(&matrix) - 0.4).abs() < 1e-12);
    }

    // sklearn.metrics.roc_auc_score([0,0,0,1,1], [.1,.4,.4,.4,.9]) = 0.8333…
    #[test]
    fn area_counts_ties_half() {
        let area = area_under_roc(&[0.1, 0.4, 0.4], &[0.4, 0.9]).unwrap();
        assert!((area - 5.0 / 6.0).abs() < 1e-12);
        assert_eq!(area_under_roc(&[], &[1.0]), None);
    }

    #[test]
    fn calibration_error_of_two_bins() {
        let error = calibration_error(&[0.9, 0.9, 0.2, 1.0], &[true, false, false, true], 2);
        // upper bin: |2.8 − 2|, lower: |0.2 − 0|, over 4
        assert!((error - 0.25).abs() < 1e-12);
    }

    #[test]
    fn calibration_error_of_bins_of_equal_mass() {
        let (confidence, correct) = ([0.9, 0.2, 0.8, 0.1], [true, false, false, false]);
        // lower half: 0.3 for 0 right, upper half: 1.7 for 1 right
        let error = calibration_error_by_mass(&confidence, &correct, 2);
        assert!((error - (0.3 + 0.7) / 4.0).abs() < 1e-12, "{error}");
        // more bins than answers: one each
        let error = calibration_error_by_mass(&confidence, &correct, 15);
        assert!((error - (0.1 + 0.2 + 0.8 + 0.1) / 4.0).abs() < 1e-12, "{error}");
        assert_eq!(calibration_error_by_mass(&[], &[], 15), 0.0);
    }

    #[test]
    fn false_positives_at_a_share_of_accepted_queries() {
        let known: Vec<f64> = (1..=20).map(f64::from).collect();
        // 19 of 20 are accepted up to 19
        let unknown = [18.0, 19.0, 19.5, 25.0];
        assert_eq!(false_positive_rate(&known, &unknown, 0.95), Some(0.5));
        assert_eq!(false_positive_rate(&known, &unknown, 1.0), Some(0.75));
        assert_eq!(false_positive_rate(&[], &unknown, 0.95), None);
        assert_eq!(rejected_share(&unknown, 19.0), 0.5);
        assert_eq!(rejected_share(&[], 1.0), 0.0);
    }

    #[test]
    fn correlation_and_deviation() {
        assert!((pearson(&[1.0, 2.0, 3.0], &[2.0, 4.0, 6.0]).unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(pearson(&[1.0, 1.0], &[2.0, 3.0]), None);
        assert_eq!(mean_deviation(&[1.0, 3.0]), (2.0, 2f64.sqrt()));
    }
}
