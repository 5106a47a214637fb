"""Networks: photos in, features out."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_sample_images

import ivoro

# The original in 32 bits, computed by ONNX Runtime: data/make_lite0.py. On these photographs kernels
# that are rounded to 16 bits change features by 0.4 % of their length, and Pillow's resizing, which
# rounds other pixels, by 1.2 %.
GOLDEN = json.loads((Path(__file__).parent / "data" / "lite0.json").read_text())
TOLERANCE = 0.02


@pytest.fixture(scope="module")
def network():
    return ivoro.Network()


@pytest.fixture(scope="module")
def photos():
    return dict(zip(("china", "flower"), load_sample_images().images, strict=True))


@pytest.mark.parametrize("name", ["china", "flower"])
def test_features_are_those_of_the_original(network, photos, name):
    expected = np.array(GOLDEN[name])
    (found,) = network.features([photos[name]])
    assert found.shape == expected.shape
    apart = np.linalg.norm(found - expected) / np.linalg.norm(expected)
    assert apart < TOLERANCE
    other = np.array(GOLDEN["flower" if name == "china" else "china"])
    assert np.linalg.norm(found - other) > 30 * np.linalg.norm(found - expected)


def test_what_the_network_is(network):
    assert network.name == "efficientnet-lite0"
    assert network.layers == {"last": 1280, "block11": 672, "block5": 240}
    described = network.description
    assert described["hash"] == network.hash
    assert (described["height"], described["fit"]) == (224, {"centre": {"of": 256}})
    assert repr(network) == "Network('efficientnet-lite0')"


def test_files_arrays_layers_and_views(network, photos, tmp_path):
    pillow = pytest.importorskip("PIL.Image")
    path = tmp_path / "china.png"
    pillow.fromarray(photos["china"]).save(path)
    from_file = network.features([path, str(path)])
    from_array = network.features([photos["china"]])
    assert np.array_equal(from_file[0], from_array[0])
    assert np.array_equal(from_file[0], from_file[1])
    both = network.features([photos["china"]], views=("0", "0m"))
    assert both.shape == (1, 2, 1280)
    assert np.array_equal(both[:, 0], from_array)
    square = photos["china"][:256, :256]
    mirrored = network.features([square], views=("0m",))
    assert np.allclose(mirrored, network.features([square[:, ::-1]]))
    assert network.features([photos["china"]], layer="block11").shape == (1, 672)


def test_features_go_into_the_classifier(network, photos):
    shots = [np.roll(photos[name], 5 * at, axis=1) for name in photos for at in range(4)]
    X, y = network.features(shots), np.repeat(list(photos), 4)
    model = ivoro.IVoroClassifier("iVoro").fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) == 1.0


def test_what_is_wrong_is_said(network, photos, tmp_path):
    with pytest.raises(ValueError, match="no layer"):
        network.features([photos["china"]], layer="first")
    with pytest.raises(ValueError, match="45"):
        network.features([photos["china"]], views=("45",))
    with pytest.raises(OSError, match="absent"):
        network.features([tmp_path / "absent.jpg"])
    with pytest.raises(TypeError, match="list"):
        network.features("one.jpg")
    with pytest.raises(ValueError, match="absent"):
        ivoro.Network("absent")
