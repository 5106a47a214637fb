"""Model files and feature files."""

import json
import os
import subprocess

import numpy as np
import pytest

from conftest import blobs
from ivoro import IVoroClassifier, read_features


def test_a_file_is_the_same_classifier(tmp_path, samples, queries):
    for variant in ("iVoro-NW", "iVoro-NDR", "iVoro-KW"):
        model = IVoroClassifier(variant, lift=64).fit(*samples)
        path = tmp_path / "model.ivoro"
        model.save(path)
        again = IVoroClassifier.load(str(path))
        assert again.model_ == model.model_
        assert again.classes_.tolist() == model.classes_.tolist()
        assert np.array_equal(again.predict_proba(queries[0]), model.predict_proba(queries[0]))
        assert again.n_features_in_ == 6
        # what was chosen is now given: learning again chooses nothing
        assert again.settings_ == model.settings_
        fresh = IVoroClassifier(**again.get_params()).fit(*samples)
        assert fresh.model_ == model.model_ and not fresh.choices_


def test_whole_numbers_come_back_as_such(tmp_path):
    X, y = blobs()
    path = tmp_path / "model.ivoro"
    for labels in (np.unique(y, return_inverse=True)[1] - 2, y):
        IVoroClassifier("iVoro").fit(X, labels).save(path)
        loaded = IVoroClassifier.load(path)
        assert loaded.classes_.tolist() == np.unique(labels).tolist()
        assert np.array_equal(loaded.predict(X), labels)
    IVoroClassifier("iVoro").fit(X[:2], ["007", "7"]).save(path)
    assert IVoroClassifier.load(path).classes_.tolist() == ["007", "7"]


def test_only_files_are_written_over(tmp_path, samples):
    model = IVoroClassifier("iVoro").fit(*samples)
    pipe, link, path = (tmp_path / name for name in ("pipe", "link.ivoro", "model.ivoro"))
    os.mkfifo(pipe)
    for place in (pipe, tmp_path):
        with pytest.raises(OSError, match="expected a file, found a"):
            model.save(place)
    assert pipe.is_fifo()
    link.symlink_to("model.ivoro")
    path.touch(0o600)
    model.save(link)
    assert link.is_symlink() and path.stat().st_mode & 0o777 == 0o600
    assert IVoroClassifier.load(path).model_ == model.model_
    with pytest.raises(OSError):
        IVoroClassifier.load(tmp_path)


def test_files_that_can_not_be_read(tmp_path, samples):
    model = IVoroClassifier("iVoro").fit(*samples)
    with pytest.raises(FileNotFoundError, match="nowhere.ivoro"):
        IVoroClassifier.load(tmp_path / "nowhere.ivoro")
    with pytest.raises(OSError):
        model.save(tmp_path / "no" / "such" / "folder.ivoro")
    path = tmp_path / "model.ivoro"
    model.save(path)
    damaged = bytearray(path.read_bytes())
    damaged[-1] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(ValueError, match="the file is damaged"):
        IVoroClassifier.load(path)
    path.write_bytes(b"no model")
    with pytest.raises(ValueError, match="not a whole model file"):
        IVoroClassifier.load(path)


def test_a_file_that_another_process_changes(tmp_path, samples):
    fcntl = pytest.importorskip("fcntl")
    model = IVoroClassifier("iVoro").fit(*samples)
    with open(tmp_path / ".model.ivoro.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(OSError, match="locked by another process"):
            model.save(tmp_path / "model.ivoro")
    model.save(tmp_path / "model.ivoro")


def ivoro(program, *arguments, **options):
    return subprocess.run([program, *map(str, arguments)], check=True, capture_output=True,
                          text=True, **options).stdout


def test_the_program_reads_what_python_wrote_and_the_other_way(tmp_path, program, samples, queries):
    X, y = samples
    known = np.isin(y, ["ape", "bee", "cat"])
    np.savez(tmp_path / "queries.npz", X=queries[0], y=queries[1])
    np.savez(tmp_path / "dogs.npz", X=X[~known], y=y[~known])
    IVoroClassifier("iVoro-N").fit(X[known], y[known]).save(tmp_path / "model.ivoro")
    ivoro(program, "learn", "model.ivoro", "dogs.npz", cwd=tmp_path)
    model = IVoroClassifier.load(tmp_path / "model.ivoro")
    assert model.phases_ == [3, 1]
    lines = ivoro(program, "predict", "model.ivoro", "queries.npz", "--format", "jsonl", cwd=tmp_path)
    answers = [json.loads(line)["top"] for line in lines.splitlines()]
    assert [top[0]["class"] for top in answers] == model.predict(queries[0]).tolist()
    probabilities = [top[0]["probability"] for top in answers]
    assert np.allclose(model.predict_proba(queries[0]).max(axis=1), probabilities)


def test_feature_files_of_numpy(tmp_path, samples):
    X, y = samples
    np.savez(tmp_path / "both.npz", X_train=X, y_train=y, X_test=X[:8], y_test=y[:8])
    data = read_features(tmp_path / "both.npz")
    assert data.all is None and data.classes == ["ape", "bee", "cat", "dog"]
    assert np.array_equal(data.train[0], X) and data.test[1].tolist() == y[:8].tolist()
    np.save(tmp_path / "alone.npy", X)
    data = read_features(str(tmp_path / "alone.npy"))
    assert np.array_equal(data.all[0], X) and data.all[1] is None
    with pytest.raises(FileNotFoundError):
        read_features(tmp_path / "nowhere.npz")
    (tmp_path / "empty.npz").write_bytes(b"")
    with pytest.raises(ValueError, match="the file is empty"):
        read_features(tmp_path / "empty.npz")


def test_no_half_file_is_left(tmp_path, samples):
    IVoroClassifier("iVoro").fit(*samples).save(tmp_path / "model.ivoro")
    assert [name for name in os.listdir(tmp_path) if name.endswith(".tmp")] == []


def test_a_features_file_is_shown_in_one_line_and_tables_are_left_to_others(shipped, tmp_path):
    shown = repr(read_features(shipped))
    assert shown.startswith("<FeatureSet: train: ") and "20 classes, layers " in shown
    assert len(shown) < 200
    with pytest.raises(ValueError, match="pandas.read_parquet"):
        read_features(tmp_path / "samples.parquet")
