"""Networks: photos in, features out."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _ivoro
from ._photos import Photo, listed


class Network:
    """A frozen network that turns photos into features.

    Parameters
    ----------
    network : path-like or str, optional
        A name that ``ivoro networks`` lists, or a file. Without it EfficientNet-Lite0, which comes
        with this package: 224 × 224 pixels, trained on ImageNet.

    Attributes
    ----------
    name, hash : str
        What the network is called, and the BLAKE3 hash of its file.
    layers : dict of str to int
        The layers with their sizes, the last one first.

    Examples
    --------
    >>> import ivoro, numpy
    >>> network = ivoro.Network()
    >>> photo = numpy.full((300, 400, 3), 128, dtype="uint8")
    >>> network.features([photo]).shape
    (1, 1280)
    """

    def __init__(self, network: str | os.PathLike[str] | None = None) -> None:
        self._network = _ivoro.Network(network)

    @classmethod
    def _of(cls, network: _ivoro.Network) -> Network:
        """One that is open."""
        opened = cls.__new__(cls)
        opened._network = network
        return opened

    @property
    def name(self) -> str:
        return self._network.name

    @property
    def hash(self) -> str:
        return self._network.hash

    @property
    def layers(self) -> dict[str, int]:
        return dict(self._network.layers)

    @property
    def description(self) -> dict[str, Any]:
        """Size, fit, normalisation and all else that decides the features."""
        described: dict[str, Any] = json.loads(self._network.description())
        return described

    def features(
        self,
        images: Iterable[Photo],
        *,
        layer: str | None = None,
        views: Sequence[str] = ("0",),
        threads: int | None = None,
    ) -> NDArray[np.float32]:
        """Compute the features of images.

        Parameters
        ----------
        images : iterable of photos
            Files, their contents (``bytes``), images of Pillow, and arrays of bytes ``(rows, columns)`` or
            ``(rows, columns, channels)``.
        layer : str, optional
            One of `layers`; without it the last one.
        views : sequence of str
            How each image is turned before: degrees of rotation, with an m behind for the mirror
            image, as in ``("0", "0m")``.
        threads : int, optional
            As everywhere in this package.

        Returns
        -------
        array
            ``(n, dim)`` for one view, else ``(n, views, dim)``: what `IVoroClassifier` takes.
        """
        if isinstance(images, (str, os.PathLike)):
            raise TypeError("images is a list of photos, not one file")
        name = next(iter(self.layers)) if layer is None else layer
        found = self._network.features(listed(images), name, list(views), threads)
        return found[:, 0] if len(views) == 1 else found

    def __repr__(self) -> str:
        return f"Network({self.name!r})"
