"""From the features of a frozen network to a classifier that grows.

    python five_phases.py cifar100-small.features --picture curve.png

The file is one that ships with the program `ivoro`: twenty classes of CIFAR-100, seen by a ResNet-18
that was trained on the first ten of them and then frozen.
"""

# %% The features. The last layer of the upright image is what most networks give.

import argparse
import copy

import numpy as np

import ivoro
from ivoro import IVoroClassifier

arguments = argparse.ArgumentParser(description="Teach a classifier in five phases.")
arguments.add_argument("features", help="cifar100-small.features")
arguments.add_argument("--picture", help="where to draw the accuracy curves")
options = arguments.parse_args()

data = ivoro.read_features(options.features)
(layers, y), (layers_test, y_test) = data.train, data.test
X, X_test = layers[0][:, 0], layers_test[0][:, 0]
print(f"{len(X)} training and {len(X_test)} test images of {len(data.classes)} classes, "
      f"{X.shape[1]} features each")


def samples(names):
    """The training samples of these classes."""
    wanted = np.isin(y, names)
    return X[wanted], y[wanted]


# %% Ten classes first, then two in each of five phases. No sample is kept.

base_classes, *phases = data.classes[:10], *np.reshape(data.classes[10:], (5, 2)).tolist()
model = IVoroClassifier("iVoro-NW", scatter="per-class").fit(*samples(base_classes))
base = copy.deepcopy(model)
for names in [[], *phases]:
    if names:
        model.partial_fit(*samples(names))
    known = np.isin(y_test, model.classes_)
    score = model.score(X_test[known], y_test[known])
    print(f"{len(model.classes_):3} classes: {100 * score:5.2f} % of {known.sum()} test images right")

# %% What it says of one image, and of images whose features are shuffled.

distances, nearest = model.kneighbors(X_test[:1], 3)
chances = model.predict_proba(X_test[:1])[0, nearest[0]]
for name, chance in zip(model.classes_[nearest[0]], chances):
    print(f"  {name:<12} {100 * chance:5.1f} %")
shuffled = np.random.default_rng(0).permuted(X_test, axis=1)
print(f"rejected: {100 * model.reject(X_test).mean():.0f} % of the test images, "
      f"{100 * model.reject(shuffled).mean():.0f} % of shuffled features")

# %% Forgetting a class leaves the classifier that never saw it, bit for bit.

last = phases[-1]
never = copy.deepcopy(base)
for names in phases[:-1]:
    never.partial_fit(*samples(names))
never.partial_fit(*samples(last[:1]))
model.forget(last[1])
assert model.model_ == never.model_
print(f"without {last[1]} the classifier equals the one that never saw it")

# %% Two sites start from the same model, learn apart, and are merged.

north = copy.deepcopy(base).partial_fit(*samples(phases[0]))
south = copy.deepcopy(base).partial_fit(*samples(phases[1]))
merged = north.merge(south, ancestor=base)
both = base.partial_fit(*samples(phases[0])).partial_fit(*samples(phases[1]))
assert merged.model_ == both.model_
print(f"merged, the two sites know the {len(merged.classes_)} classes that one would")

# %% The curves of several variants, rotations and layers included.

comparison = ivoro.run(options.features, "10+5x2", ["iVoro", "iVoro-N", "iVoro-NWAI"],
                       order="identity")
record = comparison.record()
for method in record["methods"]:
    print(f"{method['name']:<12} average {method['summary']['average']:.2f} %, "
          f"last {method['summary']['last']:.2f} %")
if options.picture:
    from matplotlib import pyplot

    ivoro.plot.accuracy(record)
    pyplot.savefig(options.picture, dpi=150)
