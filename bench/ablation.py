"""A plain NumPy script of the whole ablation: the 21 variants, matched pairs, tournament rule.

Usage: ablation.py FEATURES ORDER. Prints method,average,last as CSV. An independent computation of
what `ivoro run` reports with the same settings (λ 0.5, w 10, β 1e-2, weight decay 1e-4, separate
probes in transformed space, layer weights 1,1); probes by SciPy's L-BFGS-B.
"""

import sys

import numpy as np
from safetensors.numpy import load_file
from scipy.optimize import minimize

PAPER = ("iVoro,iVoro-N,iVoro-D,iVoro-ND,iVoro-R,iVoro-DR,iVoro-NDR,iVoro-AC,iVoro-AI,iVoro-NAC,iVoro-NAI,"
         "iVoro-NDAC,iVoro-NDAI,iVoro-RAC,iVoro-RAI,iVoro-DRAC,iVoro-DRAI,iVoro-NACL,iVoro-NAIL,"
         "iVoro-NDACL,iVoro-NDAIL").split(",")


def transform(z):
    length = np.linalg.norm(z, axis=1, keepdims=True)
    return (10 * z / np.where(length > 0, length, 1)) ** 0.5


def probe(x, y, centres, decay, beta):
    start = 2 * centres.astype(np.float64)
    x = x.astype(np.float64)
    onehot = np.eye(len(centres))[y]

    def objective(flat):
        w = flat.reshape(start.shape)
        logits = x @ w.T - 0.25 * (w * w).sum(1)
        logits -= logits.max(1, keepdims=True)
        p = np.exp(logits)
        p /= p.sum(1, keepdims=True)
        loss = -np.log(np.maximum(p[np.arange(len(y)), y], 1e-300)).mean()
        r = (p - onehot) / len(y)
        gradient = r.T @ x - r.sum(0)[:, None] * w / 2
        loss += 0.5 * decay * (w * w).sum() + beta * ((w - start) ** 2).sum()
        gradient += decay * w + 2 * beta * (w - start)
        return loss, gradient.ravel()

    done = minimize(objective, start.ravel(), jac=True, method="L-BFGS-B",
                    options={"maxiter": 100, "gtol": 1e-5, "maxcor": 10})
    return done.x.reshape(start.shape) / 2


def distances(q, c):
    return (q * q).sum(1)[:, None] - 2 * q @ c.T + (c * c).sum(1)


def divide(cross, inner, phases):
    out = np.full_like(cross, np.inf)
    rows = np.arange(len(cross))
    for first, last in phases:
        winner = first + inner[:, first:last].argmin(1)
        out[rows, winner] = cross[rows, winner]
    return out


def main(path, order):
    data = load_file(path)
    k = int(data["train.labels"].max()) + 1
    ids = np.arange(k) if order == "identity" else np.random.RandomState(int(order.split(":")[1])).permutation(k)
    place = np.argsort(ids)
    y, t = place[data["train.labels"]], place[data["test.labels"]]
    train = {name: data["train." + name].astype(np.float32) for name in ("layer4", "layer3")}
    test = {name: data["test." + name].astype(np.float32) for name in ("layer4", "layer3")}
    base = k - k // 2
    sizes = [base] + [(k - base) // 5] * 5
    ends = np.cumsum(sizes)
    phases = [(end - size, end) for end, size in zip(ends, sizes)]
    print("method,average,last")
    for name in PAPER:
        letters = name.partition("-")[2]
        n, d, r = "N" in letters, "D" in letters, "R" in letters
        views = range(4) if "A" in letters else range(1)
        layers = ("layer4", "layer3") if letters.endswith("L") else ("layer4",)
        cross, inner = [], []
        for view in views:
            total, probed = 0, 0
            for layer in layers:
                x, q = train[layer][:, view], test[layer][:, view]
                if n:
                    x, q = transform(x), transform(q)
                means = np.stack([x[y == c].mean(0) for c in range(k)])
                moved = means.copy()
                local = np.zeros_like(means)
                for first, last in phases:
                    mine = (y >= first) & (y < last)
                    if r:
                        moved[first:last] = probe(x[mine], y[mine] - first, means[first:last], 0, 1e-2)
                    if d:
                        local[first:last] = probe(x[mine], y[mine] - first, means[first:last], 1e-4, 0)
                total = total + distances(q, moved)
                probed = probed + distances(q, local)
            cross.append(total)
            inner.append(probed)
        accuracies = []
        for phase, end in enumerate(ends):
            seen, so_far = t < end, phases[: phase + 1]
            c = [m[seen][:, :end] for m in cross]
            i = [m[seen][:, :end] for m in inner]
            if "AC" in letters:
                picked = [divide(a, b, so_far) if d else a for a, b in zip(c, i)]
                votes = np.zeros(c[0].shape)
                for m in picked:
                    votes[np.arange(len(m)), m.argmin(1)] += 1
                total = sum(np.where(np.isinf(m), a, m) for m, a in zip(picked, c))
                total = total / (total.max() * 2)
                answer = (votes - total).argmax(1)
            else:
                total = sum(c)
                answer = (divide(total, sum(i), so_far) if d else total).argmin(1)
            accuracies.append(100 * (answer == t[seen]).mean())
        print(f"{name},{np.mean(accuracies):.2f},{accuracies[-1]:.2f}")


main(*sys.argv[1:])
