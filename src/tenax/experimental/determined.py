"""A login, with everything that can be asked of a master."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Iterable, List, Optional, Sequence, Union

from tenax.client import Client, experiments
from tenax.client.connection.reading import without_nulls
from tenax.client.trials import pages
from tenax.errors import Unsupported
from tenax.experimental.checkpoint import Checkpoint
from tenax.experimental.experiment import Experiment
from tenax.experimental.metrics import TrainingMetrics, TrialMetrics, ValidationMetrics, reports
from tenax.experimental.model import Model, sorted_models
from tenax.experimental.orders import ExperimentSortBy, ExperimentState, ModelSortBy, OrderBy
from tenax.experimental.trial import Trial
from tenax.experimental.user import User
from tenax.experimental.workspace import Workspace


class Determined:
    """A master, as one user. Not thread-safe.

    ``cert_path``: the certificate that it shows. ``cert_name`` and ``noverify`` are not served: name the certificate.
    Raises InvalidInput, NotAuthenticated, Unreachable.
    """

    def __init__(
        self,
        master: Optional[str] = None,
        user: Optional[str] = None,
        password: Optional[str] = None,
        cert_path: Optional[str] = None,
        cert_name: Optional[str] = None,
        noverify: bool = False,
    ) -> None:
        if cert_name is not None or noverify:
            raise Unsupported("cert_name and noverify are not served here: give the master's certificate as cert_path")
        self._client = Client(master, user=user, password=password, certificate=cert_path)

    @property
    def _session(self) -> Any:
        return self._client.session

    def logout(self) -> None:
        """Let go of this login."""
        self._client.close()

    # Users.

    def whoami(self) -> User:
        """Who is logged in."""
        return User(self._client.whoami())

    def get_session_username(self) -> str:
        """The name of who is logged in."""
        return self._client.whoami().username

    def list_users(self, active: Optional[bool] = None) -> List[User]:
        """All, or those who may or may not log in."""
        return [User(user) for user in self._client.users(active=active)]

    def get_user_by_id(self, user_id: int) -> User:
        """Raises NotFound."""
        return User(self._client.user(int(user_id)))

    def get_user_by_name(self, user_name: str) -> User:
        """Raises NotFound."""
        return User(self._client.user(str(user_name)))

    def create_user(self, username: str, admin: bool, password: Optional[str] = None, remote: bool = False) -> User:
        """Raises AlreadyExists, InvalidInput for a weak password, Forbidden."""
        from tenax.client.users import create_user

        return User(create_user(self._session, username, password, admin=admin, remote=remote))

    # Experiments and what they make.

    def create_experiment(
        self,
        config: Union[str, Path, Dict[str, Any]],
        model_dir: Union[str, Path, None] = None,
        includes: Optional[Iterable[Union[str, Path]]] = None,
        project_id: Optional[int] = None,
        template: Optional[str] = None,
    ) -> Experiment:
        """Submit an experiment. Raises InvalidInput with every problem that was found."""
        return Experiment(
            self._client.create_experiment(
                config,
                model_dir,
                includes=list(includes or ()),
                project_id=project_id,
                template=template,
                checks_script=False,
            )
        )

    def get_experiment(self, experiment_id: int) -> Experiment:
        """Raises NotFound."""
        return Experiment(self._client.experiment(experiment_id))

    def list_experiments(
        self,
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
        query: Dict[str, Any] = {
            "sortBy": sort_by.value if sort_by is not None else None,
            "orderBy": order_by.value if order_by is not None else None,
            "experimentIdFilter.incl": list(experiment_ids) if experiment_ids else None,
            "labels": list(labels) if labels else None,
            "users": list(users) if users else None,
            "states": [state.value for state in states] if states else None,
            "name": name,
            "projectId": project_id,
        }
        values = pages(self._session, "/api/v1/experiments", "experiments", without_nulls(query))  # type: ignore[arg-type]
        return [Experiment(experiments.Experiment.read(value, self._session)) for value in values]

    def get_trial(self, trial_id: int) -> Trial:
        """Raises NotFound."""
        return Trial(self._client.trial(trial_id))

    def get_checkpoint(self, uuid: str) -> Checkpoint:
        """Raises NotFound."""
        return Checkpoint(self._client.checkpoint(uuid))

    def iter_trials_metrics(self, trial_ids: Sequence[int], group: str) -> Iterable[TrialMetrics]:
        """What these trials reported of a group."""
        return reports(self._session, trial_ids, group, TrialMetrics)

    def stream_trials_metrics(self, trial_ids: Sequence[int], group: str) -> Iterable[TrialMetrics]:
        """As `iter_trials_metrics`."""
        return self.iter_trials_metrics(trial_ids, group)

    def stream_trials_training_metrics(self, trial_ids: Sequence[int]) -> Iterable[TrainingMetrics]:
        """As `iter_trials_metrics` of ``training``."""
        return reports(self._session, trial_ids, "training", TrainingMetrics)

    def stream_trials_validation_metrics(self, trial_ids: Sequence[int]) -> Iterable[ValidationMetrics]:
        """As `iter_trials_metrics` of ``validation``."""
        return reports(self._session, trial_ids, "validation", ValidationMetrics)

    # Workspaces and models.

    def list_workspaces(self) -> List[Workspace]:
        """All that this user sees."""
        return [Workspace(workspace) for workspace in self._client.workspaces()]

    def get_workspace(self, name: str) -> Workspace:
        """Raises NotFound."""
        return Workspace(self._client.workspace(str(name)))

    def create_workspace(self, name: str) -> Workspace:
        """Raises AlreadyExists."""
        return Workspace(self._client.create_workspace(name))

    def delete_workspace(self, name: str) -> None:
        """With all in it. Raises NotFound."""
        self._client.workspace(str(name)).delete(wait=False)

    def create_model(
        self,
        name: str,
        description: Optional[str] = "",
        metadata: Optional[Dict[str, Any]] = None,
        labels: Optional[Sequence[str]] = None,
        workspace_name: Optional[str] = None,
    ) -> Model:
        """Raises AlreadyExists, InvalidInput."""
        return Model(
            self._client.create_model(
                name,
                description=description or "",
                metadata=metadata,
                labels=labels or (),
                workspace=workspace_name,
            )
        )

    def get_model(self, identifier: Union[str, int]) -> Model:
        """By name or number. Raises NotFound."""
        return Model(self._client.model(identifier))

    def get_model_by_id(self, model_id: int) -> Model:
        """Raises NotFound."""
        return self.get_model(int(model_id))

    def list_models(
        self,
        sort_by: ModelSortBy = ModelSortBy.NAME,
        order_by: OrderBy = OrderBy.ASCENDING,
        name: Optional[str] = None,
        description: Optional[str] = None,
        model_id: Optional[int] = None,
        workspace_names: Optional[Sequence[str]] = None,
        workspace_ids: Optional[Sequence[int]] = None,
    ) -> List[Model]:
        """Those for which all that is given holds; name and description are parts of theirs."""
        return sorted_models(
            self._session, sort_by, order_by, name, description, model_id, workspace_names, workspace_ids
        )

    def get_models(self, *arguments: Any, **named: Any) -> List[Model]:
        """As `list_models`."""
        return self.list_models(*arguments, **named)

    def get_model_labels(self) -> List[str]:
        """All labels of models, the most frequent first."""
        return self._client.model_labels()

    def list_oauth_clients(self) -> List[Any]:
        """Raises Unsupported: there is no login by others."""
        raise Unsupported(_NO_OAUTH)

    def add_oauth_client(self, domain: str, name: str) -> Any:
        """Raises Unsupported."""
        raise Unsupported(_NO_OAUTH)

    def remove_oauth_client(self, client_id: str) -> None:
        """Raises Unsupported."""
        raise Unsupported(_NO_OAUTH)


_NO_OAUTH = "this master has no clients of OAuth: make an access token (tenax token create)"
