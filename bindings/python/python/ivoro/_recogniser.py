"""A model and the network that looks at photos for it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, overload

from sklearn.exceptions import NotFittedError

from . import _ivoro
from ._classifier import IVoroClassifier
from ._network import Network
from ._photos import Photo, listed

ClassFrom = Literal["first", "last", "path"]


@dataclass(frozen=True)
class Skipped:
    """A photo that could not be read."""

    #: Its file.
    photo: str
    #: ``AVIF``, ``truncated``, ``unreadable``: photos are counted by it.
    kind: str
    #: A sentence with its name.
    why: str


@dataclass(frozen=True)
class Duplicate:
    """A photo that was left out since another one of its class has its pixels."""

    #: Its file.
    photo: str
    #: The file of the other one.
    of: str | None


@dataclass(frozen=True)
class Lesson:
    """What became of photos that were taught."""

    #: How many count.
    photos: int
    #: How many of each class.
    classes: dict[str, int]
    #: Those that could not be read.
    skipped: tuple[Skipped, ...]
    #: Those whose pixels had come before.
    duplicates: tuple[Duplicate, ...]
    #: Pairs with the same pixels in two classes.
    in_two_classes: tuple[tuple[str, str], ...]
    #: Those that end too early and were taken.
    truncated: tuple[str, ...]
    #: Files beside photos that were passed over.
    other_files: tuple[str, ...]


@dataclass(frozen=True)
class Candidate:
    """A class that a photo may be of."""

    #: The name of the class.
    class_name: str
    #: How sure that is; None where nothing was calibrated.
    probability: float | None
    #: The distance, which can be compared within one answer only.
    distance: float


@dataclass(frozen=True)
class Answer:
    """What is said of a photo, or of a burst of photos."""

    #: Its file, or ``photo 3`` of those in memory; the first one of a burst.
    photo: str
    #: Its place among what was asked about; photos of one folder have the same.
    place: int
    #: Whether it is of no class that was taught; None where that can't be said or was not asked.
    unknown: bool | None
    #: The nearest classes, nearest first.
    top: tuple[Candidate, ...]
    #: How unlike everything known it is: 1 is usual, more is stranger.
    strangeness: float | None
    #: How much the views of it, or the photos of a burst, disagree.
    uncertainty: float
    #: How many photos were taken together.
    burst: int

    @property
    def class_name(self) -> str | None:
        """The name of its class; None if it is unknown."""
        return None if self.unknown else self.top[0].class_name


@dataclass(frozen=True)
class Answers(Sequence[Answer]):
    """Answers, one for each photo that could be read, and what was left out."""

    #: The answers, in the order of the photos.
    answers: tuple[Answer, ...]
    #: Photos that could not be read.
    skipped: tuple[Skipped, ...]

    def __len__(self) -> int:
        return len(self.answers)

    @overload
    def __getitem__(self, at: int) -> Answer: ...

    @overload
    def __getitem__(self, at: slice) -> tuple[Answer, ...]: ...

    def __getitem__(self, at: int | slice) -> Answer | tuple[Answer, ...]:
        return self.answers[at]


class Recogniser:
    """Photos in, names of classes out: a classifier and the network that looks at photos for it.

    It is taught new classes at any time and keeps no photo. The network comes along:
    EfficientNet-Lite0, trained on ImageNet. Files are those of the program ``ivoro``, and answers are the
    same.

    Photos are paths, the contents of files (``bytes``), images of Pillow, or arrays of bytes ``(rows,
    columns)`` or ``(rows, columns, channels)``; one of them, or a list. A path may also be a folder or a
    zip archive of photos.

    Parameters
    ----------
    variant : str, optional
        As of `IVoroClassifier`. None takes the variant that suits the first photos best.
    network : path-like or str, optional
        A name that ``ivoro networks`` lists, or a file. Without it the one that comes along.
    settings : mapping, optional
        Settings by their names in `IVoroClassifier`; `ivoro.settings` lists them.
    budget : float, default=200
        KB (1,024 bytes) that a class may add to the model where the variant is chosen.
    threads : int, optional
        As everywhere in this package.

    Notes
    -----
    Several threads may ask and teach one recogniser; asking goes on while a network looks at photos that
    are taught. The interpreter's lock is released meanwhile. Ctrl-C stops, and nothing has changed.

    Examples
    --------
    >>> import ivoro, numpy
    >>> dark, light = (numpy.full((40, 40, 3), grey, dtype="uint8") for grey in (20, 230))
    >>> recogniser = ivoro.Recogniser()
    >>> recogniser.teach([dark, dark + 9, light, light - 9], ["night", "night", "day", "day"]).photos
    4
    >>> recogniser.ask(dark + 4)[0].class_name
    'night'
    """

    def __init__(
        self,
        variant: str | None = None,
        *,
        network: str | os.PathLike[str] | None = None,
        settings: Mapping[str, Any] | None = None,
        budget: float = 200.0,
        threads: int | None = None,
    ) -> None:
        model = _ivoro.Model(variant, dict(settings or {}), budget)
        self._begin(_ivoro.Recogniser(model, network, None), network, threads)

    def _begin(
        self,
        recogniser: _ivoro.Recogniser,
        asked: str | os.PathLike[str] | None,
        threads: int | None,
    ) -> None:
        self._recogniser = recogniser
        self._asked = asked
        self.threads = threads

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        network: str | os.PathLike[str] | None = None,
        threads: int | None = None,
    ) -> Recogniser:
        """Open a model file, written by `save` or by the program.

        Parameters
        ----------
        path : path-like
            The file.
        network : path-like or str, optional
            The network, where it is neither the one that comes along nor one of ``ivoro networks`` nor
            where it was. Another one than the model's is refused.
        threads : int, optional
            As everywhere in this package.

        Raises
        ------
        OSError
            If the file can't be read.
        ValueError
            If it is no model file, or is of another network, or of features that no network is known for.

        Examples
        --------
        >>> import ivoro, numpy, os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "greys")
        >>> dark, light = (numpy.full((40, 40), grey, dtype="uint8") for grey in (20, 230))
        >>> recogniser = ivoro.Recogniser("iVoro-N")
        >>> _ = recogniser.teach([dark, light], ["night", "day"])
        >>> recogniser.save(path)
        >>> ivoro.Recogniser.open(path).ask(light)[0].class_name
        'day'
        """
        return cls._of(_ivoro.Model.load(path), network, path, threads)

    @classmethod
    def _of(
        cls,
        model: _ivoro.Model,
        network: str | os.PathLike[str] | None,
        near: str | os.PathLike[str] | None,
        threads: int | None,
    ) -> Recogniser:
        opened = cls.__new__(cls)
        opened._begin(_ivoro.Recogniser(model, network, near), network, threads)
        return opened

    def __reduce__(self) -> Any:
        return _again, (type(self), self._model.copy(), self._asked, self.threads)

    # -- learning ---------------------------------------------------------------------------------

    def teach(
        self,
        photos: Photo | Iterable[Photo],
        classes: str | Sequence[str] | None = None,
        *,
        class_from: ClassFrom | None = None,
        strict: bool = False,
        take_truncated: bool = False,
        keep_duplicates: bool = False,
        receipt: str | os.PathLike[str] | None = None,
    ) -> Lesson:
        """Teach new classes, more photos of known ones, or both. On an error nothing has changed.

        Parameters
        ----------
        photos : photo or iterable of photos
            Photos; without ``classes`` folders or archives of them.
        classes : str or sequence of str, optional
            The class of all photos, or of each. Without it folders name it: ``photos/robin/1.jpg``.
        class_from : {"first", "last", "path"}, optional
            Which folder names the class: the first below the one that is given, the one that the photo
            lies in, or all between them.
        strict : bool, default=False
            Raise at the first photo that can't be read, instead of leaving it out.
        take_truncated : bool, default=False
            Take JPEGs that end too early, with grey for the rest.
        keep_duplicates : bool, default=False
            Count the same pixels as often as they come, not once in a class.
        receipt : path-like, optional
            A new file for the exact sums that these photos add; see `IVoroClassifier.partial_fit`.

        Returns
        -------
        Lesson
            How many count, and what was left out.

        Raises
        ------
        ValueError
            If no photo is left, or a class is missing.

        Examples
        --------
        >>> import ivoro, numpy
        >>> grey = numpy.full((40, 40), 90, dtype="uint8")
        >>> ivoro.Recogniser("iVoro").teach([grey, grey], "grey").classes
        {'grey': 1}
        """
        reading = _reading(class_from, strict, take_truncated, keep_duplicates)
        return self._lesson("teach", photos, classes, reading, receipt=receipt)

    def update(
        self,
        photos: Photo | Iterable[Photo],
        classes: str | Sequence[str] | None = None,
        *,
        class_from: ClassFrom | None = None,
        strict: bool = False,
        take_truncated: bool = False,
        keep_duplicates: bool = False,
    ) -> Lesson:
        """Add photos of known classes. A class that is not known is an error, and nothing has changed.

        Parameters
        ----------
        photos, classes, class_from, strict, take_truncated, keep_duplicates
            As for `teach`.

        Returns
        -------
        Lesson
            How many count, and what was left out.

        Examples
        --------
        >>> import ivoro, numpy
        >>> grey = numpy.full((40, 40), 90, dtype="uint8")
        >>> recogniser = ivoro.Recogniser("iVoro")
        >>> recogniser.teach(grey, "grey").photos + recogniser.update(grey + 9, "grey").photos
        2
        """
        reading = _reading(class_from, strict, take_truncated, keep_duplicates)
        return self._lesson("update", photos, classes, reading)

    def retract(
        self,
        photos: Photo | Iterable[Photo],
        classes: str | Sequence[str] | None = None,
        *,
        class_from: ClassFrom | None = None,
        strict: bool = False,
        take_truncated: bool = False,
        keep_duplicates: bool = False,
        drop_probes: bool = False,
        inexact: bool = False,
    ) -> Lesson:
        """Take photos back: afterwards the model is, bit for bit, the one that never saw them.

        What a network computes depends, in its last digits, on the photos beside each one. So a whole
        lesson, given again as it was, is recognised; others are refused unless ``inexact``.

        Parameters
        ----------
        photos, classes, class_from, strict, take_truncated, keep_duplicates
            As they were taught; see `teach`.
        drop_probes : bool, default=False
            Under D and R, give up the probes of the phases whose photos they were trained on.
        inexact : bool, default=False
            Take features that may differ in their last digits. A trace of that size stays.

        Returns
        -------
        Lesson
            How many were taken back.

        Raises
        ------
        ValueError
            If more would be taken than was given, or taking back can't be exact.

        Examples
        --------
        >>> import ivoro, numpy
        >>> dark, light = (numpy.full((40, 40), grey, dtype="uint8") for grey in (20, 230))
        >>> recogniser = ivoro.Recogniser("iVoro")
        >>> _ = recogniser.teach(dark, "night"), recogniser.teach(light, "night")
        >>> recogniser.retract(light, "night").photos, recogniser.counts
        (1, {'night': 1})
        """
        reading = _reading(class_from, strict, take_truncated, keep_duplicates)
        options = {"drop_probes": drop_probes, "inexact": inexact}
        return self._lesson("retract", photos, classes, reading, **options)

    def calibrate(
        self,
        photos: Photo | Iterable[Photo],
        classes: str | Sequence[str] | None = None,
        *,
        class_from: ClassFrom | None = None,
        strict: bool = False,
        take_truncated: bool = False,
        keep_duplicates: bool = True,
    ) -> Lesson:
        """Calibrate on photos that were not taught: probabilities, and what is unknown.

        Teaching calibrates by itself. Photos of the kind that will be asked about say it better.

        Parameters
        ----------
        photos, classes, class_from, strict, take_truncated, keep_duplicates
            Photos of known classes; see `teach`.

        Returns
        -------
        Lesson
            How many count, and what was left out.

        Examples
        --------
        >>> import ivoro, numpy
        >>> greys = [numpy.full((40, 40), grey, dtype="uint8") for grey in (20, 30, 220, 230)]
        >>> recogniser = ivoro.Recogniser("iVoro")
        >>> _ = recogniser.teach(greys[::2], ["night", "day"])
        >>> recogniser.calibrate(greys[1::2], ["night", "day"]).photos
        2
        """
        reading = _reading(class_from, strict, take_truncated, keep_duplicates)
        return self._lesson("calibrate", photos, classes, reading)

    def forget(self, class_name: str, *, drop_probes: bool = False) -> None:
        """Forget a class, as `IVoroClassifier.forget` does.

        Parameters
        ----------
        class_name : str
            One of `classes`.
        drop_probes : bool, default=False
            Under D and R, give up the probes of its phase.

        Raises
        ------
        ValueError
            If the class is not known, or can't be forgotten exactly.
        """
        self._model.forget(class_name, drop_probes)

    def rename(self, class_name: str, new: str) -> None:
        """Give a class another name. Nothing else changes.

        Parameters
        ----------
        class_name : str
            One of `classes`.
        new : str
            A name that is not one of them.
        """
        self._model.rename(class_name, new)

    def _lesson(
        self,
        verb: str,
        photos: Photo | Iterable[Photo],
        classes: str | Sequence[str] | None,
        reading: dict[str, Any],
        **options: Any,
    ) -> Lesson:
        change = {"verb": verb, "receipt": None, "drop_probes": False, "inexact": False, **options}
        names = [classes] if isinstance(classes, str) else classes
        names = None if names is None else [str(name) for name in names]
        given = listed(photos)
        return _lesson(self._recogniser.lesson(change, given, names, reading, self.threads))

    # -- asking -----------------------------------------------------------------------------------

    def ask(
        self,
        photos: Photo | Iterable[Photo],
        *,
        top: int = 3,
        reject: float | None = 0.05,
        burst: int | None = None,
        burst_rule: Literal["sum", "vote"] = "sum",
        strict: bool = True,
        take_truncated: bool = False,
    ) -> Answers:
        """Ask what photos show.

        Parameters
        ----------
        photos : photo or iterable of photos
            Photos, and folders or archives of them.
        top : int, default=3
            How many classes to name.
        reject : float or None, default=0.05
            Share of known photos that may be called unknown wrongly. None never calls one unknown, and a
            model of one class of one photo can't.
        burst : int, optional
            So many photos in a row show one object and are one query.
        burst_rule : {"sum", "vote"}, default="sum"
            Whether the distances of a burst are added, or its photos vote.
        strict : bool, default=True
            Raise at the first photo that can't be read. False leaves it out: ``place`` says which photo
            an answer is about, and ``skipped`` which have none.
        take_truncated : bool, default=False
            Take JPEGs that end too early, with grey for the rest.

        Returns
        -------
        Answers
            A sequence of `Answer`.

        Raises
        ------
        OSError, ValueError
            If a photo can't be read, or nothing was taught.

        Examples
        --------
        >>> import ivoro, numpy
        >>> dark, light = (numpy.full((40, 40), grey, dtype="uint8") for grey in (20, 230))
        >>> recogniser = ivoro.Recogniser("iVoro")
        >>> _ = recogniser.teach([dark, light], ["night", "day"])
        >>> [answer.top[0].class_name for answer in recogniser.ask([light, dark])]
        ['day', 'night']
        """
        if top < 1 or (burst is not None and burst < 1):
            raise ValueError(f"top = {top}, burst = {burst}: expected 1 or more")
        if burst_rule not in ("sum", "vote"):
            raise ValueError(f"burst_rule = {burst_rule!r}: write \"sum\" or \"vote\"")
        if not self._model.classes:
            raise NotFittedError("nothing was taught yet: call teach first")
        question = {
            "top": top,
            "reject": reject,
            "burst": burst,
            "vote": burst_rule == "vote",
            "strict": strict,
            "take_truncated": take_truncated,
        }
        told = json.loads(self._recogniser.ask(listed(photos), question, self.threads))
        return Answers(tuple(map(_answer, told["answers"])), _skipped(told))

    # -- files ------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file of the program ``ivoro``. It appears whole or not at all.

        Parameters
        ----------
        path : path-like
            The file.

        Raises
        ------
        OSError
            If it can't be written, or another process is changing it.
        ValueError
            If nothing was taught.
        """
        self._model.save(path)

    def classifier(self, labels: type | None = str) -> IVoroClassifier:
        """A copy of the model as a scikit-learn estimator, which takes features of `network`.

        Parameters
        ----------
        labels : type, optional
            The type of the labels, as for `IVoroClassifier.load`.

        Returns
        -------
        IVoroClassifier
        """
        return IVoroClassifier._of(self._model.copy(), labels, self.threads)

    # -- attributes -------------------------------------------------------------------------------

    @property
    def _model(self) -> _ivoro.Model:
        return self._recogniser.model

    @property
    def classes(self) -> list[str]:
        """The names of the classes, in order of arrival."""
        return self._model.classes

    @property
    def counts(self) -> dict[str, int]:
        """Photos taught of each class."""
        return dict(zip(self._model.classes, self._model.counts, strict=True))

    @property
    def variant(self) -> str:
        """The variant in use."""
        return self._model.variant

    @property
    def network(self) -> Network:
        """The network that looks at photos."""
        return Network._of(self._recogniser.network)

    @property
    def journal(self) -> dict[str, Any]:
        """When what was done to the model, as `IVoroClassifier.journal_`."""
        journal: dict[str, Any] = json.loads(self._model.journal())
        return journal

    def audit(self) -> list[dict[str, Any]]:
        """Every number that is kept, as `IVoroClassifier.audit`."""
        lines: list[dict[str, Any]] = json.loads(self._model.audit())
        return lines

    def __repr__(self) -> str:
        return f"<Recogniser: {len(self.classes)} classes, {self.variant}, {self.network.name}>"


def _again(
    cls: type[Recogniser],
    model: _ivoro.Model,
    network: str | os.PathLike[str] | None,
    threads: int | None,
) -> Recogniser:
    """What a pickle becomes."""
    return cls._of(model, network, None, threads)


def _reading(
    class_from: ClassFrom | None, strict: bool, take_truncated: bool, keep_duplicates: bool
) -> dict[str, Any]:
    return {
        "class_from": class_from,
        "strict": strict,
        "take_truncated": take_truncated,
        "keep_duplicates": keep_duplicates,
    }


def _skipped(told: dict[str, Any]) -> tuple[Skipped, ...]:
    return tuple(Skipped(it["file"], it["kind"], it["why"]) for it in told["skipped"])


def _lesson(text: str) -> Lesson:
    told: dict[str, Any] = json.loads(text)
    return Lesson(
        photos=told["photos"],
        classes=told["classes"],
        skipped=_skipped(told),
        duplicates=tuple(Duplicate(it["file"], it["of"]) for it in told["duplicates"]),
        in_two_classes=tuple((one, other) for one, other in told["in_two_classes"]),
        truncated=tuple(told["end_too_early"]),
        other_files=tuple(told["other_files"]),
    )


def _answer(told: dict[str, Any]) -> Answer:
    return Answer(
        photo=told["photo"],
        place=told["place"],
        unknown=told["unknown"],
        top=tuple(Candidate(it["class"], it["probability"], it["distance"]) for it in told["top"]),
        strangeness=told["strangeness"],
        uncertainty=told["uncertainty"],
        burst=told["burst"],
    )
