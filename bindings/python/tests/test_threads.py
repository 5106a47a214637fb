"""Threads, processes and the interpreter's lock."""

import concurrent.futures
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from functools import partial

import numpy as np
import pytest

from conftest import blobs
from ivoro import IVoroClassifier, thread_count


def counted(**variables):
    names = ("RAYON_NUM_THREADS", "OMP_NUM_THREADS")
    environment = {name: text for name, text in os.environ.items() if name not in names}
    done = subprocess.run(
        [sys.executable, "-c", "import ivoro; print(ivoro.thread_count())"],
        env=environment | variables, check=True, capture_output=True, text=True)
    return int(done.stdout)


def test_variables_bound_the_threads():
    assert counted(OMP_NUM_THREADS="3") == 3
    assert counted(OMP_NUM_THREADS="5,2") == 5
    assert counted(RAYON_NUM_THREADS="2", OMP_NUM_THREADS="3") == 2
    assert counted(OMP_NUM_THREADS="many") == counted() >= 1
    assert counted(OMP_NUM_THREADS="99999999") == 1024


def test_the_argument_comes_first(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert (thread_count(), thread_count(7)) == (3, 7)
    assert thread_count(-1) >= 1
    for wrong in (0, -2):
        with pytest.raises(ValueError, match=f"threads = {wrong}"):
            thread_count(wrong)


def own_threads():
    names = (open(f"/proc/self/task/{task}/comm").read() for task in os.listdir("/proc/self/task"))
    return sum(name.startswith("ivoro-") for name in names)


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="counts threads through /proc")
def test_a_call_starts_as_many_threads_as_it_may():
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import time\n"
        "from test_threads import IVoroClassifier, blobs, own_threads\n"
        "IVoroClassifier('iVoro', threads=11).fit(*blobs())\n"
        "while own_threads() < 11: time.sleep(0.01)\n"
        "print(own_threads())\n"
    )
    done = subprocess.run([sys.executable, "-c", code, os.path.dirname(__file__)], check=True,
                          capture_output=True, text=True, timeout=60)
    assert done.stdout == "11\n"


@pytest.mark.parametrize("variant", ["iVoro-NW", "iVoro-NDR"])
def test_threads_do_not_change_the_result(variant):
    X, y = blobs(samples=200)
    one, four = (IVoroClassifier(variant, threads=count).fit(X, y) for count in (1, 4))
    assert one.model_ == four.model_
    assert np.array_equal(one.decision_function(X), four.decision_function(X))


def test_other_threads_go_on_meanwhile():
    X = np.random.default_rng(0).random((20_000, 256), dtype=np.float32)
    y = np.arange(len(X)) % 100
    inside, turns = threading.Event(), 0

    def work():
        inside.set()
        IVoroClassifier("iVoro-W", ridge=1.0, threads=1).fit(X, y)
        inside.clear()

    worker = threading.Thread(target=work)
    worker.start()
    inside.wait()
    while inside.is_set():
        turns += 1
    worker.join()
    # with the lock held, this thread would have had a turn or two
    assert turns > 1000


def test_many_threads_ask_while_one_teaches():
    X, y = blobs(classes=6)
    known = np.isin(y, ["ape", "bee"])
    model = IVoroClassifier("iVoro").fit(X[known], y[known])
    wrong = []

    def ask():
        for _ in range(50):
            answers = model.model_.distances([X], 2)
            if not np.isfinite(answers).all() or answers.shape[1] < 2:
                wrong.append(answers)

    workers = [threading.Thread(target=ask) for _ in range(4)]
    for worker in workers:
        worker.start()
    for name in ("cat", "dog", "eel", "fox"):
        model.partial_fit(X[y == name], y[y == name])
    for worker in workers:
        worker.join()
    assert not wrong
    assert model.score(X, y) == 1.0


def together(*works):
    """Does all of it at once and raises what any of it raised."""
    with concurrent.futures.ThreadPoolExecutor(len(works)) as pool:
        for done in [pool.submit(work) for work in works]:
            done.result(timeout=120)


def test_many_threads_teach_ask_and_forget_one_classifier():
    X = np.random.default_rng(5).normal(size=(600, 8)).astype(np.float32)
    y = np.arange(600) // 5
    model = IVoroClassifier("iVoro", threads=2).fit(X[:50], y[:50])
    learned = threading.Event()

    def teach(first):
        for at in range(50 + 5 * first, 600, 15):
            model.partial_fit(X[at : at + 5], y[at : at + 5])

    def forget():
        for label in range(1, 10):
            model.forget(label)
        learned.set()

    def ask():
        while not learned.is_set():
            assert np.isin(model.predict(X), y).all()
            assert np.allclose(model.predict_proba(X[:9]).sum(axis=1), 1.0)
            assert len(model.kneighbors(X[:9], 3)[1]) == 9
            copy = pickle.loads(pickle.dumps(model))
            assert len(copy.classes_) == len(copy.counts_) == len(copy.centroids_)
            copy.predict(X[:9])

    together(*(partial(teach, first) for first in range(3)), forget, ask, ask)
    assert model.classes_.tolist() == [0, *range(10, 120)]
    assert model.counts_.tolist() == [5] * 111
    kept = np.isin(y, model.classes_)
    whole = IVoroClassifier("iVoro").fit(X, y)
    for label in range(1, 10):
        whole.forget(label)
    assert np.array_equal(model.centroids_, whole.centroids_)
    assert np.array_equal(model.predict(X[kept]), whole.predict(X[kept]))


def test_first_calls_at_once_lose_nothing():
    X, y = blobs(classes=6)
    model = IVoroClassifier("iVoro")
    together(*(partial(model.partial_fit, X[y == name], y[y == name]) for name in np.unique(y)))
    assert model.classes_.tolist() == np.unique(y).tolist()


def test_a_look_lets_other_threads_go_on():
    X = np.random.default_rng(0).random((20_000, 256), dtype=np.float32)
    y = np.arange(len(X)) % 100
    model = IVoroClassifier("iVoro-W", ridge=1.0, threads=1).fit(X, y)
    looks, turns, done = 10, [], threading.Event()

    def teach():
        while not done.is_set():
            model.partial_fit(X, y)

    def look(begun, ended):
        begun.set()
        assert len(model.counts_) == 100
        ended.set()

    teacher = threading.Thread(target=teach)
    teacher.start()
    for _ in range(looks):
        begun, ended = threading.Event(), threading.Event()
        looker = threading.Thread(target=look, args=(begun, ended))
        looker.start()
        begun.wait()
        count = 0
        while not ended.is_set():
            count += 1
        turns.append(count)
        looker.join()
    done.set()
    teacher.join()
    # a look that waits for the teacher with the interpreter's lock held leaves this thread no turn
    assert sum(count > 1000 for count in turns) >= looks // 2, turns


def test_work_that_waits_takes_up_no_work_that_waits_for_it():
    # a thread of the pool that held the model's lock could take up a question that needs it
    X = np.random.default_rng(3).normal(size=(4000, 64)).astype(np.float32)
    y = np.arange(len(X)) % 40
    model = IVoroClassifier("iVoro-W", ridge=0.1, threads=2).fit(X, y)
    done = threading.Event()

    def ask():
        while not done.is_set():
            model.predict(X)

    def teach():
        for _ in range(60):
            model.partial_fit(X, y)
        done.set()

    workers = [threading.Thread(target=work, daemon=True) for work in (ask, ask, ask, teach)]
    for worker in workers:
        worker.start()
    assert done.wait(120), "all wait for each other"
    for worker in workers:
        worker.join()


def answered(model, X, pipe):
    pipe.send(model.predict(X).tolist())


def test_a_forked_process_can_ask():
    X, y = blobs()
    model = IVoroClassifier("iVoro").fit(X, y)
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    child = context.Process(target=answered, args=(model, X, there))
    child.start()
    assert here.poll(60), "the child process hangs"
    assert here.recv() == y.tolist()
    child.join()


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent as on Unix")
def test_an_interrupt_stops_a_long_call_at_once():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 300)) + np.repeat(rng.normal(size=(60, 300)), 67, axis=0)[:4000]
    y = np.repeat(np.arange(60), 67)[:4000]
    sent = []

    def interrupt():
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    model = IVoroClassifier("iVoro-NQ")
    timer = threading.Timer(0.5, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
        # whatever is faster than the signal
        time.sleep(5)
    assert time.monotonic() - sent[0] < 0.5
    # the next call is not stopped
    assert len(IVoroClassifier("iVoro").fit(X, y).predict(X)) == len(X)
