"""Times `ivoro serve` against classifiers behind FastAPI and uvicorn, in one run.

Run through `cargo xtask bench serve`, which builds `ivoro-bench` and `ivoro`, makes a virtual environment
with the peers from PyPI, and calls this file. `--network=FILE.onnx`, the network that ships as ONNX, adds
photos. All servers listen on this machine alone; client and server share its cores.
"""

import http.client
import io
import json
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
BENCH, PROGRAM = sys.argv[1], sys.argv[2]
NETWORK = next((word.removeprefix("--network=") for word in sys.argv if word.startswith("--network=")), None)
CLASSES, DIM, QUERIES, CONNECTIONS = 1_000, 512, 512, 64
SECONDS, ROUNDS = 6.0, 3
THREADS = os.cpu_count()


def ratio(name, value):
    """A line that `cargo xtask bench` compares with ranges.toml: more is better."""
    print(f"ratio\tserve\t{name}\t{value:.4f}")


@contextmanager
def ours(*arguments):
    """The server of the program, and its address."""
    command = [PROGRAM, "serve", *arguments, "--listen", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            yield server, re.search(r"http://([^/]+)/", server.stdout.readline())[1]
        finally:
            server.terminate()


@contextmanager
def peer(kind, data, workers=2, threads=1):
    """FastAPI behind uvicorn, and its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = dict(os.environ, PEER=kind, DATA=data, NETWORK=NETWORK or "", SESSION_THREADS=str(threads),
                       OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    command = [sys.executable, "-m", "uvicorn", "serve_peer:app", "--app-dir", HERE, "--host", "127.0.0.1",
               "--port", str(port), "--workers", str(workers), "--log-level", "error", "--no-access-log"]
    with subprocess.Popen(command, env=environment) as server:
        try:
            for _ in range(600):
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    time.sleep(0.1)
            # until every worker has loaded what it needs
            time.sleep(3.0)
            yield f"127.0.0.1:{port}"
        finally:
            server.terminate()


def post(address, path, kind, body):
    connection = http.client.HTTPConnection(address, timeout=60)
    connection.request("POST", path, body, {"Content-Type": kind})
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    assert answer.status == 200, data
    return json.loads(data)


def bodies(folder, name, each):
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        for body in each:
            file.write(struct.pack("<I", len(body)) + body)
    return path


def load(folder, address, path, kind, bodies, connections=CONNECTIONS, seconds=SECONDS, lessons=None):
    plan = {"address": address, "path": path, "kind": kind, "bodies": bodies, "connections": connections,
            "seconds": seconds}
    if lessons is not None:
        plan["lessons"] = lessons
    file = os.path.join(folder, "plan.json")
    with open(file, "w") as out:
        json.dump(plan, out)
    done = subprocess.run([BENCH, "load", file], check=True, capture_output=True, text=True)
    outcome = json.loads(done.stdout)
    assert outcome["lost"] == 0 and set(outcome["statuses"]) <= {"200", "503"}, outcome
    return outcome


def best(outcomes):
    return max(outcome["rate"] for outcome in outcomes), *(
        min(outcome[name] for outcome in outcomes) for name in ("p50", "p99"))


def said(name, outcomes):
    rate, p50, p99 = best(outcomes)
    print(f"  {name:<34} {rate:9.0f} requests/s   p50 {p50 * 1e3:8.2f} ms   p99 {p99 * 1e3:8.2f} ms")


def vectors(folder):
    """Models of 1,000 classes for both sides, and queries near their centres."""
    rng = np.random.default_rng(1)
    centres = rng.normal(0, 1, (CLASSES, DIM)).astype(np.float32)
    names = np.array([f"class {at}" for at in range(CLASSES)])
    # three samples of a class, around its centre
    spread = rng.normal(0, 0.5, (3, CLASSES, DIM)).astype(np.float32)
    X = (centres + spread).reshape(-1, DIM)
    y = np.tile(names, 3)
    np.savez(os.path.join(folder, "samples.npz"), X=X, y=y)
    model = os.path.join(folder, "vectors.ivoro")
    subprocess.run([PROGRAM, "learn", model, os.path.join(folder, "samples.npz"), "--variant", "iVoro"],
                   check=True, capture_output=True)
    data = os.path.join(folder, "centres.npz")
    np.savez(data, centres=X.reshape(3, CLASSES, DIM).mean(0), names=names)
    which = rng.integers(0, CLASSES, QUERIES)
    queries = centres[which] + rng.normal(0, 0.8, (QUERIES, DIM)).astype(np.float32)
    return model, data, queries.astype(np.float32), X, y


def equal_answers(own, other):
    """Whether both say the same of all queries."""
    (address, path, kind, mine), (peer_address, peer_path, peer_kind, theirs) = own, other
    for left, right in zip(mine, theirs):
        answer = post(address, path, kind, left)["answers"][0]["top"][0]["class"]
        expected = post(peer_address, peer_path, peer_kind, right)["class"]
        assert answer == expected, (answer, expected)


def ask_vectors(folder):
    model, data, queries, X, y = vectors(folder)
    mine = [json.dumps({"samples": [{"features": row.tolist()}]}, separators=(",", ":")).encode() for row in queries]
    theirs = [json.dumps({"features": row.tolist()}, separators=(",", ":")).encode() for row in queries]
    path, kind = "/api/v1/models/vectors/ask?top=1", "application/json"
    own_bodies, peer_bodies = bodies(folder, "own", mine), bodies(folder, "peer", theirs)
    print(f"ask with feature vectors: {DIM} values, {CLASSES} classes, {CONNECTIONS} connections, batch 1")
    for name, rival in (("centroid", "scikit-learn NearestCentroid"), ("faiss", "FAISS IndexFlatL2")):
        own, other = [], []
        with ours(model) as (_, address), peer(name, data) as rival_address:
            equal_answers((address, path, kind, mine), (rival_address, "/ask", kind, theirs))
            for _ in range(ROUNDS):
                own.append(load(folder, address, path, kind, own_bodies))
                other.append(load(folder, rival_address, "/ask", kind, peer_bodies))
        said("ivoro serve", own)
        said(f"FastAPI, {rival}", other)
        (rate, _, p99), (their_rate, _, their_p99) = best(own), best(other)
        ratio(f"vectors, requests/s, {rival}", rate / their_rate)
        ratio(f"vectors, p99, {rival}", their_p99 / p99)
    teach_while_asking(folder, model, own_bodies, X, y)


def teach_while_asking(folder, model, own_bodies, X, y):
    rng = np.random.default_rng(2)
    lessons = []
    for _ in range(256):
        rows = rng.integers(0, len(X), 10)
        samples = [{"class": y[row], "features": (X[row] + rng.normal(0, 0.1, DIM)).astype(np.float32).tolist()}
                   for row in rows]
        lessons.append(json.dumps({"samples": samples}).encode())
    plan = {"path": "/api/v1/models/vectors/samples?receipts=false", "kind": "application/json", "every": 20,
            "bodies": bodies(folder, "lessons", lessons), "connections": 16}
    alone, taught = [], []
    with ours(model) as (_, address):
        for _ in range(ROUNDS):
            common = (folder, address, "/api/v1/models/vectors/ask?top=1", "application/json", own_bodies)
            alone.append(load(*common))
            taught.append(load(*common, lessons=plan))
    print("ask while 1 lesson of 10 vectors is taught for 20 requests")
    said("asking alone", alone)
    said("asking and teaching", taught)
    last = taught[-1]
    print(f"  lessons on disk: {[outcome['lessons']['good'] for outcome in taught]}, that is one for "
          f"{last['good'] / max(last['lessons']['good'], 1):.0f} requests; their p50 "
          f"{last['lessons']['p50'] * 1e3:.0f} ms")
    ratio("teach while asking, asking alone", best(taught)[0] / best(alone)[0])


def pictures(count, size=(640, 480), seed=3):
    """JPEGs of 640 x 480 with as much in them as photos have."""
    from PIL import Image

    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        small = rng.integers(0, 256, (24, 32, 3), dtype=np.uint8)
        image = Image.fromarray(small).resize(size, Image.Resampling.BICUBIC)
        grain = rng.normal(0, 6, (size[1], size[0], 3))
        image = Image.fromarray(np.clip(np.asarray(image) + grain, 0, 255).astype(np.uint8))
        out = io.BytesIO()
        image.save(out, "JPEG", quality=90)
        made.append(out.getvalue())
    return made


def part(field, data, name=None):
    filename = "" if name is None else f'; filename="{name}"'
    return b"--b\r\nContent-Disposition: form-data; name=\"%s\"%s\r\n\r\n%s\r\n" % (
        field.encode(), filename.encode(), data)


MULTIPART = "multipart/form-data; boundary=b"


def teach_photos(address, model, photos, names):
    for at in range(0, len(photos), 50):
        body = b"".join(part("class", name.encode()) + part("image", photo, "p.jpg")
                        for photo, name in zip(photos[at:at + 50], names[at:at + 50]))
        post(address, f"/api/v1/models/{model}/samples?receipts=false", MULTIPART, body + b"--b--\r\n")


def ask_photos(folder):
    if NETWORK is None:
        print("no network was given with --network=FILE.onnx: photos are not measured against ONNX Runtime")
        return
    photos, queries = pictures(20), pictures(32, seed=4)
    names = [f"class {at}" for at in range(len(photos))]
    data = os.path.join(folder, "photos.npz")
    np.savez(data, centres=np.zeros((1, 1280), np.float32), names=np.array(["none"]))
    with peer("photo", data, 1, THREADS) as address:
        centres = np.array([post(address, "/features", "image/jpeg", photo) for photo in photos], np.float32)
    np.savez(data, centres=centres, names=np.array(names))
    path, model = "/api/v1/models/photos/ask?top=1", os.path.join(folder, "photos.ivoro")
    mine = [part("image", photo, "p.jpg") + b"--b--\r\n" for photo in queries]
    own_bodies, peer_bodies = bodies(folder, "own photos", mine), bodies(folder, "peer photos", queries)
    print("ask with one JPEG of 640 x 480, EfficientNet-Lite0")
    with ours(model, "--variant", "iVoro") as (_, address):
        teach_photos(address, "photos", photos, names)
        # the peer has its best in each: a process for each core, or one with all threads
        for connections, workers, threads in ((8, THREADS, 1), (1, 1, THREADS)):
            own, other = [], []
            with peer("photo", data, workers, threads) as rival:
                equal_answers((address, path, MULTIPART, mine), (rival, "/photo", "image/jpeg", queries))
                for _ in range(ROUNDS):
                    own.append(load(folder, address, path, MULTIPART, own_bodies, connections))
                    other.append(load(folder, rival, "/photo", "image/jpeg", peer_bodies, connections))
            print(f"  {connections} at once; the peer has {workers} processes with {threads} threads for the network")
            said("ivoro serve", own)
            said("FastAPI, Pillow, ONNX Runtime", other)
            ratio(f"photos, requests/s, {connections} at once", best(own)[0] / best(other)[0])
            ratio(f"photos, p50, {connections} at once", best(other)[1] / best(own)[1])


def resident(pid):
    with open(f"/proc/{pid}/status") as file:
        return int(re.search(r"VmRSS:\s+(\d+)", file.read())[1]) / 1024


def beginning(folder):
    """From the start of the program to its first answer about a photo, and what it holds when idle."""
    model = os.path.join(folder, "thousand.ivoro")
    photos = pictures(CLASSES, (96, 72), seed=5)
    query = part("image", pictures(1)[0], "p.jpg") + b"--b--\r\n"
    with ours(model, "--variant", "iVoro") as (_, address):
        teach_photos(address, "thousand", photos, [f"class {at}" for at in range(CLASSES)])
    seconds, idle = [], []
    for _ in range(5):
        began = time.perf_counter()
        with ours(model) as (server, address):
            answer = post(address, "/api/v1/models/thousand/ask?top=1", MULTIPART, query)
            seconds.append(time.perf_counter() - began)
            assert answer["answers"][0]["top"]
            time.sleep(2.0)
            idle.append(resident(server.pid))
    print(f"start to the first answer about a photo, {CLASSES} classes: {min(seconds):.3f} s "
          f"(of five: {', '.join(f'{it:.3f}' for it in sorted(seconds))})")
    print(f"memory when idle after that: {max(idle):.0f} MB")
    ratio("start to first answer, 0.3 s", 0.3 / min(seconds))
    ratio("memory when idle, 120 MB", 120 / max(idle))


def main():
    with tempfile.TemporaryDirectory() as folder:
        ask_vectors(folder)
        ask_photos(folder)
        beginning(folder)


if __name__ == "__main__":
    main()
