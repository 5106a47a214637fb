"""What is reported of a run.

An accuracy matrix has a row for each phase: ``matrix[i][j]`` is the accuracy after phase i on the
classes of phase j, for j up to i. The field ``accuracy_by_phase`` of a phase is such a row.

Examples
--------
>>> from ivoro import metrics
>>> matrix = [[90.0], [70.0, 80.0]]
>>> metrics.forgetting_pass(matrix), metrics.backward_transfer(matrix)
(20.0, -20.0)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from . import _ivoro

__all__ = [
    "area_under_roc",
    "average",
    "backward_transfer",
    "calibration_error",
    "forgetting_pass",
    "forgetting_pycil",
    "pearson",
]

Matrix = Sequence[Sequence[float]]


def _rows(matrix: Matrix) -> list[list[float]]:
    return [list(map(float, row)) for row in matrix]


def average(accuracies: Iterable[float]) -> float:
    """Mean over phases of the accuracy on all classes seen, the first phase included.

    Parameters
    ----------
    accuracies : iterable of float
        The accuracy after each phase.

    Returns
    -------
    float

    Examples
    --------
    >>> average([80.0, 70.0])
    75.0
    """
    return _ivoro.average(list(accuracies))


def forgetting_pass(matrix: Matrix, phase: int | None = None) -> float:
    """Average forgetting as PASS defines it, after a phase (the last unless given).

    Parameters
    ----------
    matrix : sequence of sequences of float
        An accuracy matrix.
    phase : int, optional
        After which phase, counted from 0.

    Returns
    -------
    float

    Examples
    --------
    >>> forgetting_pass([[90.0], [70.0, 80.0], [75.0, 60.0, 95.0]], phase=1)
    20.0
    """
    rows = _rows(matrix)
    return _ivoro.forgetting_pass(rows, len(rows) - 1 if phase is None else phase)


def forgetting_pycil(matrix: Matrix) -> float:
    """Average forgetting as PyCIL defines it: the mean over old phases at the end.

    Parameters
    ----------
    matrix : sequence of sequences of float
        An accuracy matrix.

    Returns
    -------
    float

    Examples
    --------
    >>> forgetting_pycil([[50.0], [90.0, 10.0]])
    0.0
    """
    return _ivoro.forgetting_pycil(_rows(matrix))


def backward_transfer(matrix: Matrix) -> float:
    """How the accuracy on old phases changed since each was learned.

    Parameters
    ----------
    matrix : sequence of sequences of float
        An accuracy matrix.

    Returns
    -------
    float

    Examples
    --------
    >>> backward_transfer([[50.0], [90.0, 10.0]])
    40.0
    """
    return _ivoro.backward_transfer(_rows(matrix))


def calibration_error(
    confidence: Iterable[float], correct: Iterable[bool], bins: int = 15
) -> float:
    """Mean gap between confidence and accuracy over equal bins of confidence.

    Parameters
    ----------
    confidence : iterable of float
        The probability of each answer.
    correct : iterable of bool
        Whether it was right.
    bins : int, default=15
        How many.

    Returns
    -------
    float

    Examples
    --------
    >>> calibration_error([1.0, 1.0], [True, False])
    0.5
    """
    return _ivoro.calibration_error(
        [float(value) for value in confidence], [bool(value) for value in correct], bins
    )


def area_under_roc(known: Iterable[float], unknown: Iterable[float]) -> float | None:
    """The chance that an unknown query scores above a known one, ties counting half.

    Parameters
    ----------
    known, unknown : iterable of float
        Scores of queries of known classes, and of others.

    Returns
    -------
    float or None
        None without both kinds.

    Examples
    --------
    >>> area_under_roc([0.1, 0.2], [0.2, 0.9])
    0.875
    """
    return _ivoro.area_under_roc(list(map(float, known)), list(map(float, unknown)))


def pearson(x: Iterable[float], y: Iterable[float]) -> float | None:
    """Pearson's correlation.

    Parameters
    ----------
    x, y : iterable of float
        Equally many numbers.

    Returns
    -------
    float or None
        None where one side does not vary.

    Examples
    --------
    >>> pearson([1, 2, 3], [2, 4, 6])
    1.0
    """
    return _ivoro.pearson(list(map(float, x)), list(map(float, y)))
