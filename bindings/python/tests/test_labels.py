"""Labels as codes."""

import numpy as np
import pytest

from conftest import blobs
from ivoro import IVoroClassifier
from ivoro._labels import encoded, joined, labels_as, labels_of, texts_of


@pytest.mark.parametrize("kind", ["i1", "u1", "i2", "u4", "i8", "u8", "f8", "U5", "O"])
def test_codes_are_those_of_unique(kind):
    numbers = np.random.default_rng(3).integers(0, 90, 700)
    labels = (numbers - 40 if kind[0] in "if" else numbers).astype(kind)
    expected, codes = np.unique(labels, return_inverse=True)
    found, found_codes = encoded(labels)
    assert found.dtype == expected.dtype and found_codes.dtype == np.uint32
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(found_codes, codes)


@pytest.mark.parametrize(
    "labels",
    [
        np.array([-(2**63), 2**63 - 1, -(2**63)]),
        np.array([2**63 - 1, 2**63 - 2] * 3),
        np.array([2**64 - 1, 2**64 - 2] * 3, dtype=np.uint64),
        np.array([7], dtype=np.int8),
        np.array([10**12, 10**12 + 3, 10**12]),
        np.array([5, 10**15]),
    ],
)
def test_whole_numbers_at_the_ends_of_their_range(labels):
    found, codes = encoded(labels)
    np.testing.assert_array_equal(found[codes], labels)
    np.testing.assert_array_equal(found, np.unique(labels))


def test_names_are_those_of_python_objects():
    assert texts_of(np.array([1, 20])) == ["1", "20"]
    assert texts_of(np.array([1.5, 2.0, -0.0], dtype=np.float32)) == ["1.5", "2", "0"]
    assert texts_of(np.array([np.str_("a"), 3], dtype=object)) == ["a", "3"]


KINDS = ["i1", "u1", "i8", "u8", "f4", "f8"]


@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize("second", KINDS)
def test_numbers_of_any_type_are_one_class(first, second):
    X, names = blobs()
    y = np.unique(names, return_inverse=True)[1]
    base = y < 3
    model = IVoroClassifier("iVoro").fit(X[base], y[base].astype(first))
    model.partial_fit(X, y.astype(second))
    assert model.classes_.tolist() == [0, 1, 2, 3]
    assert model.counts_.tolist() == [40, 40, 40, 20]
    assert model.score(X, y) == 1.0
    start = IVoroClassifier("iVoro").fit(X, y.astype(first))
    other = IVoroClassifier("iVoro").fit(X + np.float32(0.01), y.astype(second))
    assert start.merge(other).counts_.tolist() == [40, 40, 40, 40]
    assert np.allclose(start.predict_proba(X).sum(axis=1), 1.0)
    assert np.array_equal(start.predict(X), y)
    assert start.forget(np.dtype(second).type(2)).classes_.tolist() == [0, 1, 3]


def test_signed_and_unsigned_numbers_stay_whole():
    signed, unsigned = np.array([-3, 5]), np.array([2**63, 7], dtype=np.uint64)
    assert joined(signed, unsigned[1:]).tolist() == [-3, 5, 7]
    assert joined(unsigned, signed[1:]).tolist() == [2**63, 7, 5]
    with pytest.raises(ValueError, match="below 0 and others of 2"):
        joined(signed, unsigned)
    model = IVoroClassifier("iVoro").fit([[1.0], [2.0]], unsigned)
    with pytest.raises(ValueError, match="below 0 and others of 2"):
        model.partial_fit([[3.0]], [-1])
    with pytest.raises(ValueError, match="label: expected whole numbers of at most 64 bits"):
        model.forget(1.5)
    assert model.counts_.tolist() == [1, 1]


def test_a_label_of_another_sort_is_no_label():
    model = IVoroClassifier("iVoro").fit([[1.0], [2.0]], [1, 2])
    with pytest.raises(ValueError, match="label: expected labels that are numbers, found text"):
        model.forget("1")
    text = IVoroClassifier("iVoro").fit([[1.0], [2.0]], ["1", "2"])
    with pytest.raises(ValueError, match="other: expected labels that are numbers, found text"):
        model.merge(text)
    assert model.counts_.tolist() == [1, 1]


def test_text_that_is_none_is_refused():
    with pytest.raises(ValueError, match="labels: expected text in Unicode"):
        IVoroClassifier("iVoro").fit([[1.0], [2.0]], ["a", "\ud800"])


@pytest.mark.parametrize("name", ["", "a" * 70_000])
def test_a_class_that_no_file_could_name_is_refused(name):
    model = IVoroClassifier("iVoro")
    with pytest.raises(ValueError, match="a name of .* bytes, expected 1 to 4096"):
        model.fit([[1.0], [2.0]], ["a", name])
    assert not hasattr(model, "classes_")
    model.fit([[1.0], [2.0]], ["a", "b"])
    with pytest.raises(ValueError, match="a name of .* bytes, expected 1 to 4096"):
        model.partial_fit([[3.0]], [name])
    assert model.classes_.tolist() == ["a", "b"]


def test_labels_of_a_file_have_the_type_that_is_asked_for(tmp_path):
    path = tmp_path / "model.ivoro"
    X = [[0.0], [1.0], [5.0], [6.0]]
    y = np.array(["0", "0", "1", "1"])
    IVoroClassifier("iVoro").fit(X, y).save(path)
    assert IVoroClassifier.load(path).classes_.tolist() == [0, 1]
    text = IVoroClassifier.load(path, labels=str)
    assert text.classes_.tolist() == ["0", "1"] and text.score(X, y) == 1.0
    assert text.partial_fit([[9.0]], ["2"]).forget("0").classes_.tolist() == ["1", "2"]
    assert IVoroClassifier.load(path, labels=float).classes_.dtype == np.float64
    assert IVoroClassifier.load(path, labels=int).classes_.tolist() == [0, 1]
    with pytest.raises(ValueError, match="labels: '0' is no truth value"):
        IVoroClassifier.load(path, labels=bool)
    with pytest.raises(ValueError, match="labels: expected str, int, float, bool or None"):
        IVoroClassifier.load(path, labels=list)
    with pytest.raises(ValueError, match="labels: invalid literal"):
        labels_as(["a"], int)


def test_names_of_a_file_are_numbers_truth_values_or_text():
    for labels in ([0, -7, 10**18 * 9], [2**64 - 1, 3], [True, False], ["a", "1"], ["01"]):
        found = labels_of([str(label) for label in labels])
        assert found.tolist() == labels and found.dtype.kind in "iubU"
    assert labels_of(["-1", str(2**63)]).tolist() == ["-1", str(2**63)]
