"""The types of the asynchronous SDK. Made by `make docs` of the classes whose twins these are."""

from __future__ import annotations

import datetime
from pathlib import Path
from types import TracebackType
from typing import Callable, Dict, List, Optional, Sequence, Tuple, Type, Union

from tenax.client.agents import Agent
from tenax.client.asynchronous.stream import AsyncStream as AsyncStream
from tenax.client.checkpoints import GcPolicy, GcPreview
from tenax.client.connection.listing import Listing
from tenax.client.groups import GroupSize
from tenax.client.jobs import Job
from tenax.client.pools import Pool
from tenax.client.projects import Note
from tenax.client.runs import Run
from tenax.client.trials import LogFilter, LogLine, Point, Report, Reports, Validation
from tenax.client.users import AgentIdentity
from tenax.client.webhooks import Delivery, Trigger
from tenax.jsonvalue import JsonObject

class AsyncClient:
    """A master, as one user, for event loops: any number of its calls may be awaited at once.

    Methods raise the errors of `tenax.errors`, and `tenax.client.Unreachable` when nothing answers.
    """

    async def __aenter__(self) -> AsyncClient: ...
    async def __aexit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None: ...
    def __init__(
        self,
        master: Optional[str] = None,
        *,
        user: Optional[str] = None,
        password: Optional[str] = None,
        token: Optional[str] = None,
        certificate: Optional[str] = None,
    ) -> None: ...
    async def create_experiment(
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
    ) -> AsyncExperiment:
        """Submit an experiment: ``config`` is the path of a YAML file or the document itself, ``code`` a directory.

        ``parent_id``: the experiment that it is a fork of, whose code it takes where none is given. ``checks_script``:
        whether the script that it runs must be sent; it may be in an image.
        Raises InvalidInput with every problem that was found, by path and line.
        """
    async def experiment(self, number: int) -> AsyncExperiment:
        """Raises NotFound."""
    async def experiments(
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
    ) -> Listing[AsyncExperiment]:
        """The newest first, or by ``sort``: one of `tenax.client.experiments.ORDERS`. ``name`` is a part of it."""
    async def trial(self, number: int) -> AsyncTrial:
        """Raises NotFound."""
    async def runs(
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
    async def checkpoint(self, uuid: str) -> AsyncCheckpoint:
        """Raises NotFound."""
    async def run_command(
        self,
        argv: Sequence[str] = (),
        *,
        config: Optional[JsonObject] = None,
        slots: Optional[int] = None,
        context: Union[str, Path, None] = None,
        files: Sequence[Union[str, Path]] = (),
        template: str = "",
        workspace_id: int = 0,
    ) -> AsyncCommand:
        """Run a program once on the cluster: its arguments, or one line for the shell. See `tenax.client.commands`.

        ``context``: a directory that becomes its work directory; ``files`` are put beside it. Raises InvalidInput.
        """
    async def command(self, name: str) -> AsyncCommand:
        """Raises NotFound."""
    async def commands(self, *, users: Sequence[str] = (), workspace_id: int = 0) -> List[AsyncCommand]:
        """Those that live or have ended within a day, the newest first."""
    async def workspaces(
        self, *, archived: Optional[bool] = None, pinned: Optional[bool] = None
    ) -> Listing[AsyncWorkspace]:
        """By number; None: both kinds."""
    async def workspace(self, which: Union[int, str]) -> AsyncWorkspace:
        """By number or name. Raises NotFound."""
    async def create_workspace(self, name: str, *, checkpoint_storage: Optional[JsonObject] = None) -> AsyncWorkspace:
        """Raises AlreadyExists."""
    async def projects(self, workspace: Union[int, str] = 0, *, archived: Optional[bool] = None) -> List[AsyncProject]:
        """Of a workspace, by number or name; 0: of all. Raises NotFound."""
    async def project(self, which: Union[int, str], workspace: Union[int, str, None] = None) -> AsyncProject:
        """By name in a workspace; without one by number, by key, or as ``workspace/project``. Raises NotFound."""
    async def create_project(self, workspace: Union[int, str], name: str, *, description: str = "") -> AsyncProject:
        """Raises AlreadyExists, NotFound."""
    async def models(self, *, name: Optional[str] = None, workspaces: Sequence[str] = ()) -> Listing[AsyncModel]:
        """Whose names contain ``name``, by name."""
    async def model(self, which: Union[int, str]) -> AsyncModel:
        """By number or name. Raises NotFound."""
    async def create_model(
        self,
        name: str,
        *,
        description: str = "",
        labels: Sequence[str] = (),
        metadata: Optional[JsonObject] = None,
        workspace: Union[int, str, None] = None,
    ) -> AsyncModel:
        """Raises AlreadyExists, InvalidInput, NotFound."""
    async def model_labels(self) -> List[str]:
        """The most used first."""
    async def agents(self) -> Listing[Agent]:
        """The agents that are connected, with their slots."""
    async def pools(self) -> List[Pool]:
        """The resource pools, by name."""
    async def jobs(self, pool: Optional[str] = None) -> Listing[Job]:
        """The queue of a pool, or of all, in the order of turns. Raises NotFound."""
    async def whoami(self) -> AsyncUser:
        """Who is logged in."""
    async def user(self, which: Union[int, str]) -> AsyncUser:
        """A user by number or name. Raises NotFound."""
    async def users(self, *, active: Optional[bool] = None) -> Listing[AsyncUser]:
        """Everyone, or those who are active (or not)."""
    async def create_user(self, username: str, password: Optional[str] = None, *, admin: bool = False) -> AsyncUser:
        """Make a user; for more, see `tenax.client.users`. Raises InvalidInput, AlreadyExists, Forbidden."""
    async def groups(self) -> List[GroupSize]:
        """The groups of users, each with how many are in it."""
    async def group(self, which: Union[int, str]) -> AsyncGroup:
        """A group by number or name. Raises NotFound."""
    async def create_group(self, name: str, usernames: Sequence[str] = ()) -> AsyncGroup:
        """Make a group with these users. Raises AlreadyExists, NotFound, Forbidden."""
    async def access_tokens(self, *, inactive: bool = False) -> List[AsyncAccessToken]:
        """One's own access tokens, and everyone's for an administrator."""
    async def create_access_token(self, *, lifespan: Optional[str] = None, description: str = "") -> Tuple[int, str]:
        """The number of a new access token of one's own, and the token, which is shown only now."""
    async def webhooks(self) -> List[AsyncWebhook]:
        """All webhooks; create one with `tenax.client.webhooks.create_webhook`."""
    async def close(self) -> None:
        """Let go of the connections."""

class AsyncAccessToken:
    """All about a token but the token, which is shown when it is made and never again."""

    @property
    def raw(self) -> JsonObject:
        """The whole answer."""
    @property
    def id(self) -> int: ...
    @property
    def user_id(self) -> int: ...
    @property
    def description(self) -> str: ...
    @property
    def created(self) -> Optional[datetime.datetime]: ...
    @property
    def expires(self) -> Optional[datetime.datetime]: ...
    @property
    def revoked(self) -> bool: ...
    async def describe(self, description: str) -> AsyncAccessToken:
        """Say what it is for. Raises Forbidden."""
    async def revoke(self) -> AsyncAccessToken:
        """End it, at once and for good. Raises Forbidden."""

class AsyncCheckpoint:
    """Files that a trial saved at some step."""

    @property
    def raw(self) -> JsonObject:
        """The whole answer."""
    @property
    def uuid(self) -> str: ...
    @property
    def state(self) -> str: ...
    #: What the script recorded about it; ``steps_completed`` is always there.
    @property
    def metadata(self) -> JsonObject: ...
    #: Size in bytes of each file, by path; directories end in a slash.
    @property
    def resources(self) -> Dict[str, int]: ...
    @property
    def trial_id(self) -> int: ...
    @property
    def experiment_id(self) -> int: ...
    @property
    def hparams(self) -> JsonObject: ...
    #: The searcher's metric at its step, where it was reported.
    @property
    def searcher_metric(self) -> Optional[float]: ...
    @property
    def reported(self) -> Optional[datetime.datetime]: ...
    #: Why its files are being deleted, and why that did not work yet; empty: they are not.
    @property
    def going(self) -> str: ...
    @property
    def steps(self) -> int: ...
    @property
    def has_files(self) -> bool:
        """Whether there is something to download: whole, or without some of its files."""
    @property
    def size(self) -> int:
        """Bytes."""
    @property
    def storage(self) -> JsonObject:
        """``checkpoint_storage`` of its experiment."""
    async def path(self) -> Optional[Path]:
        """Where it lies, if this machine sees that directory; a link there leads to whatever its maker likes.

        What a run by hand saved on this machine lies where such runs keep it, whatever its experiment's storage is.
        """
    async def reload(self) -> AsyncCheckpoint:
        """The checkpoint as it is now."""
    async def delete(self) -> None:
        """Delete its files; the record of it stays. Raises NotNow where a live trial would start from it."""
    async def remove_files(self, globs: Sequence[str]) -> None:
        """Delete the files that match (``**`` crosses directories); none: update its record."""
    async def add_metadata(self, metadata: JsonObject) -> AsyncCheckpoint:
        """Add metadata; values under the same names are replaced. The checkpoint as it is then."""
    async def remove_metadata(self, names: Sequence[str]) -> AsyncCheckpoint:
        """Remove metadata by name; the steps at which it was saved stay."""
    async def metrics(self, group: str = "") -> Reports:
        """Metrics of trials that reported using it; without a ``group``, of every group."""
    async def download(self, to: Union[str, Path, None] = None, *, mode: str = "auto") -> Path:
        """Fetch its files into a new directory (``checkpoints/<uuid>`` below the current one); returns it.

        Copied where this machine sees the storage, else through the master, else from the storage with the credentials
        of whoever asks, unless it is on a server that somebody else has named; ``mode``: ``master``, or ``direct`` for
        the storage, whoever named it. Raises AlreadyExists, NotFound, StorageFailed, InvalidInput for another mode.
        """

class AsyncCommand:
    """A program that runs once."""

    @property
    def raw(self) -> JsonObject:
        """The whole answer."""
    @property
    def id(self) -> str: ...
    @property
    def description(self) -> str: ...
    #: QUEUED, PULLING, STARTING, RUNNING, TERMINATING or TERMINATED.
    @property
    def state(self) -> str: ...
    @property
    def owner(self) -> str: ...
    @property
    def pool(self) -> str: ...
    @property
    def priority(self) -> int: ...
    @property
    def workspace_id(self) -> int: ...
    #: Of the program, once it has ended by itself; None for one that did not, or runs.
    @property
    def exit_code(self) -> Optional[int]: ...
    #: Why it waits, or how it ended.
    @property
    def reason(self) -> str: ...
    @property
    def started(self) -> Optional[datetime.datetime]: ...
    @property
    def ended(self) -> Optional[datetime.datetime]: ...
    #: The whole configuration; empty in lists.
    @property
    def config(self) -> JsonObject: ...
    @property
    def has_ended(self) -> bool: ...
    async def reload(self) -> AsyncCommand:
        """The command as it is now."""
    async def wait(
        self, *, interval: float = 0.5, seen: Optional[Callable[[AsyncCommand], bool]] = None
    ) -> AsyncCommand:
        """The command once it has ended, or once ``seen``, which is shown every state on the way, says enough.

        A master that is away is waited for. Raises Unreachable when it stays away for ten minutes.
        """
    async def kill(self) -> None:
        """End it at once; nothing if it has ended."""
    async def set_priority(self, priority: int) -> None:
        """Its place in the queue: 1 is the most urgent, 99 the least."""
    def logs(
        self, *, follow: bool = False, head: Optional[int] = None, tail: Optional[int] = None, search: str = ""
    ) -> AsyncStream[LogLine]:
        """Its output, the oldest line first; ``follow`` goes on until it has ended."""

class AsyncExperiment:
    """A configuration and its search."""

    @property
    def raw(self) -> JsonObject:
        """The whole answer."""
    @property
    def id(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def owner(self) -> str: ...
    #: 0 to 1; None before anything is known.
    @property
    def progress(self) -> Optional[float]: ...
    @property
    def searcher(self) -> str: ...
    @property
    def metric(self) -> str: ...
    @property
    def smaller_is_better(self) -> bool: ...
    #: Its search may go on after its end; one that stops trials early is forked instead.
    @property
    def continuable(self) -> bool: ...
    @property
    def trial_count(self) -> int: ...
    @property
    def best_metric(self) -> Optional[float]: ...
    @property
    def best_trial_id(self) -> int: ...
    @property
    def pool(self) -> str: ...
    @property
    def labels(self) -> Tuple[str, ...]: ...
    @property
    def archived(self) -> bool: ...
    @property
    def started(self) -> Optional[datetime.datetime]: ...
    @property
    def ended(self) -> Optional[datetime.datetime]: ...
    #: Seconds in which at least one of its trials ran, without waiting; None from masters that do not say it.
    @property
    def ran_s(self) -> Optional[float]: ...
    #: Why it waits, or how it ended, where that is not plain.
    @property
    def reason(self) -> str: ...
    #: The whole configuration, with every default.
    @property
    def config(self) -> JsonObject: ...
    @property
    def has_ended(self) -> bool: ...
    @property
    def left_s(self) -> Optional[float]:
        """Seconds of running that are left if it goes on as it went; None where nothing can be said."""
    @property
    def needs_progress(self) -> bool:
        """Whether its search counts what trials say of themselves, and they could be asked to."""
    @property
    def length_metric(self) -> str:
        """The validation metric that ``searcher.max_length`` counts; empty where it counts steps or is not set."""
    async def reload(self) -> AsyncExperiment:
        """The experiment as it is now."""
    async def wait(
        self, *, interval: float = 1.0, seen: Optional[Callable[[AsyncExperiment], None]] = None
    ) -> AsyncExperiment:
        """The experiment once it has ended; ``seen`` is shown every state on the way.

        A master that is away is waited for. Raises Unreachable when it stays away for ten minutes.
        """
    async def activate(self) -> None:
        """Let it go on."""
    async def pause(self) -> None:
        """Every trial saves and leaves its slots, until it is activated."""
    async def cancel(self) -> None:
        """Every trial saves, and the experiment ends."""
    async def kill(self) -> None:
        """End it at once."""
    async def do(self, verb: str) -> None:
        """One of VERBS."""
    async def delete(self) -> None:
        """Delete it with its metrics, logs and checkpoints; it must have ended."""
    async def trials(self) -> Listing[AsyncTrial]:
        """Its trials in the order of their making."""
    async def checkpoints(self, limit: Optional[int] = None) -> Listing[AsyncCheckpoint]:
        """Its checkpoints, the best by the searcher's metric first, then those without one, with the most steps first.

        Of equal ones the one that was saved first is better, as everywhere.
        """
    async def checkpoints_by(self, metric: str, *, smaller_is_better: bool) -> Listing[AsyncCheckpoint]:
        """Those of its checkpoints with a validation that has ``metric``, the best first."""
    async def garbage(
        self,
        *,
        experiment_best: Optional[int] = None,
        trial_best: Optional[int] = None,
        trial_latest: Optional[int] = None,
    ) -> GcPreview:
        """What its policy, with these numbers in place, keeps of its checkpoints, and why; nothing is changed."""
    async def set_checkpoint_policy(self, policy: GcPolicy) -> None:
        """Keep so many of its checkpoints from now on; what is not kept is deleted at once."""
    async def edit(
        self,
        *,
        name: Optional[str] = None,
        description: Optional[str] = None,
        notes: Optional[str] = None,
        labels: Optional[Sequence[str]] = None,
        max_slots: Optional[int] = None,
        unlimited: bool = False,
        time_limit: Optional[float] = None,
        without_time_limit: bool = False,
        weight: Optional[float] = None,
        priority: Optional[int] = None,
    ) -> AsyncExperiment:
        """Change what is given; None leaves a field as it is. ``unlimited``: without ``max_slots``; ``time_limit``:
        seconds for each of its runs."""
    async def add_label(self, label: str) -> Tuple[str, ...]:
        """Its labels with this one; one that it has is not added again."""
    async def remove_label(self, label: str) -> Tuple[str, ...]:
        """Its labels without this one."""
    async def move(self, project_id: int) -> None:
        """File it in another project."""
    async def set_log_retention(self, days: int) -> None:
        """Keep the output of its trials that many days after their end; -1: for ever."""
    async def code(self) -> bytes:
        """The code that came with it: a gzip-compressed tar archive; empty for none."""
    async def continued(self, override: str = "") -> Tuple[AsyncExperiment, List[str]]:
        """Let it go on after its end, with YAML text laid over its configuration; and what the master remarks.

        Raises NotNow where it has not ended, or where its search cannot go on.
        """
    async def delete_tensorboard_files(self) -> None:
        """Delete what its trials wrote for TensorBoard."""
    async def best_checkpoint(self) -> AsyncCheckpoint:
        """The checkpoint with the best value of the searcher's metric. Raises NotFound when there is none."""
    def logs(self, *, follow: bool = False, tail: Optional[int] = None) -> AsyncStream[LogLine]:
        """The output of its first trial. Raises NotFound before there is one."""

class AsyncGroup:
    """A named set of users. It gives nobody a right."""

    @property
    def raw(self) -> JsonObject:
        """The whole answer."""
    @property
    def id(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def users(self) -> Tuple[AsyncUser, ...]: ...
    async def rename(self, name: str) -> AsyncGroup:
        """Raises AlreadyExists, Forbidden."""
    async def add(self, usernames: Sequence[str]) -> AsyncGroup:
        """Put users in. Raises NotFound, Forbidden."""
    async def remove(self, usernames: Sequence[str]) -> AsyncGroup:
        """Take users out. Raises NotFound, Forbidden."""
    async def delete(self) -> None:
        """Delete the group; its users stay. Raises Forbidden."""

class AsyncModel:
    """A name under which checkpoints are registered."""

    @property
    def raw(self) -> JsonObject:
        """The whole answer."""
    @property
    def id(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def notes(self) -> str: ...
    @property
    def labels(self) -> Tuple[str, ...]: ...
    @property
    def metadata(self) -> JsonObject: ...
    @property
    def workspace_id(self) -> int: ...
    @property
    def owner(self) -> str: ...
    @property
    def archived(self) -> bool: ...
    @property
    def versions_count(self) -> int: ...
    @property
    def created(self) -> Optional[datetime.datetime]: ...
    @property
    def updated(self) -> Optional[datetime.datetime]: ...
    async def reload(self) -> AsyncModel:
        """The model as it is now. Raises NotFound."""
    async def versions(self, *, descending: bool = True) -> List[AsyncModelVersion]:
        """Its versions, the newest first."""
    async def version(self, number: Optional[int] = None) -> AsyncModelVersion:
        """One version; without a number the newest. Raises NotFound."""
    async def register_version(
        self,
        checkpoint: Union[str, AsyncCheckpoint],
        *,
        name: str = "",
        comment: str = "",
        notes: str = "",
        labels: Sequence[str] = (),
        metadata: Optional[JsonObject] = None,
    ) -> AsyncModelVersion:
        """Register a checkpoint as the next version; it is neither deleted nor collected from then on.

        Raises NotFound, and NotNow for one that is not completed and for an archived model.
        """
    async def edit(
        self,
        *,
        name: Optional[str] = None,
        description: Optional[str] = None,
        notes: Optional[str] = None,
        labels: Optional[Sequence[str]] = None,
        metadata: Optional[JsonObject] = None,
    ) -> AsyncModel:
        """Change what is given, labels and metadata as a whole. Raises AlreadyExists, Forbidden, NotNow."""
    async def move(self, workspace: Union[int, str]) -> None:
        """Into another workspace, by number or name. Raises NotFound."""
    async def archive(self) -> None:
        """It takes no new versions, and does not change."""
    async def unarchive(self) -> None:
        """As it was before."""
    async def delete(self) -> None:
        """It, and its versions; their checkpoints stay, and may be deleted from then on."""

class AsyncModelVersion:
    """A checkpoint under a model's name."""

    @property
    def raw(self) -> JsonObject:
        """The whole answer."""
    #: 1, 2, ...; never used again.
    @property
    def version(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def comment(self) -> str: ...
    @property
    def notes(self) -> str: ...
    @property
    def labels(self) -> Tuple[str, ...]: ...
    @property
    def metadata(self) -> JsonObject: ...
    @property
    def owner(self) -> str: ...
    @property
    def created(self) -> Optional[datetime.datetime]: ...
    @property
    def checkpoint(self) -> AsyncCheckpoint: ...
    @property
    def model(self) -> AsyncModel: ...
    async def edit(
        self,
        *,
        name: Optional[str] = None,
        comment: Optional[str] = None,
        notes: Optional[str] = None,
        labels: Optional[Sequence[str]] = None,
        metadata: Optional[JsonObject] = None,
    ) -> AsyncModelVersion:
        """Change what is given; labels and metadata are replaced as a whole. Raises Forbidden, NotNow."""
    async def metrics(self, group: Optional[str] = None) -> List[JsonObject]:
        """Metrics of trials that reported using it: ``trialId``, ``group``, ``totalBatches``, ``metrics``..."""
    async def delete(self) -> None:
        """It; its checkpoint stays, and may be deleted from then on."""

class AsyncProject:
    """Where experiments are filed, in one workspace."""

    @property
    def raw(self) -> JsonObject:
        """The whole answer."""
    @property
    def id(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    #: Begins the short names of what is in it.
    @property
    def key(self) -> str: ...
    @property
    def workspace_id(self) -> int: ...
    @property
    def workspace(self) -> str: ...
    @property
    def owner(self) -> str: ...
    #: It, or its workspace.
    @property
    def archived(self) -> bool: ...
    @property
    def immutable(self) -> bool: ...
    #: ACTIVE, DELETING or DELETE_FAILED.
    @property
    def state(self) -> str: ...
    #: Why it could not be deleted.
    @property
    def error(self) -> str: ...
    @property
    def notes(self) -> Tuple[Note, ...]: ...
    @property
    def experiments_count(self) -> int: ...
    #: Of those, which have not ended.
    @property
    def active_count(self) -> int: ...
    #: Trials.
    @property
    def runs_count(self) -> int: ...
    @property
    def last_experiment(self) -> Optional[datetime.datetime]: ...
    async def reload(self) -> AsyncProject:
        """The project as it is now. Raises NotFound."""
    async def experiments(
        self,
        *,
        users: Sequence[str] = (),
        archived: Optional[bool] = None,
        name: str = "",
        labels: Sequence[str] = (),
        states: Sequence[str] = (),
    ) -> List[AsyncExperiment]:
        """What is filed in it, the newest first; ``archived`` None: both kinds."""
    async def edit(
        self, *, name: Optional[str] = None, description: Optional[str] = None, key: Optional[str] = None
    ) -> AsyncProject:
        """Change what is given. Raises AlreadyExists, Forbidden, NotNow."""
    async def archive(self) -> None:
        """Nothing is filed in it any more, and it does not change."""
    async def unarchive(self) -> None:
        """As it was before."""
    async def move(self, workspace: Union[int, str]) -> None:
        """Into another workspace, by number or name. Raises NotFound, AlreadyExists."""
    async def add_note(self, name: str, contents: str) -> Tuple[Note, ...]:
        """Put a note behind the others; all of them."""
    async def set_notes(self, notes: Sequence[Note]) -> Tuple[Note, ...]:
        """Replace all notes."""
    async def delete(self, *, wait: bool = True, seen: Optional[Callable[[AsyncProject], None]] = None) -> None:
        """Delete it with its experiments; ``seen`` is shown it while it goes. Raises NotNow."""

class AsyncTask:
    """One task."""

    @property
    def raw(self) -> JsonObject:
        """The whole answer."""
    @property
    def id(self) -> str: ...
    #: TRIAL, COMMAND, GENERIC, ...
    @property
    def kind(self) -> str: ...
    #: Of a task that is no trial's: ACTIVE, PAUSED, COMPLETED, CANCELED, ERROR, or on its way there; else empty.
    @property
    def state(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def owner(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def parent_id(self) -> str: ...
    @property
    def forked_from(self) -> str: ...
    @property
    def started(self) -> Optional[datetime.datetime]: ...
    @property
    def ended(self) -> Optional[datetime.datetime]: ...
    async def reload(self) -> AsyncTask:
        """The task as it is now."""
    async def config(self) -> JsonObject:
        """The whole configuration. Raises NotFound for a trial's: it is that of its experiment."""
    async def pause(self) -> None:
        """It and all that came from it save and leave their slots."""
    async def unpause(self) -> None:
        """It and all that came from it go on."""
    async def kill(self, *, from_root: bool = False) -> None:
        """End it and all that came from it; ``from_root``: all that came from its topmost ancestor."""
    def logs(
        self, *, follow: bool = False, head: Optional[int] = None, tail: Optional[int] = None, search: str = ""
    ) -> AsyncStream[LogLine]:
        """Its output, the oldest line first; ``follow`` goes on until it has ended."""

class AsyncTrial:
    """One sample of hyperparameters."""

    @property
    def raw(self) -> JsonObject:
        """The whole answer."""
    @property
    def id(self) -> int: ...
    @property
    def experiment_id(self) -> int: ...
    @property
    def state(self) -> str: ...
    @property
    def hparams(self) -> JsonObject: ...
    @property
    def steps(self) -> int: ...
    @property
    def restarts(self) -> int: ...
    @property
    def best_validation(self) -> Optional[Validation]: ...
    @property
    def latest_validation(self) -> Optional[Validation]: ...
    #: Of the metrics of each group, by name, what their values come to; of training it is ``avg_metrics``.
    @property
    def summary(self) -> JsonObject: ...
    #: The searcher's metric at the best validation.
    @property
    def searcher_metric(self) -> Optional[float]: ...
    @property
    def best_checkpoint_uuid(self) -> str: ...
    #: The newest: each time that its experiment is continued it has one more.
    @property
    def task_id(self) -> str: ...
    #: All of them, the oldest first.
    @property
    def task_ids(self) -> List[str]: ...
    @property
    def started(self) -> Optional[datetime.datetime]: ...
    @property
    def ended(self) -> Optional[datetime.datetime]: ...
    #: Seconds in which it ran, without waiting; None from masters that do not say it.
    @property
    def ran_s(self) -> Optional[float]: ...
    #: Why it waits, or how it ended, where that is not plain.
    @property
    def reason(self) -> str: ...
    @property
    def has_ended(self) -> bool: ...
    @property
    def validation_metrics(self) -> List[str]:
        """What its validations report, whether the searcher's metric is among it or not."""
    async def reload(self) -> AsyncTrial:
        """The trial as it is now."""
    async def kill(self) -> None:
        """End it at once; the search goes on."""
    async def health(self) -> JsonObject:
        """Whether it is well: ``sentence``, ``kind``, ``findings`` with what shows them, and facts that change."""
    async def checkpoints(self) -> Listing[AsyncCheckpoint]:
        """Its checkpoints, the newest first."""
    async def metrics(self, group: str = "") -> Reports:
        """Its reports in the order of their steps, of one group or of all; ``.columns()`` has them as flat columns."""
    def iter_metrics(self, group: str = "") -> AsyncStream[Report]:
        """The same, once and without keeping them: fetched while they are read."""
    def logs(
        self,
        *,
        follow: bool = False,
        head: Optional[int] = None,
        tail: Optional[int] = None,
        search: str = "",
        where: Optional[LogFilter] = None,
    ) -> AsyncStream[LogLine]:
        """Its output, the oldest line first; ``follow`` goes on until the trial has ended."""
    async def log_fields(self) -> JsonObject:
        """What its output can be filtered by: every agent, container, rank, source and stream that occurs."""
    async def keep_logs(self, days: int) -> None:
        """Keep its output so many days after its end; -1: for ever."""
    async def workloads(self, kind: str = "") -> List[JsonObject]:
        """What happened in it, by step: objects with ``training``, ``validation`` or ``checkpoint``.

        ``kind``: CHECKPOINT, VALIDATION or CHECKPOINT_OR_VALIDATION alone.
        """
    async def series(self, metric: str, group: Optional[str] = None, points: int = 1000) -> List[Point]:
        """One metric for a chart, thinned to so many points (0: all); its least and greatest value are kept.

        Without a ``group`` that in which it was reported: validation before training before others. Raises NotFound.
        """
    async def metadata(self) -> JsonObject:
        """What was written about it."""
    async def set_metadata(self, metadata: JsonObject) -> None:
        """Write about it, instead of what was there."""

class AsyncUser:
    """A person, or a program that acts like one."""

    @property
    def raw(self) -> JsonObject:
        """The whole answer."""
    @property
    def id(self) -> int: ...
    @property
    def username(self) -> str: ...
    @property
    def display_name(self) -> str: ...
    @property
    def admin(self) -> bool: ...
    @property
    def active(self) -> bool: ...
    #: Logs in elsewhere, and has no password here.
    @property
    def remote(self) -> bool: ...
    @property
    def last_login(self) -> Optional[datetime.datetime]: ...
    @property
    def agent_identity(self) -> Optional[AgentIdentity]: ...
    async def reload(self) -> AsyncUser:
        """The user as they are now."""
    async def edit(
        self,
        *,
        username: Optional[str] = None,
        display_name: Optional[str] = None,
        admin: Optional[bool] = None,
        active: Optional[bool] = None,
        remote: Optional[bool] = None,
    ) -> AsyncUser:
        """Change what is given. Raises Forbidden, AlreadyExists, InvalidInput."""
    async def change_password(self, password: str, current: Optional[str] = None) -> AsyncUser:
        """Give them another password; their other logins end. Raises InvalidInput for a weak one, Forbidden.

        ``current``: the present password of whoever asks, which is needed where they come with an access token.
        """
    async def link_with_agent(self, uid: int, user: str, gid: int, group: str) -> AsyncUser:
        """Let their tasks run as this user and group of the agents' machines."""

class AsyncWebhook:
    """An address, and the events that it is notified of."""

    @property
    def raw(self) -> JsonObject:
        """The whole answer."""
    @property
    def id(self) -> int: ...
    @property
    def name(self) -> str: ...
    #: Without its path, unless it is yours to change.
    @property
    def url(self) -> str: ...
    #: DEFAULT or SLACK.
    @property
    def kind(self) -> str: ...
    #: WORKSPACE: all experiments there; SPECIFIC: those that name it.
    @property
    def mode(self) -> str: ...
    #: None: all workspaces.
    @property
    def workspace_id(self) -> Optional[int]: ...
    @property
    def triggers(self) -> Tuple[Trigger, ...]: ...
    async def set_url(self, url: str) -> AsyncWebhook:
        """Send to another address from now on, also what waits already. Raises InvalidInput, Forbidden."""
    async def test(self) -> Tuple[bool, str]:
        """Send a message now: whether it was taken, and how the receiver answered. Raises Forbidden."""
    async def delete(self) -> None:
        """Delete it, and what waits for it. Raises Forbidden."""
    async def deliveries(self, most: int = 50) -> List[Delivery]:
        """What was sent and what waits, the newest first. Raises Forbidden."""

class AsyncWorkspace:
    """What a team keeps its projects and models in, with defaults for what runs there."""

    @property
    def raw(self) -> JsonObject:
        """The whole answer."""
    @property
    def id(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def owner(self) -> str: ...
    @property
    def archived(self) -> bool: ...
    @property
    def immutable(self) -> bool: ...
    #: By the user of this session.
    @property
    def pinned(self) -> bool: ...
    #: ACTIVE, DELETING or DELETE_FAILED.
    @property
    def state(self) -> str: ...
    #: Why it could not be deleted.
    @property
    def error(self) -> str: ...
    @property
    def projects_count(self) -> int: ...
    @property
    def experiments_count(self) -> int: ...
    #: Below that of experiments made in it; its secrets are stars.
    @property
    def checkpoint_storage(self) -> JsonObject: ...
    @property
    def default_compute_pool(self) -> str: ...
    @property
    def default_aux_pool(self) -> str: ...
    #: Whom its tasks run as: ``agentUid``, ``agentGid``, ``agentUser``, ``agentGroup``; empty: as their users say.
    @property
    def agent_user(self) -> JsonObject: ...
    async def reload(self) -> AsyncWorkspace:
        """The workspace as it is now. Raises NotFound."""
    async def edit(
        self,
        *,
        name: Optional[str] = None,
        checkpoint_storage: Optional[JsonObject] = None,
        default_compute_pool: Optional[str] = None,
        default_aux_pool: Optional[str] = None,
        agent_user: Optional[JsonObject] = None,
    ) -> AsyncWorkspace:
        """Change what is given; ``{}`` and ``""`` take a default away. Raises AlreadyExists, Forbidden, NotNow."""
    async def archive(self) -> None:
        """Nothing is put into it any more, and nothing in it changes."""
    async def unarchive(self) -> None:
        """As it was before."""
    async def pin(self) -> None:
        """Show it first to this user."""
    async def unpin(self) -> None:
        """Show it where it stands."""
    async def pools(self) -> List[str]:
        """Names of the pools that its tasks may use."""
    async def members(self) -> List[Tuple[str, str]]:
        """(user, role) of those who have a role in it."""
    async def delete(self, *, wait: bool = True, seen: Optional[Callable[[AsyncWorkspace], None]] = None) -> None:
        """Delete it with its projects and their experiments; ``seen`` is shown it while it goes. Raises NotNow."""
