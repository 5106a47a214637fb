"""Times the Python package against the Rust call on the same arrays and against scikit-learn.

Run through `cargo xtask bench python`, which builds `ivoro-bench` and the wheel, both as users get
them, and calls this file. 100 000 samples of 512 dimensions in 1 000 classes; f32, as many threads
as there are cores, on all sides.
"""

import json
import mmap
import os
import subprocess
import sys
import tempfile
import time

THREADS = os.cpu_count()
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = str(THREADS)

import numpy as np  # noqa: E402  the thread counts must be set first
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis  # noqa: E402
from sklearn.neighbors import NearestCentroid  # noqa: E402

from ivoro import IVoroClassifier  # noqa: E402

ROWS, DIM, CLASSES = 100_000, 512, 1_000
NOISE, SHARED = 3.5, 0.35
RIDGE = 1e-3
REPEATS = 5
#: Times that Rust and Python take turns, each time in a new process: where memory happens to lie makes
#: a difference of 10 %. Both keep their shortest time.
ROUNDS = 4


def best(work):
    shortest, result = float("inf"), None
    for _ in range(REPEATS):
        start = time.perf_counter()
        result = work()
        shortest = min(shortest, time.perf_counter() - start)
    return shortest, result


def samples():
    """Classes whose samples spread more in some directions than in others, by so much that both
    NearestCentroid and LinearDiscriminantAnalysis get most, but not all, samples right."""
    rng = np.random.default_rng(1)
    centres = rng.normal(0, 1, (CLASSES, DIM)).astype(np.float32)
    y = rng.permutation(np.arange(ROWS) % CLASSES)
    shared = rng.normal(0, 1, (32, DIM)).astype(np.float32)
    noise = NOISE * rng.normal(0, 1, (ROWS, DIM)).astype(np.float32)
    noise += SHARED * rng.normal(0, 1, (ROWS, 32)).astype(np.float32) @ shared
    return centres[y] + noise, y


def rust(program, path, variant):
    return told([program, "model", path, variant, str(RIDGE)])


def told(command):
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def plain_pages(X):
    """A copy in pages of the usual size, as the Rust program has them: NumPy asks for huge ones."""
    copy = np.frombuffer(mmap.mmap(-1, X.nbytes), X.dtype).reshape(X.shape)
    copy[...] = X
    return copy


def python(path, variant):
    return told([sys.executable, __file__, "--measure", path, variant])


def measure(path, variant):
    samples = np.load(path)
    X, y = plain_pages(samples["X"]), samples["y"]
    learn, model = best(lambda: IVoroClassifier(variant, ridge=RIDGE).partial_fit(X, y))
    update, _ = best(lambda: model.partial_fit(X, y))
    predict, _ = best(lambda: model.predict(X))
    print(json.dumps({"learn": learn, "update": update, "predict": predict}))


def ratio(name, value):
    """A line that `cargo xtask bench` compares with ranges.toml: more is better."""
    print(f"ratio\tpython\t{name}\t{value:.4f}")


def compare_with_rust(program, X, y):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "samples.npz")
        np.savez(path, X=X, y=y)
        for variant in ("iVoro", "iVoro-W"):
            turns = [(rust(program, path, variant), python(path, variant)) for _ in range(ROUNDS)]
            print(f"{variant}, {ROWS} x {DIM}, {CLASSES} classes: Python / the Rust call")
            for name in ("learn", "update", "predict"):
                call, own = (min(turn[side][name] for turn in turns) for side in (0, 1))
                print(f"  {name:<10} {own * 1e3:9.1f} ms / {call * 1e3:9.1f} ms = {own / call:.3f}")
                ratio(f"{variant} {name}, Rust", call / own)


def main(program):
    X, y = samples()
    half = len(X) // 2
    compare_with_rust(program, X, y)
    print("fit on half of the samples and predict the others: scikit-learn / ivoro")
    rivals = (("iVoro", NearestCentroid()), ("iVoro-W", LinearDiscriminantAnalysis()))
    for variant, rival in rivals:
        def work(model):
            return np.mean(model.fit(X[:half], y[:half]).predict(X[half:]) == y[half:])

        own, right = best(lambda: work(IVoroClassifier(variant, ridge=RIDGE)))
        other, theirs = best(lambda: work(rival))
        print(f"  {type(rival).__name__:<28} {other * 1e3:9.1f} ms / {own * 1e3:9.1f} ms = "
              f"{other / own:.2f}   accuracy {100 * theirs:.2f} % and {100 * right:.2f} %")
        ratio(type(rival).__name__, other / own)


if __name__ == "__main__":
    if sys.argv[1] == "--measure":
        measure(*sys.argv[2:])
    else:
        main(sys.argv[1])
