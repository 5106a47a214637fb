"""Whatever holds features, as the arrays that the compiled module takes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array
from sklearn.utils.validation import _check_sample_weight, validate_data

KINDS = [np.float32, np.float64]


def is_layers(X: Any) -> bool:
    """Whether X is a list of layers rather than a list of rows."""
    if not isinstance(X, (list, tuple)) or not X:
        return False
    return all(len(getattr(layer, "shape", ())) >= 2 for layer in X)


def is_plain(X: Any, y: Any, estimator: Any) -> bool:
    """Whether X and y are such that scikit-learn's checks would leave them as they are: after 200 MB
    went through the caches, those checks take longer than it seems."""
    return (
        type(X) is np.ndarray
        and type(y) is np.ndarray
        and X.dtype in KINDS
        and X.ndim == 2
        and X.shape[0] > 0
        and X.shape[1] == estimator.n_features_in_
        and y.shape == X.shape[:1]
        and y.dtype.kind in "iuU"
        and not hasattr(estimator, "feature_names_in_")
    )


def foreign(X: Any) -> Any:
    """X, or what it lends through the DLPack protocol where that is the only one it knows."""
    if hasattr(X, "__dlpack__") and not hasattr(X, "__array__"):
        return np.from_dlpack(X)
    return X


def layers_of(X: Any, estimator: Any = None, *, reset: bool = False) -> list[NDArray[Any]]:
    """One array of 32 or 64 bit floats a layer, with two or three axes each.

    Arrays that are so already are not copied. With an estimator, its number of features is set
    (`reset`) or checked.
    """
    # the compiled module looks for NaN and infinity while it reads the numbers anyway
    options = {"dtype": KINDS, "ensure_all_finite": False}
    if is_layers(X):
        arrays = [check_array(foreign(layer), allow_nd=True, **options) for layer in X]
    else:
        X = foreign(X)
        if estimator is not None and len(getattr(X, "shape", (0, 0))) != 3:
            return [validate_data(estimator, X, reset=reset, **options)]
        arrays = [check_array(X, allow_nd=True, **options)]
    if estimator is not None:
        check_features(estimator, arrays, reset)
    return arrays


def check_features(estimator: Any, arrays: list[NDArray[Any]], reset: bool) -> None:
    """Sets or checks the number of features where scikit-learn can't count them."""
    found = arrays[0].shape[-1]
    if reset:
        estimator.n_features_in_ = found
        # of another table, learned before
        estimator.__dict__.pop("feature_names_in_", None)
    elif found != estimator.n_features_in_:
        raise ValueError(
            f"X has {found} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input"
        )


def repeated(
    arrays: list[NDArray[Any]], labels: NDArray[Any], sample_weight: Any
) -> tuple[list[NDArray[Any]], NDArray[Any]]:
    """Each sample as often as it counts."""
    if sample_weight is None:
        return arrays, labels
    weights = _check_sample_weight(sample_weight, arrays[0], ensure_non_negative=True)
    if not (weights == np.floor(weights)).all():
        found = weights[weights != np.floor(weights)][0]
        raise ValueError(f"sample_weight: expected whole numbers, since sums are exact; found {found}")
    if not weights.any():
        raise ValueError("sample_weight: expected a sample that counts, found zeros alone")
    rows = np.repeat(np.arange(len(labels)), weights.astype(np.int64))
    return [array[rows] for array in arrays], labels[rows]


def codes_of(groups: Any, rows: int) -> NDArray[np.uint32] | None:
    """The number of each row's group, groups in the order of `numpy.unique`."""
    if groups is None:
        return None
    groups = np.asarray(groups)
    if groups.shape != (rows,):
        raise ValueError(f"groups: expected {rows} entries, found shape {groups.shape}")
    return np.unique(groups, return_inverse=True)[1].astype(np.uint32)
