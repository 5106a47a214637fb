"""Exemplar-free class-incremental learning from the features of a frozen network.

`IVoroClassifier` is a scikit-learn classifier that can be taught new classes at any time and keeps
no sample. `Recogniser` is one with a network that comes along: it is taught and asked with photos.
`PhotoFeatures` and `Network` turn photos into features. `Client` speaks with a running
`ivoro serve`. `run` compares methods phase by phase; `metrics`, `plot` and `distributed` are modules.
"""

from importlib.metadata import version as _version

from . import distributed, metrics, plot
from ._classifier import IVoroClassifier
from ._client import Client, ServeError
from ._features import FeatureSet, read_features
from ._ivoro import thread_count
from ._network import Network
from ._photo_features import PhotoFeatures
from ._recogniser import Answer, Answers, Candidate, Duplicate, Lesson, Recogniser, Skipped
from ._run import Phase, Run, run
from ._settings import settings

__version__ = _version("ivoro")

__all__ = [
    "Answer",
    "Answers",
    "Candidate",
    "Client",
    "Duplicate",
    "FeatureSet",
    "IVoroClassifier",
    "Lesson",
    "Network",
    "Phase",
    "PhotoFeatures",
    "Recogniser",
    "Run",
    "ServeError",
    "Skipped",
    "distributed",
    "metrics",
    "plot",
    "read_features",
    "run",
    "settings",
    "thread_count",
]
