"""Pictures with matplotlib: accuracy curves, and the cells of a classifier in the plane."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from ._classifier import IVoroClassifier
from ._labels import text_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["accuracy", "cells", "polygons"]

#: xmin, xmax, ymin, ymax
Box = tuple[float, float, float, float]


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    from matplotlib import pyplot

    current: Axes = pyplot.gca()
    return current


def accuracy(results: Any, ax: Axes | None = None) -> Axes:
    """Draw the accuracy after each phase, one curve a method.

    Parameters
    ----------
    results : dict or iterable of dict
        A record (as ``run.json`` has it, or from `Run.record`), or the phases of a `Run`.
    ax : matplotlib Axes, optional
        Where to draw; the current axes unless given.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from ivoro import plot
    >>> phases = [{"method": "iVoro", "classes": 2, "accuracy": 90.0},
    ...           {"method": "iVoro", "classes": 4, "accuracy": 80.0}]
    >>> line, = plot.accuracy(phases).get_lines()
    >>> line.get_label(), line.get_xydata().tolist()
    ('iVoro', [[2.0, 90.0], [4.0, 80.0]])
    """
    ax = _axes(ax)
    curves = _curves(results)
    for at, (name, phases) in enumerate(curves.items()):
        classes = [phase["classes"] for phase in phases]
        # colours come again from the eleventh on, with another line
        style = ("-", "--", ":", "-.")[at // 10 % 4]
        accuracies = [phase["accuracy"] for phase in phases]
        ax.plot(classes, accuracies, style, color=f"C{at % 10}", marker="o", label=name)
    ax.set_xlabel("classes")
    ax.set_ylabel("accuracy (%)")
    _legend(ax, len(curves))
    return ax


def _legend(ax: Axes, entries: int) -> None:
    """A legend; one of many entries stands beside the picture."""
    if entries > 8:
        ax.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), ncols=1 + entries // 24)
    else:
        ax.legend()


def _curves(results: Any) -> dict[str, list[dict[str, Any]]]:
    if isinstance(results, dict):
        return {method["name"]: method["phases"] for method in results["methods"]}
    curves: dict[str, list[dict[str, Any]]] = {}
    for phase in results:
        curves.setdefault(phase["method"], []).append(phase)
    return curves


def polygons(centres: ArrayLike, weights: ArrayLike, box: Box) -> list[NDArray[np.float64]]:
    """The cells of a power diagram in the plane, cut off at a box.

    The cell of centre k is where ``|z - c_k|**2 - weights[k]`` is smallest. It is an intersection
    of half-planes, and this is what is computed: no grid of points is involved.

    Parameters
    ----------
    centres : array-like of shape (k, 2)
        Centres.
    weights : array-like of shape (k,)
        Weights; equal ones give a Voronoi diagram.
    box : (xmin, xmax, ymin, ymax)
        Where to cut off.

    Returns
    -------
    list of ndarray of shape (corners, 2)
        Corners of each cell in order; none for a cell that is empty or outside.

    Examples
    --------
    >>> from ivoro.plot import polygons
    >>> left, right = polygons([[0, 0], [2, 0]], [0, 0], (-1, 3, -1, 1))
    >>> left.tolist()
    [[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]]
    """
    places = np.asarray(centres, dtype=np.float64)
    powers = (places**2).sum(axis=1) - np.asarray(weights, dtype=np.float64)
    xmin, xmax, ymin, ymax = box
    corners = np.array([[xmin, ymin], [xmax, ymin], [xmax, ymax], [xmin, ymax]], dtype=np.float64)
    cells = []
    for own in range(len(places)):
        cell = corners
        for other in range(len(places)):
            if other != own and len(cell):
                normal = 2.0 * (places[other] - places[own])
                cell = _cut(cell, normal, powers[other] - powers[own])
        cells.append(cell)
    return cells


def _cut(cell: NDArray[np.float64], normal: Any, limit: float) -> NDArray[np.float64]:
    """The part of a convex cell where ``normal @ z <= limit``."""
    over = cell @ normal - limit
    kept: list[Any] = []
    for at in range(len(cell)):
        before = at - 1
        if (over[before] <= 0) != (over[at] <= 0):
            part = over[before] / (over[before] - over[at])
            kept.append(cell[before] + part * (cell[at] - cell[before]))
        if over[at] <= 0:
            kept.append(cell[at])
    return np.array(kept).reshape(-1, 2)


def cells(
    model: IVoroClassifier,
    X: ArrayLike | None = None,
    y: Iterable[Any] | None = None,
    *,
    box: Box | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the exact cells of a classifier of features in the plane.

    Parameters
    ----------
    model : IVoroClassifier
        A fitted classifier of two features. Only the letters W and R leave cells with straight
        edges; for others, scikit-learn's ``DecisionBoundaryDisplay`` paints a grid.
    X : array-like of shape (n, 2), optional
        Samples to draw.
    y : iterable, optional
        Their labels, drawn in the colour of their class.
    box : (xmin, xmax, ymin, ymax), optional
        What to show; around the samples and centres unless given.
    ax : matplotlib Axes, optional
        Where to draw; the current axes unless given.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from ivoro import IVoroClassifier, plot
    >>> model = IVoroClassifier("iVoro").fit([[0.0, 0.0], [2.0, 0.0]], ["a", "b"])
    >>> left, right = plot.cells(model, box=(-1, 3, -1, 1)).patches
    >>> left.get_label(), left.get_path().vertices.max(axis=0).tolist()
    ('a', [1.0, 1.0])
    """
    check_is_fitted(model)
    variant = model.variant_
    letters = variant.partition("-")[2]
    if not set(letters) <= set("WR") or model.n_features_in_ != 2 or "3" in variant:
        raise ValueError(
            f"{variant} with {model.n_features_in_} features: exact cells need two features "
            "and no letter besides W and R"
        )
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Polygon

    ax = _axes(ax)
    samples = np.empty((0, 2)) if X is None else np.asarray(X, dtype=np.float64)
    box = box or _around(np.vstack([samples, model.centroids_]))
    centres, weights = model.model_.diagram()
    by_arrival = dict(zip(model.model_.classes, polygons(centres, weights, box), strict=True))
    colours = dict(zip(map(text_of, model.classes_), _colours(len(model.classes_)), strict=True))
    for name, colour in colours.items():
        face = to_rgba(colour, 0.25)
        ax.add_patch(Polygon(by_arrival[name], facecolor=face, edgecolor="0.3", label=name))
    if len(samples):
        shown = "k" if y is None else [colours.get(text_of(label), "k") for label in y]
        ax.scatter(samples[:, 0], samples[:, 1], c=shown, s=9)
    means = model.centroids_
    ax.scatter(means[:, 0], means[:, 1], c="k", marker="+")
    ax.set_xlim(box[0], box[1])
    ax.set_ylim(box[2], box[3])
    ax.set_xlabel("feature 0")
    ax.set_ylabel("feature 1")
    _legend(ax, len(colours))
    return ax


def _colours(count: int) -> list[Any]:
    """One colour for each class."""
    if count <= 10:
        return [f"C{at}" for at in range(count)]
    from matplotlib import colormaps

    colours: list[Any] = list(colormaps["turbo"](np.linspace(0.0, 1.0, count)))
    return colours


def _around(points: NDArray[np.float64]) -> Box:
    low, high = points.min(axis=0), points.max(axis=0)
    margin = 0.1 * np.maximum(high - low, 1e-9)
    (left, bottom), (right, top) = low - margin, high + margin
    return float(left), float(right), float(bottom), float(top)
