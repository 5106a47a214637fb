"""Photos in a scikit-learn pipeline."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from ._network import Network
from ._photos import Photo


class PhotoFeatures(TransformerMixin, BaseEstimator):
    """The features of photos, as a step of a pipeline.

    Parameters
    ----------
    network : path-like or str, optional
        A name that ``ivoro networks`` lists, or a file. Without it EfficientNet-Lite0, which comes with
        this package.
    layer : str, optional
        A layer of the network; without it the last one.
    views : sequence of str, default=("0",)
        How each photo is turned before: degrees of rotation, with an m behind for the mirror image.
    threads : int, optional
        As everywhere in this package.

    Notes
    -----
    Nothing is learned: `fit` does nothing. The network is opened once for each process.

    Examples
    --------
    >>> import ivoro, numpy
    >>> from sklearn.pipeline import make_pipeline
    >>> greys = [numpy.full((40, 40), grey, dtype="uint8") for grey in (10, 30, 220, 240)]
    >>> pipeline = make_pipeline(ivoro.PhotoFeatures(), ivoro.IVoroClassifier("iVoro"))
    >>> pipeline.fit(greys, ["night", "night", "day", "day"]).predict(greys[:1]).tolist()
    ['night']
    """

    def __init__(
        self,
        network: str | os.PathLike[str] | None = None,
        *,
        layer: str | None = None,
        views: Sequence[str] = ("0",),
        threads: int | None = None,
    ) -> None:
        self.network = network
        self.layer = layer
        self.views = views
        self.threads = threads

    def fit(self, X: Any = None, y: Any = None) -> PhotoFeatures:
        """Do nothing.

        Parameters
        ----------
        X, y : ignored

        Returns
        -------
        self
        """
        return self

    def transform(self, X: Iterable[Photo]) -> NDArray[np.float32]:
        """Compute the features of photos.

        Parameters
        ----------
        X : iterable of photos
            Files, their contents (``bytes``), images of Pillow, or arrays of bytes.

        Returns
        -------
        array
            ``(n, dim)`` for one view, else ``(n, views, dim)``, which `IVoroClassifier` takes.

        Raises
        ------
        OSError, ValueError
            If a photo can't be read.
        """
        opened = self._opened()
        return opened.features(X, layer=self.layer, views=self.views, threads=self.threads)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the features: the layer and a number.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        ndarray of str
        """
        layers = self._opened().layers
        layer = next(iter(layers)) if self.layer is None else self.layer
        return np.array([f"{layer}_{at}" for at in range(layers[layer])], dtype=object)

    def _opened(self) -> Network:
        opened: tuple[Any, Network] | None = self.__dict__.get("_network")
        if opened is None or opened[0] != self.network:
            opened = (self.network, Network(self.network))
            self._network = opened
        return opened[1]

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        # it is opened again where it is needed
        state.pop("_network", None)
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.no_validation = True
        tags.input_tags.string = True
        return tags
