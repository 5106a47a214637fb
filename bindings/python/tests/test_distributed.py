"""Learning on the workers of a cluster."""

import os

import numpy as np
import pytest

from conftest import blobs
from ivoro import IVoroClassifier, distributed

SETTINGS = {"exponent": 0.5, "scale": 10.0, "shift": 0.0, "ridge": 1.0}


def parts_of(X, count):
    return np.array_split(np.random.default_rng(0).permutation(len(X)), count)


@pytest.mark.parametrize("variant", ["iVoro", "iVoro-N", "iVoro-NW", "iVoro-KW"])
def test_blocks_add_up_to_the_whole(variant):
    X, y = blobs(samples=50)
    model = IVoroClassifier(variant, lift=64, **SETTINGS)
    begun = distributed.begin(model, X[::3], y[::3])
    blocks = [distributed.block(begun, X[rows], y[rows]) for rows in parts_of(X, 7)]
    combined, whole = distributed.combine(begun, blocks), model.fit(X, y)
    assert combined.model_ == whole.model_ and combined.phases_ == [4]
    assert combined.counts_.tolist() == [50, 50, 50, 50]
    assert np.array_equal(combined.centroids_, whole.centroids_)
    assert np.allclose(combined.decision_function(X), whole.decision_function(X), rtol=1e-5)
    assert np.array_equal(combined.predict(X), whole.predict(X))


def test_settings_and_calibration_are_those_of_the_sample():
    X, y = blobs(samples=50, spread=2.0)
    whole = IVoroClassifier("iVoro-NW").fit(X, y)
    begun = distributed.begin(IVoroClassifier("iVoro-NW"), X, y)
    # every class in a block of its own, and a block without any sample
    blocks = [distributed.block(begun, X[y == name], y[y == name]) for name in np.unique(y)[::-1]]
    combined = distributed.combine(begun, [*blocks, distributed.block(begun, X[:0], y[:0])])
    assert combined.model_ == whole.model_ and combined.choices_ == whole.choices_
    assert np.array_equal(combined.predict_proba(X), whole.predict_proba(X))
    more = X[:50] + 3, np.repeat("new", 50)
    assert np.array_equal(
        combined.partial_fit(*more).predict_proba(X), whole.partial_fit(*more).predict_proba(X)
    )


def test_equal_blocks_count_twice():
    X, y = np.ones((2, 3), dtype=np.float32), ["a", "b"]
    begun = distributed.begin(IVoroClassifier("iVoro"), X, y)
    part = distributed.block(begun, X, y)
    assert distributed.combine(begun, [part, part]).counts_.tolist() == [2, 2]


def test_probes_need_all_samples_together(samples):
    for variant in ("iVoro-D", "iVoro-NWR", "iVoro-NDAC"):
        X = np.stack([samples[0]] * 4, axis=1) if "AC" in variant else samples[0]
        with pytest.raises(ValueError, match="train a probe on all samples"):
            distributed.begin(IVoroClassifier(variant), X, samples[1])


def test_nothing_to_combine(samples):
    begun = distributed.begin(IVoroClassifier("iVoro"), *samples)
    with pytest.raises(ValueError, match="expected at least 1 with samples, found 0"):
        distributed.combine(begun, [])
    with pytest.raises(ValueError, match="expected at least 1 with samples, found 0"):
        distributed.combine(begun, [distributed.block(begun, samples[0][:0], [])])


@pytest.fixture(scope="module")
def cluster():
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    node = {"num_cpus": 1, "object_store_memory": 100 * 2**20}
    nodes = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    nodes.add_node(**node)
    ray.init(address=nodes.address, log_to_driver=False, configure_logging=False)
    yield ray
    ray.shutdown()
    nodes.shutdown()


def dataset(ray, X, y, blocks=6):
    rows = {"features": X, "label": y}
    return ray.data.from_numpy([X]).map_batches(
        lambda batch: {"features": batch["data"], "label": rows["label"]}, batch_size=None
    ).repartition(blocks)


def test_two_workers_learn_what_one_machine_would(cluster):
    X, y = blobs(samples=60, spread=2.0)
    assert len([node for node in cluster.nodes() if node["Alive"]]) == 2
    data = dataset(cluster, X, y)
    for variant in ("iVoro", "iVoro-N", "iVoro-NW"):
        model = IVoroClassifier(variant)
        learned, whole = distributed.fit(data, model), IVoroClassifier(variant).fit(X, y)
        assert learned.counts_.tolist() == [60, 60, 60, 60]
        assert learned.choices_ == whole.choices_
        assert learned.model_ == whole.model_
        assert np.array_equal(learned.predict_proba(X), whole.predict_proba(X))


def test_a_sample_chooses_the_settings_of_many_rows(cluster):
    X, y = blobs(samples=60)
    model = IVoroClassifier("iVoro-NW", **SETTINGS)
    learned = distributed.fit(dataset(cluster, X, y), model, sample=40)
    assert learned.counts_.tolist() == [60, 60, 60, 60]
    assert np.allclose(learned.centroids_, model.fit(X, y).centroids_, rtol=1e-6)
    assert np.array_equal(learned.predict(X), model.predict(X))


def test_sums_of_either_worker_count(cluster):
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    def sums(begun, X, y):
        import ray

        return ray.get_runtime_context().get_node_id(), distributed.block(begun, X, y)

    X, y = blobs(samples=60)
    model = IVoroClassifier("iVoro-NW", **SETTINGS)
    begun = distributed.begin(model, X, y)
    # bound to a worker each: left to itself a scheduler may give all of it to one of them
    nodes = [node["NodeID"] for node in cluster.nodes() if node["Alive"]]
    tasks = [
        cluster.remote(sums)
        .options(scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False))
        .remote(begun, X[rows], y[rows])
        for node, rows in zip(nodes, parts_of(X, len(nodes)), strict=True)
    ]
    where, blocks = zip(*cluster.get(tasks), strict=True)
    assert list(where) == nodes and len(set(nodes)) == 2
    combined, whole = distributed.combine(begun, blocks), model.fit(X, y)
    assert combined.counts_.tolist() == [60, 60, 60, 60]
    assert np.array_equal(combined.centroids_, whole.centroids_)
    assert np.array_equal(combined.predict(X), whole.predict(X))


def test_more_from_a_cluster(cluster):
    X, y = blobs(samples=60)
    base = np.isin(y, ["ape", "bee"])
    half = np.arange(len(y)) % 2 == 0
    model = IVoroClassifier("iVoro-NW", **SETTINGS).fit(X[base & half], y[base & half])
    before = model.counts_.tolist()
    rest = ~(base & half)
    learned = distributed.partial_fit(dataset(cluster, X[rest], y[rest]), model)
    assert model.counts_.tolist() == before
    assert learned.counts_.tolist() == [60, 60, 60, 60]
    model.partial_fit(X[rest], y[rest])
    assert np.array_equal(learned.centroids_, model.centroids_)
    assert np.array_equal(learned.predict(X), model.predict(X))
