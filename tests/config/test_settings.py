"""Settings of master and agent: where they come from, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tenax.config.agent import AgentSettings, load_agent_settings
from tenax.config.master import (
    MasterSettings,
    PoolSettings,
    Role,
    container_network,
    load_master_settings,
    startup_hook,
    task_variables,
)
from tenax.config.problems import ConfigError
from tenax.jsonvalue import Json
from tenax.scheduler.registry import USUAL
from tenax.scheduler.snapshot import Fitting


def test_defaults_need_nothing() -> None:
    """Without file, environment and flags a master listens on this machine alone and uses the embedded database."""
    found = load_master_settings(environ={})
    assert (found.host, found.port, found.db.url, found.default_compute_pool) == ("127.0.0.1", 8080, None, "default")
    assert found.pool("default") == PoolSettings(name="default")
    assert found.pool("other") is None
    assert found.roles == (Role.API, Role.LOOPS, Role.PROXY)
    assert (found.context_limit_bytes, found.preemption_timeout) == (95 * 1024 * 1024, 3600)


def test_a_scheduler_that_is_not_there_is_refused() -> None:
    """With those that are."""
    with pytest.raises(ConfigError) as refused:
        load_master_settings(environ={"TENAX_MASTER_POOLS": "[{name: default, scheduler: {type: round_robin}}]"})
    assert f"there is no scheduler 'round_robin': use {USUAL}" in str(refused.value)


def test_later_sources_win(tmp_path: Path) -> None:
    """A flag wins over the environment, that over the file, that over defaults, field by field."""
    file = tmp_path / "master.yaml"
    file.write_text("port: 1\nhost: file\ncluster_name: file\ndb: {url: file, max_connections: 9}\nlog: null\n")
    environ = {"TENAX_MASTER_PORT": "2", "TENAX_MASTER_HOST": "env", "TENAX_MASTER_DB__URL": "postgresql://env"}
    found = load_master_settings(file, environ=environ, flags={"port": 3, "host": None, "log.level": "debug"})
    assert (found.port, found.host, found.cluster_name) == (3, "env", "file")
    assert found.db.url is not None
    assert (found.db.url.get_secret_value(), found.db.max_connections) == ("postgresql://env", 9)
    assert found.log.level == "debug"
    assert "postgresql" not in repr(found)


def test_pools() -> None:
    """Pools are typed values."""
    pools = "[{name: default}, {name: big, scheduler: {preemption: true, fitting_policy: worst}}]"
    found = load_master_settings(environ={"TENAX_MASTER_POOLS": pools}).pool("big")
    assert found is not None
    assert found.scheduler.preemption is True
    assert found.scheduler.fitting_policy is Fitting.WORST
    assert (found.scheduler.default_priority, found.max_aux_containers_per_agent) == (42, 100)


def test_all_problems_of_a_file(tmp_path: Path) -> None:
    """Unknown keys, wrong types and ranges are told at once, with path, line and nearest name."""
    file = tmp_path / "master.yaml"
    file.write_text(
        "port: '80'\npoools: []\npools:\n- name: default\n  scheduler:\n    default_priority: 1000\n    x: 1\n"
    )
    with pytest.raises(ConfigError) as caught:
        load_master_settings(file, environ={})
    found = {(problem.path, problem.line): problem.message for problem in caught.value.problems}
    assert found[("port", 1)] == "input should be a valid integer"
    assert found[("poools", 2)] == "unknown key 'poools'; did you mean 'pools'?"
    assert "less than or equal to 99" in found[("pools[0].scheduler.default_priority", 6)]
    assert found[("pools[0].scheduler.x", 7)].startswith("unknown key 'x'; legal here: ")
    assert str(caught.value).startswith("The master's configuration has 4 problems:")


def test_where_a_bad_value_came_from() -> None:
    """A bad value from the environment or a flag is told with its origin."""
    with pytest.raises(ConfigError, match="from the environment variable TENAX_MASTER_PORT"):
        load_master_settings(environ={"TENAX_MASTER_PORT": "tcp://10.0.0.1:80"})
    with pytest.raises(ConfigError, match="from the option --db-max-connections"):
        load_master_settings(environ={}, flags={"db.max_connections": 0})


def test_secrets_are_not_told() -> None:
    """A secret of the wrong type is refused without showing it."""
    with pytest.raises(ConfigError) as caught:
        load_master_settings(environ={}, flags={"db.url": ["hush"]})
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("pools: [{name: a}, {name: a}]\ndefault_compute_pool: a\ndefault_aux_pool: a\n", "two pools are called a"),
        ("pools: [{name: a}]\ndefault_aux_pool: a\n", "default_compute_pool is 'default'"),
        ("checkpoint_storage: {type: s4}\n", "did you mean 's3'?"),
        ("checkpoint_storage:\n  type: shared_fs\n  host_pat: /x\n", "checkpoint_storage.host_pat (line 3)"),
        ("task_container_defaults: {imagee: x}\n", "did you mean 'image'?"),
        ("pools: [{name: default, task_container_defaults: {work_dirr: x}}]\n", "did you mean 'work_dir'?"),
    ],
)
def test_what_a_master_cannot_start_with(tmp_path: Path, text: str, words: str) -> None:
    """What would fail each experiment later is refused when the master starts."""
    file = tmp_path / "master.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_master_settings(file, environ={})
    assert words in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    """A missing, binary or broken file is told as such."""
    with pytest.raises(ConfigError, match="cannot read"):
        load_agent_settings(tmp_path / "nowhere.yaml", environ={})
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_agent_settings(binary, environ={})


def test_a_file_without_an_end_is_refused() -> None:
    """It is not read for ever, nor into all of the memory."""
    with pytest.raises(ConfigError, match="/dev/zero has more than"):
        load_master_settings(Path("/dev/zero"), environ={})


def test_agent() -> None:
    """An agent's settings from environment and flags."""
    environ = {
        "TENAX_AGENT_MASTER_URL": "https://master:8443/",
        "TENAX_AGENT_VISIBLE_GPUS": "0,2",
        "TENAX_AGENT_JOIN_TOKEN": "hush",
        "TENAX_AGENT_LABELS": "[a, b]",
        "TENAX_AGENT_NOSUCH": "ignored",
    }
    found = load_agent_settings(environ=environ, flags={"slots": 2, "runtime": "process", "agent_id": "a1"})
    assert (found.master_url, found.visible_gpus, found.labels) == (
        "https://master:8443",
        ("0", "2"),
        ("a=true", "b=true"),
    )
    assert (found.slots, found.runtime, found.agent_id) == (2, "process", "a1")
    assert (found.slot_type, found.pool) == ("auto", "default")
    assert found.join_token is not None
    assert "hush" not in repr(found)


@pytest.mark.parametrize(
    ("given", "labels"),
    [
        ("zone=us-west-2a, disk=nvme", ("zone=us-west-2a", "disk=nvme")),
        ({"zone": "a", "nvme": True, "rack": 7}, ("zone=a", "nvme=true", "rack=7")),
        (["zone=a", "spot"], ("zone=a", "spot=true")),
    ],
)
def test_labels_of_an_agent(given: Json, labels: tuple[str, ...]) -> None:
    """As pairs, as a map, as a line; a name alone is true."""
    assert load_agent_settings(environ={}, flags={"labels": given}).labels == labels


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("zone=a,zone=b", "'zone' stands there twice"),
        ("a b=c", "'a b=c' is no label: write KEY=VALUE"),
        ("=c", "'=c' is no label"),
        ("zone=\x1b[31m", "is no label"),
        ("device_name=A100", "'device_name' is no name for a label"),
        ({"version": 1.10}, "version: 1.1 is a number to YAML"),
        (",".join(f"k{number}=1" for number in range(65)), "at most 64 labels"),
    ],
)
def test_what_is_no_label_is_refused(given: Json, problem: str) -> None:
    """With what to write instead."""
    with pytest.raises(ConfigError, match=re.escape(problem)):
        load_agent_settings(environ={}, flags={"labels": given})


def test_token_that_looks_like_a_number() -> None:
    """Text of a setting that is text is taken as it is written."""
    found = load_agent_settings(environ={"TENAX_AGENT_JOIN_TOKEN": "0123", "TENAX_AGENT_AGENT_ID": "007"})
    assert found.join_token is not None
    assert (found.join_token.get_secret_value(), found.agent_id) == ("0123", "007")


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"slots": -1}, "write 'auto' or how many slots"),
        ({"slots": "many"}, "write 'auto' or how many slots"),
        ({"master_url": "master:8080"}, "write the whole address: http://master:8080"),
        ({"agent_id": "a b"}, "agent_id"),
        ({"runtime": "podman"}, "runtime"),
    ],
)
def test_what_an_agent_cannot_start_with(flags: dict[str, str], words: str) -> None:
    """Bad settings of an agent are told with what to write."""
    with pytest.raises(ConfigError, match=words):
        load_agent_settings(environ={}, flags=dict(flags))


def test_settings_are_frozen() -> None:
    """Settings do not change under those who hold them."""
    for settings in (MasterSettings(), AgentSettings()):
        with pytest.raises(ValueError, match="frozen"):
            settings.__setattr__("dir", Path("/"))


def test_the_hook_of_a_pool_stands_for_the_masters() -> None:
    """Each pool has its own lines, else those of the master, else none."""
    pools = (
        PoolSettings(name="default"),
        PoolSettings(name="own", task_container_defaults={"startup_hook": "echo own"}),
    )
    settings = MasterSettings(pools=pools, task_container_defaults={"startup_hook": "echo all"})
    assert [startup_hook(settings, pool) for pool in pools] == ["echo all", "echo own"]
    assert startup_hook(MasterSettings(), pools[0]) == ""


def test_what_tasks_talk_over_is_chosen_by_pool() -> None:
    """Network interface, port ranges and network: each pool's own, else the master's, else nothing is said."""
    pools = (PoolSettings(name="default"), PoolSettings(name="own", task_container_defaults={"nccl_port_range": "1:2"}))
    everywhere = {"nccl_port_range": "3:4", "dtrain_network_interface": "ib0", "network_mode": "host"}
    settings = MasterSettings(pools=pools, task_container_defaults=dict(everywhere))
    assert [task_variables(settings, pool) for pool in pools] == [
        {"DET_INTER_NODE_NETWORK_INTERFACE": "ib0", "NCCL_PORT_RANGE": ports} for ports in ("3:4", "1:2")
    ]
    assert [container_network(settings, pool) for pool in pools] == ["host", "host"]
    assert (task_variables(MasterSettings(), pools[0]), container_network(MasterSettings(), pools[0])) == ({}, "")
