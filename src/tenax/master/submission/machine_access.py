"""What of a machine a configuration asks for, and whether any agent of its pool gives it to its owner.

The agent refuses what its operator did not allow when a container starts (`tenax.runtime.limits`); by the same rules it
is refused here, where somebody can mend it. Agents that are disabled do not count; of one that does not say what it
allows nothing is known, and the task may go there.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec
from asyncpg import Connection

from tenax.config.master import MasterSettings, PoolSettings, container_defaults
from tenax.errors import InvalidInput
from tenax.jsonvalue import Json, JsonObject, as_list, as_object
from tenax.master.store.agents import lists as agents
from tenax.master.store.agents.lists import AllowedView
from tenax.master.store.workspaces import rows as workspaces
from tenax.runtime.limits import NotAllowed, refusals, user_refusal
from tenax.storage.port import SHARED_FS_MOUNT
from tenax.storage.registry import kind_of
from tenax.wire.agents import READ_ONLY, ContainerSpec, Grants, Mount


async def check_access(
    conn: Connection, settings: MasterSettings, pool: PoolSettings, workspace_id: int, owner_id: int, config: JsonObject
) -> None:
    """Raises InvalidInput, naming the settings, where no agent of the pool gives what is asked for."""
    machines = await agents.allowed_in(conn, pool.name)
    if not machines:
        return
    requested = ContainerSpec(
        "", "", "", 0, 1, [], [], {},
        uid=await workspaces.agent_uid(conn, workspace_id, owner_id),
        mounts=_bind_mounts(config),
        add_capabilities=strings(as_object(config.get("environment")).get("add_capabilities")),
        devices=devices_of(config),
        granted=granted(container_defaults(settings, pool), settings.checkpoint_storage),
    )  # fmt: skip
    stored = msgspec.structs.replace(requested, mounts=_storage_mounts(config), add_capabilities=[], devices=[])
    refused = [_refused(requested, stored, machine) for machine in machines]
    least = min(refused, key=len)
    if least:
        where = "the agent" if len(machines) == 1 else f"all {len(machines)} agents"
        lines = "\n".join(f"- {refusal.setting}: {refusal.what}" for refusal in least)
        raise InvalidInput(
            f"what this asks for is allowed by no operator of {where} of the pool {pool.name!r}:\n{lines}\n"
            "Leave it out, or ask an operator to name it in the agent's configuration"
        )


def granted(task_container_defaults: JsonObject, checkpoint_storage: JsonObject | None) -> Grants:
    """What the master's configuration gives: mounts, capabilities and devices of all tasks, and its own storage."""
    given = [as_object(mount) for mount in as_list(task_container_defaults.get("bind_mounts"))]
    mounts = [f"{mount.get('host_path')}{READ_ONLY if mount.get('read_only') is True else ''}" for mount in given]
    storage = None if checkpoint_storage is None else kind_of(checkpoint_storage)
    mounted = None if storage is None or checkpoint_storage is None else storage.mounted(checkpoint_storage)
    return Grants(
        bind_mounts=[*mounts, *([mounted] if mounted else [])],
        capabilities=strings(task_container_defaults.get("add_capabilities")),
        devices=[str(as_object(device).get("host_path")) for device in as_list(task_container_defaults.get("devices"))],
    )


def mounts_of(config: JsonObject) -> list[Mount]:
    """What a configuration mounts, its checkpoint storage included."""
    return [*_bind_mounts(config), *_storage_mounts(config)]


def _bind_mounts(config: JsonObject) -> list[Mount]:
    return [
        Mount(
            str(bind.get("host_path", "")),
            str(bind.get("container_path", "")),
            bind.get("read_only") is True,
            str(bind.get("propagation") or "rprivate"),
        )
        for bind in map(as_object, as_list(config.get("bind_mounts")))
    ]


def _storage_mounts(config: JsonObject) -> list[Mount]:
    storage = as_object(config.get("checkpoint_storage"))
    kind = kind_of(storage)
    mounted = None if kind is None else kind.mounted(storage)
    if mounted is None:
        return []
    return [Mount(mounted, SHARED_FS_MOUNT, False, str(storage.get("propagation") or "rprivate"))]


def devices_of(config: JsonObject) -> list[str]:
    """The devices of a configuration, as an engine is told of them."""
    lines = []
    for entry in as_list(as_object(config.get("resources")).get("devices")):
        device = as_object(entry)
        lines.append(f"{device.get('host_path')}:{device.get('container_path')}:{device.get('mode') or 'mrw'}")
    return lines


def strings(value: Json) -> list[str]:
    """What of a list is text."""
    return [item for item in as_list(value) if isinstance(item, str)]


def _refused(requested: ContainerSpec, stored: ContainerSpec, machine: AllowedView) -> list[NotAllowed]:
    """``stored``: the same container with nothing but its checkpoint storage."""
    if machine.allowed is None:
        return []
    user = user_refusal(requested, machine.allowed)
    refused = [user] if user else []
    if machine.by_engine:
        refused += refusals(requested, machine.allowed)
        refused += [replace(each, setting="checkpoint_storage") for each in refusals(stored, machine.allowed)]
    return refused
