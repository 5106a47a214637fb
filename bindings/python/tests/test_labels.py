"""Labels as codes."""

import numpy as np
import pytest

from ivoro._labels import encoded, texts_of


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
    assert texts_of(np.array([1.5], dtype=np.float32)) == ["1.5"]
    assert texts_of(np.array([np.str_("a"), 3], dtype=object)) == ["a", "3"]
