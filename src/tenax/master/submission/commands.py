"""From what a user submits for a command or a generic task to its rows, or every reason why not.

Rules it keeps: everything is checked before anything is written, so a refusal changes nothing; what could never run is
refused with the arithmetic; parsing and packing happen in threads.
"""

from __future__ import annotations

import base64
import binascii
import random
import secrets
from dataclasses import dataclass, field, replace

import anyio.to_thread

from tenax.config.command import CommandWishes, ResolvedCommand, command_wishes, parse_command
from tenax.config.master import MasterSettings, PoolSettings
from tenax.config.resolve import with_priority
from tenax.config.text import read_object
from tenax.errors import InvalidInput, NotNow
from tenax.jsonvalue import JsonObject
from tenax.lifecycle.task import TaskKind
from tenax.master.concurrency.threads import Threads
from tenax.master.store.database.connection import Database
from tenax.master.store.queue import pools
from tenax.master.store.quotas import rows as quotas
from tenax.master.store.tasks import contexts
from tenax.master.store.tasks.rows import NewTask, PlacedFile
from tenax.master.store.workspaces import projects
from tenax.master.store.workspaces import rows as workspaces
from tenax.master.store.workspaces.projects import DEFAULT_PROJECT_ID, DEFAULT_WORKSPACE_ID, ProjectRow
from tenax.master.submission.code import Code, pack
from tenax.master.submission.experiments import SLOTS_EXCEEDED, layers, pool_of, template_of, unfit_in, wait_notice
from tenax.master.submission.machine_access import check_access
from tenax.master.submission.messages import CreateGenericTaskRequest, LaunchCommandRequest
from tenax.master.submission.uploads import SpooledBody
from tenax.scheduler.constraints import constraints_in

#: Where ``data`` of a command lies, under its run directory.
DATA_FILE = "data"
DATA_LIMIT = 1 << 20
#: The workspace of what names none.


@dataclass(frozen=True, slots=True)
class Launch:
    """A request that may be carried out."""

    new: NewTask
    warnings: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    #: On one machine.
    slots: int = 0


@dataclass(frozen=True, slots=True)
class Source:
    """What a generic task takes over from another one."""

    config: JsonObject | None = None
    #: What of the secrets of ``config`` its owner has written.
    own: JsonObject = field(default_factory=dict)
    submitted: JsonObject | None = None
    context_hash: str | None = None
    project_id: int | None = None


async def examine_command(
    db: Database,
    settings: MasterSettings,
    threads: Threads,
    owner_id: int,
    request: LaunchCommandRequest,
    body: SpooledBody | None = None,
) -> Launch:
    """What would be made of a command. Raises InvalidInput with all problems, NotFound, NotNow."""
    template = await template_of(db, request.template_name)
    code = await anyio.to_thread.run_sync(pack, request.files, settings.context_limit_bytes, settings.uploads, body)
    config: JsonObject = request.config
    workspace_id = request.workspace_id or DEFAULT_WORKSPACE_ID
    launch = await _examine(db, settings, threads, owner_id, config, template, workspace_id, generic=False)
    files = (PlacedFile(DATA_FILE, _decoded(request.data)),) if request.data else ()
    return replace(launch, new=_with_code(replace(launch.new, files=files), code))


async def examine_generic(
    db: Database,
    settings: MasterSettings,
    threads: Threads,
    owner_id: int,
    request: CreateGenericTaskRequest,
    source: Source,
    body: SpooledBody | None = None,
) -> Launch:
    """What would be made of a generic task; ``source``: what it takes over. Raises as `examine_command`."""
    if request.inherit_context and not request.parent_id:
        raise InvalidInput(
            "inheritContext: there is no parent to inherit from: name it with parentId, or send the code"
        )
    if not request.config.strip() and source.config is None:
        raise InvalidInput("no configuration was given: submit the YAML text of one, or fork a task")
    config = request.config if request.config.strip() else source.config
    assert config is not None
    code = await anyio.to_thread.run_sync(
        pack, request.context_directory, settings.context_limit_bytes, settings.uploads, body
    )
    project = await _project(db, threads, config, request.project_id or source.project_id)
    launch = await _examine(db, settings, threads, owner_id, config, None, project.workspace_id, generic=True)
    submitted = source.submitted
    if request.config.strip():
        submitted, _ = await threads.run(read_object, request.config)
    new = replace(
        launch.new,
        project_id=project.id,
        pausable=not request.no_pause,
        parent_id=request.parent_id or None,
        forked_from=request.forked_from or None,
        context_hash=source.context_hash,
        own=launch.new.own if request.config.strip() else source.own,
        submitted=submitted,
    )
    return replace(launch, new=_with_code(new, code))


async def source_of(db: Database, request: CreateGenericTaskRequest) -> Source:
    """The code that a generic task inherits from its parent. Raises NotFound."""
    if not (request.parent_id and request.inherit_context):
        return Source()
    async with db.connection() as conn:
        return Source(context_hash=await contexts.of_task(conn, request.parent_id))


async def _examine(
    db: Database,
    settings: MasterSettings,
    threads: Threads,
    owner_id: int,
    config: str | JsonObject,
    template: JsonObject | None,
    workspace_id: int,
    *,
    generic: bool,
) -> Launch:
    wished = await threads.run(_wishes, config, template, settings, generic=generic)
    async with db.transaction() as conn:
        await workspaces.hold(conn, workspace_id)
        defaults = await workspaces.defaults_of(conn, workspace_id)
    pool = pool_of(settings, wished.resource_pool, wished.slots, defaults)
    resolved = await threads.run(_resolve, config, template, settings, pool, generic)
    async with db.transaction() as conn:
        await pools.check_usable(conn, pool.name, workspace_id)
        await check_access(conn, settings, pool, workspace_id, owner_id, resolved.document)
        admitted = await quotas.admit(
            conn,
            owner_id,
            workspace_id,
            wished=resolved.priority,
            usual=pool.scheduler.default_priority,
            slots=resolved.slots,
        )
        unfit = await unfit_in(
            conn,
            settings,
            pool,
            resolved.slots,
            single_node=True,
            max_slots=None,
            constraints=constraints_in(resolved.document),
            setting="resources.slots",
        )
    new = NewTask(
        kind=TaskKind.GENERIC if generic else TaskKind.COMMAND,
        owner_id=owner_id,
        config=with_priority(resolved.document, admitted.priority),
        pool=pool.name,
        priority=admitted.priority,
        weight=resolved.weight,
        time_limit_s=resolved.time_limit,
        workspace_id=workspace_id,
        description=resolved.description,
        own=resolved.own,
    )
    notices = (*resolved.notices, *admitted.notices, *wait_notice(unfit))
    return Launch(new, (SLOTS_EXCEEDED,) if unfit else (), notices, resolved.slots)


def _wishes(
    config: str | JsonObject, template: JsonObject | None, settings: MasterSettings, *, generic: bool
) -> CommandWishes:
    try:
        return command_wishes(config, template=template, generic=generic)
    except InvalidInput:
        # What is wrong in its own right may be wrong as a whole, too: all of it is reported at once.
        default = settings.pool(settings.default_compute_pool)
        if default is not None:
            _resolve(config, template, settings, default, generic)
        raise


def _resolve(
    config: str | JsonObject, template: JsonObject | None, settings: MasterSettings, pool: PoolSettings, generic: bool
) -> ResolvedCommand:
    rng = random.Random(secrets.randbits(64))  # draws a name where none is given
    title = "Task" if generic else "Command"
    return parse_command(config, rng=rng, title=title, layers=layers(settings, pool, template), generic=generic)


async def _project(db: Database, threads: Threads, config: str | JsonObject, project_id: int | None) -> ProjectRow:
    wished = await threads.run(command_wishes, config, generic=True)
    async with db.connection() as conn:
        if project_id:
            project = await projects.get(conn, project_id)
        elif wished.workspace and wished.project:
            project = await projects.find(conn, wished.workspace, wished.project)
        else:
            project = await projects.get(conn, DEFAULT_PROJECT_ID)
    if project.archived:
        raise NotNow(f"the project {project.name!r} is archived: choose another one, or unarchive it first")
    return project


def _with_code(new: NewTask, code: Code | None) -> NewTask:
    if code is None:
        return new
    return replace(new, context_hash=code.hash, archive=code.archive, archive_size=code.size)


def _decoded(data: str) -> str:
    try:
        decoded = base64.b64decode(data, validate=True).decode()
    except (binascii.Error, ValueError):
        raise InvalidInput("data is not the base64 form of a text") from None
    if len(decoded) > DATA_LIMIT:
        raise InvalidInput(f"data has {len(decoded)} characters, and at most {DATA_LIMIT} are taken: send it as a file")
    return decoded
