"""The classifier as scikit-learn users expect it."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

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

from ._arrays import KINDS, codes_of, foreign, is_layers, is_plain, layers_of, repeated
from ._ivoro import Model
from ._labels import alike, encoded, joined, labels_as, names_of, texts_of

T = TypeVar("T")

#: Settings of a model file and the parameters that stand for them, where the names differ.
_TRANSFORM = {"lambda": "exponent", "scale": "scale", "shift": "shift"}


class _Known(NamedTuple):
    """A model and the classes that it knew at some time."""

    model: Model
    #: Counted by the model.
    version: int
    #: The labels, sorted.
    classes: NDArray[Any]
    #: Where each of them is among those in order of arrival.
    order: NDArray[np.intp]
    #: The labels in order of arrival.
    arrived: NDArray[Any]


class IVoroClassifier(ClassifierMixin, BaseEstimator):
    """A classifier that is taught new classes at any time and keeps no sample.

    Of each class it keeps a count and a few exact sums of features; the classifier is a Voronoi
    diagram of the class means. Settings that are None are chosen on the first classes, by asking
    each of their samples as if it had not been learned.

    Parameters
    ----------
    variant : str, optional
        What is switched on: ``iVoro[3][-[N][F][K][W|Q][D][R][AC|AI][L]]``. None takes the variant
        that suits the first classes best within ``budget``; see ``variant_`` and ``choices_``.
    exponent, scale, shift : float, optional
        λ, w and η of the letter N.
    lengths : {"equal", "free"}, optional
        N with W or Q: whether all points are brought to one length again after the power.
    ridge : float, optional
        ε of W and Q, as a share of the mean variance.
    prior : float, optional
        κ of Q: for how many samples of a class the pooled covariance counts.
    rank : int or "full", optional
        Q: directions in which a class has a variance of its own, or a whole matrix.
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
    volume : float, default=0.4
        α of Q, what a class pays for its volume: 1 as for normal
        distributions, 0 nothing.
    pairs : {"matched", "all"}, default="matched"
        Which views meet which centres under AC and AI.
    rule : {"tournament", "elimination"}, default="tournament"
        How D picks among phases.
    gamma : float, default=1.0
        γ of L, not 0.
    optimiser : {"lbfgs", "adam"}, default="lbfgs"
        How probes are fitted.
    iterations : int, default=100
        Most iterations (L-BFGS) or epochs (Adam) of a probe.
    lift : int, default=10000
        Dimension of K's lifted space.
    ridge_per : {"mean", "feature", "auto"}, default="auto"
        What the ridge of W is a share of: the mean variance, each feature's own, or the latter
        where features are of mixed scale.
    scatter : {"pooled", "per-class", "compact"}, default="pooled"
        What W keeps: one matrix, or one for each class, so that classes can be forgotten without
        their samples or receipts, or few directions of each class (W and Q): it can be forgotten
        too, and gets no more samples.
    scatter_rank : int, default=32
        How many directions of each class a compact scatter keeps.
    seed : int, default=1993
        Seed of everything random.
    budget : float, default=200
        KB (1,024 bytes) that a class may add to the model where the variant is chosen.
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
    variant_ : str
        The variant in use.
    settings_ : dict
        All settings in use.
    choices_ : list of dict
        How settings were chosen.
    calibrated_ : bool
        Whether probabilities and rejection were measured on samples that were not learned yet. It
        takes a class of two samples; without, they follow a rule of thumb.
    journal_ : dict
        When what was done to the classifier.
    n_features_in_ : int
        Dimension of the last layer.

    Notes
    -----
    Letters: **N** features are normalised and raised to a power; **F** an image and its mirror image are
    averaged; **K** a random lift comes before W; **W** one metric for all classes; **Q** one for each; **D**
    probes draw borders within a phase; **R** centres move; **AC** views vote, **AI** their distances are
    added; **L** two layers; **3** the third block alone. A variant without F and A looks at the first view.

    X is ``(n, dim)``; or ``(n, views, dim)`` with 2 views (upright, mirrored), 4 (rotations) or 8
    (rotations, then those of the mirror image); or a list of two such arrays, the network's last
    layer first. Sums grow with what is learned, to four billion times the values of the first call. ``(n, dim)`` arrays of 32-bit floats in C order are read where they are,
    read-only ones too; views are taken apart and copied. Don't write to an array while another
    thread learns from it. Several threads may teach and ask one classifier.

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
        variant: str | None = None,
        *,
        exponent: float | None = None,
        scale: float | None = None,
        shift: float | None = None,
        lengths: str | None = None,
        ridge: float | None = None,
        prior: float | None = None,
        rank: int | str | None = None,
        layer_weights: tuple[float, float] | None = None,
        weight_decay: float | None = None,
        beta: float | None = None,
        probe_space: str | None = None,
        probe_views: str | None = None,
        volume: float = 0.4,
        pairs: str = "matched",
        rule: str = "tournament",
        gamma: float = 1.0,
        optimiser: str = "lbfgs",
        iterations: int = 100,
        lift: int = 10_000,
        ridge_per: str = "auto",
        scatter: str = "pooled",
        scatter_rank: int = 32,
        seed: int = 1993,
        budget: float = 200.0,
        threads: int | None = None,
    ) -> None:
        self.variant = variant
        self.exponent = exponent
        self.scale = scale
        self.shift = shift
        self.lengths = lengths
        self.ridge = ridge
        self.prior = prior
        self.rank = rank
        self.layer_weights = layer_weights
        self.weight_decay = weight_decay
        self.beta = beta
        self.probe_space = probe_space
        self.probe_views = probe_views
        self.volume = volume
        self.pairs = pairs
        self.rule = rule
        self.gamma = gamma
        self.optimiser = optimiser
        self.iterations = iterations
        self.lift = lift
        self.ridge_per = ridge_per
        self.scatter = scatter
        self.scatter_rank = scatter_rank
        self.seed = seed
        self.budget = budget
        self.threads = threads

    # -- learning ---------------------------------------------------------------------------------

    def fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> IVoroClassifier:
        """Learn classes as one phase, and forget whatever was learned before.

        Parameters
        ----------
        X : array or list of arrays
            Features.
        y : array-like of shape (n,)
            Labels.
        sample_weight : array-like of shape (n,), optional
            How often each sample counts: whole numbers, 0 for not at all. Others are refused, since
            sums are exact.

        Returns
        -------
        self

        Examples
        --------
        >>> from ivoro import IVoroClassifier
        >>> model = IVoroClassifier("iVoro").fit([[0.0], [1.0], [5.0]], ["a", "a", "b"])
        >>> model.classes_.tolist(), model.centroids_.tolist()
        (['a', 'b'], [[0.5], [5.0]])
        """
        return self._fit(X, y, None, sample_weight)

    def _fit(
        self,
        X: Any,
        y: ArrayLike,
        receipt: str | os.PathLike[str] | None,
        sample_weight: ArrayLike | None,
    ) -> IVoroClassifier:
        arrays, labels = repeated(*self._samples(X, y, reset=True), sample_weight)
        model = Model(self.variant, self._settings(), self.budget)
        with self._changes:
            self._teach(model, labels[:0], arrays, labels, receipt)
            self._begun = self._parameters()
        return self

    def partial_fit(
        self,
        X: Any,
        y: ArrayLike,
        classes: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        receipt: str | os.PathLike[str] | None = None,
    ) -> IVoroClassifier:
        """Learn more: classes never seen before, more samples of known ones, or both.

        The new classes of a call are one phase. On an error nothing has changed. The first call
        fixes all parameters but ``threads``.

        Parameters
        ----------
        X : array or list of arrays
            Features.
        y : array-like of shape (n,)
            Labels.
        classes : ignored
            Other estimators want all classes announced here. This one doesn't.
        sample_weight : array-like of shape (n,), optional
            How often each sample counts: whole numbers, as for `fit`.
        receipt : path-like, optional
            A new file for the receipt: the exact sums that these samples add. With it `unlearn` and
            `forget` take them back on any machine, without the samples. It reveals the features of
            few samples and is kept nowhere else.

        Returns
        -------
        self

        Examples
        --------
        >>> from ivoro import IVoroClassifier
        >>> model = IVoroClassifier("iVoro").fit([[0.0], [5.0]], ["a", "b"])
        >>> model.partial_fit([[9.0], [1.0]], ["c", "a"]).centroids_.tolist()
        [[0.5], [5.0], [9.0]]
        """
        with self._changes:
            if not self.__sklearn_is_fitted__():
                return self._fit(X, y, receipt, sample_weight)
            self._check_parameters()
            arrays, labels = repeated(*self._samples(X, y, reset=False), sample_weight)
            known = self.classes_
            self._teach(self.model_, known, arrays, alike(labels, known), receipt)
        return self

    def calibrate(self, X: Any, y: ArrayLike) -> IVoroClassifier:
        """Calibrate on samples that were not learned: probabilities, and what is rejected.

        Learning calibrates by itself, on samples that it asks before it counts them in. Samples of
        the kind that will be asked say it better. Samples that were learned say it too well.

        Parameters
        ----------
        X : array or list of arrays
            Features of classes that are known.
        y : array-like of shape (n,)
            Labels.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a label is not known.

        Examples
        --------
        >>> import numpy as np
        >>> from ivoro import IVoroClassifier
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> X[100:] += 9.0
        >>> y = np.repeat(["a", "b"], 100)
        >>> model = IVoroClassifier("iVoro").fit(X[::2], y[::2]).calibrate(X[1::2], y[1::2])
        >>> bool(model.reject(X[1::2], share=0.1).mean() <= 0.15)
        True
        """
        check_is_fitted(self)
        with self._changes:
            arrays, labels = self._samples(X, y, reset=False)
            names, codes = encoded(alike(labels, self.classes_))
            self.model_.calibrate(arrays, codes, names_of(names), self.threads)
        return self

    def unlearn(
        self,
        X: Any = None,
        y: ArrayLike | None = None,
        *,
        receipt: str | os.PathLike[str] | None = None,
        drop_probes: bool = False,
        inexact: bool = False,
    ) -> IVoroClassifier:
        """Take samples back: afterwards the classifier is, bit for bit, the one that never saw them.

        They are the very samples that were learned, under the labels they were learned with, or a
        receipt of them. A class without any sample left is gone. More than was given is refused, and
        nothing changes. No list of samples is kept: other samples than were given are found out only
        where the sums that would remain are impossible.

        Parameters
        ----------
        X : array or list of arrays, optional
            Features.
        y : array-like of shape (n,), optional
            Labels.
        receipt : path-like, optional
            The file that `partial_fit` wrote, instead of X and y.
        drop_probes : bool, default=False
            Under D and R the probe of a phase was trained on its samples together. True gives up
            the probes of those phases; else that is refused.
        inexact : bool, default=False
            Take features that N or K may transform to other last digits than they did when they
            were learned, on another machine.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a class is not known, if more would be taken than was given, or if taking back can't
            be exact.

        Examples
        --------
        >>> from ivoro import IVoroClassifier
        >>> model = IVoroClassifier("iVoro-W").fit([[0.0], [1.0], [5.0]], ["a", "a", "b"])
        >>> model.partial_fit([[3.0], [9.0]], ["a", "c"]).unlearn([[3.0], [9.0]], ["a", "c"])
        IVoroClassifier(variant='iVoro-W')
        >>> model.classes_.tolist(), model.counts_.tolist()
        (['a', 'b'], [2, 1])
        """
        check_is_fitted(self)
        with self._changes:
            if receipt is not None:
                if X is not None or y is not None:
                    raise ValueError("receipt: expected a receipt or samples, found both")
                self.model_.retract_receipt(receipt, drop_probes)
            else:
                if X is None or y is None:
                    raise ValueError("X, y: expected samples or a receipt, found neither")
                arrays, labels = self._samples(X, y, reset=False)
                names, codes = encoded(alike(labels, self.classes_))
                self.model_.retract(
                    arrays, codes, names_of(names), drop_probes, inexact, self.threads
                )
            self._drop_emptied_classes()
        return self

    def rename(self, label: Any, new: Any) -> IVoroClassifier:
        """Give a class another name. Nothing else changes.

        Parameters
        ----------
        label : label
            One of ``classes_``.
        new : label
            A label of the same type that is not one of them.

        Returns
        -------
        self

        Examples
        --------
        >>> from ivoro import IVoroClassifier
        >>> model = IVoroClassifier("iVoro").fit([[0.0], [1.0]], ["a", "b"])
        >>> model.rename("a", "c").predict([[0.2]]).tolist()
        ['c']
        """
        check_is_fitted(self)
        with self._changes:
            # one by one: together NumPy would make text of bytes
            old, other = (
                alike(np.asarray([it]), self.classes_, "label") for it in (label, new)
            )
            self.model_.rename(*texts_of(old), *texts_of(other))
            self._set_classes(self.model_, joined(self.classes_, other))
        return self

    def forget(
        self,
        label: Any,
        *,
        drop_probes: bool = False,
        receipts: Sequence[str | os.PathLike[str]] = (),
    ) -> IVoroClassifier:
        """Forget a class: afterwards the classifier keeps what it would have kept without it.

        Settings that were chosen on the first classes stay as they are, and so do the variant, the
        origin and unit of features and the calibration of other classes: where the class was among
        the first, a classifier that never saw it might have chosen others.

        Parameters
        ----------
        label : label
            One of ``classes_``.
        drop_probes : bool, default=False
            Under D and R the probe of a phase was trained on its classes together. True gives up
            the probes of that phase; else forgetting is refused there.
        receipts : sequence of path-like, optional
            The files that `partial_fit` wrote for all samples of the class. They are needed where W
            keeps one scatter for all classes, which can't lose a class otherwise.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the class is not known, or can't be forgotten exactly.

        Examples
        --------
        >>> from ivoro import IVoroClassifier
        >>> model = IVoroClassifier("iVoro").fit([[0.0], [1.0], [5.0]], ["a", "b", "c"])
        >>> model.forget("b").classes_.tolist()
        ['a', 'c']
        """
        check_is_fitted(self)
        with self._changes:
            [name] = texts_of(alike(np.asarray([label]), self.classes_, "label"))
            self.model_.forget(name, drop_probes, list(receipts))
            self._drop_emptied_classes()
        return self

    def seal(
        self, labels: Any = None, *, rank: int | None = None, bits: int | None = None
    ) -> IVoroClassifier:
        """Keep few numbers per class of Q, for devices.

        A sealed class can be asked, forgotten, and merged with other classes of models that started
        from this one. No sample can be added to it any more. New classes can be learned.

        Parameters
        ----------
        labels : array-like, optional
            The classes to seal, of ``classes_``; all by default.
        rank : int, optional
            Directions per class; by default as many as the classifier asks with.
        bits : {8, 16}, optional
            Bits of each number of a direction; by default 8.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the variant is not one with Q, or a class is not known or is sealed already.

        Examples
        --------
        >>> from ivoro import IVoroClassifier
        >>> model = IVoroClassifier("iVoro-Q").fit([[0.0, 1.0], [1.0, 1.0], [5.0, 4.0]], ["a", "a", "b"])
        >>> model.seal().predict([[4.0, 4.0]]).tolist()
        ['b']
        """
        check_is_fitted(self)
        with self._changes:
            names = None
            if labels is not None:
                names = list(texts_of(alike(np.asarray(labels), self.classes_, "labels")))
            self.model_.seal(names, rank, bits)
        return self

    def merge(
        self, other: IVoroClassifier, ancestor: IVoroClassifier | None = None
    ) -> IVoroClassifier:
        """Add what another classifier learned: the result knows what both know.

        Parameters
        ----------
        other : IVoroClassifier
            A classifier of the same variant and layers. Settings that decide what is kept of a
            sample (of N and K, and ``scatter``) have to be the same; of the others this one's stay.
        ancestor : IVoroClassifier, optional
            What both started from; what it had learned counts once.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If the variant, layers or one of these settings differ, or the first samples chose
            another origin or unit. The message names what differs.

        Examples
        --------
        >>> import copy
        >>> from ivoro import IVoroClassifier
        >>> start = IVoroClassifier("iVoro").fit([[0.0], [1.0]], ["a", "b"])
        >>> here, there = (copy.deepcopy(start) for _ in range(2))
        >>> _ = here.partial_fit([[2.0]], ["c"]), there.partial_fit([[3.0], [1.0]], ["d", "a"])
        >>> merged = here.merge(there, ancestor=start)
        >>> merged.classes_.tolist(), merged.counts_.tolist()
        (['a', 'b', 'c', 'd'], [2, 1, 1, 1])
        """
        check_is_fitted(self)
        added, labels = _copy_of(other, "other")
        start = None if ancestor is None else _copy_of(ancestor, "ancestor")[0]
        with self._changes:
            labels = joined(self.classes_, alike(labels, self.classes_, "other"))
            self.model_.merge(added, start)
            self._set_classes(self.model_, labels)
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

        Examples
        --------
        >>> from ivoro import IVoroClassifier
        >>> model = IVoroClassifier("iVoro").fit([[0.0], [1.0], [5.0]], ["a", "b", "c"])
        >>> model.predict([[0.2], [4.0]]).tolist()
        ['a', 'c']
        >>> model.predict([[0.2], [4.0], [4.5]], groups=[7, 7, 7], rule="vote").tolist()
        ['c']
        """
        arrays = self._queries(X)
        codes = codes_of(groups, len(arrays[0]))
        nearest, known = self._ask(lambda it: it.predict(arrays, self.threads, codes, rule))
        answers: NDArray[Any] = known.arrived[nearest]
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

        Examples
        --------
        >>> from ivoro import IVoroClassifier
        >>> model = IVoroClassifier("iVoro").fit([[0.0], [1.0], [5.0]], ["a", "b", "c"])
        >>> model.decision_function([[2.0]]).tolist()
        [[-4.0, -1.0, -9.0]]
        """
        distances, known = self._distances(X, groups)
        distances = distances[:, known.order]
        if distances.shape[1] == 2:
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

        Examples
        --------
        >>> from ivoro import IVoroClassifier
        >>> model = IVoroClassifier("iVoro").fit([[0.0], [1.0], [5.0], [6.0]], ["a", "a", "b", "b"])
        >>> model.predict_proba([[3.0]]).tolist()
        [[0.5, 0.5]]
        """
        arrays = self._queries(X)
        codes = codes_of(groups, len(arrays[0]))
        found, known = self._ask(lambda it: it.probabilities(arrays, self.threads, codes))
        return found[:, known.order]

    def predict_log_proba(
        self, X: Any, *, groups: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Logarithms of the probabilities of all classes, in the order of ``classes_``.

        Parameters
        ----------
        X : array or list of arrays
            Features.
        groups : array-like of shape (n,), optional
            Rows that are one query; see `predict`.

        Returns
        -------
        ndarray of shape (n, classes)

        Examples
        --------
        >>> from ivoro import IVoroClassifier
        >>> model = IVoroClassifier("iVoro").fit([[0.0], [1.0], [5.0], [6.0]], ["a", "a", "b", "b"])
        >>> model.predict_log_proba([[3.0]]).round(3).tolist()
        [[-0.693, -0.693]]
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X, groups=groups))

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
        distances, known = self._distances(X, groups)
        count = min(n_neighbors, distances.shape[1])
        nearest = np.argpartition(distances, count - 1, axis=1)[:, :count]
        # by distance, and as `predict` does by arrival where distances are equal
        nearest.sort(axis=1)
        chosen = np.take_along_axis(distances, nearest, axis=1)
        order = np.argsort(chosen, axis=1, kind="stable")
        nearest = np.take_along_axis(nearest, order, axis=1)
        indices = np.argsort(known.order)[nearest]
        if return_distance:
            return np.take_along_axis(distances, nearest, axis=1), indices
        return indices

    def uncertainty(self, X: Any, *, groups: ArrayLike | None = None) -> NDArray[np.float64]:
        """How much the views (and the rows of a group) disagree.

        It is 0 with a single one, and without groups where W and AI make one vector of all views.

        Parameters
        ----------
        X : array or list of arrays
            Features.
        groups : array-like of shape (n,), optional
            Rows that are one query; see `predict`.

        Returns
        -------
        ndarray of shape (n,)

        Examples
        --------
        >>> import numpy as np
        >>> from ivoro import IVoroClassifier
        >>> X = np.ones((2, 4, 3)) * np.array([1.0, 5.0])[:, None, None]
        >>> model = IVoroClassifier("iVoro-AI").fit(X, ["a", "b"])
        >>> model.uncertainty(X).tolist()
        [0.0, 0.0]
        >>> X[0, 2] += 1.0
        >>> (model.uncertainty(X) > 0.0).tolist()
        [True, False]
        """
        return self._answers(X, groups)[2]

    def strangeness(self, X: Any, *, groups: ArrayLike | None = None) -> NDArray[np.float64]:
        """How unlike everything known each query is: 1 is usual, more is stranger.

        The distance to the nearest class, less what the query is further from everything than
        usual, in units of the usual distance to the own class.

        Parameters
        ----------
        X : array or list of arrays
            Features.
        groups : array-like of shape (n,), optional
            Rows that are one query; see `predict`.

        Returns
        -------
        ndarray of shape (n,)

        Examples
        --------
        >>> from ivoro import IVoroClassifier
        >>> model = IVoroClassifier("iVoro").fit([[0.0], [2.0], [9.0], [11.0]], ["a", "a", "b", "b"])
        >>> model.strangeness([[1.0], [5.0]]).round(1).tolist()
        [-1.5, 5.8]
        """
        return self._answers(X, groups)[1]

    def reject(
        self, X: Any, share: float = 0.05, *, groups: ArrayLike | None = None
    ) -> NDArray[np.bool_]:
        """Whether each query is of a class never learned.

        Parameters
        ----------
        X : array or list of arrays
            Features.
        share : float, default=0.05
            Share of known queries that may be rejected wrongly, as measured on samples that were
            asked before they were learned.
        groups : array-like of shape (n,), optional
            Rows that are one query; see `predict`.

        Returns
        -------
        ndarray of bool

        Raises
        ------
        ValueError
            If there is but one class of one sample.

        Examples
        --------
        >>> import numpy as np
        >>> from ivoro import IVoroClassifier
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> X[100:] += 9.0
        >>> model = IVoroClassifier("iVoro").fit(X, np.repeat(["a", "b"], 100))
        >>> model.reject([[0.0, 0.0], [9.0, 0.0]]).tolist()
        [False, True]
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

        Examples
        --------
        >>> import os, tempfile
        >>> from ivoro import IVoroClassifier
        >>> model = IVoroClassifier("iVoro").fit([[0.0], [1.0], [5.0]], ["a", "b", "c"])
        >>> path = os.path.join(tempfile.mkdtemp(), "demo.ivoro")
        >>> model.save(path)
        >>> IVoroClassifier.load(path).model_ == model.model_
        True
        """
        check_is_fitted(self)
        self.model_.save(path)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        labels: type | None = None,
        threads: int | None = None,
    ) -> IVoroClassifier:
        """Read a model file, written by `save` or by the program.

        The file names its classes with text, and has no names of columns (``feature_names_in_``).

        Parameters
        ----------
        path : path-like
            The file.
        labels : {str, int, float, bool}, optional
            The type of the labels. None takes integers or truth values where all class names are
            written so, else text: labels that were the text ``"0"`` and ``"1"`` need ``str``.
        threads : int, optional
            Number of threads of the classifier.

        Returns
        -------
        IVoroClassifier
            With the settings of the file as its parameters, chosen ones too: `fit` on a clone of it
            chooses nothing anew.

        Raises
        ------
        OSError
            If the file can't be read.
        ValueError
            If it is no model file, or is damaged, or a class name can't be such a label.

        Examples
        --------
        >>> import os, tempfile
        >>> from ivoro import IVoroClassifier
        >>> path = os.path.join(tempfile.mkdtemp(), "demo.ivoro")
        >>> IVoroClassifier("iVoro").fit([[0.0], [4.0]], [7, 8]).save(path)
        >>> IVoroClassifier.load(path).predict([[3.5]]).tolist()
        [8]
        """
        return cls._of(Model.load(path), labels, threads)

    @classmethod
    def _of(cls, model: Model, labels: type | None, threads: int | None) -> IVoroClassifier:
        """The classifier of a model whose classes are named with text."""
        settings = json.loads(model.settings())
        transform = settings.pop("transform")
        settings.update({_TRANSFORM[name]: value for name, value in transform.items()})
        settings["layer_weights"] = tuple(settings["layer_weights"])
        loaded = cls(model.variant, threads=threads, **settings)
        loaded.n_features_in_ = model.layers[0][1]
        loaded._begun = loaded._parameters()
        loaded._set_classes(model, labels_as(model.classes, labels))
        return loaded

    # -- attributes -------------------------------------------------------------------------------

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels known, sorted."""
        return self._learned.classes

    @property
    def model_(self) -> Model:
        """What the classifier is made of."""
        return self._learned.model

    @property
    def centroids_(self) -> Any:
        """The centre of each class."""
        check_is_fitted(self)
        found, known = self._ask(lambda it: it.centroids())
        blocks = [block[known.order] for block in found]
        return blocks[0] if len(blocks) == 1 else blocks

    @property
    def counts_(self) -> NDArray[np.int64]:
        """Samples learned of each class."""
        check_is_fitted(self)
        counts, known = self._ask(lambda it: it.counts)
        return np.array(counts, dtype=np.int64)[known.order]

    @property
    def phases_(self) -> list[int]:
        """How many classes arrived together, phase by phase."""
        check_is_fitted(self)
        return self.model_.phases

    @property
    def variant_(self) -> str:
        """The variant in use."""
        check_is_fitted(self)
        return self.model_.variant

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
        """Whether probabilities and rejection were measured on samples not learned yet."""
        check_is_fitted(self)
        return self.model_.calibrated

    @property
    def journal_(self) -> dict[str, Any]:
        """When what was done to the classifier: ``entries``, each with ``when`` (seconds since
        1970), ``verb``, ``samples``, ``classes`` and ``known`` (classes afterwards), and ``earlier``,
        the sums of what came before the last 1,000 of them."""
        check_is_fitted(self)
        journal: dict[str, Any] = json.loads(self.model_.journal())
        return journal

    def audit(self) -> list[dict[str, Any]]:
        """Every number that is kept, with its owner and its bytes.

        Returns
        -------
        list of dict
            With the keys ``owner``, ``what``, ``numbers`` and ``bytes``.

        Examples
        --------
        >>> from ivoro import IVoroClassifier
        >>> model = IVoroClassifier("iVoro").fit([[0.0], [1.0], [5.0]], ["a", "b", "c"])
        >>> model.audit()[0]["what"]
        'count of samples'
        """
        check_is_fitted(self)
        lines: list[dict[str, Any]] = json.loads(self.model_.audit())
        return lines

    # -- inside -----------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return "_known" in self.__dict__

    @property
    def _learned(self) -> _Known:
        if "_known" not in self.__dict__:
            # raises what is an AttributeError too, so that `hasattr` says no
            check_is_fitted(self)
        known: _Known = self._known
        return known

    def _parameters(self) -> dict[str, Any]:
        """All that the first call fixes."""
        parameters: dict[str, Any] = self.get_params(deep=False)
        del parameters["threads"]
        return parameters

    def _settings(self) -> dict[str, Any]:
        settings = self._parameters()
        del settings["variant"], settings["budget"]
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

    def _check_parameters(self) -> None:
        """Parameters that were changed since the first call would have no effect."""
        for name, begun in self._begun.items():
            now = getattr(self, name)
            if now is not begun and repr(now) != repr(begun):
                raise ValueError(
                    f"{name} = {now!r}: the classifier was begun with {begun!r}; fit anew to "
                    "change it"
                )

    @property
    def _changes(self) -> threading.RLock:
        """Who holds it may change the model and what is known of its classes."""
        lock: threading.RLock = self.__dict__.setdefault("_lock", threading.RLock())
        return lock

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("_lock", None)
        if "_known" in state:
            with self._changes:
                known = self._known
                state["_known"] = known._replace(model=known.model.copy())
        return state

    def _teach(
        self,
        model: Model,
        known: NDArray[Any],
        arrays: list[NDArray[Any]],
        y: NDArray[Any],
        receipt: str | os.PathLike[str] | None,
    ) -> None:
        labels, codes = encoded(y)
        version, together = model.version, joined(known, labels)
        model.teach(arrays, codes, names_of(labels), self.threads, receipt)
        if model.version != version:
            self._set_classes(model, together)

    def _drop_emptied_classes(self) -> None:
        """After classes may have gone."""
        if self.model_.classes:
            self._set_classes(self.model_, self.classes_)
        else:
            del self._known

    def _set_classes(self, model: Model, labels: NDArray[Any]) -> None:
        """Sorts those of the labels that the model knows."""
        places = {name: at for at, name in enumerate(model.classes)}
        found = np.array([name in places for name in texts_of(labels)], dtype=bool)
        classes = np.unique(labels[found])
        order = np.array([places[name] for name in texts_of(classes)], dtype=np.intp)
        self._known = _Known(model, model.version, classes, order, classes[np.argsort(order)])

    def _ask(self, question: Callable[[Model], T]) -> tuple[T, _Known]:
        """What the model answers, and the classes that it knew then."""
        known: _Known = self._known
        answer = question(known.model)
        if known.model.version == known.version:
            return answer, known
        # another thread has changed the classes meanwhile: once more, while nobody does
        with self._changes:
            check_is_fitted(self)
            return question(self.model_), self._known

    def _queries(self, X: Any) -> list[NDArray[Any]]:
        check_is_fitted(self)
        return layers_of(X, self)

    def _distances(
        self, X: Any, groups: ArrayLike | None
    ) -> tuple[NDArray[np.float32], _Known]:
        """Distances to the classes in order of arrival."""
        arrays = self._queries(X)
        codes = codes_of(groups, len(arrays[0]))
        return self._ask(lambda it: it.distances(arrays, self.threads, codes))

    def _answers(
        self, X: Any, groups: ArrayLike | None
    ) -> tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.float64]]:
        arrays = self._queries(X)
        model: Model = self.model_
        return model.answers(arrays, self.threads, codes_of(groups, len(arrays[0])))


def _copy_of(classifier: Any, what: str) -> tuple[Model, NDArray[Any]]:
    """A copy of a classifier's model, and its classes."""
    if not isinstance(classifier, IVoroClassifier):
        raise ValueError(f"{what}: expected an IVoroClassifier, found {type(classifier).__name__}")
    check_is_fitted(classifier)
    with classifier._changes:
        return classifier.model_.copy(), classifier.classes_
