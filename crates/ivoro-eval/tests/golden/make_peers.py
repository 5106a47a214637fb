"""Writes peers.json: a tiny data set and what each peer must answer, computed without iVoro.

Run in this directory: python3 make_peers.py
Written with Python 3.11, NumPy 2.4.6, scikit-learn 1.9.1. Needs no network; seeds are fixed.
"""

import json

import numpy as np
from sklearn.covariance import EmpiricalCovariance
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestCentroid
from sklearn.preprocessing import StandardScaler, normalize

DIM, PHASES, COUNTS = 6, [3, 2, 2], [14, 9, 21, 8, 17, 6, 12]
SETTINGS = {
    "seed": 42,
    "ranpac_dim": 31,
    "ranpac_ridge": 0.7,
    "slda_shrinkage": 1e-4,
    "fecam_shrink": [1.0, 1.0],
    "fecam_tukey": 0.5,
    "joint_weight_decay": 0.01,
    "joint_iterations": 1000,
    "joint_tolerance": 1e-7,
}


def data():
    """Features that are not negative and correlate, as behind a rectifier and a pooling."""
    random = np.random.RandomState(7)
    centres = random.gamma(2.0, 0.6, (len(COUNTS), DIM))
    mixing = np.eye(DIM) + 0.3 * random.randn(DIM, DIM)
    labels = np.repeat(np.arange(len(COUNTS)), COUNTS)
    noise = 0.45 * random.randn(len(labels), DIM) @ mixing
    train = np.maximum(centres[labels] + noise, 0).astype(np.float32)
    wanted = random.randint(0, len(COUNTS), 25)
    noise = 0.45 * random.randn(25, DIM) @ mixing
    test = np.maximum(centres[wanted] + noise, 0).astype(np.float32)
    order = random.permutation(len(labels))
    return train[order], labels[order], test


def means(x, y):
    return NearestCentroid().fit(x, y).centroids_


def ncm(x, y, q):
    return ((q[:, None] - means(x, y)[None]) ** 2).sum(2)


def ncm_cosine(x, y, q):
    return 1 - normalize(q) @ normalize(means(normalize(x), y)).T


class Shrunk(EmpiricalCovariance):
    """Covariance of a matrix of centred samples, shrunk towards the identity."""

    def fit(self, x, y=None):
        eps = SETTINGS["slda_shrinkage"]
        sigma = x.T @ x / len(x)
        self.covariance_ = (1 - eps) * sigma + eps * np.eye(x.shape[1])
        return self


def slda(x, y, q):
    m = means(x, y)
    precision = np.linalg.inv(Shrunk().fit(x - m[y]).covariance_)
    score = q @ precision @ m.T - 0.5 * np.einsum("ci,ij,cj->c", m, precision, m)
    # scikit-learn must agree on a set whose classes weigh the same, its covariance being given
    fixed = Shrunk().fit(x - m[y]).covariance_
    given = type("Given", (Shrunk,), {"fit": lambda s, x, y=None: setattr(s, "covariance_", fixed)})
    prior = np.full(len(m), 1 / len(m))
    lda = LinearDiscriminantAnalysis(solver="lsqr", covariance_estimator=given(), priors=prior)
    other = lda.fit(x, y).decision_function(q)
    assert np.allclose(score - score[:, :1], other - other[:, :1], atol=1e-6)
    return -score


def shrink(sigma):
    g1, g2 = SETTINGS["fecam_shrink"]
    off = sigma[~np.eye(len(sigma), dtype=bool)]
    eye = np.eye(len(sigma))
    return sigma + g1 * np.trace(sigma) / len(sigma) * eye + g2 * off[off != 0].mean() * (1 - eye)


def fecam(x, y, q):
    power = SETTINGS["fecam_tukey"]
    columns = []
    for c in range(y.max() + 1):
        sigma = shrink(shrink(np.cov((x[y == c] ** power).T)))
        sd = np.sqrt(np.diag(sigma))
        inverse = np.linalg.pinv(sigma / np.outer(sd, sd))
        delta = normalize(q**power) - normalize((x[y == c].mean(0) ** power)[None])
        columns.append(np.einsum("ni,ij,nj->n", delta, inverse, delta))
    return np.stack(columns, 1)


def words(seed, count):
    """The splitmix64 stream."""
    z = np.uint64(seed) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def lift(x):
    """Rectified random projection: Box-Muller on the stream, one column after another."""
    dim, width = x.shape[1], SETTINGS["ranpac_dim"]
    pairs = (dim + 1) // 2
    u = (words(SETTINGS["seed"], 2 * pairs * width) >> np.uint64(11)).astype(np.float64)
    u1, u2 = (u[0::2] + 1) / 2**53, u[1::2] / 2**53
    radius, angle = np.sqrt(-2 * np.log(u1)), 2 * np.pi * u2
    normals = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)
    columns = normals.reshape(width, 2 * pairs)[:, :dim]
    return np.maximum(x @ columns.T / np.sqrt(dim), 0)


def ridge_weights(h, y, classes, ridge):
    return np.linalg.solve(h.T @ h + ridge * np.eye(h.shape[1]), h.T @ np.eye(classes)[y])


def ranpac(x, y, q, ridge=SETTINGS["ranpac_ridge"]):
    return -lift(q) @ ridge_weights(lift(x), y, y.max() + 1, ridge)


def chosen_ridge(x, y):
    """Each fifth sample of a class held out, mean squared error over powers of ten."""
    held = np.zeros(len(y), bool)
    for c in range(y.max() + 1):
        held[np.flatnonzero(y == c)[4::5]] = True
    target, h = np.eye(y.max() + 1)[y[held]], lift(x)
    grid = 10.0 ** np.arange(-6, 7)
    weights = [ridge_weights(h[~held], y[~held], y.max() + 1, ridge) for ridge in grid]
    return grid[np.argmin([((h[held] @ w - target) ** 2).mean() for w in weights])]


def joint(x, y, q):
    scaler = StandardScaler().fit(x.astype(np.float64))
    strength = 1 / (SETTINGS["joint_weight_decay"] * len(x))
    model = LogisticRegression(C=strength, tol=1e-12, max_iter=100_000)
    return -model.fit(scaler.transform(x), y).decision_function(scaler.transform(q))


def main():
    train, labels, test = data()
    x, q = train.astype(np.float64), test.astype(np.float64)
    first = labels < PHASES[0]
    ridge = chosen_ridge(x[first], labels[first])
    peers = {
        "ncm": ncm,
        "ncm-cosine": ncm_cosine,
        "slda": slda,
        "fecam": fecam,
        "ranpac": ranpac,
        "ranpac-chosen": lambda x, y, q: ranpac(x, y, q, ridge),
        "joint": joint,
    }
    expected = {name: [] for name in peers}
    for known in np.cumsum(PHASES):
        seen = labels < known
        for name, peer in peers.items():
            expected[name].append(peer(x[seen], labels[seen], q).tolist())
    out = {
        "settings": SETTINGS,
        "phases": PHASES,
        "chosen_ridge": ridge,
        "train": train.tolist(),
        "labels": labels.tolist(),
        "test": test.tolist(),
        "distances": expected,
    }
    with open("peers.json", "w") as file:
        json.dump(out, file)
        file.write("\n")


if __name__ == "__main__":
    main()
