"""Learning, forgetting and merging from Python."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from conftest import blobs
from ivoro import IVoroClassifier


def of(samples, *names):
    X, y = samples
    wanted = np.isin(y, names)
    return X[wanted], y[wanted]


def test_classes_arrive_unannounced(samples, queries):
    model = IVoroClassifier("iVoro-N")
    model.partial_fit(*of(samples, "cat", "dog"))
    model.partial_fit(*of(samples, "ape"))
    model.partial_fit(*of(samples, "bee"))
    assert model.classes_.tolist() == ["ape", "bee", "cat", "dog"]
    assert model.phases_ == [2, 1, 1]
    assert model.score(*queries) == 1.0


def test_one_call_brings_new_classes_and_more_of_known_ones(samples):
    X, y = samples
    whole = IVoroClassifier("iVoro").fit(X, y)
    model = IVoroClassifier("iVoro").fit(X[:30], y[:30])
    model.partial_fit(X[30:], y[30:])
    assert model.counts_.tolist() == [20, 20, 20, 20]
    assert np.array_equal(model.centroids_, whole.centroids_)


def test_a_call_that_fails_changes_nothing(samples):
    X, y = samples
    model = IVoroClassifier("iVoro").fit(X[:30], y[:30])
    before = model.model_.copy()
    bad = X[30:].copy()
    bad[-1, -1] = 1e14
    with pytest.raises(ValueError, match="outside"):
        model.partial_fit(bad, y[30:])
    assert model.model_ == before
    assert model.classes_.tolist() == ["ape", "bee"]


@pytest.mark.parametrize("labels", [
    ["b", "a", "c"], [3, -1, 2], [3.0, -1.0, 2.0], [True, False, True],
    np.array(["b", "a", "c"], dtype=object), np.array([3, 1, 2], dtype=np.uint8),
])
def test_labels_of_any_type(labels):
    X, labels = np.eye(3, dtype=np.float32) * 5, np.asarray(labels)
    model = IVoroClassifier("iVoro").partial_fit(X[:1], labels[:1]).partial_fit(X[1:], labels[1:])
    assert model.classes_.tolist() == np.unique(labels).tolist()
    assert model.classes_.dtype == labels.dtype
    if len(np.unique(labels)) == 3:
        assert model.predict(X).tolist() == labels.tolist()


def test_labels_of_another_type_are_refused(samples):
    X, y = samples
    model = IVoroClassifier("iVoro").fit(X, y)
    with pytest.raises(ValueError, match="expected labels that are text, found numbers"):
        model.partial_fit(X, np.arange(len(X)) % 2)
    with pytest.raises(ValueError, match="found truth values"):
        model.partial_fit(X, np.arange(len(X)) % 2 == 0)


@pytest.mark.parametrize(("first", "then"), [(int, float), (float, int), (np.int8, np.int64)])
def test_one_number_written_in_two_ways_is_one_class(first, then, samples):
    X, y = samples
    codes = np.unique(y, return_inverse=True)[1]
    model = IVoroClassifier("iVoro").fit(X[:40], codes[:40].astype(first))
    model.partial_fit(X, codes.astype(then))
    assert model.counts_.tolist() == [40, 40, 20, 20]
    assert model.classes_.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("variant", ["iVoro", "iVoro-N", "iVoro-NW"])
def test_forgetting_leaves_the_classifier_that_never_saw_the_class(variant, samples, queries):
    settings = {"exponent": 0.5, "ridge": 1.0, "scatter": "per-class"}
    model = IVoroClassifier(variant, **settings).fit(*of(samples, "ape", "bee", "cat"))
    before = model.model_.copy()
    model.partial_fit(*of(samples, "dog"))
    assert model.model_ != before
    model.forget("dog")
    assert model.model_ == before
    assert model.classes_.tolist() == ["ape", "bee", "cat"]
    assert "dog" not in model.predict(queries[0])


def test_forgetting_that_would_not_be_exact_is_refused(samples):
    pooled = IVoroClassifier("iVoro-W").fit(*samples)
    with pytest.raises(ValueError, match="can't be forgotten exactly"):
        pooled.forget("cat")
    probed = IVoroClassifier("iVoro-D").fit(*samples)
    with pytest.raises(ValueError, match="drop the probes"):
        probed.forget("cat")
    assert "cat" not in probed.forget("cat", drop_probes=True).classes_
    with pytest.raises(ValueError, match="class zebra is not in the model"):
        probed.forget("zebra")


def test_a_sealed_class_is_asked_and_forgotten_and_learns_no_more(samples, queries):
    model = IVoroClassifier("iVoro-Q", rank=2).fit(*of(samples, "ape", "bee", "cat"))
    before = model.predict(queries[0])
    model.seal(["cat"]).seal()
    assert np.mean(model.predict(queries[0]) == before) > 0.95
    with pytest.raises(ValueError, match="class ape is sealed"):
        model.partial_fit(*of(samples, "ape"))
    model.partial_fit(*of(samples, "dog")).forget("bee")
    assert model.classes_.tolist() == ["ape", "cat", "dog"]
    with pytest.raises(ValueError, match="nothing to seal"):
        IVoroClassifier("iVoro-N").fit(*samples).seal()


def test_forgetting_everything_is_not_being_fitted(samples):
    model = IVoroClassifier("iVoro").fit(*of(samples, "ape"))
    model.forget("ape")
    with pytest.raises(NotFittedError):
        model.predict(samples[0])
    assert model.partial_fit(*samples).score(*samples) == 1.0


@pytest.mark.parametrize("variant", ["iVoro-N", "iVoro-NW", "iVoro-ND", "iVoro-KW"])
def test_two_sites_merged_know_what_one_would(variant, tmp_path, samples):
    base = IVoroClassifier(variant, lift=64).fit(*of(samples, "ape", "bee"))
    base.save(tmp_path / "base.ivoro")
    north, south = (IVoroClassifier.load(tmp_path / "base.ivoro") for _ in range(2))
    north.partial_fit(*of(samples, "cat"))
    south.partial_fit(*of(samples, "dog"))
    merged = north.merge(south, ancestor=base)
    base.partial_fit(*of(samples, "cat")).partial_fit(*of(samples, "dog"))
    assert merged.model_ == base.model_
    assert merged.classes_.tolist() == base.classes_.tolist()


def test_models_that_differ_are_not_merged(samples):
    model = IVoroClassifier("iVoro").fit(*samples)
    with pytest.raises(ValueError, match="the variant differs"):
        model.merge(IVoroClassifier("iVoro-N").fit(*samples))
    with pytest.raises(ValueError, match="same statistics in both"):
        model.merge(IVoroClassifier("iVoro").fit(*samples))


def test_settings_that_only_ask_do_not_stand_in_the_way_of_a_merge():
    X, y = blobs()
    old = np.isin(y, ["ape", "bee"])

    def sites(**other):
        here = IVoroClassifier("iVoro-NW", exponent=0.5, shift=0.0, ridge=1.0)
        there = IVoroClassifier(**{**here.get_params(), **other})
        return here.fit(X[old], y[old]), there.fit(X[~old], y[~old])

    here, there = sites(ridge=3.0)
    one = IVoroClassifier(**here.get_params()).fit(X[old], y[old]).partial_fit(X[~old], y[~old])
    assert here.merge(there).model_ == one.model_
    for setting, file, found in [("exponent", "lambda", 0.7), ("scatter", "scatter", "per-class")]:
        here, there = sites(**{setting: found})
        with pytest.raises(ValueError, match=f"depends on {file}, which is .* in one and {found}") as text:
            here.merge(there)
        assert "{" not in str(text.value)


def test_whole_weights_are_samples_repeated(samples):
    X, y = samples
    weights = np.arange(len(y)) % 4
    rows = np.repeat(np.arange(len(y)), weights)
    for variant in ("iVoro-NW", "iVoro-Q", "iVoro-D"):
        model = IVoroClassifier(variant).fit(X, y, sample_weight=weights.astype(float))
        assert model.model_ == IVoroClassifier(variant).fit(X[rows], y[rows]).model_
        assert model.counts_.sum() == weights.sum()
    model = IVoroClassifier("iVoro").partial_fit(X, y, sample_weight=weights)
    more = IVoroClassifier("iVoro").fit(X[rows], y[rows]).partial_fit(X, y)
    assert model.partial_fit(X, y, sample_weight=np.ones(len(y))).model_ == more.model_
    for wrong, what in [(weights + 0.5, "whole numbers"), (0 * weights, "zero"), (-weights, "egative")]:
        with pytest.raises(ValueError, match=what):
            model.partial_fit(X, y, sample_weight=wrong)
    assert model.model_ == more.model_


def test_logarithms_of_probabilities(samples, queries):
    model = IVoroClassifier("iVoro").fit(*samples)
    with np.errstate(divide="ignore"):
        expected = np.log(model.predict_proba(queries[0]))
    np.testing.assert_array_equal(model.predict_log_proba(queries[0]), expected)


def test_a_first_sample_of_zeros_fixes_no_range():
    model = IVoroClassifier("iVoro").partial_fit([[0.0, 0.0]], ["a"])
    model.partial_fit([[1.6, 4096.0], [1e-3, 2.0]], ["b", "a"])
    assert model.centroids_.tolist() == [[np.float32(5e-4), 1.0], [np.float32(1.6), 4096.0]]


def test_top_classes_distances_and_probabilities_agree(samples, queries):
    model = IVoroClassifier("iVoro-NW").fit(*samples)
    X = queries[0]
    distances, indices = model.kneighbors(X, 3)
    assert np.all(np.diff(distances, axis=1) >= 0)
    assert np.array_equal(model.classes_[indices[:, 0]], model.predict(X))
    assert np.array_equal(model.kneighbors(X, 99, return_distance=False)[:, :3], indices)
    assert np.array_equal(model.decision_function(X).argmax(axis=1), indices[:, 0])
    probabilities = model.predict_proba(X)
    assert np.allclose(probabilities.sum(axis=1), 1)
    assert np.array_equal(probabilities.argmax(axis=1), indices[:, 0])
    with pytest.raises(ValueError, match="n_neighbors = 0"):
        model.kneighbors(X, 0)


def test_distances_are_those_to_the_centroids(samples, queries):
    model = IVoroClassifier("iVoro").fit(*samples)
    X = queries[0].astype(np.float64)
    means = np.stack([samples[0][samples[1] == name].mean(axis=0) for name in model.classes_])
    assert np.allclose(model.centroids_, means, atol=1e-5)
    expected = ((X[:, None] - means) ** 2).sum(axis=2)
    assert np.allclose(-model.decision_function(X), expected, rtol=1e-4)


def test_strangers_are_rejected(samples, queries):
    model = IVoroClassifier("iVoro-W").fit(*samples)
    assert model.calibrated_
    far = queries[0] + 30 * np.sign(np.arange(6) - 2.5)
    assert model.reject(far).all()
    assert model.reject(queries[0], share=0.01).mean() < 0.2
    with pytest.raises(ValueError, match="0.001 to 0.999"):
        model.reject(far, share=2)
    small = IVoroClassifier("iVoro").fit(samples[0][:1], samples[1][:1])
    assert not small.calibrated_
    assert small.predict_proba(far[:1]).tolist() == [[1.0]]
    with pytest.raises(ValueError, match="second class"):
        small.reject(far)


def test_calibrating_on_samples_that_were_not_learned(samples, queries):
    X, y = samples
    model = IVoroClassifier("iVoro-W").fit(X[::2], y[::2])
    before = model.predict_proba(queries[0])
    distances = model.decision_function(queries[0])
    assert model.calibrate(X[1::2], y[1::2]) is model
    after = model.predict_proba(queries[0])
    assert np.array_equal(model.decision_function(queries[0]), distances)
    assert not np.array_equal(before, after)
    assert np.array_equal(before.argmax(axis=1), after.argmax(axis=1))
    assert model.reject(X[1::2], share=0.2).mean() <= 0.3
    with pytest.raises(ValueError, match="nobody"):
        model.calibrate(X[:2], ["nobody", "nobody"])


def test_uncertainty_is_the_disagreement_of_views(samples):
    X, y = samples
    turned = np.stack([X, X + 1, X + 2, X + 3], axis=1)
    model = IVoroClassifier("iVoro-AI").fit(turned, y)
    same = model.uncertainty(turned)
    turned[0, 2] += 3
    assert model.uncertainty(turned)[0] > same[0]
    assert np.array_equal(model.uncertainty(turned)[1:], same[1:])
    # one vector a query: a single view, or all of them in one
    assert not IVoroClassifier("iVoro").fit(X, y).uncertainty(X).any()
    assert not IVoroClassifier("iVoro-WAI", ridge=1.0).fit(turned, y).uncertainty(turned).any()


def test_settings_are_given_or_chosen(samples):
    given = IVoroClassifier("iVoro-N", exponent=0.3, scale=2.0).fit(*samples)
    assert given.settings_["transform"] == {"lambda": 0.3, "scale": 2.0, "shift": 0.0}
    assert given.choices_ == []
    chosen = IVoroClassifier("iVoro-NW").fit(*samples)
    assert [choice["setting"] for choice in chosen.choices_] == [
        "lengths", "lambda", "ridge", "shift"
    ]
    assert sum(line["bytes"] for line in chosen.audit()) == chosen.model_.bytes


def test_without_a_variant_the_one_that_suits_is_taken(samples, queries):
    X, y = samples
    model = IVoroClassifier().fit(X, y)
    choice = model.choices_[0]
    assert (choice["setting"], choice["value"]) == ("variant", model.variant_)
    assert choice["rule"] and len(choice["candidates"]) == len(choice["losses"])
    assert model.score(*queries) > 0.95
    # rows in another order choose the same
    order = np.random.default_rng(0).permutation(len(y))
    other = IVoroClassifier().fit(X[order], y[order])
    assert other.choices_ == model.choices_ and other.settings_ == model.settings_
    # a budget leaves variants out and names them
    small = IVoroClassifier(budget=0.1).fit(X, y)
    assert "over the budget: iVoro-NQ" in small.choices_[0]["rule"]
    with pytest.raises(ValueError, match="budget = -1"):
        IVoroClassifier(budget=-1).fit(X, y)
    with pytest.raises(ValueError, match="weight-decay.*name a variant"):
        IVoroClassifier(weight_decay=0.5).fit(X, y)


@pytest.mark.parametrize(("settings", "sentence"), [
    ({"variant": "iVoro-WN"}, "letters in this order"),
    ({"ridge": -1.0}, "ridge = -1: must be finite and not negative"),
    ({"ridge": "much"}, "ridge = much: expected a number"),
    ({"pairs": "some"}, "pairs = some: write matched or all"),
    ({"lift": 0}, "lift = 0"),
    ({"seed": -1}, "seed = -1: expected a whole number that is not negative"),
    ({"layer_weights": (1.0,)}, "expected two numbers"),
    ({"threads": 0}, "threads = 0: expected a positive number"),
])
def test_settings_out_of_range(settings, sentence, samples):
    with pytest.raises(ValueError, match=sentence):
        IVoroClassifier(**settings).fit(*samples)


def test_parameters_stay_until_fit(samples, queries):
    model = IVoroClassifier("iVoro").partial_fit(*samples)
    model.set_params(threads=1).partial_fit(*samples)
    model.set_params(variant="iVoro-NW")
    with pytest.raises(ValueError, match="variant = 'iVoro-NW': .* begun with 'iVoro'; fit anew"):
        model.partial_fit(*samples)
    assert model.counts_.tolist() == [40, 40, 40, 40]
    assert model.fit(*samples).settings_["ridge"] > 0
    model.layer_weights = (2.0, 1.0)
    with pytest.raises(ValueError, match="layer_weights"):
        model.partial_fit(*samples)


@pytest.mark.parametrize("variant", ["iVoro-NW", "iVoro-W", "iVoro-Q", "iVoro-KW"])
def test_one_sample_of_each_class_is_enough(variant, samples):
    X, y = samples
    model = IVoroClassifier(variant, lift=64).fit(X[::20], y[::20])
    assert model.score(X, y) > 0.9
    assert model.partial_fit(X, y).score(X, y) == 1.0


def test_equal_distances_go_to_the_class_that_came_first():
    model = IVoroClassifier("iVoro").fit([[1.0]], ["b"]).partial_fit([[1.0], [9.0]], ["a", "c"])
    assert model.predict([[1.2]]).tolist() == ["b"]
    assert model.classes_[model.kneighbors([[1.2]], 3)[1]].tolist() == [["b", "a", "c"]]


def test_numbers_whose_squares_overflow_are_refused(samples):
    X, y = samples
    model = IVoroClassifier("iVoro").fit(X, y)
    for work in (lambda X: model.predict_proba(X), lambda X: IVoroClassifier("iVoro").fit(X, y)):
        with pytest.raises(ValueError, match="row 0, layer last, .* within ±1e15"):
            work(X * np.float32(1e30))


def test_a_classifier_of_another_kind_is_not_merged(samples):
    model = IVoroClassifier("iVoro").fit(*samples)
    with pytest.raises(ValueError, match="other: expected an IVoroClassifier, found int"):
        model.merge(3)
    with pytest.raises(NotFittedError):
        model.merge(IVoroClassifier("iVoro").fit(*samples), IVoroClassifier("iVoro"))


def test_more_classes_than_labels_fit_in_a_byte():
    X, y = np.arange(600, dtype=np.float32)[:, None], np.arange(600)
    model = IVoroClassifier("iVoro").fit(X, y)
    assert np.array_equal(model.predict(X), y)


def test_seeds_of_blobs_differ():
    assert not np.array_equal(blobs(seed=0)[0], blobs(seed=1)[0])
