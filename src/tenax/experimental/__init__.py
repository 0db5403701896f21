"""The Python SDK in the dialect of Determined. Names are loaded when they are first used."""

from __future__ import annotations

# Not from typing: a task that imports a neighbour would pay for it.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from tenax.experimental import client as client
    from tenax.experimental import core_v2 as core_v2
    from tenax.experimental.checkpoint import Checkpoint as Checkpoint
    from tenax.experimental.determined import Determined as Determined
    from tenax.experimental.experiment import Experiment as Experiment
    from tenax.experimental.experiment import ExperimentReference as ExperimentReference
    from tenax.experimental.model import Model as Model
    from tenax.experimental.model import ModelVersion as ModelVersion
    from tenax.experimental.orders import ModelOrderBy as ModelOrderBy
    from tenax.experimental.orders import ModelSortBy as ModelSortBy
    from tenax.experimental.orders import OrderBy as OrderBy
    from tenax.experimental.orders import TrialOrderBy as TrialOrderBy
    from tenax.experimental.orders import TrialSortBy as TrialSortBy
    from tenax.experimental.project import Project as Project
    from tenax.experimental.trial import Trial as Trial
    from tenax.experimental.trial import TrialReference as TrialReference

_WHERE = {
    "Checkpoint": "checkpoint",
    "Determined": "determined",
    "Experiment": "experiment",
    "ExperimentReference": "experiment",
    "Model": "model",
    "ModelOrderBy": "orders",
    "ModelSortBy": "orders",
    "ModelVersion": "model",
    "OrderBy": "orders",
    "Project": "project",
    "Trial": "trial",
    "TrialOrderBy": "orders",
    "TrialReference": "trial",
    "TrialSortBy": "orders",
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in ("client", "core_v2"):
        return import_module(f"tenax.experimental.{name}")
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"tenax.experimental.{_WHERE[name]}"), name)
