"""The SDK as functions of one login, under the names that users of Determined know.

    from tenax.experimental import client

    experiment = client.create_experiment("config.yaml", "model_dir")
    experiment.wait()

What they return are the objects of `tenax.client`, whose methods are their own. Not thread-safe.
"""

from __future__ import annotations

from tenax.client import Checkpoint as Checkpoint
from tenax.client import Client
from tenax.client import Experiment as Experiment
from tenax.client import Trial as Trial
from tenax.client import User as User

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from typing import Optional, Union

    from tenax.jsonvalue import JsonObject

_client: Optional[Client] = None


def login(
    master: Optional[str] = None,
    user: Optional[str] = None,
    password: Optional[str] = None,
    cert_path: Optional[str] = None,
) -> None:
    """Choose a master and a user for all that follows; without it, both are found as the command line finds them."""
    global _client
    logout()
    _client = Client(master, user=user, password=password, certificate=cert_path)


def logout() -> None:
    """Let go of the login that this module uses."""
    global _client
    if _client is not None:
        _client.close()
    _client = None


def create_experiment(
    config: Union[str, Path, JsonObject],
    model_dir: Union[str, Path, None] = None,
    includes: Optional[Iterable[Union[str, Path]]] = None,
    project_id: Optional[int] = None,
) -> Experiment:
    """Submit an experiment. Raises InvalidInput with every problem that was found."""
    return _opened().create_experiment(config, model_dir, includes=list(includes or ()), project_id=project_id)


def get_experiment(experiment_id: int) -> Experiment:
    """Raises NotFound."""
    return _opened().experiment(experiment_id)


def list_experiments() -> list[Experiment]:
    """The newest first, without archived ones."""
    return _opened().experiments()


def get_trial(trial_id: int) -> Trial:
    """Raises NotFound."""
    return _opened().trial(trial_id)


def get_checkpoint(uuid: str) -> Checkpoint:
    """Raises NotFound."""
    return _opened().checkpoint(uuid)


def whoami() -> User:
    """Who is logged in."""
    return _opened().whoami()


def _opened() -> Client:
    global _client
    if _client is None:
        _client = Client()
    return _client
