"""Before the user's code: the info files, the other members, the storage. Standard library only, Python 3.9.

Writes ``$DET_RUN_DIR/info/{cluster,trial,rendezvous,resources}.json``, which ``tenax.core`` (and any launcher) reads.
Whether there are other members to meet follows from the contract itself: an allocation has more than one container
exactly when ``resources.slots_per_trial`` is more than the slots of this one (``DET_SLOT_IDS``).
"""

from __future__ import annotations

import os

from tenax.client.connection import fast_json
from tenax.core.info import REQUIRED, cluster_from_environment
from tenax.display.secrets import without_secrets
from tenax.errors import InvalidInput
from tenax.wire.task_names import ASK, CHECKPOINT_IN_DOUBT, RUN_BEGINS, RUN_DIRECTORY, masters_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenax.jsonvalue import Json, JsonObject

#: What a trial needs besides.
TRIAL_REQUIRED = (
    "DET_TRIAL_ID",
    "DET_EXPERIMENT_ID",
    "DET_TRIAL_SEED",
    "DET_TRIAL_RUN_ID",
    "DET_EXPERIMENT_CONFIG",
    "DET_HPARAMS",
    "DET_STEPS_COMPLETED",
)
#: Seconds that the members of an allocation wait for each other; ``DET_RENDEZVOUS_TIMEOUT`` sets another.
RENDEZVOUS_TIMEOUT = 600.0


class TrialEnvironment:
    """What the environment says about this container of a trial. Raises InvalidInput when it does not say it."""

    def __init__(self, env: Mapping[str, str]) -> None:
        missing = [name for name in (*REQUIRED, *TRIAL_REQUIRED) if name not in env]
        if missing:
            raise InvalidInput(
                f"the environment lacks {', '.join(missing)}: this program is started by an agent, inside a trial"
            )
        self.env = env
        self.run_dir = env.get("DET_RUN_DIR") or RUN_DIRECTORY
        self.config = _parsed(env, "DET_EXPERIMENT_CONFIG", dict)
        self.slot_ids = _parsed(env, "DET_SLOT_IDS", list)

    def members_expected(self) -> bool:
        """Whether this container has others to meet."""
        resources = self.config.get("resources")
        slots = resources.get("slots_per_trial") if isinstance(resources, dict) else None
        return isinstance(slots, int) and slots > len(self.slot_ids) > 0


def write_info(trial: TrialEnvironment) -> None:
    """The info files that need no other member."""
    env = trial.env
    debug = "true" if trial.config.get("debug") is True else "false"
    interface = env.get("DET_INTER_NODE_NETWORK_INTERFACE")
    numbers = {name: _whole(env, "DET_" + name.upper()) for name in ("trial_id", "experiment_id", "trial_seed")}
    numbers["steps_completed"] = _whole(env, "DET_STEPS_COMPLETED")
    numbers["trial_run_id"] = _whole(env, "DET_TRIAL_RUN_ID")
    _parsed(env, "DET_HPARAMS", dict)
    # The two documents are JSON already and may be long: they are put in as they are.
    text = (
        fast_json.dumps(numbers)[:-1]
        + f',"hparams":{env["DET_HPARAMS"]},"config":{env["DET_EXPERIMENT_CONFIG"]},"debug":{debug},'
        + f'"inter_node_network_interface":{fast_json.dumps(interface)}}}'
    )
    write_cluster(env, trial.run_dir)
    _write(trial.run_dir, "trial", text)


def write_cluster(env: Mapping[str, str], run_dir: str) -> None:
    """The info files of any task: where it runs, and on which devices."""
    _write(run_dir, "cluster", fast_json.dumps(cluster_from_environment(env.get)))
    _write(run_dir, "resources", fast_json.dumps({"gpu_uuids": visible_uuids(env)}))


def announce(trial: TrialEnvironment) -> None:
    """The line with which Determined begins the output of a run, which scripts look for and count.

    Its own launcher says it, too, and then we do not. On standard output: of the other stream, the last line is taken
    for the reason of a failure.
    """
    entrypoint = trial.config.get("entrypoint")
    if "determined.exec.launch" not in (entrypoint if isinstance(entrypoint, str) else fast_json.dumps(entrypoint)):
        container, agent = trial.env.get("DET_CONTAINER_ID", ""), trial.env["DET_AGENT_ID"]
        shown = fast_json.dumps(without_secrets(trial.config))
        print(f"INFO: {RUN_BEGINS}{container}) on agent {agent}: {shown}", flush=True)


def meet(trial: TrialEnvironment) -> tuple[list[str], int]:
    """Wait for the other members, if there are any; write ``rendezvous.json``; all addresses by rank, and our rank."""
    if trial.members_expected():
        from tenax.exec.rendezvous import rendezvous

        met = rendezvous(trial.env, _seconds(trial.env, "DET_RENDEZVOUS_TIMEOUT", RENDEZVOUS_TIMEOUT))
        addresses, rank, slots = met.addresses, met.rank, met.slots
    else:
        addresses, rank, slots = ["127.0.0.1"], 0, [len(trial.slot_ids)]
    document = {"container_addrs": addresses, "container_rank": rank, "container_slot_counts": slots}
    _write(trial.run_dir, "rendezvous", fast_json.dumps(document))
    return addresses, rank


def find_checkpoint(env: dict[str, str], part: str) -> dict[str, str]:
    """Where the checkpoint to go on from may be gone: let the trial go on from the newest that is there.

    Of several members one looks before they meet, and the others ask afterwards what it has found: ``part`` is LOOK, or
    ASK. Returns the environment for what follows. Raises CheckpointMissing for a storage that looks as if it were not
    mounted, and what the master refuses.
    """
    if env.get(CHECKPOINT_IN_DOUBT) != part:
        return env
    from tenax.client.task import TaskClient

    trial = TrialEnvironment(env)
    path = f"/api/v1/allocations/{env['DET_ALLOCATION_ID']}/resume_point"
    first = uuid = env.get("DET_LATEST_CHECKPOINT", "")
    client = TaskClient(
        masters_of(env),
        env["DET_SESSION_TOKEN"],
        cert_file=env.get("DET_MASTER_CERT_FILE", ""),
        cert_name=env.get("DET_MASTER_CERT_NAME", ""),
    )
    try:
        if part == ASK:
            uuid, steps, _ = _resume_point(client.call("POST", path, body={"missing": ""}))
        else:
            steps, in_doubt = env["DET_STEPS_COMPLETED"], True
            while uuid and in_doubt and not _is_there(trial, uuid):
                uuid, steps, in_doubt = _resume_point(client.call("POST", path, body={"missing": uuid}))
    finally:
        client.close()
    if uuid == first:
        return env
    env = {**env, "DET_LATEST_CHECKPOINT": uuid, "DET_STEPS_COMPLETED": steps}
    if not uuid:
        del env["DET_LATEST_CHECKPOINT"]
    write_info(TrialEnvironment(env))
    now = f"from {uuid}, after {steps} steps" if uuid else "from the beginning"
    print(f"tenax: checkpoint {first} was deleted after the database was copied: this trial goes on {now}", flush=True)
    return env


def _resume_point(answer: Json) -> tuple[str, str, bool]:
    """Checkpoint, steps, and whether that may be gone, too."""
    point = answer if isinstance(answer, dict) else {}
    return str(point.get("checkpoint") or ""), str(point.get("stepsCompleted") or 0), point.get("inDoubt") is True


def _is_there(trial: TrialEnvironment, uuid: str) -> bool:
    section = trial.config.get("checkpoint_storage")
    if not isinstance(section, dict):
        return True
    from tenax.storage.port import is_there
    from tenax.storage.registry import from_config, is_bound_to_machine

    # What lies on one machine alone may lie on another.
    return is_bound_to_machine(section) or is_there(from_config(section), uuid)


def needs_standard_library_only(trial: TrialEnvironment) -> bool:
    """Whether trying the checkpoint storage imports no other package."""
    section = trial.config.get("checkpoint_storage")
    if not isinstance(section, dict):
        return True
    from tenax.storage.registry import kind_of

    kind = kind_of(section)
    return kind is not None and kind.standard_library_only


def validate_storage(trial: TrialEnvironment) -> None:
    """See whether checkpoints can be stored, before hours are spent on them. Raises StorageFailed or InvalidInput."""
    section = trial.config.get("checkpoint_storage")
    if isinstance(section, dict):
        from tenax.storage.registry import from_config

        from_config(section).validate()


def hparams_of(trial: TrialEnvironment) -> JsonObject:
    """The hyperparameters of the trial. Raises InvalidInput."""
    return _parsed(trial.env, "DET_HPARAMS", dict)


def visible_uuids(env: Mapping[str, str]) -> list[str]:
    """UUIDs of the devices of this container, where the agent named them by UUID (MIG instances too)."""
    for name in ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"):
        uuids = [part for part in env.get(name, "").split(",") if part.startswith(("GPU-", "MIG-"))]
        if uuids:
            return uuids
    return []


def _write(run_dir: str, name: str, text: str) -> None:
    directory = os.path.join(run_dir, "info")
    os.makedirs(directory, mode=0o755, exist_ok=True)
    path = os.path.join(directory, name + ".json")
    # A launcher may look at any moment, and the credential in it is nobody else's: whole, and for the owner only.
    fd = os.open(path + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(fd, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".new", path)


def _parsed(env: Mapping[str, str], name: str, kind: type) -> JsonObject:
    try:
        value: Json = fast_json.loads(env[name])
    except ValueError as error:
        raise InvalidInput(f"{name} is not JSON: {error}") from None
    if not isinstance(value, kind):
        raise InvalidInput(f"{name} is not the JSON {'object' if kind is dict else 'list'} that is expected")
    return value  # type: ignore[return-value]


def _whole(env: Mapping[str, str], name: str) -> int:
    try:
        return int(env[name])
    except ValueError:
        raise InvalidInput(f"{name} is not a whole number: {env[name]!r}") from None


def _seconds(env: Mapping[str, str], name: str, default: float) -> float:
    try:
        return float(env.get(name) or default)
    except ValueError:
        raise InvalidInput(f"{name} is not a number of seconds: {env[name]!r}") from None
