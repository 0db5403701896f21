"""From what a user submits to the rows of a new experiment, or every reason why not.

Rules it keeps: everything is checked before anything is written, so a refusal changes nothing; what could never run is
refused with the arithmetic; parsing and packing happen in threads. `layers` are what stands below a user's own
configuration: the template, the pool's, the workspace's and the master's defaults.
"""

from __future__ import annotations

import random
import secrets
from dataclasses import dataclass, field

import anyio.to_thread
import msgspec
from asyncpg import Connection

from tenax.config.master import MasterSettings, PoolSettings
from tenax.config.problems import ConfigError
from tenax.config.resolve import (
    Layers,
    PoolLayer,
    ResolvedExperiment,
    Wishes,
    parse_experiment,
    wishes_of,
    with_priority,
)
from tenax.config.schema.resources import Resources
from tenax.errors import InvalidInput, NotNow
from tenax.jsonvalue import JsonObject
from tenax.master.concurrency.threads import Threads
from tenax.master.store.database.connection import Database
from tenax.master.store.experiments import creation
from tenax.master.store.experiments.creation import NewExperiment
from tenax.master.store.queue import jobs, pools
from tenax.master.store.quotas import rows as quotas
from tenax.master.store.tasks import contexts, templates
from tenax.master.store.workspaces import projects
from tenax.master.store.workspaces import rows as workspaces
from tenax.master.store.workspaces.projects import ProjectRow
from tenax.master.store.workspaces.rows import WorkspaceDefaults
from tenax.master.submission.code import pack
from tenax.master.submission.machine_access import check_access
from tenax.master.submission.messages import CreateExperimentRequest
from tenax.master.submission.queue_control import has_supply, snapshot_of
from tenax.master.submission.uploads import SpooledBody
from tenax.scheduler.constraints import constraints_in
from tenax.scheduler.fitting import can_never_fit
from tenax.scheduler.snapshot import Constraints
from tenax.search.space import sample
from tenax.search.stream import RandomStream

#: Characters of a configuration: every list of experiments has it.
MAX_CONFIG = 256 * 1024
#: Values that the hyperparameters of all trials have which a search begins with, each trial counted as at least
#: `_LEAST_VALUES`; and their bytes. All are written before the submission is answered.
MAX_FIRST_VALUES, MAX_FIRST_BYTES = 400_000, 32 << 20
_LEAST_VALUES = 20
#: The warning that nothing in the pool could run it as the pool is now.
SLOTS_EXCEEDED = "LAUNCH_WARNING_CURRENT_SLOTS_EXCEEDED"
#: Of a workspace that sets nothing.
_NOTHING = WorkspaceDefaults()


@dataclass(frozen=True, slots=True)
class Submission:
    """A request that may be carried out."""

    new: NewExperiment
    resolved: ResolvedExperiment
    project: ProjectRow
    #: Size of its code in bytes.
    code_size: int
    warnings: tuple[str, ...] = ()
    notices: tuple[str, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class _Ground:
    """What a request stands on: where it is filed, and what is below its own text."""

    project: ProjectRow
    defaults: WorkspaceDefaults
    #: Hash of the code that it takes over; None for none.
    parents_code: str | None
    #: Of the job of the experiment that it came from.
    parents_priority: int | None


async def examine(
    db: Database,
    settings: MasterSettings,
    threads: Threads,
    owner_id: int,
    request: CreateExperimentRequest,
    body: SpooledBody | None = None,
) -> Submission:
    """What would be made of a request. Raises InvalidInput with all problems, NotFound, NotNow.

    An unmanaged one runs elsewhere: it needs no entrypoint, and no slots of ours. ``threads``: where its configuration
    is read; ``body``: where the content of its files stands.
    """
    if len(request.config) > MAX_CONFIG:
        raise InvalidInput(
            f"the configuration has {len(request.config)} characters, and at most {MAX_CONFIG} are taken: put what "
            "is long into a file of the code directory"
        )
    template = await template_of(db, request.template)
    code = await anyio.to_thread.run_sync(
        pack, request.model_definition, settings.context_limit_bytes, settings.uploads, body
    )
    wished = await threads.run(_wishes, request, settings, template)
    async with db.transaction() as conn:
        ground = await _ground(conn, request, wished)
    pool = pool_of(settings, wished.resource_pool, wished.slots_per_trial, ground.defaults)
    resolved = await threads.run(_resolve, request, settings, pool, template, ground.defaults)
    resources = resolved.experiment.resources
    unfit, priority, notices = None, resources.priority or pool.scheduler.default_priority, resolved.notices
    if not request.unmanaged:
        async with db.transaction() as conn:
            admitted = await _admitted(conn, owner_id, ground, pool, resources)
            priority = admitted.priority
            notices += admitted.notices
            unfit = await unfit_for(conn, settings, pool, ground.project.workspace_id, owner_id, resolved)
    new = NewExperiment(
        owner_id=owner_id,
        project_id=ground.project.id,
        parent_id=request.parent_id or None,
        name=resolved.name,
        description=resolved.experiment.description or "",
        labels=tuple(resolved.experiment.labels),
        original_config=request.config,
        config=with_priority(resolved.document, priority),
        seed=resolved.seed,
        notices=notices,
        pool=pool.name,
        priority=priority,
        weight=resources.weight,
        max_slots=resources.max_slots,
        time_limit_s=resources.time_limit,
        expected_trials=sum(bracket.max_trials for bracket in resolved.search.brackets()),
        max_restarts_given=resolved.max_restarts_given,
        context_hash=code.hash if code else ground.parents_code,
        archive=code.archive if code else None,
        archive_size=code.size if code else 0,
    )
    warnings = (SLOTS_EXCEEDED,) if unfit else ()
    return Submission(new, resolved, ground.project, new.archive_size, warnings, (*notices, *wait_notice(unfit)))


def wait_notice(unfit: str | None) -> tuple[str, ...]:
    """What is told of a job that nothing in its pool can run now, ``unfit`` being why."""
    return (f"it will wait: {unfit}",) if unfit else ()


async def _admitted(
    conn: Connection, owner_id: int, ground: _Ground, pool: PoolSettings, resources: Resources
) -> quotas.Admission:
    """What quotas make of it. What a fork took over is no wish of its own."""
    wished, usual = resources.priority, pool.scheduler.default_priority
    if ground.parents_priority is not None and wished == ground.parents_priority:
        wished, usual = None, ground.parents_priority
    workspace_id, slots = ground.project.workspace_id, resources.slots_per_trial
    return await quotas.admit(conn, owner_id, workspace_id, wished=wished, usual=usual, slots=slots)


async def unfit_for(
    conn: Connection,
    settings: MasterSettings,
    pool: PoolSettings,
    workspace_id: int,
    owner_id: int,
    resolved: ResolvedExperiment,
) -> str | None:
    """Why nothing in its pool could run an experiment now; None if something could.

    Raises InvalidInput: never will; NotNow: the pool is kept for other workspaces.
    """
    await pools.check_usable(conn, pool.name, workspace_id)
    await check_access(conn, settings, pool, workspace_id, owner_id, resolved.document)
    resources = resolved.experiment.resources
    return await unfit_in(
        conn,
        settings,
        pool,
        resources.slots_per_trial,
        single_node=resources.is_single_node is True,
        max_slots=resources.max_slots,
        constraints=constraints_in(resolved.document),
        setting="resources.slots_per_trial",
    )


def _wishes(request: CreateExperimentRequest, settings: MasterSettings, template: JsonObject | None) -> Wishes:
    try:
        return wishes_of(request.config, template=template)
    except ConfigError:
        # A text that is wrong in its own right may be wrong as a whole, too: all of it is reported at once.
        default = settings.pool(settings.default_compute_pool)
        if default is not None:
            _resolve(request, settings, default, template, _NOTHING)
        raise


async def template_of(db: Database, name: str | None) -> JsonObject | None:
    """The template of that name; None for no name. Raises NotFound."""
    if not name:
        return None
    async with db.connection() as conn:
        return (await templates.get(conn, name)).config


def pool_of(settings: MasterSettings, wished: str, slots: int, defaults: WorkspaceDefaults = _NOTHING) -> PoolSettings:
    """The pool that is wished for, else the workspace's default one, else the cluster's. Raises InvalidInput."""
    own = defaults.default_compute_pool if slots else defaults.default_aux_pool
    name = wished or own or (settings.default_compute_pool if slots else settings.default_aux_pool)
    pool = settings.pool(name)
    if pool is None:
        raise InvalidInput(
            f"resources.resource_pool: there is no pool {name!r}; the pools are "
            + ", ".join(sorted(known.name for known in settings.pools))
        )
    return pool


def _resolve(
    request: CreateExperimentRequest,
    settings: MasterSettings,
    pool: PoolSettings,
    template: JsonObject | None,
    defaults: WorkspaceDefaults,
) -> ResolvedExperiment:
    # Draws a name and a seed where none is given; both are stored.
    rng = random.Random(secrets.randbits(64))
    below = layers(settings, pool, template, workspace_storage=defaults.checkpoint_storage)
    resolved = parse_experiment(request.config, rng=rng, layers=below, managed=not request.unmanaged)
    if not request.unmanaged:
        _check_first_trials(resolved)
    return resolved


def _check_first_trials(resolved: ResolvedExperiment) -> None:
    """Raises InvalidInput for a search that begins with more than can be written at once."""
    trials = sum(bracket.initial_trials for bracket in resolved.search.brackets())
    drawn = msgspec.json.encode(sample(resolved.search.hyperparameters, RandomStream(0)))
    values = max(_LEAST_VALUES, drawn.count(b",") + 1)
    most = min(MAX_FIRST_VALUES // values, MAX_FIRST_BYTES // len(drawn))
    if trials > max(1, most):
        raise InvalidInput(
            f"searcher: it begins with {trials} trials of {drawn.count(b',') + 1} hyperparameters, {len(drawn)} bytes "
            f"each, and with so many of them at most {max(1, most)} trials are made at once: set "
            "searcher.max_concurrent_trials, or put what is constant into the code or into data"
        )


async def _ground(conn: Connection, request: CreateExperimentRequest, wished: Wishes) -> _Ground:
    if request.project_id:
        project = await projects.get(conn, request.project_id)
    elif wished.workspace and wished.project:
        project = await projects.find(conn, wished.workspace, wished.project)
    else:
        project = await projects.get(conn, projects.DEFAULT_PROJECT_ID)
    if project.archived:
        raise NotNow(f"the project {project.name!r} is archived: choose another one, or unarchive it first")
    code, priority = None, None
    if request.parent_id:
        await creation.check_fork(conn, request.parent_id)
        code = await contexts.of_experiment(conn, request.parent_id)
        priority = await jobs.priority_of_experiment(conn, request.parent_id)
    return _Ground(project, await workspaces.defaults_of(conn, project.workspace_id), code, priority)


async def unfit_in(
    conn: Connection,
    settings: MasterSettings,
    pool: PoolSettings,
    slots: int,
    *,
    single_node: bool,
    max_slots: int | None,
    constraints: Constraints | None,
    setting: str,
) -> str | None:
    """Why nothing could run what needs ``slots`` as the pool is now; None if something could.

    ``setting``: what the refusal names. Raises InvalidInput: never will.
    """
    snapshot = await snapshot_of(conn, settings, pool.name)
    reason = can_never_fit(slots, snapshot, single_node=single_node, max_slots=max_slots, constraints=constraints)
    if reason is None or not has_supply(snapshot):
        return reason
    if not settings.launch_error:
        return reason
    if constraints is not None and can_never_fit(slots, snapshot, single_node=single_node, max_slots=max_slots) is None:
        setting = "resources.constraints"
    raise InvalidInput(f"request unfulfillable: {setting}: {reason}")


def layers(
    settings: MasterSettings,
    pool: PoolSettings,
    template: JsonObject | None = None,
    *,
    workspace_storage: JsonObject | None = None,
) -> Layers:
    """What stands below a user's own configuration in ``pool``."""
    storage = settings.checkpoint_storage
    return Layers(
        template=template,
        workspace_checkpoint_storage=workspace_storage,
        task_container_defaults=settings.task_container_defaults,
        pool=PoolLayer(
            name=pool.name,
            default_priority=pool.scheduler.default_priority,
            task_container_defaults=pool.task_container_defaults,
        ),
        master_checkpoint_storage=None if storage is None else storage,
    )
