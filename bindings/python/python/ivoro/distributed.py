"""Learning where the features are: on the workers of a cluster that somebody else runs.

What a model keeps of a class are exact sums, so blocks of samples can be added up anywhere and in
any order. Three functions are enough for any framework: `begin` fixes the settings on a sample,
`block` turns one block of features into its sums, `combine` adds the sums up. `fit` and
`partial_fit` do this for a Ray Dataset.

The letters D and R train a probe on all samples of a phase together and can't be learned so.

What travels between the functions are pickles; take them from your own workers only.

Examples
--------
Spark, from a table with a column of features and one of labels::

    def sums(batches):
        for batch in batches:
            X = numpy.stack(batch["features"].to_numpy(zero_copy_only=False))
            part = distributed.block(begun, X, batch["label"].to_numpy(zero_copy_only=False))
            yield pyarrow.RecordBatch.from_pydict({"part": [part]})

    parts = table.mapInArrow(sums, "part binary").collect()
    model = distributed.combine(begun, [bytes(row["part"]) for row in parts])

Dask, from two arrays with the same chunks of rows::

    blocks = zip(X.to_delayed().ravel(), y.to_delayed().ravel())
    parts = dask.compute(*[dask.delayed(distributed.block)(begun, *both) for both in blocks])
    model = distributed.combine(begun, parts)

Here on one machine:

>>> import numpy as np
>>> from ivoro import IVoroClassifier, distributed
>>> X, y = np.eye(6, dtype="float32") * 3, np.array(["a", "b"] * 3)
>>> begun = distributed.begin(IVoroClassifier("iVoro"), X[:2], y[:2])
>>> parts = [distributed.block(begun, X[at : at + 2], y[at : at + 2]) for at in (0, 2, 4)]
>>> model = distributed.combine(begun, parts)
>>> np.array_equal(model.centroids_, IVoroClassifier("iVoro").fit(X, y).centroids_)
True
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from ._classifier import IVoroClassifier

__all__ = ["begin", "block", "combine", "fit", "partial_fit"]


def begin(estimator: IVoroClassifier, X: Any, y: ArrayLike) -> bytes:
    """Fix settings, calibration and the range of values on a sample.

    Parameters
    ----------
    estimator : IVoroClassifier
        The parameters; it is not changed.
    X, y
        A sample, as for `IVoroClassifier.fit`. It is not learned: a sample of all classes, with the
        largest values among it, leaves nothing to chance.

    Returns
    -------
    bytes
        What `block` and `combine` need.
    """
    return _begun(clone(estimator).fit(X, y))


def _begun(fitted: IVoroClassifier) -> bytes:
    letters = fitted.variant.partition("-")[2].replace("AC", "").replace("AI", "")
    if "D" in letters or "R" in letters:
        raise ValueError(
            f"{fitted.variant}: D and R train a probe on all samples of a phase together; learn "
            "them with fit or partial_fit"
        )
    return pickle.dumps(fitted)


def _emptied(begun: bytes) -> IVoroClassifier:
    """The classifier as it was begun, without any class."""
    empty: IVoroClassifier = pickle.loads(begun)
    empty.model_ = empty.model_.emptied()
    empty.classes_ = empty.classes_[:0]
    return empty


def block(begun: bytes, X: Any, y: ArrayLike) -> bytes:
    """Turn one block of samples into its sums.

    Parameters
    ----------
    begun : bytes
        From `begin`.
    X, y
        Samples, as for `IVoroClassifier.fit`.

    Returns
    -------
    bytes
        The sums; their size does not depend on the number of samples.
    """
    return pickle.dumps(_emptied(begun).partial_fit(X, y))


def combine(
    begun: bytes, blocks: Iterable[bytes], start: IVoroClassifier | None = None
) -> IVoroClassifier:
    """Add up the sums of blocks.

    Parameters
    ----------
    begun : bytes
        From `begin`.
    blocks : iterable of bytes
        From `block`.
    start : IVoroClassifier, optional
        What to add to; nothing unless given. It is not changed.

    Returns
    -------
    IVoroClassifier
        The classifier that learned the samples of all blocks.
    """
    nothing = _emptied(begun)
    total: IVoroClassifier | None = None if start is None else pickle.loads(pickle.dumps(start))
    for part in blocks:
        learned: IVoroClassifier = pickle.loads(part)
        # naming the common start says that equal sums are not the same samples twice
        total = learned if total is None else total.merge(learned, ancestor=nothing)
    if total is None:
        raise ValueError("blocks: expected at least 1, found 0")
    return total


def fit(
    dataset: Any,
    estimator: IVoroClassifier | None = None,
    *,
    features: str = "features",
    label: str = "label",
    sample: int = 20_000,
    seed: int = 0,
) -> IVoroClassifier:
    """Learn from a Ray Dataset.

    Settings that are not given are chosen on a sample of the rows. The sums are those of all rows,
    added up on the workers.

    Parameters
    ----------
    dataset : ray.data.Dataset
        A column of features, ``(dim,)`` or ``(views, dim)`` a row, and one of labels.
    estimator : IVoroClassifier, optional
        The parameters; it is not changed.
    features, label : str
        Names of the columns.
    sample : int, default=20000
        About how many rows choose the settings.
    seed : int, default=0
        Seed of the sample.

    Returns
    -------
    IVoroClassifier
        Fitted.
    """
    rows = dataset.count()
    chosen = dataset.random_sample(min(1.0, sample / max(rows, 1)), seed=seed)
    extremes = dataset.map_batches(_Extremes(features, label), batch_format="numpy", batch_size=None)
    parts = [_arrays(chosen, features, label), _arrays(extremes, features, label)]
    parts = [part for part in parts if len(part[1])]
    if not parts:
        raise ValueError("dataset: expected at least 1 row, found 0")
    X, y = (np.concatenate(both) for both in zip(*parts, strict=True))
    begun = begin(estimator or IVoroClassifier(), X, y)
    return combine(begun, _sums(dataset, begun, features, label))


def partial_fit(
    dataset: Any, estimator: IVoroClassifier, *, features: str = "features", label: str = "label"
) -> IVoroClassifier:
    """Learn more from a Ray Dataset: new classes, more samples of known ones, or both.

    Parameters
    ----------
    dataset : ray.data.Dataset
        As for `fit`.
    estimator : IVoroClassifier
        A fitted classifier; it is not changed.
    features, label : str
        Names of the columns.

    Returns
    -------
    IVoroClassifier
        What the estimator knew, and what is new.
    """
    check_is_fitted(estimator)
    begun = _begun(estimator)
    return combine(begun, _sums(dataset, begun, features, label), start=estimator)


class _Extremes:
    """The rows of a block with the largest value, as it is and as a share of its row's length."""

    def __init__(self, features: str, label: str) -> None:
        self.features, self.label = features, label

    def __call__(self, batch: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        X, y = _columns(batch, self.features, self.label)
        sizes = np.abs(X.reshape(len(X), -1))
        lengths = np.linalg.norm(sizes, axis=1, keepdims=True)
        shares = sizes / np.maximum(lengths, np.finfo(np.float32).tiny)
        rows = np.unique([sizes.max(axis=1).argmax(), shares.max(axis=1).argmax()])
        return {self.features: X[rows], self.label: y[rows]}


class _Sums:
    """A block of samples as its sums."""

    def __init__(self, begun: bytes, features: str, label: str) -> None:
        self.begun, self.features, self.label = begun, features, label

    def __call__(self, batch: dict[str, NDArray[Any]]) -> dict[str, Any]:
        part = block(self.begun, *_columns(batch, self.features, self.label))
        return {"part": np.array([part], dtype=object)}


def _sums(dataset: Any, begun: bytes, features: str, label: str) -> list[bytes]:
    work = _Sums(begun, features, label)
    parts = dataset.map_batches(work, batch_format="numpy", batch_size=None)
    return [row["part"] for row in parts.take_all()]


def _columns(batch: dict[str, Any], features: str, label: str) -> tuple[NDArray[Any], NDArray[Any]]:
    X = np.asarray(batch[features])
    return np.stack(list(X)) if X.dtype == object else X, np.asarray(batch[label])


def _arrays(dataset: Any, features: str, label: str) -> tuple[NDArray[Any], NDArray[Any]]:
    batches = [
        _columns(batch, features, label)
        for batch in dataset.iter_batches(batch_format="numpy", batch_size=None)
        if len(batch.get(label, ()))
    ]
    if not batches:
        return np.empty((0, 0)), np.empty(0)
    X, y = (np.concatenate(parts) for parts in zip(*batches, strict=True))
    return X, y
