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
        for batch in filter(len, batches):
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
from ._labels import texts_of

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

    Examples
    --------
    >>> from ivoro import IVoroClassifier, distributed
    >>> X, y = [[0.0], [1.0], [5.0]], ["a", "a", "b"]
    >>> begun = distributed.begin(IVoroClassifier("iVoro"), X, y)
    >>> distributed.combine(begun, [distributed.block(begun, X, y)]).counts_.tolist()
    [2, 1]
    """
    return _begun(clone(estimator).fit(X, y))


def _begun(fitted: IVoroClassifier) -> bytes:
    letters = fitted.variant_.partition("-")[2].replace("AC", "").replace("AI", "")
    if "D" in letters or "R" in letters:
        raise ValueError(
            f"{fitted.variant_}: D and R train a probe on all samples of a phase together; learn "
            "them with fit or partial_fit"
        )
    return pickle.dumps(fitted)


def _emptied(begun: bytes) -> IVoroClassifier:
    """The classifier as it was begun, without any class."""
    empty: IVoroClassifier = pickle.loads(begun)
    empty._set_classes(empty.model_.emptied(), empty.classes_[:0])
    return empty


def block(begun: bytes, X: Any, y: ArrayLike) -> bytes:
    """Turn one block of samples into its sums.

    Parameters
    ----------
    begun : bytes
        From `begin`.
    X, y
        Samples, as for `IVoroClassifier.fit`; there may be none.

    Returns
    -------
    bytes
        The sums; their size does not depend on the number of samples.

    Examples
    --------
    >>> from ivoro import IVoroClassifier, distributed
    >>> X, y = [[0.0], [1.0], [5.0]], ["a", "a", "b"]
    >>> begun = distributed.begin(IVoroClassifier("iVoro"), X, y)
    >>> part = distributed.block(begun, [[3.0]], ["c"])
    >>> distributed.combine(begun, [part]).classes_.tolist()
    ['c']
    """
    samples = len(np.asarray(y))
    return pickle.dumps(_emptied(begun).partial_fit(X, y) if samples else None)


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

    Examples
    --------
    >>> from ivoro import IVoroClassifier, distributed
    >>> X, y = [[0.0], [1.0], [5.0]], ["a", "a", "b"]
    >>> begun = distributed.begin(IVoroClassifier("iVoro"), X, y)
    >>> parts = [distributed.block(begun, X[at:], y[at:]) for at in range(3)]
    >>> distributed.combine(begun, parts).counts_.tolist()
    [3, 3]
    """
    nothing = _emptied(begun)
    total: IVoroClassifier = nothing if start is None else pickle.loads(pickle.dumps(start))
    before = len(total.phases_)
    for part in blocks:
        learned: IVoroClassifier | None = pickle.loads(part)
        if learned is None:
            continue
        # naming the common start says that equal sums are not the same samples twice
        total = learned if total is nothing else total.merge(learned, ancestor=nothing)
    if total is nothing:
        raise ValueError("blocks: expected at least 1 with samples, found 0")
    # whatever came in which block, it is one phase
    total.model_.gather_phase(before, texts_of(total.classes_), pickle.loads(begun).model_)
    total._set_classes(total.model_, total.classes_)
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

    Settings that are not given are chosen on a sample of the rows, or on all if there are no more
    than that. The sums are those of all rows, added up on the workers.

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

    Examples
    --------
    >>> from ivoro import IVoroClassifier, distributed
    >>> import ray  # doctest: +SKIP
    >>> data = ray.data.read_parquet("features.parquet")  # doctest: +SKIP
    >>> model = distributed.fit(data, IVoroClassifier("iVoro-NW"))  # doctest: +SKIP
    """
    rows = dataset.count()
    chosen = [dataset]
    if rows > sample:
        extremes = _Extremes(features, label)
        extremes = dataset.map_batches(extremes, batch_format="numpy", batch_size=None)
        chosen = [dataset.random_sample(sample / rows, seed=seed), extremes]
    parts = [_arrays(part, features, label) for part in chosen]
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

    Examples
    --------
    >>> from ivoro import distributed
    >>> import ray  # doctest: +SKIP
    >>> data = ray.data.read_parquet("features.parquet")  # doctest: +SKIP
    >>> model = distributed.partial_fit(data, model)  # doctest: +SKIP
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
    # which samples are held out goes by their order, and Ray takes blocks as they are done
    options = dataset.context.execution_options
    usual, options.preserve_order = options.preserve_order, True
    try:
        batches = [
            _columns(batch, features, label)
            for batch in dataset.iter_batches(batch_format="numpy", batch_size=None)
            if len(batch.get(label, ()))
        ]
    finally:
        options.preserve_order = usual
    if not batches:
        return np.empty((0, 0)), np.empty(0)
    X, y = (np.concatenate(parts) for parts in zip(*batches, strict=True))
    return X, y
