"""Comparisons of methods, phase by phase."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ._arrays import layers_of
from ._ivoro import Comparison
from ._labels import encoded, text_of

#: One phase learned and tested: the fields of ``run.json``, and ``method``.
Phase = dict[str, Any]


class Run(Iterator[Phase]):
    """A comparison that advances by one phase whenever it is asked for the next one.

    Attributes
    ----------
    methods : list of str
        The methods, in the order in which they are run.
    """

    def __init__(self, comparison: Comparison, threads: int | None) -> None:
        self._comparison = comparison
        self._threads = threads
        self.methods = comparison.methods

    def __next__(self) -> Phase:
        text = self._comparison.step(self._threads)
        if text is None:
            raise StopIteration
        phase: Phase = json.loads(text)
        return phase

    def record(self) -> dict[str, Any]:
        """Run what is left, and return the record that the program writes to ``run.json``."""
        for _ in self:
            pass
        record: dict[str, Any] = json.loads(self._comparison.record())
        return record


def run(
    features: Any,
    protocol: str | None = None,
    variants: str | Iterable[str] = "paper",
    *,
    peers: str | Iterable[str] = (),
    order: str = "numpy:1993",
    holdout: float = 0.2,
    ranpac_dim: int | None = None,
    threads: int | None = None,
    **settings: Any,
) -> Run:
    """Compare methods on a stream of phases.

    Parameters
    ----------
    features : path-like or tuple
        A features file, or ``(X_train, y_train, X_test, y_test)``. Each X is an array or a list of
        layers, as for `IVoroClassifier`.
    protocol : str, optional
        Which classes come when: ``"50+5x10"`` or ``"4,3,3"``. Half of the classes first and the
        rest in five phases unless given.
    variants : str or iterable of str, default="paper"
        Names, or ``"paper"``, ``"all"`` or ``"none"``.
    peers : str or iterable of str
        Methods to compare with: names, or ``"all"``. Letters behind a name say what it sees:
        ``"ranpac-FL"`` averages mirror images and concatenates two layers.
    order : str, default="numpy:1993"
        The class order: ``"identity"``, a seed, or ``"numpy:SEED"``. Classes of arrays are sorted
        first.
    holdout : float, default=0.2
        Share of each class held out, where a file has no test part.
    ranpac_dim : int, optional
        Random features of the peers that lift. The published numbers unless given.
    threads : int, optional
        As in `IVoroClassifier`.
    **settings
        Settings of the variants, as in `IVoroClassifier`.

    Returns
    -------
    Run
        An iterator over phases; its method ``record`` gives the record of the whole comparison.

    Examples
    --------
    >>> import numpy as np
    >>> import ivoro
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["ape", "bee", "cat", "dog"], 10)
    >>> X = rng.normal(size=(40, 8)) + 4 * (y[:, None] == np.tile(np.unique(y), 2))
    >>> for phase in ivoro.run((X, y, X, y), "2,1,1", "iVoro", order="identity"):
    ...     print(phase["method"], phase["phase"], phase["classes"], phase["accuracy"])
    iVoro 0 2 100.0
    iVoro 1 3 100.0
    iVoro 2 4 100.0
    """
    if isinstance(features, (str, os.PathLike)):
        data: Any = features
    elif isinstance(features, (list, tuple)) and len(features) == 4:
        data = _arrays(*features)
    else:
        raise ValueError(
            "features: expected a path or (X_train, y_train, X_test, y_test), found "
            + type(features).__name__
        )
    comparison = Comparison(
        data,
        protocol,
        str(order),
        _names(variants),
        _names(peers),
        settings,
        holdout,
        ranpac_dim,
    )
    return Run(comparison, threads)


def _names(names: str | Iterable[str]) -> list[str]:
    return [name.strip() for name in (names.split(",") if isinstance(names, str) else names)]


def _arrays(X_train: Any, y_train: Any, X_test: Any, y_test: Any) -> Any:
    labels, codes = encoded(np.asarray(y_train))
    asked = np.asarray(y_test)
    places = np.searchsorted(labels, asked).clip(max=len(labels) - 1).astype(np.uint32)
    strange = labels[places] != asked
    if np.any(strange):
        raise ValueError(f"class {text_of(asked[strange][0])} has no training sample")
    names = [text_of(label) for label in labels]
    return (layers_of(X_train), codes), (layers_of(X_test), places), names
