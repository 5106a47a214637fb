"""Which arrays are taken, how, and what it costs."""

import subprocess
import sys

import numpy as np
import pytest

from ivoro import IVoroClassifier

PEAK = """
import resource, numpy as np
from ivoro import IVoroClassifier
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
X = np.ones((200_000, 512), dtype=np.{kind})
X[::2] += 1
X.flags.writeable = False
y = np.arange(len(X)) % 2
model = IVoroClassifier("iVoro", threads=1).fit(X[:100], y[:100])
before = peak()
{work}
print(peak() - before, X.nbytes / 2**20)
"""


def megabytes(kind, work):
    done = subprocess.run([sys.executable, "-c", PEAK.format(kind=kind, work=work)],
                          check=True, capture_output=True, text=True)
    return map(float, done.stdout.split())


@pytest.mark.parametrize("work", ["model.predict(X)", "model.partial_fit(X, y)"])
def test_single_precision_in_c_order_is_not_copied(work):
    grown, size = megabytes("float32", work)
    assert grown < size / 4


def test_double_precision_is_converted_once_and_not_copied_before():
    grown, size = megabytes("float64", "model.partial_fit(X, y)")
    assert grown < 0.75 * size


class Lender:
    """Something that only speaks the DLPack protocol, as some tensors do."""

    def __init__(self, array):
        self.array, self.shape = array, array.shape

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Tensor:
    """Something with the array protocol, as PyTorch's tensors have."""

    def __init__(self, array):
        self.array, self.shape = array, array.shape

    def __array__(self, dtype=None, copy=None):
        return self.array if dtype is None else self.array.astype(dtype)

    def __len__(self):
        return len(self.array)


def forms(X):
    frozen = X.copy()
    frozen.flags.writeable = False
    spaced = np.zeros((len(X), 2 * X.shape[1]), dtype=X.dtype)
    spaced[:, ::2] = X
    yield "read-only", frozen
    yield "Fortran order", np.asfortranarray(X)
    yield "every other column", spaced[:, ::2]
    yield "backwards", X[::-1].copy()[::-1]
    yield "double precision", X.astype(np.float64)
    yield "double precision, Fortran order", np.asfortranarray(X.astype(np.float64))
    yield "big-endian", X.astype(">f4")
    yield "lists", X.tolist()
    yield "array protocol", Tensor(X)
    yield "DLPack", Lender(X)


def test_every_form_gives_the_same_numbers(samples, queries):
    X, y = samples
    expected = IVoroClassifier("iVoro").fit(X, y)
    answer = expected.decision_function(queries[0])
    for (name, form), (_, asked) in zip(forms(X), forms(queries[0]), strict=True):
        model = IVoroClassifier("iVoro").fit(form, y)
        assert model.model_ == expected.model_, name
        assert np.array_equal(model.decision_function(asked), answer), name


def test_views_in_every_form(samples):
    X, y = samples
    turned = np.stack([X, X + 1, X + 2, X + 3], axis=1)
    expected = IVoroClassifier("iVoro-AI").fit(turned, y)
    for form in (turned.astype(np.float64), np.asfortranarray(turned), turned[:, ::-1][:, ::-1]):
        assert IVoroClassifier("iVoro-AI").fit(form, y).model_ == expected.model_


def test_half_precision_and_integers(samples):
    X, y = samples
    half = X.astype(np.float16)
    assert IVoroClassifier("iVoro").fit(half, y).model_ == \
        IVoroClassifier("iVoro").fit(half.astype(np.float32), y).model_
    assert IVoroClassifier("iVoro").fit(X.astype(int), y).score(X, y) > 0.9


def test_torch_tensors(samples):
    torch = pytest.importorskip("torch", reason="PyTorch is large; its protocols are tested above")
    X, y = samples
    expected = IVoroClassifier("iVoro").fit(X, y)
    assert IVoroClassifier("iVoro").fit(torch.from_numpy(X), y).model_ == expected.model_


def test_a_file_mapped_into_memory(tmp_path, samples):
    X, y = samples
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert IVoroClassifier("iVoro").fit(mapped, y).model_ == IVoroClassifier("iVoro").fit(X, y).model_


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_none(value, samples):
    X, y = samples
    model = IVoroClassifier("iVoro").fit(X, y)
    X = X.copy()
    X[7, 3] = value
    with pytest.raises(ValueError, match="row 7, layer last, view 0: .* is not a finite number"):
        model.predict(X)
    with pytest.raises(ValueError, match="is not a finite number"):
        IVoroClassifier("iVoro").fit(X, y)


def test_doubles_beyond_single_precision(samples):
    X, y = samples
    X = X.astype(np.float64)
    X[0, 0] = 1e300
    with pytest.raises(ValueError, match="inf is not a finite number"):
        IVoroClassifier("iVoro").fit(X, y)


def test_arrays_of_another_shape(samples):
    X, y = samples
    with pytest.raises(ValueError, match="found 4 axes"):
        IVoroClassifier("iVoro").fit([X[:, None, None], X[:, None, None]], y)
    with pytest.raises(ValueError, match="one or two layers, found 3"):
        IVoroClassifier("iVoro").fit([X, X, X], y)
