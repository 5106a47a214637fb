"""Comparisons from Python."""

import json
import subprocess

import numpy as np
import pytest

import ivoro

SETTINGS = {"exponent": 0.5, "scale": 10.0, "ridge": 1.0, "weight_decay": 0.01, "probe_space": "raw"}
VARIANTS = ["iVoro", "iVoro-ND", "iVoro-NWAI"]


def untimed(record):
    """The record without seconds, which differ from run to run."""
    for method in record["methods"]:
        del method["summary"]["seconds"]
        for phase in method["phases"]:
            del phase["learn_seconds"], phase["predict_seconds"]
    return record


def test_the_record_is_the_program_s(shipped, program):
    done = subprocess.run(
        [program, "run", shipped, "--json", "--variants", ",".join(VARIANTS), "--peers", "ncm,slda",
         "--lambda", "0.5", "--scale", "10", "--ridge", "1", "--weight-decay", "0.01",
         "--probe-space", "raw", "--order", "identity"],
        check=True, capture_output=True, text=True)
    comparison = ivoro.run(shipped, variants=VARIANTS, peers=["ncm", "slda"], order="identity",
                           **SETTINGS)
    assert untimed(comparison.record()) == untimed(json.loads(done.stdout))


def test_phases_come_one_by_one(shipped):
    comparison = ivoro.run(shipped, "10+5x2", "iVoro,iVoro-N", order="identity", exponent=0.5)
    assert comparison.methods == ["iVoro", "iVoro-N"]
    first = next(comparison)
    assert (first["method"], first["phase"], first["classes"]) == ("iVoro", 0, 10)
    rest = list(comparison)
    assert [phase["classes"] for phase in rest] == [12, 14, 16, 18, 20, 10, 12, 14, 16, 18, 20]
    record = comparison.record()
    assert [method["name"] for method in record["methods"]] == ["iVoro", "iVoro-N"]
    matrix = [phase["accuracy_by_phase"] for phase in record["methods"][0]["phases"]]
    summary = record["methods"][0]["summary"]
    assert ivoro.metrics.forgetting_pass(matrix) == summary["forgetting_pass"]
    assert ivoro.metrics.average([first["accuracy"], *(p["accuracy"] for p in rest[:5])]) == \
        pytest.approx(summary["average"])


def test_arrays_are_the_same_as_their_file(shipped):
    data = ivoro.read_features(shipped)
    place = {name: at for at, name in enumerate(data.classes)}
    train, test = ((X, np.array([place[name] for name in y])) for X, y in (data.train, data.test))
    options = {"protocol": "10+5x2", "variants": ["iVoro-NAIL"], "order": "identity"}
    arrays = untimed(ivoro.run((*train, *test), **options).record())["methods"]
    file = untimed(ivoro.run(shipped, **options).record())["methods"]
    # the samples lie in another order, which may change the last digit of a mean loss and nothing else
    for ours, theirs in zip(arrays, file, strict=True):
        for one, other in zip(ours["choices"], theirs["choices"], strict=True):
            assert one.pop("losses") == pytest.approx(other.pop("losses"), rel=1e-12)
    assert arrays == file


def test_groups_of_variants_leave_out_what_the_features_can_not_do(samples, queries):
    comparison = ivoro.run((*samples, *queries), "2,2", "paper")
    assert comparison.methods == ["iVoro", "iVoro-N", "iVoro-D", "iVoro-ND", "iVoro-R", "iVoro-DR",
                                  "iVoro-NDR"]


@pytest.mark.parametrize(("options", "sentence"), [
    ({"protocol": "3,3"}, "it has 6 classes, the data 4"),
    ({"protocol": "some"}, "write 50\\+5x10 or 4,3,3"),
    ({"variants": "none"}, "no method to run"),
    ({"variants": "iVoro-AI"}, "needs the views"),
    ({"peers": ["best"]}, "peer = best"),
    ({"order": "random"}, "class order random"),
    ({"lambda_": 1.0}, "no setting lambda_"),
])
def test_requests_that_make_no_sense(options, sentence, samples, queries):
    with pytest.raises(ValueError, match=sentence):
        ivoro.run((*samples, *queries), **{"variants": "iVoro"} | options)


def test_a_test_class_without_training(samples):
    X, y = samples
    known = y != "bee"
    with pytest.raises(ValueError, match="class bee has no training sample"):
        ivoro.run((X[known], y[known], X, y), variants="iVoro")
