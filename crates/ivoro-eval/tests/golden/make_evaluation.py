"""Golden numbers of an evaluation, by NumPy, SciPy and scikit-learn: writes evaluation.json beside this file.

    python make_evaluation.py

Nothing here is shared with the Rust code.
"""

import json
import pathlib

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist
from scipy.stats import binomtest
from sklearn.metrics import (
    confusion_matrix,
    precision_score,
    recall_score,
    roc_auc_score,
    roc_curve,
)

rng = np.random.default_rng(20261119)
CLASSES, DIM, LEARNED, ASKED, STRANGE = 5, 6, 40, 23, 30

# five classes that overlap, and two that are not learned, apart from each other
centres = rng.normal(0, 0.8, (CLASSES, DIM))
spread = np.linspace(0.6, 1.4, CLASSES)[:, None]


def drawn(each):
    labels = np.repeat(np.arange(CLASSES), each)
    points = centres[labels] + spread[labels] * rng.normal(size=(len(labels), DIM))
    return np.round(points, 3), labels


train, train_labels = drawn(LEARNED)
asked, labels = drawn(ASKED)
far = np.concatenate([np.full((1, DIM), 9.0), np.full((1, DIM), -9.0)])
strange_labels = np.repeat([0, 1], STRANGE // 2)
strange = np.round(far[strange_labels] + 0.7 * rng.normal(size=(STRANGE, DIM)), 3)

# the nearest mean, as `iVoro` without letters: squared distances
means = np.stack([train[train_labels == k].mean(0) for k in range(CLASSES)])
distances = ((asked[:, None] - means) ** 2).sum(2)
named = distances.argmin(1)
right = named == labels

wilson = {}
for k, n in [(0, 1), (1, 1), (9, 10), (0, 20), (20, 20), (480, 500), (int(right.sum()), len(right))]:
    interval = binomtest(k, n).proportion_ci(0.95, method="wilson")
    wilson[f"{k}/{n}"] = [interval.low, interval.high]

# reliability of made-up probabilities: 15 bins of equal mass, as numpy.array_split would not cut them
probability = np.round(rng.uniform(0.3, 1.0, 101), 4)
correct = rng.uniform(size=101) < probability**1.5
order = np.argsort(probability, kind="stable")
edges = [b * 101 // 15 for b in range(16)]
bins = [order[a:b] for a, b in zip(edges, edges[1:])]
error = sum(abs(probability[b].sum() - correct[b].sum()) for b in bins) / 101

# how strange: any two samples of numbers will do for AUROC and the false positive rate
near, away = np.round(rng.normal(1.0, 0.1, 57), 3), np.round(rng.normal(1.15, 0.15, 31), 3)
truth = np.r_[np.zeros(57), np.ones(31)]
scores = np.r_[near, away]
sorted_near = np.sort(near)
threshold = sorted_near[int(np.ceil(0.95 * 57)) - 1]

# average linkage of squared distances, cut in the middle
members = pdist(strange, "sqeuclidean")
groups = fcluster(linkage(members, "average"), 40.0, "distance")

golden = {
    "train": train.tolist(),
    "train_labels": train_labels.tolist(),
    "asked": asked.tolist(),
    "labels": labels.tolist(),
    "strange": strange.tolist(),
    "strange_labels": strange_labels.tolist(),
    "named": named.tolist(),
    "wilson": wilson,
    "recall": recall_score(labels, named, average=None).tolist(),
    "precision": precision_score(labels, named, average=None, zero_division=0).tolist(),
    "macro": float(recall_score(labels, named, average="macro")),
    "confusion": confusion_matrix(labels, named).tolist(),
    "probability": probability.tolist(),
    "correct": correct.tolist(),
    "error": float(error),
    "bins": [[len(b), float(probability[b].mean()), float(correct[b].mean())] for b in bins],
    "near": near.tolist(),
    "away": away.tolist(),
    "auroc": float(roc_auc_score(truth, scores)),
    "fpr95": float((away <= threshold).mean()),
    "groups": groups.tolist(),
}
# scikit-learn agrees on the rate: known queries are its positive class
fpr, tpr, _ = roc_curve(1 - truth, -scores)
assert abs(fpr[np.argmax(tpr >= 0.95)] - golden["fpr95"]) < 1e-12
path = pathlib.Path(__file__).with_name("evaluation.json")
path.write_text(json.dumps(golden) + "\n")
