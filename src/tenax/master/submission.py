"""From what a user submits to the rows of a new experiment, or every reason why not.

Rules it keeps: everything is checked before anything is written, so a refusal changes nothing; what could never run is
refused with the arithmetic; parsing and packing happen in threads.
"""

from __future__ import annotations

import random
import secrets
from dataclasses import dataclass, field

import anyio.to_thread
from asyncpg import Connection

from tenax.config import ConfigError, Layers, PoolLayer, ResolvedExperiment, Wishes, parse_experiment, wishes_of
from tenax.config.master import MasterSettings, PoolSettings
from tenax.errors import InvalidInput, NotNow, Unsupported
from tenax.ids import PoolName
from tenax.jsonvalue import JsonObject
from tenax.master.code import Code, pack
from tenax.master.loops.scheduling import rules
from tenax.master.store import contexts, placements, projects, templates
from tenax.master.store.creation import NewExperiment
from tenax.master.store.database import Database
from tenax.master.store.projects import Project
from tenax.scheduler.fitting import can_never_fit
from tenax.scheduler.snapshot import AgentState, PoolRules, Snapshot
from tenax.search.brackets import plan_brackets
from tenax.wire.api.experiments import CreateExperimentRequest

#: Told beside a request that nothing in its pool could run as the pool is now.
SLOTS_EXCEEDED = "LAUNCH_WARNING_CURRENT_SLOTS_EXCEEDED"


@dataclass(frozen=True, slots=True)
class Submission:
    """A request that may be carried out."""

    new: NewExperiment
    resolved: ResolvedExperiment
    project: Project
    #: Size of its code in bytes.
    code_size: int
    warnings: tuple[str, ...] = ()
    notices: tuple[str, ...] = field(default=())


async def examine(db: Database, settings: MasterSettings, owner_id: int, asked: CreateExperimentRequest) -> Submission:
    """What would be made of a request. Raises InvalidInput with all problems, NotFound, NotNow, Unsupported."""
    _check_offered(asked)
    template = await template_of(db, asked.template)
    code = await anyio.to_thread.run_sync(pack, asked.model_definition, settings.context_limit_bytes)
    wished = await anyio.to_thread.run_sync(_wishes, asked.config, settings, template)
    pool = pool_of(settings, wished.resource_pool, wished.slots_per_trial)
    resolved = await anyio.to_thread.run_sync(_resolve, asked.config, settings, pool, template)
    resources = resolved.experiment.resources
    if resources.weight <= 0:
        raise InvalidInput("resources.weight is 0: such an experiment would never get a slot; give a positive weight")
    async with db.transaction() as conn:
        project = await _project(conn, asked, wished)
        context_hash = code.hash if code else await _parents_code(conn, asked.parent_id)
        unfit = await unfit_in(
            conn,
            settings,
            pool,
            resources.slots_per_trial,
            single_node=resources.is_single_node is True,
            max_slots=resources.max_slots,
            setting="resources.slots_per_trial",
        )
    new = NewExperiment(
        owner_id=owner_id,
        project_id=project.id,
        parent_id=asked.parent_id,
        name=resolved.name,
        description=resolved.experiment.description or "",
        labels=tuple(resolved.experiment.labels),
        original_config=asked.config,
        config=resolved.document,
        seed=resolved.seed,
        notices=resolved.notices,
        pool=pool.name,
        priority=resources.priority or pool.scheduler.default_priority,
        weight=resources.weight,
        max_slots=resources.max_slots,
        expected_trials=sum(bracket.max_trials for bracket in plan_brackets(resolved.search)),
        context_hash=context_hash,
        archive=code.archive if code else None,
        archive_size=code.size if code else 0,
    )
    warnings = (SLOTS_EXCEEDED,) if unfit else ()
    notices = (*resolved.notices, f"it will wait: {unfit}") if unfit else resolved.notices
    return Submission(new, resolved, project, _size(code), warnings, notices)


def layers(settings: MasterSettings, pool: PoolSettings, template: JsonObject | None = None) -> Layers:
    """What stands below a user's own configuration in ``pool``."""
    return Layers(
        template=template,
        task_container_defaults=_document(settings.task_container_defaults),
        pool=PoolLayer(
            name=pool.name,
            default_priority=pool.scheduler.default_priority,
            task_container_defaults=_document(pool.task_container_defaults),
        ),
        master_checkpoint_storage=None
        if settings.checkpoint_storage is None
        else _document(settings.checkpoint_storage),
    )


def _check_offered(asked: CreateExperimentRequest) -> None:
    if asked.unmanaged:
        raise Unsupported("unmanaged experiments are not offered yet: submit it as a managed one")


def _wishes(config: str, settings: MasterSettings, template: JsonObject | None) -> Wishes:
    try:
        return wishes_of(config, template=template)
    except ConfigError:
        # A text that is wrong in its own right may be wrong as a whole, too: all of it is told at once.
        default = settings.pool(settings.default_compute_pool)
        if default is not None:
            _resolve(config, settings, default, template)
        raise


async def template_of(db: Database, name: str | None) -> JsonObject | None:
    """The template of that name; None for no name. Raises NotFound."""
    if not name:
        return None
    async with db.connection() as conn:
        return (await templates.get(conn, name)).config


def pool_of(settings: MasterSettings, wished: str, slots: int) -> PoolSettings:
    """The pool that is wished for, else the default one. Raises InvalidInput."""
    name = wished or (settings.default_compute_pool if slots else settings.default_aux_pool)
    pool = settings.pool(name)
    if pool is None:
        raise InvalidInput(
            f"resources.resource_pool: there is no pool {name!r}; the pools are "
            + ", ".join(sorted(known.name for known in settings.pools))
        )
    return pool


def _resolve(
    config: str, settings: MasterSettings, pool: PoolSettings, template: JsonObject | None
) -> ResolvedExperiment:
    # Draws a name and a seed where none is given; both are stored.
    rng = random.Random(secrets.randbits(64))
    return parse_experiment(config, rng=rng, layers=layers(settings, pool, template))


async def _project(conn: Connection, asked: CreateExperimentRequest, wished: Wishes) -> Project:
    if asked.project_id:
        project = await projects.get(conn, asked.project_id)
    elif wished.workspace and wished.project:
        project = await projects.find(conn, wished.workspace, wished.project)
    else:
        project = await projects.get(conn, projects.DEFAULT_PROJECT_ID)
    if project.archived:
        raise NotNow(f"the project {project.name!r} is archived: choose another one, or unarchive it first")
    return project


async def _parents_code(conn: Connection, parent_id: int | None) -> str | None:
    return None if parent_id is None else await contexts.of_experiment(conn, parent_id)


async def unfit_in(
    conn: Connection,
    settings: MasterSettings,
    pool: PoolSettings,
    slots: int,
    *,
    single_node: bool,
    max_slots: int | None,
    setting: str,
) -> str | None:
    """Why nothing could run what needs ``slots`` as the pool is now; None if something could.

    ``setting``: what the refusal names. Raises InvalidInput: never will.
    """
    found = await placements.snapshots(
        conn,
        {one.name: rules(one) for one in settings.pools},
        {one.name: one.max_aux_containers_per_agent for one in settings.pools},
    )
    snapshot = next((one for one in found if one.pool == pool.name), _empty(pool, rules(pool)))
    reason = can_never_fit(slots, snapshot, single_node=single_node, max_slots=max_slots)
    if reason is None or not any(agent.state is not AgentState.DISABLED for agent in snapshot.agents):
        # A pool without agents is one that nobody has started yet.
        return reason
    raise InvalidInput(f"{setting}: {reason}")


def _empty(pool: PoolSettings, its_rules: PoolRules) -> Snapshot:
    return Snapshot(PoolName(pool.name), (), {}, (), its_rules)


def _size(code: Code | None) -> int:
    return code.size if code is not None else 0


def _document(value: dict[str, object]) -> JsonObject:
    return value  # type: ignore[return-value]
