"""Labels of any type and the names that a model file has for them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _ivoro

WHOLE = re.compile(r"0|-?[1-9][0-9]*")


def text_of(label: Any) -> str:
    """The class name of a label; 1 and 1.0 have the same."""
    label = label.item() if isinstance(label, np.generic) else label
    return str(int(label) if isinstance(label, float) and label.is_integer() else label)


def texts_of(labels: NDArray[Any]) -> list[str]:
    """The class names of labels."""
    # only numbers with a point and objects have to be looked at one by one
    return list(map(text_of if labels.dtype.kind in "Of" else str, labels.tolist()))


def names_of(labels: NDArray[Any]) -> NDArray[np.int64] | list[str]:
    """The same for the compiled module, which writes whole numbers itself."""
    return labels if labels.dtype == np.int64 else texts_of(labels)


def labels_of(names: list[str]) -> NDArray[Any]:
    """Labels for class names of a file: whole numbers or truth values where all of them are written
    so, else text."""
    if names and all(WHOLE.fullmatch(name) for name in names):
        numbers = whole([int(name) for name in names])
        if numbers is not None:
            return numbers
    if names and set(names) <= {"False", "True"}:
        return np.array([name == "True" for name in names])
    return np.array(names)


def labels_as(names: list[str], kind: type | None) -> NDArray[Any]:
    """Labels for class names of a file, of the type that they had: None finds out what suits."""
    if kind is None:
        return labels_of(names)
    if kind is str:
        return np.array(names)
    if kind is bool:
        if not set(names) <= {"False", "True"}:
            raise ValueError(f"labels: {_other(names, {'False', 'True'})} is no truth value")
        return np.array([name == "True" for name in names])
    try:
        if kind is float:
            return np.array([float(name) for name in names])
        found = whole([int(name) for name in names]) if kind is int else None
    except ValueError as error:
        raise ValueError(f"labels: {error}") from None
    if found is not None:
        return found
    raise ValueError(f"labels: expected str, int, float, bool or None, found {kind!r}")


def _other(names: list[str], known: set[str]) -> str:
    return next(repr(name) for name in names if name not in known)


def whole(numbers: list[int]) -> NDArray[Any] | None:
    """Whole numbers in the type that holds all of them; None if there is no such type."""
    low, high = min(numbers), max(numbers)
    for kind in (np.int64, np.uint64):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return np.array(numbers, dtype=kind)
    return None


def kind_of(labels: NDArray[Any]) -> str:
    """What sort of labels these are: labels of one model are all of one sort."""
    if labels.dtype.kind == "O":
        sorts = {type(label) for label in labels}
        if all(issubclass(sort, str) for sort in sorts):
            return "text"
        if all(issubclass(sort, (bool, np.bool_)) for sort in sorts):
            return "truth values"
        return "numbers"
    return {"U": "text", "S": "bytes", "T": "text", "b": "truth values"}.get(
        labels.dtype.kind, "numbers"
    )


def alike(labels: NDArray[Any], known: NDArray[Any], what: str = "y") -> NDArray[Any]:
    """The labels in the type of those that are known, or an error."""
    if not len(known):
        return labels
    expected, found = kind_of(known), kind_of(labels)
    if expected != found:
        raise ValueError(f"{what}: expected labels that are {expected}, found {found}")
    # 1 and 1.0 are one class
    if expected == "numbers" and (labels.dtype.kind == "f") != (known.dtype.kind == "f"):
        same = labels.astype(np.float64 if known.dtype.kind == "f" else np.int64)
        if not np.array_equal(same, labels):
            raise ValueError(f"{what}: expected whole numbers of at most 64 bits")
        return same
    return labels


def joined(known: NDArray[Any], labels: NDArray[Any]) -> NDArray[Any]:
    """Both together. NumPy would make numbers with a point of signed and unsigned ones."""
    if not len(known):
        return labels
    if known.dtype.kind + labels.dtype.kind in ("iu", "ui"):
        both = whole(known.tolist() + labels.tolist())
        if both is None:
            raise ValueError("y: labels below 0 and others of 2**63 and more")
        return both
    return np.concatenate([known, labels])


def encoded(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.uint32]]:
    """The distinct labels, sorted, and the place of each label among them."""
    # uint64 may not fit, and the others are counted rather than sorted where they lie close together
    if y.dtype.kind in "iu" and np.can_cast(y.dtype, np.int64):
        found = _ivoro.encoded(y.astype(np.int64, copy=False))
        if found is not None:
            return found[0].astype(y.dtype, copy=False), found[1]
    labels, codes = np.unique(y, return_inverse=True)
    return labels, codes.astype(np.uint32)
