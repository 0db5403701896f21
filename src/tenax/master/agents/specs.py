"""Specifications of containers: environment, files and mounts, made from rows. Pure.

The names are Determined's (one contract, no second set): the unmodified client in a task finds what it looks for. The
agent adds what only it knows: where the master is, its own name, slot numbers, ports, devices.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from tenax.jsonvalue import Json, JsonObject, as_object
from tenax.lifecycle.notice import Rebalance
from tenax.master.submission.machine_access import devices_of, mounts_of, strings
from tenax.wire.agents import ContainerSpec, Grants, TaskFile
from tenax.wire.task_names import (
    ASK,
    CHECKPOINT_IN_DOUBT,
    CLUSTER_HOOK,
    ENTRYPOINT,
    FIRST_MEMBER,
    LOOK,
    NO,
    PYTHON,
    YES,
)


@dataclass(frozen=True, slots=True)
class MemberSource:
    """One container of an attempt, and what its specification is made of."""

    container_id: str
    allocation_id: str
    task_id: str
    rank: int
    members: int
    slots: tuple[int, ...]
    #: ``cpu``, ``cuda`` or ``rocm``: which of the per-device values hold.
    device_kind: str
    #: As in ``DET_TASK_TYPE``.
    kind: str
    config: JsonObject
    context_hash: str
    username: str
    uid: int | None
    gid: int | None
    #: The account on the agent's machine; empty for the agent's own.
    agent_user: str = ""
    agent_group: str = ""


@dataclass(frozen=True, slots=True)
class TrialSource:
    """What the specification of a trial's member is made of besides."""

    run_id: int
    trial_id: int
    experiment_id: int
    hparams: JsonObject
    trial_seed: int
    #: The checkpoint to go on from, or to start warm from (with 0 steps); None for neither.
    checkpoint: str | None
    steps_completed: int
    #: Its files may be gone: the database was put back to a copy.
    checkpoint_in_doubt: bool = False


@dataclass(frozen=True, slots=True)
class Tokens:
    """The credentials of a task, and no other secret."""

    #: ``DET_SESSION_TOKEN``.
    session: str
    #: ``DET_USER_TOKEN``.
    user: str


@dataclass(frozen=True, slots=True)
class PoolDefaults:
    """What every task of a pool gets that its own configuration cannot hold."""

    #: Shell lines that its program sources first.
    hook: str = ""
    #: Variables beside the contract's; the task's own are stronger.
    env: Mapping[str, str] = field(default_factory=dict)
    #: Network of its containers; empty for the agent's choice.
    network: str = ""
    #: What of the machines those settings, and those of checkpoint storage, give to every task.
    granted: Grants = field(default_factory=Grants)
    #: Seconds that the members of a gang wait for each other, where their configuration does not say it.
    rendezvous_timeout: float = 600.0
    #: What follows where the cloud advises to leave a machine.
    rebalance: Rebalance = Rebalance.IGNORE


def with_defaults(spec: ContainerSpec, defaults: PoolDefaults) -> ContainerSpec:
    """The specification in a pool of these defaults."""
    meeting = {"DET_RENDEZVOUS_TIMEOUT": f"{defaults.rendezvous_timeout:g}"} if spec.members > 1 else {}
    files = [*spec.files, TaskFile(CLUSTER_HOOK, defaults.hook, 0o700)] if defaults.hook else spec.files
    return msgspec.structs.replace(
        spec,
        files=files,
        env={**meeting, **defaults.env, **spec.env},
        network=defaults.network,
        granted=defaults.granted,
    )


def trial_spec(member: MemberSource, trial: TrialSource, tokens: Callable[[str], Tokens]) -> ContainerSpec:
    """The specification of one member of a trial."""
    return _spec(member, tokens, "tenax.exec.trial", _trial_environment(member, trial))


def task_spec(
    member: MemberSource, files: Sequence[TaskFile], env: Mapping[str, str], tokens: Callable[[str], Tokens]
) -> ContainerSpec:
    """The specification of a task that is no trial; the first program reads its command line from the environment."""
    values = {ENTRYPOINT: json.dumps(member.config.get("entrypoint"), separators=(",", ":")), **env}
    directory = member.config.get("work_dir")
    if isinstance(directory, str) and directory:
        own = directory.replace("$AGENT_USER", member.agent_user).replace("$DET_USER", member.username)
        values["DET_WORKDIR"] = own
    if member.config.get("debug") is True:
        values["DET_DEBUG"] = "true"
    spec = _spec(member, tokens, "tenax.exec.task", values)
    return msgspec.structs.replace(spec, files=list(files))


def _spec(
    member: MemberSource, tokens: Callable[[str], Tokens], program: str, values: Mapping[str, str]
) -> ContainerSpec:
    environment = as_object(member.config.get("environment"))
    resources = as_object(member.config.get("resources"))
    return ContainerSpec(
        container_id=member.container_id,
        allocation_id=member.allocation_id,
        task_id=member.task_id,
        rank=member.rank,
        members=member.members,
        slots=list(member.slots),
        argv=[PYTHON, "-m", program],
        env={
            **_task_environment(member, tokens(member.allocation_id)),
            **values,
            **_users_environment(member, environment),
        },
        context_hash=member.context_hash,
        images={kind: image for kind, image in as_object(environment.get("image")).items() if isinstance(image, str)},
        force_pull=environment.get("force_pull_image") is True,
        mounts=mounts_of(member.config),
        shm_bytes=_integer(resources.get("shm_size")),
        uid=member.uid,
        gid=member.gid,
        user=member.agent_user,
        group=member.agent_group,
        add_capabilities=strings(environment.get("add_capabilities")),
        drop_capabilities=strings(environment.get("drop_capabilities")),
        devices=devices_of(member.config),
        registry_auth={
            name: value for name, value in as_object(environment.get("registry_auth")).items() if isinstance(value, str)
        },
    )


def _task_environment(member: MemberSource, tokens: Tokens) -> dict[str, str]:
    return {
        "DET_TASK_ID": member.task_id,
        "DET_TASK_TYPE": member.kind,
        "DET_ALLOCATION_ID": member.allocation_id,
        "DET_RESOURCES_ID": member.container_id,
        "DET_CONTAINER_ID": member.container_id,
        "DET_RESOURCES_TYPE": "docker-container",
        "DET_SESSION_TOKEN": tokens.session,
        "DET_USER_TOKEN": tokens.user,
        "DET_USER": member.username,
        "DET_USE_TLS": "false",
        "DET_SEGMENT_ENABLED": "false",
        "DET_TASK_LOGGING_METADATA": json.dumps(
            {"allocation_id": member.allocation_id, "task_id": member.task_id}, separators=(",", ":")
        ),
    }


def _trial_environment(member: MemberSource, trial: TrialSource) -> dict[str, str]:
    values = {
        "DET_EXPERIMENT_ID": str(trial.experiment_id),
        "DET_TRIAL_ID": str(trial.trial_id),
        "DET_TRIAL_RUN_ID": str(trial.run_id),
        "DET_TRIAL_SEED": str(trial.trial_seed),
        "DET_EXPERIMENT_CONFIG": json.dumps(member.config, separators=(",", ":")),
        # In alphabetical order, nested ones too.
        "DET_HPARAMS": json.dumps(trial.hparams, separators=(",", ":"), sort_keys=True),
        "DET_STEPS_COMPLETED": str(trial.steps_completed),
    }
    if trial.checkpoint is not None:
        values["DET_LATEST_CHECKPOINT"] = trial.checkpoint
    if member.members > 1:
        values[FIRST_MEMBER] = YES if member.rank == 0 else NO
    if trial.checkpoint_in_doubt:
        # One member looks, before they meet; what it has found is asked for by the others afterwards.
        values[CHECKPOINT_IN_DOUBT] = LOOK if member.rank == 0 else ASK
    return values


def _users_environment(member: MemberSource, environment: JsonObject) -> dict[str, str]:
    """``K=V`` lines for the kind of device, later ones over earlier ones; ``K`` alone is set to nothing."""
    variables = environment.get("environment_variables")
    lines = variables.get(member.device_kind) if isinstance(variables, dict) else variables
    pairs = (line.partition("=") for line in strings(lines))
    return {name: value for name, _, value in pairs if name}


def _integer(value: Json) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
