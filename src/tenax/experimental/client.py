"""The SDK as functions of one login, under the names that users of Determined know.

    from tenax.experimental import client

    experiment = client.create_experiment("config.yaml", "model_dir")
    experiment.wait()

Without `login`, address and login are found as the command line finds them. Not thread-safe.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Iterable, List, Optional, Sequence, Union

from tenax.experimental.checkpoint import Checkpoint as Checkpoint
from tenax.experimental.determined import Determined as Determined
from tenax.experimental.experiment import Experiment as Experiment
from tenax.experimental.metrics import TrainingMetrics as TrainingMetrics
from tenax.experimental.metrics import TrialMetrics as TrialMetrics
from tenax.experimental.metrics import ValidationMetrics as ValidationMetrics
from tenax.experimental.model import Model as Model
from tenax.experimental.model import ModelVersion as ModelVersion
from tenax.experimental.orders import CheckpointOrderBy as CheckpointOrderBy
from tenax.experimental.orders import CheckpointSortBy as CheckpointSortBy
from tenax.experimental.orders import CheckpointState as CheckpointState
from tenax.experimental.orders import DownloadMode as DownloadMode
from tenax.experimental.orders import ExperimentOrderBy as ExperimentOrderBy
from tenax.experimental.orders import ExperimentSortBy as ExperimentSortBy
from tenax.experimental.orders import ExperimentState as ExperimentState
from tenax.experimental.orders import LogLevel as LogLevel
from tenax.experimental.orders import ModelOrderBy as ModelOrderBy
from tenax.experimental.orders import ModelSortBy as ModelSortBy
from tenax.experimental.orders import OrderBy as OrderBy
from tenax.experimental.orders import TrialOrderBy as TrialOrderBy
from tenax.experimental.orders import TrialSortBy as TrialSortBy
from tenax.experimental.orders import TrialState as TrialState
from tenax.experimental.project import Project as Project
from tenax.experimental.resource_pool import ResourcePool as ResourcePool
from tenax.experimental.trial import Trial as Trial
from tenax.experimental.user import User as User
from tenax.experimental.workspace import Workspace as Workspace

_opened: Optional[Determined] = None


def login(
    master: Optional[str] = None,
    user: Optional[str] = None,
    password: Optional[str] = None,
    cert_path: Optional[str] = None,
    cert_name: Optional[str] = None,
    noverify: bool = False,
) -> None:
    """Choose a master and a user for all that follows. Raises NotAuthenticated, Unreachable."""
    global _opened
    logout()
    _opened = Determined(master, user, password, cert_path, cert_name, noverify)


def logout() -> None:
    """Let go of the login that this module uses."""
    global _opened
    if _opened is not None:
        _opened.logout()
    _opened = None


def _determined() -> Determined:
    global _opened
    if _opened is None:
        _opened = Determined()
    return _opened


def whoami() -> User:
    """Who is logged in."""
    return _determined().whoami()


def get_session_username() -> str:
    """The name of who is logged in."""
    return _determined().get_session_username()


def list_users(active: Optional[bool] = None) -> List[User]:
    """All, or those who may or may not log in."""
    return _determined().list_users(active)


def get_user_by_id(user_id: int) -> User:
    """Raises NotFound."""
    return _determined().get_user_by_id(user_id)


def get_user_by_name(user_name: str) -> User:
    """Raises NotFound."""
    return _determined().get_user_by_name(user_name)


def create_user(username: str, admin: bool, password: Optional[str] = None, remote: bool = False) -> User:
    """Raises AlreadyExists, InvalidInput for a weak password, Forbidden."""
    return _determined().create_user(username, admin, password, remote)


def create_experiment(
    config: Union[str, Path, Dict[str, Any]],
    model_dir: Union[str, Path, None] = None,
    includes: Optional[Iterable[Union[str, Path]]] = None,
    project_id: Optional[int] = None,
    template: Optional[str] = None,
) -> Experiment:
    """Submit an experiment. Raises InvalidInput with every problem that was found."""
    return _determined().create_experiment(config, model_dir, includes, project_id, template)


def get_experiment(experiment_id: int) -> Experiment:
    """Raises NotFound."""
    return _determined().get_experiment(experiment_id)


def list_experiments(
    sort_by: Optional[ExperimentSortBy] = None,
    order_by: Optional[OrderBy] = None,
    experiment_ids: Optional[Sequence[int]] = None,
    labels: Optional[Sequence[str]] = None,
    users: Optional[Sequence[str]] = None,
    states: Optional[Sequence[ExperimentState]] = None,
    name: Optional[str] = None,
    project_id: Optional[int] = None,
) -> List[Experiment]:
    """Those for which all that is given holds; ``name`` is a part of it."""
    return _determined().list_experiments(sort_by, order_by, experiment_ids, labels, users, states, name, project_id)


def get_trial(trial_id: int) -> Trial:
    """Raises NotFound."""
    return _determined().get_trial(trial_id)


def get_checkpoint(uuid: str) -> Checkpoint:
    """Raises NotFound."""
    return _determined().get_checkpoint(uuid)


def iter_trials_metrics(trial_ids: Sequence[int], group: str) -> Iterable[TrialMetrics]:
    """What these trials reported of a group."""
    return _determined().iter_trials_metrics(trial_ids, group)


def stream_trials_metrics(trial_ids: Sequence[int], group: str) -> Iterable[TrialMetrics]:
    """As `iter_trials_metrics`."""
    return _determined().stream_trials_metrics(trial_ids, group)


def stream_trials_training_metrics(trial_ids: Sequence[int]) -> Iterable[TrainingMetrics]:
    """As `iter_trials_metrics` of ``training``."""
    return _determined().stream_trials_training_metrics(trial_ids)


def stream_trials_validation_metrics(trial_ids: Sequence[int]) -> Iterable[ValidationMetrics]:
    """As `iter_trials_metrics` of ``validation``."""
    return _determined().stream_trials_validation_metrics(trial_ids)


def list_workspaces() -> List[Workspace]:
    """All that this user sees."""
    return _determined().list_workspaces()


def get_workspace(name: str) -> Workspace:
    """Raises NotFound."""
    return _determined().get_workspace(name)


def create_workspace(name: str) -> Workspace:
    """Raises AlreadyExists."""
    return _determined().create_workspace(name)


def delete_workspace(name: str) -> None:
    """With all in it. Raises NotFound."""
    _determined().delete_workspace(name)


def create_model(
    name: str,
    description: Optional[str] = "",
    metadata: Optional[Dict[str, Any]] = None,
    labels: Optional[Sequence[str]] = None,
    workspace_name: Optional[str] = None,
) -> Model:
    """Raises AlreadyExists, InvalidInput."""
    return _determined().create_model(name, description, metadata, labels, workspace_name)


def get_model(identifier: Union[str, int]) -> Model:
    """By name or number. Raises NotFound."""
    return _determined().get_model(identifier)


def get_model_by_id(model_id: int) -> Model:
    """Raises NotFound."""
    return _determined().get_model_by_id(model_id)


def list_models(
    sort_by: ModelSortBy = ModelSortBy.NAME,
    order_by: OrderBy = OrderBy.ASCENDING,
    name: Optional[str] = None,
    description: Optional[str] = None,
    model_id: Optional[int] = None,
    workspace_names: Optional[Sequence[str]] = None,
    workspace_ids: Optional[Sequence[int]] = None,
) -> List[Model]:
    """Those for which all that is given holds; name and description are parts of theirs."""
    return _determined().list_models(sort_by, order_by, name, description, model_id, workspace_names, workspace_ids)


def get_models(*arguments: Any, **named: Any) -> List[Model]:
    """As `list_models`."""
    return _determined().get_models(*arguments, **named)


def get_model_labels() -> List[str]:
    """All labels of models, the most frequent first."""
    return _determined().get_model_labels()


def list_oauth_clients() -> List[Any]:
    """Raises Unsupported: there is no login by others."""
    return _determined().list_oauth_clients()


def add_oauth_client(domain: str, name: str) -> Any:
    """Raises Unsupported."""
    return _determined().add_oauth_client(domain, name)


def remove_oauth_client(client_id: str) -> None:
    """Raises Unsupported."""
    _determined().remove_oauth_client(client_id)
