"""The desired state of a container: from its row to what is sent to its agent. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import msgspec

from tenax.jsonvalue import Json, JsonObject
from tenax.lifecycle.container import ContainerState, Desired
from tenax.master.agents import specs
from tenax.wire import agents as wire

_NONE = specs.PoolDefaults()


def desired_state_of(
    row: JsonObject,
    known: bool,
    tokens: Callable[[str], specs.Tokens],
    defaults: specs.PoolDefaults = _NONE,
    kill_timeout_s: float = 0.0,
) -> wire.DesiredState:
    """The desired state of a container in a pool with these defaults.

    ``known``: the agent has its specification; ``kill_timeout_s``: seconds for what a person killed. A
    container that ran is never started again: an agent that has nothing of it left reports so, and the next run begins.
    """
    container_id = str(row["container_id"])
    want = Desired(str(row["want"]))
    if want is Desired.GONE:
        return wire.DesiredGone(container_id)
    if want in (Desired.STOP, Desired.KILL):
        return wire.DesiredStop(container_id, kill_timeout_s if want is Desired.STOP else 0.0)
    known = known or row["state"] == ContainerState.RUNNING.value
    if known:
        return wire.DesiredRun(container_id, None)
    return wire.DesiredRun(container_id, specs.with_defaults(_spec_of(row, tokens), defaults))


def _spec_of(row: JsonObject, tokens: Callable[[str], specs.Tokens]) -> wire.ContainerSpec:
    if row["trial_id"] is not None:
        return specs.trial_spec(_member(row, cast(JsonObject, row["config"])), _trial(row), tokens)
    spec = cast(JsonObject, row["spec"])
    files = msgspec.convert(spec.get("files") or [], list[wire.TaskFile])
    env = msgspec.convert(spec.get("env") or {}, dict[str, str])
    return specs.task_spec(_member(row, cast(JsonObject, spec["config"])), files, env, tokens)


def _member(row: JsonObject, config: JsonObject) -> specs.MemberSource:
    return specs.MemberSource(
        container_id=str(row["container_id"]),
        allocation_id=str(row["allocation_id"]),
        task_id=str(row["task_id"]),
        rank=_int(row["rank"]),
        members=_int(row["members"]),
        slots=tuple(_int(slot) for slot in cast("list[Json]", row["slots"])),
        device_kind=str(row["device_kind"]),
        kind=str(row["task_kind"]),
        config=config,
        context_hash=str(row["context_hash"] or ""),
        username=str(row["username"]),
        uid=None if row["agent_uid"] is None else _int(row["agent_uid"]),
        gid=None if row["agent_gid"] is None else _int(row["agent_gid"]),
        agent_user=str(row["agent_user"] or ""),
        agent_group=str(row["agent_group"] or ""),
    )


def _trial(row: JsonObject) -> specs.TrialSource:
    own = row["latest_checkpoint"]
    warm = row["warm_start_checkpoint"]
    return specs.TrialSource(
        run_id=_int(row["run_id"]),
        trial_id=_int(row["trial_id"]),
        experiment_id=_int(row["experiment_id"]),
        hparams=cast(JsonObject, row["hparams"]),
        trial_seed=_int(row["trial_seed"]),
        checkpoint=str(own) if own is not None else str(warm) if warm is not None else None,
        steps_completed=_int(row["steps_completed"]),
        checkpoint_in_doubt=row["checkpoint_in_doubt"] is True,
    )


def _int(value: Json) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{value!r} is not an integer")
    return value
