"""The entry point of the SDK: one object that stands for a master.

The address and the login are found as the command line finds them; see `tenax.client.connection`, its
`address` and `login`.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import List, Optional, Sequence, Tuple, Type, Union

from tenax.client import access_tokens, groups, models, projects, users, webhooks, workspaces
from tenax.client.access_tokens import AccessToken
from tenax.client.agents import Agent, list_agents
from tenax.client.checkpoints import Checkpoint, get_checkpoint
from tenax.client.commands import Command, get_command, list_commands, run_command
from tenax.client.connection.listing import Listing
from tenax.client.connection.session import Session
from tenax.client.context import read_context
from tenax.client.experiments import Experiment, create_experiment, get_experiment, list_experiments
from tenax.client.groups import Group, GroupSize
from tenax.client.jobs import Job, list_jobs
from tenax.client.models import Model
from tenax.client.pools import Pool, list_pools
from tenax.client.projects import Project
from tenax.client.runs import Run, search_runs
from tenax.client.trials import Trial, get_trial
from tenax.client.users import User
from tenax.client.webhooks import Webhook
from tenax.client.workspaces import Workspace
from tenax.errors import InvalidInput
from tenax.jsonvalue import JsonObject


class Client:
    """A master, as one user. Not thread-safe: make one per thread.

    Methods raise the errors of `tenax.errors`, and `tenax.client.Unreachable` when nothing answers.
    """

    def __init__(
        self,
        master: Optional[str] = None,
        *,
        user: Optional[str] = None,
        password: Optional[str] = None,
        token: Optional[str] = None,
        certificate: Optional[str] = None,
    ) -> None:
        self.session = Session(master, user=user, token=token, certificate=certificate)
        if password is not None:
            if user is None:
                raise InvalidInput("A password needs a user: give both.")
            self.session.log_in(user, password, remember=False)

    def create_experiment(
        self,
        config: Union[str, Path, JsonObject],
        code: Union[str, Path, None] = None,
        *,
        includes: Sequence[Union[str, Path]] = (),
        activate: bool = True,
        project_id: Optional[int] = None,
        template: Optional[str] = None,
        parent_id: Optional[int] = None,
        checks_script: bool = True,
    ) -> Experiment:
        """Submit an experiment: ``config`` is the path of a YAML file or the document itself, ``code`` a directory.

        ``parent_id``: the experiment that it is a fork of, whose code it takes where none is given. ``checks_script``:
        whether the script that it runs must be sent; it may be in an image.
        Raises InvalidInput with every problem that was found, by path and line.
        """
        text = _config_text(config)
        files = read_context(Path(code), [Path(include) for include in includes]) if code is not None else []
        experiment, _ = create_experiment(
            self.session,
            text,
            files,
            activate=activate,
            project_id=project_id,
            template=template,
            parent_id=parent_id,
            checks_script=checks_script,
        )
        return experiment

    def experiment(self, number: int) -> Experiment:
        """Raises NotFound."""
        return get_experiment(self.session, number)

    def experiments(
        self,
        *,
        users: Sequence[str] = (),
        states: Sequence[str] = (),
        archived: Optional[bool] = False,
        limit: Optional[int] = None,
        name: str = "",
        labels: Sequence[str] = (),
        project_id: Optional[int] = None,
        sort: str = "id",
        descending: bool = True,
    ) -> Listing[Experiment]:
        """The newest first, or by ``sort``: one of `tenax.client.experiments.ORDERS`. ``name`` is a part of it."""
        return Listing(
            list_experiments(
                self.session,
                users=users,
                states=states,
                archived=archived,
                limit=limit,
                name=name,
                labels=labels,
                project_id=project_id,
                sort=sort,
                descending=descending,
            )
        )

    def trial(self, number: int) -> Trial:
        """Raises NotFound."""
        return get_trial(self.session, number)

    def runs(
        self,
        *conditions: str,
        project_id: Optional[int] = None,
        archived: bool = False,
        sort: str = "id=desc",
        limit: Optional[int] = None,
    ) -> Listing[Run]:
        """Runs of any experiment for which all conditions hold: ``client.runs("hp.lr>0.01", "state=COMPLETED")``.

        Raises InvalidInput for what is no condition.
        """
        runs = search_runs(
            self.session, project_id=project_id, conditions=conditions, archived=archived, sort=sort, limit=limit
        )
        return Listing(runs)

    def checkpoint(self, uuid: str) -> Checkpoint:
        """Raises NotFound."""
        return get_checkpoint(self.session, uuid)

    def run_command(
        self,
        argv: Sequence[str] = (),
        *,
        config: Optional[JsonObject] = None,
        slots: Optional[int] = None,
        context: Union[str, Path, None] = None,
        files: Sequence[Union[str, Path]] = (),
        template: str = "",
        workspace_id: int = 0,
    ) -> Command:
        """Run a program once on the cluster: its arguments, or one line for the shell. See `tenax.client.commands`.

        ``context``: a directory that becomes its work directory; ``files`` are put beside it. Raises InvalidInput.
        """
        command, _ = run_command(
            self.session,
            argv,
            config=config,
            slots=slots,
            context=None if context is None else Path(context),
            files=[Path(file) for file in files],
            template=template,
            workspace_id=workspace_id,
        )
        return command

    def command(self, name: str) -> Command:
        """Raises NotFound."""
        return get_command(self.session, name)

    def commands(self, *, users: Sequence[str] = (), workspace_id: int = 0) -> List[Command]:
        """Those that live or have ended within a day, the newest first."""
        return list_commands(self.session, users=users, workspace_id=workspace_id)

    def workspaces(self, *, archived: Optional[bool] = None, pinned: Optional[bool] = None) -> Listing[Workspace]:
        """By number; None: both kinds."""
        return Listing(workspaces.list_workspaces(self.session, archived=archived, pinned=pinned))

    def workspace(self, which: Union[int, str]) -> Workspace:
        """By number or name. Raises NotFound."""
        return workspaces.get_workspace(self.session, which)

    def create_workspace(self, name: str, *, checkpoint_storage: Optional[JsonObject] = None) -> Workspace:
        """Raises AlreadyExists."""
        return workspaces.create_workspace(self.session, name, checkpoint_storage=checkpoint_storage)

    def projects(self, workspace: Union[int, str] = 0, *, archived: Optional[bool] = None) -> List[Project]:
        """Of a workspace, by number or name; 0: of all. Raises NotFound."""
        return projects.list_projects(self.session, workspace, archived=archived)

    def project(self, which: Union[int, str], workspace: Union[int, str, None] = None) -> Project:
        """By name in a workspace; without one by number, by key, or as ``workspace/project``. Raises NotFound."""
        return projects.get_project(self.session, which, workspace)

    def create_project(self, workspace: Union[int, str], name: str, *, description: str = "") -> Project:
        """Raises AlreadyExists, NotFound."""
        return projects.create_project(self.session, workspace, name, description=description)

    def models(self, *, name: Optional[str] = None, workspaces: Sequence[str] = ()) -> Listing[Model]:
        """Whose names contain ``name``, by name."""
        return Listing(models.list_models(self.session, name=name, workspaces=workspaces))

    def model(self, which: Union[int, str]) -> Model:
        """By number or name. Raises NotFound."""
        return models.get_model(self.session, which)

    def create_model(
        self,
        name: str,
        *,
        description: str = "",
        labels: Sequence[str] = (),
        metadata: Optional[JsonObject] = None,
        workspace: Union[int, str, None] = None,
    ) -> Model:
        """Raises AlreadyExists, InvalidInput, NotFound."""
        return models.create_model(
            self.session, name, description=description, labels=labels, metadata=metadata, workspace=workspace
        )

    def model_labels(self) -> List[str]:
        """The most used first."""
        return models.model_labels(self.session)

    def agents(self) -> Listing[Agent]:
        """The agents that are connected, with their slots."""
        return Listing(list_agents(self.session))

    def pools(self) -> List[Pool]:
        """The resource pools, by name."""
        return list_pools(self.session)

    def jobs(self, pool: Optional[str] = None) -> Listing[Job]:
        """The queue of a pool, or of all, in the order of turns. Raises NotFound."""
        return Listing(list_jobs(self.session, pool))

    def whoami(self) -> User:
        """Who is logged in."""
        return users.whoami(self.session)

    def user(self, which: Union[int, str]) -> User:
        """A user by number or name. Raises NotFound."""
        return users.get_user(self.session, which)

    def users(self, *, active: Optional[bool] = None) -> Listing[User]:
        """Everyone, or those who are active (or not)."""
        return Listing(users.list_users(self.session, active=active))

    def create_user(self, username: str, password: Optional[str] = None, *, admin: bool = False) -> User:
        """Make a user; for more, see `tenax.client.users`. Raises InvalidInput, AlreadyExists, Forbidden."""
        return users.create_user(self.session, username, password, admin=admin)

    def groups(self) -> List[GroupSize]:
        """The groups of users, each with how many are in it."""
        return groups.list_groups(self.session)

    def group(self, which: Union[int, str]) -> Group:
        """A group by number or name. Raises NotFound."""
        return groups.get_group(self.session, which)

    def create_group(self, name: str, usernames: Sequence[str] = ()) -> Group:
        """Make a group with these users. Raises AlreadyExists, NotFound, Forbidden."""
        return groups.create_group(self.session, name, usernames)

    def access_tokens(self, *, inactive: bool = False) -> List[AccessToken]:
        """One's own access tokens, and everyone's for an administrator."""
        return access_tokens.list_tokens(self.session, inactive=inactive)

    def create_access_token(self, *, lifespan: Optional[str] = None, description: str = "") -> Tuple[int, str]:
        """The number of a new access token of one's own, and the token, which is shown only now."""
        return access_tokens.create_token(self.session, lifespan=lifespan, description=description)

    def webhooks(self) -> List[Webhook]:
        """All webhooks; create one with `tenax.client.webhooks.create_webhook`."""
        return webhooks.list_webhooks(self.session)

    def close(self) -> None:
        """Let go of the connections."""
        self.session.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()


def _config_text(config: Union[str, Path, JsonObject]) -> str:
    if isinstance(config, dict):
        import json

        return json.dumps(config)
    try:
        return Path(config).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InvalidInput(f"{config} does not exist: name the YAML file of the experiment.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{config} cannot be read: {error}.") from None
