"""Exemplar-free class-incremental learning from the features of a frozen network.

`IVoroClassifier` is a scikit-learn classifier that can be taught new classes at any time and keeps
no sample. `Network` turns photos into features, with a network that comes along. `run` compares
methods phase by phase. `Client` speaks with a running `ivoro serve`. `metrics`, `plot` and
`distributed` are modules.
"""

from importlib.metadata import version as _version

from . import distributed, metrics, plot
from ._classifier import IVoroClassifier
from ._client import Client, ServeError
from ._features import FeatureSet, read_features
from ._ivoro import thread_count
from ._network import Network
from ._run import Phase, Run, run
from ._settings import settings

__version__ = _version("ivoro")

__all__ = [
    "Client",
    "FeatureSet",
    "IVoroClassifier",
    "Network",
    "Phase",
    "Run",
    "ServeError",
    "distributed",
    "metrics",
    "plot",
    "read_features",
    "run",
    "settings",
    "thread_count",
]
