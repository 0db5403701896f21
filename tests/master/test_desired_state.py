"""What an agent is told of a container: from a row, without a database."""

from __future__ import annotations

import json

from tenax.jsonvalue import JsonObject
from tenax.master.agents.desired_state import desired_state_of
from tenax.master.agents.specs import PoolDefaults, Tokens
from tenax.wire.agents import ContainerSpec, DesiredRun, TaskFile


def row(**changes: object) -> JsonObject:
    """A container of a command that is to start."""
    made: dict[str, object] = {
        "container_id": "c",
        "allocation_id": "t.1",
        "task_id": "t",
        "rank": 0,
        "members": 1,
        "slots": [0],
        "want": "RUN",
        "state": "ASSIGNED",
        "run_id": 1,
        "task_kind": "COMMAND",
        "device_kind": "cpu",
        "trial_id": None,
        "context_hash": None,
        "username": "ann",
        "agent_uid": None,
        "agent_gid": None,
        "agent_user": "worker",
        "agent_group": "workers",
        "spec": {"v": 1, "config": {"entrypoint": ["echo", "a b"]}, "files": [], "env": {}},
        **changes,
    }
    return made  # type: ignore[return-value]


def spec_sent(defaults: PoolDefaults | None = None, **changes: object) -> ContainerSpec:
    tokens = lambda allocation: Tokens(f"session {allocation}", "user")  # noqa: E731
    want = desired_state_of(row(**changes), False, tokens, defaults or PoolDefaults())
    assert isinstance(want, DesiredRun)
    assert want.spec is not None
    return want.spec


def test_a_command_line_travels_in_the_environment() -> None:
    """As words; with the contract's variables, and as the kind of task that it is."""
    spec = spec_sent()
    assert spec.argv == ["{python}", "-m", "tenax.exec.task"]
    assert json.loads(spec.env["TENAX_TASK_ENTRYPOINT"]) == ["echo", "a b"]
    assert (spec.env["DET_TASK_TYPE"], spec.env["DET_SESSION_TOKEN"]) == ("COMMAND", "session t.1")
    assert (spec.env["DET_USER"], "DET_TRIAL_ID" in spec.env) == ("ann", False)


def test_the_work_directory_may_name_its_user() -> None:
    """On the machine, and of the cluster."""
    config = {"entrypoint": ["x"], "work_dir": "/home/$AGENT_USER/$DET_USER"}
    assert spec_sent(spec={"config": config}).env["DET_WORKDIR"] == "/home/worker/ann"


def test_files_mounts_and_variables_come_along() -> None:
    """Variables of the kind of device; those that the master adds win over none of the user's."""
    config = {
        "entrypoint": ["x"],
        "bind_mounts": [{"host_path": "/a", "container_path": "/b", "read_only": True}],
        "environment": {"environment_variables": {"cpu": ["A=1", "B"], "cuda": ["A=2"]}},
        "checkpoint_storage": {"type": "shared_fs", "host_path": "/store"},
    }
    files = [{"path": "x.json", "content": "{}", "mode": 0o644}]
    spec = spec_sent(spec={"config": config, "files": files, "env": {"EXTRA": "y"}})
    assert spec.files == [TaskFile("x.json", "{}", 0o644)]
    assert (spec.env["A"], spec.env["B"], spec.env["EXTRA"]) == ("1", "", "y")
    assert [(mount.host_path, mount.container_path) for mount in spec.mounts] == [
        ("/a", "/b"),
        ("/store", "/determined_shared_fs"),
    ]


def test_the_hook_of_the_cluster_is_placed_for_every_task() -> None:
    """Where first programs look for it."""
    assert spec_sent(PoolDefaults("export A=1")).files == [TaskFile("dynamic-tcd-startup-hook.sh", "export A=1", 0o700)]
    assert spec_sent().files == []


def test_what_the_pool_gives_every_task() -> None:
    """Its variables, which the task's own override, and its network."""
    config = {"entrypoint": ["x"], "environment": {"environment_variables": ["NCCL_PORT_RANGE=1:2"]}}
    env = {"GLOO_PORT_RANGE": "5:6", "NCCL_PORT_RANGE": "3:4"}
    spec = spec_sent(PoolDefaults(env=env, network="host"), spec={"config": config})
    assert (spec.env["GLOO_PORT_RANGE"], spec.env["NCCL_PORT_RANGE"], spec.network) == ("5:6", "1:2", "host")
    assert spec_sent().network == ""


def test_members_wait_for_each_other_as_long_as_the_master_says() -> None:
    """Unless their configuration says it."""
    gang: dict[str, object] = {"members": 2}
    assert spec_sent(PoolDefaults(rendezvous_timeout=90.5), **gang).env["DET_RENDEZVOUS_TIMEOUT"] == "90.5"
    config = {"entrypoint": ["x"], "environment": {"environment_variables": ["DET_RENDEZVOUS_TIMEOUT=7"]}}
    assert spec_sent(**gang, spec={"config": config}).env["DET_RENDEZVOUS_TIMEOUT"] == "7"
    assert "DET_RENDEZVOUS_TIMEOUT" not in spec_sent().env


def test_what_runs_gets_no_specification() -> None:
    """It is never started twice."""
    want = desired_state_of(row(state="RUNNING"), False, lambda _: Tokens("", ""), PoolDefaults("export A=1"))
    assert want == DesiredRun("c", None)


def test_hyperparameters_reach_the_script_in_alphabetical_order() -> None:
    """Nested ones, too, however the database keeps them."""
    trial: dict[str, object] = {"trial_id": 1, "experiment_id": 1, "trial_seed": 3}
    trial |= {"warm_start_checkpoint": None, "latest_checkpoint": None}
    hparams = {"z": 1, "aa": {"y": 1, "bb": 2}, "b": 3}
    sent = spec_sent(
        task_kind="TRIAL", config={}, hparams=hparams, steps_completed=0, checkpoint_in_doubt=False, **trial
    )
    assert sent.env["DET_HPARAMS"] == '{"aa":{"bb":2,"y":1},"b":3,"z":1}'
