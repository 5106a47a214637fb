"""Views, layers and groups of rows."""

import numpy as np
import pytest

from ivoro import IVoroClassifier, read_features


@pytest.fixture(scope="module")
def real():
    from conftest import ROOT

    data = read_features(ROOT / "crates/ivoro-cli/data/cifar100-small.features")
    return data.train, data.test


def test_the_set_that_ships_has_layers_and_views(real):
    (X, y), _ = real
    assert [layer.shape for layer in X] == [(600, 4, 512), (600, 4, 256)]
    assert len(np.unique(y)) == 20


@pytest.mark.parametrize("variant", ["iVoro-NAC", "iVoro-NAI", "iVoro-NWAI", "iVoro-NAIL", "iVoro3-N"])
def test_rotations_and_layers_of_real_features(variant, real):
    (X, y), (asked, truth) = real
    model = IVoroClassifier(variant, exponent=0.5, ridge=1.0, layer_weights=(0.7, 0.3))
    score = np.mean(model.fit(X, y).predict(asked) == truth)
    assert score > (0.4 if "3" in variant else 0.65)


def test_mirrored_views(real):
    (X, y), (asked, truth) = real
    # the mirror image of a mirror image is the image: averaging with itself changes nothing
    twice, both = X[0][:, [0, 0]], asked[0][:, [0, 0]]
    flipped = IVoroClassifier("iVoro-F").fit(twice, y)
    plain = IVoroClassifier("iVoro").fit(X[0][:, 0], y)
    assert np.array_equal(flipped.predict(both), plain.predict(asked[0][:, 0]))
    assert np.mean(plain.predict(asked[0][:, 0]) == truth) > 0.6


def test_one_view_with_and_without_its_axis(real):
    (X, y), (asked, _) = real
    model = IVoroClassifier("iVoro").fit(X[0][:, 0], y)
    assert np.array_equal(model.predict(asked[0][:, :1]), model.predict(asked[0][:, 0]))


def test_centroids_of_several_blocks(real):
    (X, y), _ = real
    model = IVoroClassifier("iVoro-AIL").fit(X, y)
    shapes = [block.shape for block in model.centroids_]
    assert shapes == [(20, 512), (20, 256)] * 4
    assert model.n_features_in_ == 512


def test_groups_are_one_query_each(real):
    (X, y), (asked, truth) = real
    model = IVoroClassifier("iVoro").fit(X[0][:, 0], y)
    single = asked[0][:, 0]
    order = np.random.default_rng(0).permutation(len(truth))
    # four images of one class are one object, rows in any order
    groups = np.array([f"{name}-{at % 5}" for at, name in enumerate(truth)])
    names, first = np.unique(groups, return_index=True)
    for rule in ("sum", "vote"):
        answers = model.predict(single, groups=groups, rule=rule)
        assert answers.shape == names.shape
        assert np.mean(answers == truth[first]) > np.mean(model.predict(single) == truth) + 0.1
        assert np.array_equal(
            answers, model.predict(single[order], groups=groups[order], rule=rule)
        )
    alone = np.arange(len(truth))
    assert np.array_equal(model.predict(single, groups=alone), model.predict(single))
    assert np.allclose(model.predict_proba(single, groups=alone), model.predict_proba(single))
    assert model.predict_proba(single, groups=groups).shape == (len(names), 20)
    assert model.uncertainty(single, groups=groups).min() > 0
    assert model.kneighbors(single, 2, groups=groups)[1].shape == (len(names), 2)


def test_what_does_not_fit_is_refused(real):
    (X, y), _ = real
    with pytest.raises(ValueError, match="iVoro-AI needs the views 0,90,180,270"):
        IVoroClassifier("iVoro-AI").fit(X[0][:, 0], y)
    with pytest.raises(ValueError, match="needs two layers"):
        IVoroClassifier("iVoro-L").fit(X[0], y)
    with pytest.raises(ValueError, match="found 3"):
        IVoroClassifier("iVoro").fit(X[0][:, :3], y)
    with pytest.raises(ValueError, match="different numbers of views"):
        IVoroClassifier("iVoro-L").fit([X[0], X[1][:, 0]], y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        IVoroClassifier("iVoro-L").fit([X[0], X[1][1:]], y)
    model = IVoroClassifier("iVoro").fit(X[0], y)
    with pytest.raises(ValueError, match="X has 256 features"):
        model.predict(X[1])
    with pytest.raises(ValueError, match="groups: expected 600 entries"):
        model.predict(X[0], groups=[1, 2])
    with pytest.raises(ValueError, match="write sum or vote"):
        model.predict(X[0], groups=y, rule="max")
