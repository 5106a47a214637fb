"""Feature files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _ivoro

Samples = tuple[Any, "NDArray[Any] | None"]


@dataclass(frozen=True)
class FeatureSet:
    """What a features file holds.

    Attributes
    ----------
    train, test, all : (X, y) or None
        The training part, the test part, or the samples of a file that is not divided. X is an
        array ``(n, dim)``, or ``(n, views, dim)``, or a list of those, one a layer. y holds the
        class names; it is None where the file has no labels.
    classes : list of str
        Class names in the order of the file.
    layers : list of str
        Layer names, the network's last layer first.
    views : list of str
        The views: degrees of rotation, with an m behind for the mirror image.
    """

    train: Samples | None
    test: Samples | None
    all: Samples | None
    classes: list[str]
    layers: list[str]
    views: list[str]

    def __repr__(self) -> str:
        parts = [
            f"{name}: {len(part[0][0] if isinstance(part[0], list) else part[0])} rows"
            for name, part in (("train", self.train), ("test", self.test), ("all", self.all))
            if part is not None
        ]
        return (
            f"<FeatureSet: {', '.join(parts)}, {len(self.classes)} classes, layers "
            f"{', '.join(self.layers)}, {len(self.views)} views>"
        )


#: Files that this package leaves to others, by their endings.
_TABLES = (".parquet", ".arrow", ".feather", ".ipc")


def read_features(path: str | os.PathLike[str]) -> FeatureSet:
    """Read a features file: ``.features``, ``.safetensors``, ``.npz`` or ``.npy``.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    FeatureSet
        Its samples as arrays.

    Raises
    ------
    OSError, ValueError
        If it can't be read. Tables in Parquet or Arrow are for pandas and pyarrow.

    Examples
    --------
    >>> import numpy, os, tempfile, ivoro
    >>> path = os.path.join(tempfile.mkdtemp(), "monday.npz")
    >>> numpy.savez(path, X=numpy.eye(3, dtype="float32"), y=["cat", "dog", "cat"])
    >>> X, y = ivoro.read_features(path).all
    >>> X.shape, y.tolist()
    ((3, 3), ['cat', 'dog', 'cat'])
    """
    if os.fspath(path).lower().endswith(_TABLES):
        raise ValueError(
            f"{path}: this package reads no Parquet and no Arrow; take the arrays of "
            "pandas.read_parquet or pyarrow"
        )
    found = _ivoro.read_features(path)
    names = np.array(found["classes"])

    def samples(name: str) -> Samples | None:
        if found[name] is None:
            return None
        arrays, codes = found[name]
        layers = [layer[:, 0] if layer.shape[1] == 1 else layer for layer in arrays]
        return (layers if len(layers) > 1 else layers[0], None if codes is None else names[codes])

    return FeatureSet(
        samples("train"),
        samples("test"),
        samples("all"),
        found["classes"],
        found["layers"],
        found["views"],
    )
