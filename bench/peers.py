"""Times the peers and this project's work in turn and prints ratios.

Run through `cargo xtask bench [NAME …]`, which builds `ivoro-bench` and `ivoro`, makes a virtual
environment with the peers from PyPI, and calls this file. Peers: NumPy (the GEMM alone, as the
floor), scikit-learn, FAISS, PyTorch, ONNX Runtime; f32 and as many threads as there are cores, on both sides.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

THREADS = os.cpu_count()
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = str(THREADS)


def has_avx512():
    try:
        with open("/proc/cpuinfo") as file:
            return "avx512f" in file.read()
    except OSError:
        return False


# The OpenBLAS inside FAISS's wheel (0.3.15) does not know newer processors and then multiplies with
# SSE3: 6 times slower than NumPy's on an Ice Lake server. Named, it is as fast as NumPy's.
if has_avx512():
    os.environ.setdefault("OPENBLAS_CORETYPE", "SkylakeX")

import numpy as np  # noqa: E402  the settings above must come first

BENCH, PROGRAM = sys.argv[1], sys.argv[2]


def best(work, repeats=5):
    shortest = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        shortest = min(shortest, time.perf_counter() - start)
    return shortest


def fewest(enough, most):
    """The smallest number up to `most` that is enough, by bisection."""
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def ours(*arguments):
    done = subprocess.run([BENCH, *map(str, arguments)], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def ratio(bench, name, value):
    """A line that `cargo xtask bench` compares with ranges.toml: more is better."""
    print(f"ratio\t{bench}\t{name}\t{value:.4f}")


def line(what, seconds, reference, name):
    print(f"  {what:<34} {seconds * 1e3:10.1f} ms   {reference / seconds:6.2f} x {name}")


def nearest():
    import faiss
    from sklearn.neighbors import NearestCentroid

    faiss.omp_set_num_threads(THREADS)
    n, d = 100_000, 512
    rng = np.random.default_rng(1)
    queries = rng.random((n, d), dtype=np.float32)
    for k in (100, 1_000, 10_000):
        centres = rng.random((k, d), dtype=np.float32)
        repeats = 3 if k == 10_000 else 7
        print(f"nearest centre, {n} queries x {d} dims, {k} classes (NumPy GEMM alone = 1)")
        own = ours("nearest", n, d, k)["seconds"]
        floor = best(lambda: queries @ centres.T, repeats)
        index = faiss.IndexFlatL2(d)
        index.add(centres)
        # FAISS multiplies matrices only from so many queries on; it gets the better of both ways
        usual = faiss.cvar.distance_compute_blas_threshold
        flat = best(lambda: index.search(queries, 1), repeats)
        faiss.cvar.distance_compute_blas_threshold = 20
        flat = min(flat, best(lambda: index.search(queries, 1), repeats))
        faiss.cvar.distance_compute_blas_threshold = usual
        own = min(own, ours("nearest", n, d, k)["seconds"])
        line("NumPy GEMM alone", floor, floor, "GEMM")
        line("ivoro", own, floor, f"GEMM   {flat / own:.2f} x FAISS")
        line("FAISS IndexFlatL2", flat, floor, "GEMM")
        ratio("nearest", f"{k} classes, NumPy GEMM alone", floor / own)
        ratio("nearest", f"{k} classes, FAISS", flat / own)
        if k <= 1_000:
            model = NearestCentroid()
            model.fit(centres, np.arange(k))
            part = queries[:20_000]
            line("scikit-learn NearestCentroid", best(lambda: model.predict(part), 2) * 5, floor, "GEMM")


def index():
    """A million classes: our index against FAISS's, each at the cheapest setting of recall 0.95."""
    import faiss

    faiss.omp_set_num_threads(THREADS)
    n, d, asked = int(os.environ.get("IVORO_INDEX_CLASSES", 1_000_000)), 128, 10_000
    rng = np.random.default_rng(1)

    def normal(rows):
        return rng.standard_normal((rows, d), dtype=np.float32)

    def samples(centres, deviation):
        return centres[rng.integers(0, n, asked)] + deviation * normal(asked)

    clustered = normal(2_000)[rng.integers(0, 2_000, n)] + np.float32(0.6) * normal(n)
    compare_indexes("2,000 clusters", clustered, samples(clustered, np.float32(0.45)))
    uniform = rng.random((n, d), dtype=np.float32)
    compare_indexes("uniform", uniform, samples(uniform, np.float32(0.25)))


def compare_indexes(name, centres, queries):
    import faiss

    n, d = centres.shape
    with tempfile.TemporaryDirectory() as folder:
        centres.tofile(os.path.join(folder, "centres.f32"))
        queries.tofile(os.path.join(folder, "queries.f32"))
        own = ours("index", folder, d)
    truth = np.array(own["exact"])

    def search(index, what, key, values):
        points = []
        for value in values:
            setattr(what, key, value)
            seconds = best(lambda: index.search(queries, 1), 3)
            recall = float((index.search(queries, 1)[1][:, 0] == truth).mean())
            points.append({"probes": value, "seconds": seconds, "recall": recall})
            if recall > 0.995:
                break
        return points

    def row(what, points, build, size, reference):
        good = [p for p in points if p["recall"] >= 0.95]
        if not good:
            print(f"  {what:<26} recall {points[-1]['recall']:.3f} at most; built in {build:.0f} s")
            return None
        p = min(good, key=lambda p: p["seconds"])
        rate = len(queries) / p["seconds"]
        ratio = f"{rate / reference:6.2f} x" if reference else ""
        print(f"  {what:<26} {rate:9.0f} queries/s at recall {p['recall']:.3f} ({p['probes']:>3}), "
              f"built in {build:4.0f} s, {size / 1e6:5.0f} MB {ratio}")
        return rate

    print(f"index, {n} classes x {d} dims, {name}, {len(queries)} queries near their class, top 1")
    quantiser = faiss.IndexFlatL2(d)
    ivf = faiss.IndexIVFFlat(quantiser, d, own["families"])
    start = time.perf_counter()
    ivf.cp.niter = 8
    ivf.train(centres[np.random.default_rng(2).permutation(n)[:64 * own["families"]]])
    ivf.add(centres)
    build = time.perf_counter() - start
    size = centres.nbytes + 8 * n
    reference = row("FAISS IndexIVFFlat", search(ivf, ivf, "nprobe", (1, 2, 4, 8, 16, 32, 64, 128, 256)),
                    build, size, None)
    del ivf
    rate = row("ivoro", own["points"], own["build_seconds"], own["bytes"], reference)
    # the ranges are those of a million classes
    if rate and reference and n == 1_000_000:
        ratio("index", f"{name}, FAISS IndexIVFFlat", rate / reference)
    hnsw = faiss.IndexHNSWFlat(d, 16)
    hnsw.hnsw.efConstruction = 80
    start = time.perf_counter()
    hnsw.add(centres)
    build = time.perf_counter() - start
    row("FAISS IndexHNSWFlat(16)", search(hnsw, hnsw.hnsw, "efSearch", (16, 32, 64, 128, 256, 512)),
        build, centres.nbytes + n * (2 * 16 + 2) * 4, reference)
    exact = len(queries) / own["exact_seconds"]
    print(f"  {'ivoro, all classes':<26} {exact:9.0f} queries/s, exact")


def means():
    n, d, k = 1_000_000, 512, 100
    own = ours("means", n, d, k)
    print(f"learning a phase, {n} x {d} f32 into {k} class means (reading the bytes once = 1)")
    line("reading the bytes once", own["read_seconds"], own["read_seconds"], "read")
    line("ivoro, exact sums", own["seconds"], own["read_seconds"], "read")
    ratio("means", "class means, reading the bytes once", own["read_seconds"] / own["seconds"])
    print(f"  read rate {own['bytes'] / own['read_seconds'] / 1e9:.1f} GB/s")
    rows = own["scatter_rows"]
    points = np.random.default_rng(1).random((rows, d), dtype=np.float32)
    # of a matrix with itself NumPy computes one half and copies it; of equal ones it multiplies all
    twin = points.copy()
    gemm = best(lambda: points.T @ twin, 3)
    print(f"second moments, {rows} x {d} (NumPy f32 GEMM of the same product = 1)")
    line("NumPy f32 GEMM", gemm, gemm, "GEMM")
    syrk = best(lambda: points.T @ points, 3)
    line("NumPy f32, one half (SYRK)", syrk, gemm, "GEMM")
    wide = points.astype(np.float64)
    line("NumPy f64, one half (SYRK)", best(lambda: wide.T @ wide, 3), gemm, "GEMM")
    line("ivoro, exact integers, one half", own["scatter_seconds"], gemm, "GEMM")
    ratio("means", "second moments, NumPy GEMM", gemm / own["scatter_seconds"])
    ratio("means", "second moments, NumPy SYRK", syrk / own["scatter_seconds"])


def quadrics():
    k, d, rank = 100, 768, 32
    seconds = ours("quadrics", k, d, rank)["seconds"]
    for what, at in (("2,048 queries", "many"), ("one query", "single")):
        whole, compact, pooled = (seconds[form][at] for form in ("whole", "compact", "pooled"))
        print(f"asking Q, {what} x {d} dims, {k} classes (whole matrices = 1)")
        line("Q, whole matrices", whole, whole, "whole")
        line(f"Q, {rank} directions", compact, whole, f"whole   {compact / pooled:.2f} times W")
        line("W", pooled, whole, "whole")
        ratio("quadrics", f"{what}, Q with whole matrices", whole / compact)
        ratio("quadrics", f"{what}, W", pooled / compact)


def probe():
    import torch

    torch.set_num_threads(THREADS)
    rng = np.random.default_rng(1)
    n, d, k = 5_000, 512, 10
    labels = rng.integers(0, k, n)
    centres = rng.random((k, d)) * 0.6
    points = np.maximum(centres[labels] + rng.normal(0, 0.8, (n, d)), 0).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "probe.npz")
        np.savez(path, X=points, y=labels)
        own = ours("probe", path)
    x, y = torch.from_numpy(points), torch.from_numpy(labels)
    prototypes = torch.stack([x[y == c].mean(0) for c in range(k)])

    def objective(weight):
        logits = x @ weight.T - 0.25 * (weight * weight).sum(1)
        return torch.nn.functional.cross_entropy(logits, y) + 0.5e-4 * (weight * weight).sum()

    def lbfgs(steps):
        weight = (2 * prototypes).clone().requires_grad_(True)
        optimiser = torch.optim.LBFGS([weight], max_iter=steps, history_size=10,
                                      line_search_fn="strong_wolfe", tolerance_grad=1e-5)

        def closure():
            optimiser.zero_grad()
            loss = objective(weight)
            loss.backward()
            return loss

        optimiser.step(closure)
        return float(objective(weight))

    def adam(target, rate):
        weight = (2 * prototypes).clone().requires_grad_(True)
        optimiser = torch.optim.Adam([weight], lr=rate)
        for _ in range(2_000):
            optimiser.zero_grad()
            loss = objective(weight)
            loss.backward()
            if float(loss) <= target:
                return True
            optimiser.step()
        return False

    print(f"probe of D, {n} x {d}, {k} classes, tied bias, weight decay 1e-4")
    def row(fit, steps, name):
        peer = best(lambda: lbfgs(steps), 3)
        text = f"{fit['iterations']} iterations to loss {fit['loss']:.6f}"
        print(f"  ivoro {fit['seconds'] * 1e3:8.1f} ms, {text}; PyTorch L-BFGS {peer * 1e3:8.1f} ms "
              f"({steps} steps, loss {lbfgs(steps):.6f}): {peer / fit['seconds']:.2f} x")
        ratio("probe", f"{name}, PyTorch L-BFGS", peer / fit["seconds"])

    for fit in own["fits"][:2]:
        steps = fewest(lambda s, fit=fit: lbfgs(s) <= fit["loss"] + 1e-6, 400)
        row(fit, steps, f"{fit['iterations']} iterations")
    # To the end: PyTorch stops first, so both go to where it stops.
    end = lbfgs(400)
    reached = [fit for fit in own["fits"] if fit["loss"] <= end]
    if reached:
        row(reached[0], fewest(lambda s: lbfgs(s) <= end + 1e-9, 400), "to the end")
    else:
        print(f"  PyTorch ends at {end:.6f}, which we do not reach")
    target = own["fits"][0]["loss"] + 1e-6
    rates = [rate for rate in (3e-2, 1e-2, 3e-3) if adam(target, rate)]
    if rates:
        peer = min(best(lambda rate=rate: adam(target, rate), 2) for rate in rates)
        print(f"  PyTorch full-batch Adam, best rate, to {target:.6f}: {peer * 1e3:.1f} ms: "
              f"{peer / own['fits'][0]['seconds']:.2f} x")


def ablation():
    """The whole ablation with given settings against a plain NumPy script of the same."""
    here = os.path.dirname(os.path.abspath(__file__))
    features = os.environ.get("IVORO_FEATURES") or os.path.join(
        here, "../crates/ivoro-cli/data/cifar100-small.features")
    order = "numpy:1993" if os.environ.get("IVORO_FEATURES") else "identity"
    given = ["--lambda", "0.5", "--scale", "10", "--layer-weights", "1,1", "--beta", "1e-2",
             "--weight-decay", "1e-4", "--probe-space", "transformed", "--probe-views", "separate"]
    command = [PROGRAM, "run", features, "--order", order, "--variants", "paper", *given, "--csv", "-"]
    start = time.perf_counter()
    table = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    own = time.perf_counter() - start
    start = time.perf_counter()
    script = [sys.executable, os.path.join(here, "ablation.py"), features, order]
    plain = subprocess.run(script, check=True, capture_output=True, text=True).stdout
    peer = time.perf_counter() - start
    rows = dict(row.split(",")[0:3:2] for row in table.splitlines()[1:])
    others = dict(row.split(",")[0:3:2] for row in plain.splitlines()[1:])
    apart = max(abs(float(rows[name]) - float(others[name])) for name in others)
    print("the whole ablation, 21 variants, given settings, reading and printing included")
    line("plain NumPy script", peer, peer, "NumPy")
    line("ivoro run", own, peer, f"NumPy   last accuracies within {apart:.2f} points")
    # the range is that of the set that ships
    if not os.environ.get("IVORO_FEATURES"):
        ratio("ablation", "21 variants, NumPy script", peer / own)


def memory():
    """Resident memory of prediction against the size of the model file."""
    here = os.path.dirname(os.path.abspath(__file__))
    features = os.path.join(here, "../crates/ivoro-cli/data/cifar100-small.features")
    print("resident memory of prediction, large model (W on 4 rotations and 2 layers)")
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "model.ivoro")
        given = ["--lambda", "0.5", "--ridge", "1"]
        subprocess.run([PROGRAM, "learn", model, features, "--variant", "iVoro-NWAIL", *given],
                       check=True, capture_output=True)
        size = os.path.getsize(model)
        # A child begins with its parent's peak: a small process in between has none to hand on.
        between = ("import resource, subprocess, sys; "
                   "subprocess.run(sys.argv[1:], check=True, capture_output=True); "
                   "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
        asking = [PROGRAM, "predict", model, features, "--format", "csv"]
        peak = 1024 * int(subprocess.check_output([sys.executable, "-S", "-c", between, *asking]))
        batch = os.path.getsize(features) * 2
        print(f"  model file {size / 1e6:.1f} MB, peak {peak / 1e6:.1f} MB, features as f32 "
              f"{batch / 1e6:.1f} MB: {(peak - batch) / size:.2f} x the file besides them")
        ratio("memory", "W, model file", size / (peak - batch))


def onnx():
    """Networks at 224 x 224 from ONNX files, against ONNX Runtime's own Python package."""
    import glob

    import onnxruntime

    from onnx_networks import NETWORKS

    here = os.path.dirname(onnxruntime.__file__)
    os.environ["ORT_DYLIB_PATH"] = glob.glob(os.path.join(here, "capi", "libonnxruntime.so.*"))[0]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    pixels = np.random.default_rng(1).integers(0, 256, (16, 224, 224, 3), dtype=np.uint8)
    with tempfile.TemporaryDirectory() as folder:
        raw = os.path.join(folder, "pixels")
        pixels.tofile(raw)
        files = dict(given_networks())
        if not files:
            print("no network was given with --network=FILE.onnx: only those with random weights")
        for name, make in NETWORKS.items():
            files[name] = os.path.join(folder, make.__name__ + ".onnx")
            with open(files[name], "wb") as file:
                file.write(make())
        for name, network in files.items():
            session = onnxruntime.InferenceSession(network, options)
            for batch in (1, 16):
                onnx_batch(name, session, onnx_images(pixels), network, raw, batch)
            onnx_photos(name, session, network)


def given_networks():
    """The files given on the command line, by name."""
    files = [word.removeprefix("--network=") for word in sys.argv[3:] if word.startswith("--network=")]
    return [(os.path.splitext(os.path.basename(file))[0], file) for file in files]


def onnx_images(pixels):
    scaled = (pixels / np.float32(255) - (0.485, 0.456, 0.406)) / (0.229, 0.224, 0.225)
    return np.ascontiguousarray(scaled.transpose(0, 3, 1, 2), dtype=np.float32)


def onnx_batch(name, session, images, network, raw, batch):
    given, answer = session.get_inputs()[0].name, session.get_outputs()[0].name
    parts = [images[at:at + batch] for at in range(0, len(images), batch)]
    compute = lambda part: session.run([answer], {given: part})[0]  # noqa: E731
    expected = np.concatenate([compute(part) for part in parts])
    runtimes = {"default": "ivoro", "rten": "ivoro, operators it lacks (rten)",
                "onnxruntime": "ivoro, feature onnxruntime"}
    seconds = {runtime: [] for runtime in (*runtimes, "peer")}
    alone, apart = {runtime: [] for runtime in seconds}, {}
    # In turn, so that a busy moment of the machine does not meet one side alone.
    for _ in range(3):
        seconds["peer"].append(best(lambda: [compute(part) for part in parts], 3))
        alone["peer"].append(best(lambda: compute(images[:1])))
        for runtime in runtimes:
            own = ours("onnx", network, raw, batch, runtime)
            seconds[runtime].append(own["seconds"])
            alone[runtime].append(own["alone_seconds"])
            apart[runtime] = np.abs(np.reshape(own["features"], expected.shape) - expected).max()
            runtimes[runtime] = f"ivoro, {runtime} ({own['runtime']})"
    tables = [(f"{len(images)} images of 224 x 224, {batch} at once", f"{batch} at once", seconds)]
    if batch == 1:
        tables.append(("1 image of 224 x 224, nothing beside it", "one image alone", alone))
    for title, short, times in tables:
        peer = min(times["peer"])
        print(f"{name}, {title} (ONNX Runtime in Python = 1)")
        line("ONNX Runtime, Python", peer, peer, "ONNX Runtime")
        for runtime, text in runtimes.items():
            note = f"ONNX Runtime   features within {apart[runtime]:.0e} of {np.abs(expected).max():.1f}"
            line(text, min(times[runtime]), peer, note)
            ratio("onnx", f"{name}, {short}, {runtime}", peer / min(times[runtime]))


def onnx_photos(name, session, network, batch=16):
    """From the files of a folder to features: Pillow and ONNX Runtime against this program."""
    folders = [word.removeprefix("--photos=") for word in sys.argv[3:] if word.startswith("--photos=")]
    if not folders:
        print("no folder was given with --photos=FOLDER: decoding is not measured")
        return
    from concurrent.futures import ThreadPoolExecutor

    from PIL import Image

    given, answer = session.get_inputs()[0].name, session.get_outputs()[0].name
    files = sorted(os.path.join(path, file) for path, _, names in os.walk(folders[0]) for file in names
                   if file.lower().endswith((".jpg", ".jpeg", ".png")))[:512]

    def picture(file):
        image = Image.open(file)
        image.draft("RGB", (256, 256))
        factor = 256 / min(image.size)
        size = [max(256, round(side * factor)) for side in image.size]
        image = image.convert("RGB").resize(size, Image.Resampling.BILINEAR)
        left, top = (side // 2 - 112 for side in size)
        return np.asarray(image.crop((left, top, left + 224, top + 224)))

    def peer():
        for at in range(0, len(files), batch):
            part = onnx_images(np.stack(list(pool.map(picture, files[at:at + batch]))))
            session.run([answer], {given: part})

    own, other = [], []
    with ThreadPoolExecutor(THREADS) as pool:
        for _ in range(3):
            other.append(best(peer, 1))
            own.append(ours("photos", network, folders[0], len(files), batch)["seconds"])
    print(f"{name}, {len(files)} photos with decoding (Pillow and ONNX Runtime = 1)")
    line("Pillow and ONNX Runtime", min(other), min(other), f"Pillow and ONNX Runtime   {len(files) / min(other):.0f}/s")
    line("ivoro", min(own), min(other), f"Pillow and ONNX Runtime   {len(files) / min(own):.0f}/s")
    ratio("onnx", f"{name}, photos, default", min(other) / min(own))


def vision():
    """ResNet-18 for 32 x 32 images, as PyTorch runs it: channels last, f32, compiled by nobody."""
    import torch
    from vision import images_of, resnet18

    torch.set_num_threads(THREADS)
    network = resnet18(200).to(memory_format=torch.channels_last)
    rule = torch.optim.Adam(network.parameters(), lr=1e-3, weight_decay=2e-4)
    views, batch = images_of(256), images_of(256)
    labels = torch.arange(256) % 200

    def step():
        network.train()
        rule.zero_grad()
        torch.nn.functional.cross_entropy(network(views) / 0.1, labels).backward()
        rule.step()

    @torch.inference_mode()
    def extract():
        network.eval()
        network(batch)

    # In turn, so that both sides meet the same machine.
    for what, work, arguments in (("training", step, ("train", 64, 2)), ("extraction", extract, ("extract", 256, 3))):
        print(f"ResNet-18, 32 x 32, {what}, 256 images, {THREADS} threads")
        own, peer = float("inf"), float("inf")
        work()
        for _ in range(4):
            own = min(own, ours(*arguments)["seconds"])
            peer = min(peer, best(work, arguments[-1]))
        line(f"PyTorch {torch.__version__}", peer, peer, f"PyTorch   {256 / peer:.1f} images/s")
        line("ivoro", own, peer, f"PyTorch   {256 / own:.1f} images/s")
        ratio("vision", f"{what}, PyTorch", peer / own)


def baselines():
    """A training step of each baseline, ResNet-18, as a plain PyTorch loop does it with images at hand."""
    import torch
    from baselines import METHODS, step_of

    torch.set_num_threads(THREADS)
    views, classes, repeats = 64, 60, 3
    for method in METHODS:
        print(f"{method}, a step of {views} views, {classes} classes, ResNet-18, 32 x 32, {THREADS} threads")
        own, peer = float("inf"), float("inf")
        step = step_of(method, "cpu", views, classes)
        step()
        for _ in range(3):
            own = min(own, ours("baseline", method, views, repeats)["seconds"])
            peer = min(peer, best(step, repeats))
        line(f"PyTorch {torch.__version__}", peer, peer, f"PyTorch   {views / peer:.1f} images/s")
        line("ivoro", own, peer, f"PyTorch   {views / own:.1f} images/s")
        ratio("baselines", f"{method}, PyTorch", peer / own)


def live():
    own = ours("live", 1000, 512)
    print("learning a class and asking one query, W, 1000 classes x 512 (the metric built anew = 1)")
    line("metric built anew", own["rebuilt"], own["rebuilt"], "anew")
    line("learn 5 samples, ask", own["learn"] + own["ask"], own["rebuilt"], "anew")
    line("update with 1 sample, ask", own["update"] + own["ask_again"], own["rebuilt"], "anew")
    print(f"  the same class in {own['same']} of {own['of']}")
    ratio("live", "W, learn and ask, the metric built anew", own["ratio_learn"])
    ratio("live", "W, update and ask, the metric built anew", own["ratio_update"])
    own = ours("lifted", 30, 512)
    print("one query to K, lift 3000, 30 classes x 512 (making the directions = 1)")
    line("making the directions", own["directions_anew"], own["directions_anew"], "directions")
    line("one query", own["predict"], own["directions_anew"], "directions")
    ratio("live", "K, one query, making the directions", own["ratio"])


if __name__ == "__main__":
    known = {"nearest": nearest, "index": index, "means": means, "quadrics": quadrics, "probe": probe,
             "ablation": ablation, "memory": memory, "live": live, "onnx": onnx, "vision": vision,
             "baselines": baselines}
    names = [word for word in sys.argv[3:] if not word.startswith("--")]
    for name in names or known:
        known[name]()
