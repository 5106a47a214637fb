"""Samples that are taken back, receipts, new names and the journal."""

import numpy as np
import pytest

from conftest import blobs
from ivoro import IVoroClassifier

VARIANTS = ["iVoro", "iVoro-N", "iVoro-NW", "iVoro-Q", "iVoro-NKW"]


def begun(variant):
    X, y = blobs()
    return IVoroClassifier(variant, lift=50).fit(X[:40], y[:40]), X[40:], y[40:]


@pytest.mark.parametrize("variant", VARIANTS)
def test_unlearning_is_never_having_learned(variant):
    model, X, y = begun(variant)
    before = model.model_.copy()
    more, labels = blobs(seed=3)
    model.partial_fit(X, y)
    # new classes and known ones in one lesson, taken back in pieces and another order
    model.partial_fit(more, labels)
    for rows in np.array_split(np.random.default_rng(0).permutation(len(more)), 7):
        model.unlearn(more[rows], labels[rows])
    assert model.classes_.tolist() == ["ape", "bee", "cat", "dog"]
    model.unlearn(X, y)
    assert model.model_ == before
    assert model.classes_.tolist() == ["ape", "bee"]
    assert model.predict(X[:3]).shape == (3,)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_receipt_takes_a_lesson_back(variant, tmp_path):
    model, X, y = begun(variant)
    before, receipt = model.model_.copy(), tmp_path / "lesson.receipt"
    model.partial_fit(X, y, receipt=receipt)
    with pytest.raises(ValueError, match="is there already"):
        model.partial_fit(X, y, receipt=receipt)
    model.unlearn(receipt=receipt)
    assert model.model_ == before
    with pytest.raises(ValueError, match="class cat is not in the model|taken back already"):
        model.unlearn(receipt=receipt)


def test_a_class_is_forgotten_with_its_receipts(tmp_path):
    X, y = blobs()
    model, never = (IVoroClassifier("iVoro-NW", scatter="pooled").fit(X[:40], y[:40]) for _ in "ab")
    X, y = X[40:], y[40:]
    never.partial_fit(X[y == "dog"], y[y == "dog"])
    files = [tmp_path / "one", tmp_path / "two"]
    for first, file in enumerate(files):
        model.partial_fit(X[first::2], y[first::2], receipt=file)
    with pytest.raises(ValueError, match="W keeps one scatter"):
        model.forget("cat")
    with pytest.raises(ValueError, match="10 of its 20 samples are in no receipt"):
        model.forget("cat", receipts=files[:1])
    model.forget("cat", receipts=files)
    assert model.model_ == never.model_


def test_a_first_lesson_has_a_receipt_too(tmp_path):
    X, y = blobs()
    model = IVoroClassifier("iVoro-W").partial_fit(X, y, receipt=tmp_path / "first")
    model.unlearn(receipt=tmp_path / "first")
    with pytest.raises(ValueError, match="not fitted"):
        model.predict(X)


def test_more_than_was_given_is_refused():
    model, X, y = begun("iVoro-NW")
    before = model.model_.copy()
    with pytest.raises(ValueError, match="class cat is not in the model"):
        model.unlearn(X, y)
    X, y = blobs()
    with pytest.raises(ValueError, match="the model has 20 of its samples, to be taken are 21"):
        model.unlearn(X[[0, *range(20)]], y[[0, *range(20)]])
    with pytest.raises(ValueError, match="sums that would remain"):
        model.unlearn(X[:20] + np.float32(0.5), y[:20])
    with pytest.raises(ValueError, match="found neither"):
        model.unlearn()
    with pytest.raises(ValueError, match="found both"):
        model.unlearn(X, y, receipt="some")
    assert model.model_ == before


@pytest.mark.parametrize("labels, new", [(["a", "b"], "c"), ([3, 1], 2), ([1.0, 2.0], 5.0)])
def test_a_new_name_is_all_that_changes(labels, new):
    X = np.eye(2, dtype=np.float32) * 5
    model = IVoroClassifier("iVoro").fit(X, labels)
    distances = np.sort(model.decision_function(X))
    model.rename(labels[0], new)
    assert model.classes_.tolist() == sorted([labels[1], new])
    assert model.predict(X).tolist() == [new, labels[1]]
    assert np.array_equal(np.abs(np.sort(model.decision_function(X))), np.abs(distances))
    with pytest.raises(ValueError, match="in the model already"):
        model.rename(new, labels[1])
    with pytest.raises(ValueError, match="expected labels that are"):
        model.rename(new, b"bytes")


def test_the_journal_says_what_was_done(monkeypatch, tmp_path):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    model, X, y = begun("iVoro")
    model.partial_fit(X, y).unlearn(X, y).rename("ape", "emu").forget("bee")
    model.save(tmp_path / "m.ivoro")
    entries = IVoroClassifier.load(tmp_path / "m.ivoro").journal_["entries"]
    assert entries == model.journal_["entries"]
    assert [(it["verb"], it["samples"], it["known"]) for it in entries] == [
        ("learn", 40, 2), ("learn", 40, 4), ("retract", 40, 2), ("rename", 0, 2), ("forget", 20, 1),
    ]
    assert {it["when"] for it in entries} == {1700000000}
    assert entries[1]["classes"] == ["cat", "dog"]
