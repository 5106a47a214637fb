"""Writes peers.json: a tiny data set and what each peer must answer, computed without iVoro.

Run in this directory: python3 make_peers.py
Written with Python 3.11, NumPy 2.4.6, SciPy, scikit-learn 1.9.1. Needs no network; seeds are fixed.
"""

import json

import numpy as np
from scipy.special import erf
from sklearn.cluster import KMeans
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
    "klda_dim": 29,
    "klda_gamma": 0.3,
    "klda_ridge": 1e-3,
    "dsal_dim": 37,
    "dsal_ridge": 0.1,
    "dsal_compensation": 0.6,
    "loranpac_dim": 60,
    "loranpac_kept": 0.6,
    "loranpac_rank": 10000,
    "anacp_dim": 33,
    "anacp_ridge": 2.0,
    "anacp_heads": 3,
    "anacp_samples": 15,
    "fenec_centres": 47,
    "fenec_shrink": [0.886, 0.896],
    "fenec_tukey": 0.377,
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


def normals(seed, rows, dim):
    """Standard normals: Box-Muller on the stream, one row after another."""
    pairs = (dim + 1) // 2
    u = (words(seed, 2 * pairs * rows) >> np.uint64(11)).astype(np.float64)
    u1, u2 = (u[0::2] + 1) / 2**53, u[1::2] / 2**53
    radius, angle = np.sqrt(-2 * np.log(u1)), 2 * np.pi * u2
    both = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)
    return both.reshape(rows, 2 * pairs)[:, :dim]


def evenly(seed, count):
    return (words(seed, count) >> np.uint64(11)).astype(np.float64) / 2**53


def lift(x, width=SETTINGS["ranpac_dim"]):
    """Rectified random projection."""
    dim = x.shape[1]
    return np.maximum(x @ normals(SETTINGS["seed"], width, dim).T / np.sqrt(dim), 0)


def ridge_weights(h, y, classes, ridge):
    return np.linalg.solve(h.T @ h + ridge * np.eye(h.shape[1]), h.T @ np.eye(classes)[y])


def ranpac(x, y, q, ridge=SETTINGS["ranpac_ridge"]):
    return -lift(q) @ ridge_weights(lift(x), y, y.max() + 1, ridge)


def chosen_ridge(x, y):
    """Each fifth sample of a class held out, mean squared error over powers of ten."""
    held = fifth(y)
    target, h = np.eye(y.max() + 1)[y[held]], lift(x)
    grid = 10.0 ** np.arange(-6, 7)
    weights = [ridge_weights(h[~held], y[~held], y.max() + 1, ridge) for ridge in grid]
    return grid[np.argmin([((h[held] @ w - target) ** 2).mean() for w in weights])]


def fifth(y):
    """Each fifth sample of a class."""
    held = np.zeros(len(y), bool)
    for c in range(y.max() + 1):
        held[np.flatnonzero(y == c)[4::5]] = True
    return held


def klda(x, y, q, gamma=SETTINGS["klda_gamma"]):
    width, seed = SETTINGS["klda_dim"], SETTINGS["seed"]
    w = normals(seed, width, x.shape[1]) * np.sqrt(2 * gamma)
    b = 2 * np.pi * evenly(seed + 1, width)
    phi = lambda z: np.sqrt(2 / width) * (np.cos(z @ w.T + b) - np.cos(b))
    f = phi(x)
    m = means(f, y)
    inverse = np.linalg.inv((f - m[y]).T @ (f - m[y]) + SETTINGS["klda_ridge"] * np.eye(width))
    delta = phi(q)[:, None] - m[None]
    whole = np.einsum("nci,ij,ncj->nc", delta, inverse, delta)
    return whole - np.einsum("ni,ij,nj->n", phi(q), inverse, phi(q))[:, None]


def chosen_gamma(x, y):
    held = fifth(y)
    grid = 10.0 ** np.arange(-6, 1)
    right = [
        (klda(x[~held], y[~held], x[held], gamma).argmin(1) == y[held]).sum() for gamma in grid
    ]
    return grid[np.argmax(right)]


def phases(y):
    """The samples of each phase that has come."""
    ends = np.cumsum([0] + PHASES)
    for first, end in zip(ends, ends[1:]):
        if end <= y.max() + 1:
            yield first, end, (y >= first) & (y < end)


def dsal(x, y, q):
    dim, width, seed = x.shape[1], SETTINGS["dsal_dim"], SETTINGS["seed"]
    w = (2 * evenly(seed, width * dim).reshape(width, dim) - 1) / np.sqrt(dim)
    classes, ridge = y.max() + 1, SETTINGS["dsal_ridge"]
    one_hot = np.eye(classes)[y]
    h, t = np.maximum(x @ w.T, 0), np.tanh(x @ w.T)
    residue = np.zeros((len(x), classes))
    for first, end, now in phases(y):
        seen = y < end
        fit = ridge_weights(h[seen], y[seen], end, ridge)
        residue[now, first:end] = one_hot[now, first:end] - (h[now] @ fit)[:, first:end]
    more = np.linalg.solve(t.T @ t + ridge * np.eye(width), t.T @ residue)
    main = np.maximum(q @ w.T, 0) @ ridge_weights(h, y, classes, ridge)
    return -(main + SETTINGS["dsal_compensation"] * np.tanh(q @ w.T) @ more)


def loranpac(x, y, q, width=SETTINGS["loranpac_dim"]):
    kept = lambda count: round(count * SETTINGS["loranpac_kept"])
    h = lift(x, width)
    u, s, count = np.zeros((width, 0)), np.zeros(0), 0
    for _, _, now in phases(y):
        count += now.sum()
        u, s, _ = np.linalg.svd(np.hstack([u * s, h[now].T]), full_matrices=False)
        rank = min(kept(count), kept(width), SETTINGS["loranpac_rank"])
        u, s = u[:, :rank], s[:rank]
    weights = u @ ((u.T @ h.T @ np.eye(y.max() + 1)[y]) / s[:, None] ** 2)
    return -lift(q, width) @ weights


def anacp(x, y, q):
    seed, width, ridge = SETTINGS["seed"], SETTINGS["anacp_dim"], SETTINGS["anacp_ridge"]
    heads, each, dim = SETTINGS["anacp_heads"], SETTINGS["anacp_samples"], x.shape[1]
    gelu = lambda z: 0.5 * z * (1 + erf(z / np.sqrt(2)))
    lifted = lambda z, head: gelu(z @ normals(seed + head, width, dim).T)
    x, q, classes = normalize(x), normalize(q), y.max() + 1
    m = means(x, y)
    sigma = (x - m[y]).T @ (x - m[y]) / len(x) + 1e-4 * np.eye(dim)
    values, vectors = np.linalg.eigh(sigma)
    root = vectors @ np.diag(values**-0.5) @ vectors.T
    u, s, v = np.linalg.svd((m - m.mean(0)) @ root, full_matrices=False)
    targets = normalize(u @ np.diag(np.where(s > 1e-6, s + 1, 0)) @ v @ root + m.mean(0))

    def projected(z):
        total = 0
        for head in range(heads):
            h = lifted(x, head)
            theta = np.linalg.solve(h.T @ h + ridge * np.eye(width), h.T @ targets[y])
            total = total + normalize(lifted(z, head) @ theta)
        return total / heads

    drawn = np.repeat(np.arange(classes), each)
    noise = normals(seed + heads + 1, len(drawn), dim) @ np.linalg.inv(root)
    h = lifted(projected(m[drawn] + noise), heads)
    return -lifted(projected(q), heads) @ ridge_weights(h, drawn, classes, ridge)


def first_centres(x, count):
    """k-means++ on the stream of even numbers."""
    u = evenly(SETTINGS["seed"], count)
    chosen = [int(u[0] * len(x))]
    for draw in u[1:]:
        squares = ((x[:, None] - x[chosen][None]) ** 2).sum(2).min(1)
        chosen.append(int(np.argmax(np.cumsum(squares) > draw * squares.sum())))
    return x[chosen]


def fenec(x, y, q):
    power, (g1, g2) = SETTINGS["fenec_tukey"], SETTINGS["fenec_shrink"]
    eye = np.eye(x.shape[1])
    columns = []
    for c in range(y.max() + 1):
        own = x[y == c]
        sigma = np.cov((own**power).T)
        for _ in range(2):
            off = sigma[~eye.astype(bool)].mean()
            sigma = sigma + g1 * np.trace(sigma) / len(sigma) * eye + g2 * off * (1 - eye)
        sd = np.sqrt(np.diag(sigma))
        inverse = np.linalg.inv(sigma / np.outer(sd, sd))
        count = max(1, min(SETTINGS["fenec_centres"], len(own) // 10))
        start = first_centres(own, count)
        centres = KMeans(count, init=start, n_init=1, tol=0).fit(own).cluster_centers_
        delta = normalize(q**power)[:, None] - normalize(centres**power)[None]
        columns.append(np.einsum("nki,ij,nkj->nk", delta, inverse, delta).min(1))
    return np.stack(columns, 1)


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
    gamma = chosen_gamma(x[first], labels[first])
    peers = {
        "ncm": ncm,
        "ncm-cosine": ncm_cosine,
        "slda": slda,
        "fecam": fecam,
        "ranpac": ranpac,
        "ranpac-chosen": lambda x, y, q: ranpac(x, y, q, ridge),
        "klda": klda,
        "klda-chosen": lambda x, y, q: klda(x, y, q, gamma),
        "dsal": dsal,
        "loranpac": loranpac,
        "loranpac-tall": lambda x, y, q: loranpac(x, y, q, 20),
        "anacp": anacp,
        "fenec": fenec,
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
        "chosen_gamma": gamma,
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
