"""Metrics against scikit-learn and NumPy, and what they refuse."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from ivoro import metrics


def test_against_numpy_and_scikit_learn():
    rng = np.random.default_rng(0)
    known, unknown = rng.random(50).round(1), rng.random(30).round(1) + 0.3
    expected = roc_auc_score([0] * 50 + [1] * 30, np.concatenate([known, unknown]))
    assert metrics.area_under_roc(known, unknown) == pytest.approx(expected)
    assert metrics.area_under_roc([], unknown) is None
    x, y = rng.random(20), rng.random(20)
    assert metrics.pearson(x, y) == pytest.approx(np.corrcoef(x, y)[0, 1])
    assert metrics.pearson([1, 1], [1, 2]) is None


def test_more_bins_than_fit_in_memory():
    assert metrics.calibration_error([0.25, 0.75], [True, True], 10**15) == pytest.approx(0.5)


def test_two_kinds_of_forgetting():
    matrix = [[90.0], [70.0, 80.0], [75.0, 60.0, 95.0], [60.0, 70.0, 90.0, 50.0]]
    assert metrics.forgetting_pass(matrix) == pytest.approx(15.0)
    assert metrics.forgetting_pycil(matrix) == pytest.approx(15.0)
    assert metrics.forgetting_pass(matrix, phase=1) == pytest.approx(20.0)
    assert metrics.backward_transfer(matrix) == pytest.approx(-15.0)


def test_what_is_refused():
    with pytest.raises(ValueError, match="row 1: expected at least 2 entries, found 1"):
        metrics.forgetting_pycil([[1.0], [1.0]])
    with pytest.raises(ValueError, match="phase 5 is outside 0..1"):
        metrics.forgetting_pass([[1.0]], phase=5)
    with pytest.raises(ValueError, match="correct: expected 2 entries, found 1"):
        metrics.calibration_error([0.5, 0.5], [True])
    with pytest.raises(ValueError, match="bin"):
        metrics.calibration_error([0.5], [True], bins=0)
    with pytest.raises(ValueError, match="bin"):
        metrics.calibration_error([0.5], [True], bins=-1)
    with pytest.raises(ValueError, match="phase -1 is outside 0..0"):
        metrics.forgetting_pass([])
    with pytest.raises(ValueError, match="y: expected 1 entries, found 2"):
        metrics.pearson([1.0], [1.0, 2.0])
