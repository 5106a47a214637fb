"""Samples that all tests share."""

import os
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(os.environ.get("IVORO_ROOT", Path(__file__).parents[3]))


def blobs(classes=4, samples=20, dim=6, seed=0, spread=0.25):
    """Classes around points far from each other: X, and y as text."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(99).uniform(1, 6, (classes, dim))
    codes = np.repeat(np.arange(classes), samples)
    X = centres[codes] + rng.normal(0, spread, (len(codes), dim))
    return X.astype(np.float32), np.array(["ape", "bee", "cat", "dog", "eel", "fox"])[codes]


@pytest.fixture
def samples():
    return blobs()


@pytest.fixture
def queries():
    return blobs(seed=1)


@pytest.fixture
def shipped():
    """The features that ship with the program."""
    return ROOT / "crates/ivoro-cli/data/cifar100-small.features"


@pytest.fixture
def program():
    """The program, where `cargo xtask test` has built it."""
    path = os.environ.get("IVORO_PROGRAM")
    if path is None:
        pytest.skip("run through cargo xtask test, which builds the program")
    return path
