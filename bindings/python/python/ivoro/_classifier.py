"""The classifier as scikit-learn users expect it."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from ._arrays import KINDS, codes_of, foreign, is_layers, is_plain, layers_of
from ._ivoro import Model
from ._labels import alike, encoded, labels_of, names_of, text_of, texts_of

#: Settings of a model file and the parameters that stand for them, where the names differ.
_TRANSFORM = {"lambda": "exponent", "scale": "scale", "shift": "shift"}


class IVoroClassifier(ClassifierMixin, BaseEstimator):
    """A classifier that is taught new classes at any time and keeps no sample.

    Of each class it keeps a count and a few exact sums of features; the classifier is a Voronoi
    diagram of the class means. Settings that are None are chosen on the first classes, by holding
    out a fifth of their samples.

    Parameters
    ----------
    variant : str, default="iVoro-NW"
        What is switched on: ``iVoro[3][-[N][F][K][W|Q][D][R][AC|AI][L]]``.
    exponent, scale, shift : float, optional
        λ, w and η of the letter N.
    ridge : float, optional
        ε of W and Q, as a share of the mean variance.
    prior : float, optional
        κ of Q: for how many samples of a class the pooled covariance counts.
    layer_weights : pair of float, optional
        L: weights of the last layer and of the block before it.
    weight_decay : float, optional
        Weight decay of D's probe.
    beta : float, optional
        β of R: how firmly centres are held at the class means.
    probe_space : {"raw", "transformed"}, optional
        Which features D's probe sees under N.
    probe_views : {"sisters", "separate"}, optional
        Whether rotations share a probe.
    pairs : {"matched", "all"}, default="matched"
        Which views meet which centres under AC and AI.
    rule : {"tournament", "elimination"}, default="tournament"
        How D picks among phases.
    gamma : float, default=1.0
        γ of L, not 0.
    volume : float, default=0.4
        α of Q, what a class pays for its volume: 1 as for normal
        distributions, 0 nothing.
    optimiser : {"lbfgs", "adam"}, default="lbfgs"
        How probes are fitted.
    iterations : int, default=100
        Most iterations (L-BFGS) or epochs (Adam) of a probe.
    lift : int, default=10000
        Dimension of K's lifted space.
    scatter : {"pooled", "per-class"}, default="pooled"
        What W keeps: one matrix, or one for each class, so that classes can be forgotten.
    seed : int, default=1993
        Seed of everything random.
    threads : int, optional
        Number of threads; -1 is all cores. None takes RAYON_NUM_THREADS, else OMP_NUM_THREADS,
        else all cores. Results do not depend on it.

    Attributes
    ----------
    classes_ : ndarray
        The labels known, sorted.
    centroids_ : ndarray or list of ndarray
        The centre of each class, in the order of ``classes_``, after N and K; a list of arrays
        where rotations or layers have centres of their own.
    counts_ : ndarray
        Samples learned of each class.
    phases_ : list of int
        How many classes arrived together, phase by phase.
    settings_ : dict
        All settings in use.
    choices_ : list of dict
        How settings were chosen.
    calibrated_ : bool
        Whether probabilities and rejection were fitted on held-out samples. It takes two classes
        of five samples each; without, probabilities assume round Gaussian classes.
    n_features_in_ : int
        Dimension of the last layer.

    Notes
    -----
    X is ``(n, dim)``; or ``(n, views, dim)`` with 2 views (upright, mirrored), 4 (rotations) or 8
    (rotations, then those of the mirror image); or a list of two such arrays, the network's last
    layer first. The first call fixes the range of values: later ones of more than four times its
    largest may be refused. 32-bit floats in C order are read where they are, read-only arrays too. Don't
    write to an array while another thread learns from it.

    Examples
    --------
    >>> import numpy as np
    >>> from ivoro import IVoroClassifier
    >>> model = IVoroClassifier("iVoro")
    >>> model.partial_fit([[1.0, 5.1], [1.1, 5.0]], ["cat", "cat"])
    IVoroClassifier(variant='iVoro')
    >>> model.partial_fit([[5.0, 1.1], [5.1, 1.0], [1.0, 5.0]], ["dog", "dog", "cat"])
    IVoroClassifier(variant='iVoro')
    >>> model.predict([[4.9, 1.2], [1.2, 5.1]]).tolist()
    ['dog', 'cat']
    >>> model.forget("cat").classes_.tolist()
    ['dog']
    """

    def __init__(
        self,
        variant: str = "iVoro-NW",
        *,
        exponent: float | None = None,
        scale: float | None = None,
        shift: float | None = None,
        ridge: float | None = None,
        prior: float | None = None,
        layer_weights: tuple[float, float] | None = None,
        weight_decay: float | None = None,
        beta: float | None = None,
        probe_space: str | None = None,
        probe_views: str | None = None,
        pairs: str = "matched",
        rule: str = "tournament",
        gamma: float = 1.0,
        volume: float = 0.4,
        optimiser: str = "lbfgs",
        iterations: int = 100,
        lift: int = 10_000,
        scatter: str = "pooled",
        seed: int = 1993,
        threads: int | None = None,
    ) -> None:
        self.variant = variant
        self.exponent = exponent
        self.scale = scale
        self.shift = shift
        self.ridge = ridge
        self.prior = prior
        self.layer_weights = layer_weights
        self.weight_decay = weight_decay
        self.beta = beta
        self.probe_space = probe_space
        self.probe_views = probe_views
        self.pairs = pairs
        self.rule = rule
        self.gamma = gamma
        self.volume = volume
        self.optimiser = optimiser
        self.iterations = iterations
        self.lift = lift
        self.scatter = scatter
        self.seed = seed
        self.threads = threads

    # -- learning ---------------------------------------------------------------------------------

    def fit(self, X: Any, y: ArrayLike) -> IVoroClassifier:
        """Learn classes as one phase, and forget whatever was learned before.

        Parameters
        ----------
        X : array or list of arrays
            Features.
        y : array-like of shape (n,)
            Labels.

        Returns
        -------
        self
        """
        arrays, labels = self._samples(X, y, reset=True)
        model = Model(self.variant, self._settings())
        return self._teach(model, arrays, labels, np.array([]))

    def partial_fit(self, X: Any, y: ArrayLike, classes: Any = None) -> IVoroClassifier:
        """Learn more: classes never seen before, more samples of known ones, or both.

        The new classes of a call are one phase. On an error nothing has changed.

        Parameters
        ----------
        X : array or list of arrays
            Features.
        y : array-like of shape (n,)
            Labels.
        classes : ignored
            Other estimators want all classes announced here. This one doesn't.

        Returns
        -------
        self
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y)
        arrays, labels = self._samples(X, y, reset=False)
        return self._teach(self.model_, arrays, alike(labels, self.classes_), self.classes_)

    def forget(self, label: Any, *, drop_probes: bool = False) -> IVoroClassifier:
        """Forget a class: afterwards the classifier is the one that never saw it.

        Parameters
        ----------
        label : label
            One of ``classes_``.
        drop_probes : bool, default=False
            Under D and R the probe of a phase was trained on its classes together. True gives up
            the probes of that phase; else forgetting is refused there.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the class is not known, or can't be forgotten exactly.
        """
        check_is_fitted(self)
        self.model_.forget(text_of(label), drop_probes)
        if not self.model_.classes:
            del self.model_, self.classes_
        else:
            self._settle(self.classes_)
        return self

    def merge(
        self, other: IVoroClassifier, ancestor: IVoroClassifier | None = None
    ) -> IVoroClassifier:
        """Add what another classifier learned: the result knows what both know.

        Parameters
        ----------
        other : IVoroClassifier
            A classifier that started from the same model, or has the same settings and range.
        ancestor : IVoroClassifier, optional
            What both started from; what it had learned counts once.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If settings, layers or value ranges differ.
        """
        check_is_fitted(self)
        check_is_fitted(other)
        labels = alike(other.classes_, self.classes_)
        self.model_.merge(other.model_, None if ancestor is None else ancestor.model_)
        self._settle(np.concatenate([self.classes_, labels]))
        return self

    # -- asking -----------------------------------------------------------------------------------

    def predict(self, X: Any, *, groups: ArrayLike | None = None, rule: str = "sum") -> NDArray[Any]:
        """The nearest class of every query.

        Parameters
        ----------
        X : array or list of arrays
            Features.
        groups : array-like of shape (n,), optional
            Rows with equal entries show one object and are one query (a burst). There is then one
            answer a group, in the order of ``numpy.unique(groups)``.
        rule : {"sum", "vote"}, default="sum"
            Whether the distances of a group are added, or its rows vote.

        Returns
        -------
        ndarray
            Labels.
        """
        arrays = self._queries(X)
        codes = codes_of(groups, len(arrays[0]))
        nearest = self.model_.predict(arrays, self.threads, codes, rule)
        answers: NDArray[Any] = self.classes_[np.argsort(self._order)][nearest]
        return answers

    def decision_function(
        self, X: Any, *, groups: ArrayLike | None = None
    ) -> NDArray[np.floating[Any]]:
        """Negated distances to all classes; the largest is the answer.

        With two classes there is one number a query: how much nearer the second class is.

        Parameters
        ----------
        X : array or list of arrays
            Features.
        groups : array-like of shape (n,), optional
            Rows that are one query; see `predict`.

        Returns
        -------
        ndarray of shape (n,) or (n, classes)
        """
        distances = self._distances(X, groups)
        if len(self.classes_) == 2:
            return distances[:, 0] - distances[:, 1]
        return -distances

    def predict_proba(self, X: Any, *, groups: ArrayLike | None = None) -> NDArray[np.float64]:
        """Probabilities of all classes, in the order of ``classes_``.

        Parameters
        ----------
        X : array or list of arrays
            Features.
        groups : array-like of shape (n,), optional
            Rows that are one query; see `predict`.

        Returns
        -------
        ndarray of shape (n, classes)
        """
        arrays = self._queries(X)
        codes = codes_of(groups, len(arrays[0]))
        return self.model_.probabilities(arrays, self.threads, codes)[:, self._order]

    def kneighbors(
        self,
        X: Any,
        n_neighbors: int = 5,
        return_distance: bool = True,
        *,
        groups: ArrayLike | None = None,
    ) -> Any:
        """The nearest classes of every query, nearest first.

        Parameters
        ----------
        X : array or list of arrays
            Features.
        n_neighbors : int, default=5
            How many; all classes if there are fewer.
        return_distance : bool, default=True
            Whether to return the distances too.
        groups : array-like of shape (n,), optional
            Rows that are one query; see `predict`.

        Returns
        -------
        distances : ndarray of shape (n, k)
            Only if asked for.
        indices : ndarray of shape (n, k)
            Positions in ``classes_``.

        Examples
        --------
        >>> from ivoro import IVoroClassifier
        >>> model = IVoroClassifier("iVoro").fit([[0.0], [1.0], [5.0]], ["a", "b", "c"])
        >>> distances, indices = model.kneighbors([[2.0]], 2)
        >>> distances.tolist(), model.classes_[indices].tolist()
        ([[1.0, 4.0]], [['b', 'a']])
        """
        if n_neighbors < 1:
            raise ValueError(f"n_neighbors = {n_neighbors}: expected at least 1")
        distances = self._distances(X, groups)
        count = min(n_neighbors, distances.shape[1])
        nearest = np.argpartition(distances, count - 1, axis=1)[:, :count]
        # by distance, and by class where distances are equal
        nearest.sort(axis=1)
        chosen = np.take_along_axis(distances, nearest, axis=1)
        order = np.argsort(chosen, axis=1, kind="stable")
        indices = np.take_along_axis(nearest, order, axis=1)
        if return_distance:
            return np.take_along_axis(distances, indices, axis=1), indices
        return indices

    def uncertainty(self, X: Any, *, groups: ArrayLike | None = None) -> NDArray[np.float64]:
        """How much the views (and the rows of a group) disagree; 0 with a single one.

        Parameters
        ----------
        X : array or list of arrays
            Features.
        groups : array-like of shape (n,), optional
            Rows that are one query; see `predict`.

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._judge(X, groups)[2]

    def strangeness(self, X: Any, *, groups: ArrayLike | None = None) -> NDArray[np.float64]:
        """Distance to the nearest class, in units of what is usual in that class.

        Parameters
        ----------
        X : array or list of arrays
            Features.
        groups : array-like of shape (n,), optional
            Rows that are one query; see `predict`.

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._judge(X, groups)[1]

    def reject(
        self, X: Any, share: float = 0.05, *, groups: ArrayLike | None = None
    ) -> NDArray[np.bool_]:
        """Whether each query is of a class never learned.

        Parameters
        ----------
        X : array or list of arrays
            Features.
        share : float, default=0.05
            Share of known queries that may be rejected wrongly, as measured on held-out samples of
            the first phase.
        groups : array-like of shape (n,), optional
            Rows that are one query; see `predict`.

        Returns
        -------
        ndarray of bool

        Raises
        ------
        ValueError
            If the first phase was too small to fit a threshold.
        """
        return self.strangeness(X, groups=groups) > self.model_.threshold(share)

    # -- files ------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file of the program ``ivoro``. It appears whole or not at all.

        The file holds class names; numbers are written out as text.

        Parameters
        ----------
        path : path-like
            The file, by custom with the extension ``.ivoro``.

        Raises
        ------
        OSError
            If it can't be written, or another process is changing it.
        """
        check_is_fitted(self)
        self.model_.save(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, threads: int | None = None) -> IVoroClassifier:
        """Read a model file, written by `save` or by the program.

        Labels are integers where all class names are written so, else text.

        Parameters
        ----------
        path : path-like
            The file.
        threads : int, optional
            Number of threads of the classifier.

        Returns
        -------
        IVoroClassifier
            With the settings of the file as its parameters.

        Raises
        ------
        OSError
            If the file can't be read.
        ValueError
            If it is no model file, or is damaged.

        Examples
        --------
        >>> import os, tempfile
        >>> from ivoro import IVoroClassifier
        >>> path = os.path.join(tempfile.mkdtemp(), "demo.ivoro")
        >>> IVoroClassifier("iVoro").fit([[0.0], [4.0]], [7, 8]).save(path)
        >>> IVoroClassifier.load(path).predict([[3.5]]).tolist()
        [8]
        """
        model = Model.load(path)
        settings = json.loads(model.settings())
        transform = settings.pop("transform")
        settings.update({_TRANSFORM[name]: value for name, value in transform.items()})
        settings["layer_weights"] = tuple(settings["layer_weights"])
        loaded = cls(model.variant, threads=threads, **settings)
        loaded.model_ = model
        loaded.n_features_in_ = model.layers[0][1]
        loaded._settle(labels_of(model.classes))
        return loaded

    # -- attributes -------------------------------------------------------------------------------

    @property
    def centroids_(self) -> Any:
        """The centre of each class."""
        check_is_fitted(self)
        blocks = [block[self._order] for block in self.model_.centroids()]
        return blocks[0] if len(blocks) == 1 else blocks

    @property
    def counts_(self) -> NDArray[np.int64]:
        """Samples learned of each class."""
        check_is_fitted(self)
        return np.array(self.model_.counts, dtype=np.int64)[self._order]

    @property
    def phases_(self) -> list[int]:
        """How many classes arrived together, phase by phase."""
        check_is_fitted(self)
        return self.model_.phases

    @property
    def settings_(self) -> dict[str, Any]:
        """All settings in use."""
        check_is_fitted(self)
        settings: dict[str, Any] = json.loads(self.model_.settings())
        return settings

    @property
    def choices_(self) -> list[dict[str, Any]]:
        """How settings were chosen."""
        check_is_fitted(self)
        choices: list[dict[str, Any]] = json.loads(self.model_.choices())
        return choices

    @property
    def calibrated_(self) -> bool:
        """Whether probabilities and rejection were fitted on held-out samples."""
        check_is_fitted(self)
        return self.model_.calibrated

    def audit(self) -> list[dict[str, Any]]:
        """Every number that is kept, with its owner and its bytes.

        Returns
        -------
        list of dict
            With the keys ``owner``, ``what``, ``numbers`` and ``bytes``.
        """
        check_is_fitted(self)
        lines: list[dict[str, Any]] = json.loads(self.model_.audit())
        return lines

    # -- inside -----------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def _settings(self) -> dict[str, Any]:
        settings: dict[str, Any] = self.get_params(deep=False)
        del settings["variant"], settings["threads"]
        return settings

    def _samples(self, X: Any, y: Any, *, reset: bool) -> tuple[list[NDArray[Any]], NDArray[Any]]:
        """The layers and the labels of samples to learn from, checked."""
        if not reset and is_plain(X, y, self):
            arrays, labels = [X], y
        elif is_layers(X) or len(getattr(X, "shape", ())) == 3:
            arrays = layers_of(X, self, reset=reset)
            labels = column_or_1d(y, warn=True)
            check_consistent_length(*arrays, labels)
        else:
            options = {"dtype": KINDS, "ensure_all_finite": False, "reset": reset}
            array, labels = validate_data(self, foreign(X), y, **options)
            arrays = [array]
        # whole numbers and text are labels of classes; others must be looked at one by one
        if labels.dtype.kind not in "iuU":
            check_classification_targets(labels)
        return arrays, labels

    def _teach(
        self, model: Model, arrays: list[NDArray[Any]], y: NDArray[Any], known: NDArray[Any]
    ) -> IVoroClassifier:
        labels, codes = encoded(y)
        count = model.teach(arrays, codes, names_of(labels), self.threads)
        self.model_ = model
        if not len(known):
            self._settle(labels)
        elif count != len(self.classes_):
            # other threads may have taught classes meanwhile
            self._settle(np.concatenate([self.classes_, labels]))
        return self

    def _settle(self, labels: NDArray[Any]) -> None:
        """Sorts those of the labels that the model knows."""
        places = {name: at for at, name in enumerate(self.model_.classes)}
        known = np.array([name in places for name in texts_of(labels)], dtype=bool)
        self.classes_ = np.unique(labels[known])
        self._order = np.array([places[name] for name in texts_of(self.classes_)], dtype=np.intp)

    def _queries(self, X: Any) -> list[NDArray[Any]]:
        check_is_fitted(self)
        return layers_of(X, self)

    def _distances(self, X: Any, groups: ArrayLike | None) -> NDArray[np.float32]:
        arrays = self._queries(X)
        codes = codes_of(groups, len(arrays[0]))
        return self.model_.distances(arrays, self.threads, codes)[:, self._order]

    def _judge(
        self, X: Any, groups: ArrayLike | None
    ) -> tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.float64]]:
        arrays = self._queries(X)
        model: Model = self.model_
        return model.judge(arrays, self.threads, codes_of(groups, len(arrays[0])))
