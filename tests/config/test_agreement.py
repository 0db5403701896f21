"""What masters of one cluster must agree on."""

from __future__ import annotations

import json

import pytest

from tenax.config.agreement import agreed, differences, fingerprints
from tenax.config.master import MasterSettings
from tenax.jsonvalue import JsonObject

SECRET = b"of the cluster"


def of(**document: object) -> dict[str, str]:
    """The fingerprints of settings."""
    return fingerprints(MasterSettings.model_validate_json(json.dumps(document)), SECRET)


@pytest.mark.parametrize(
    "document",
    [
        {"host": "0.0.0.0", "port": 9, "dir": "/elsewhere", "roles": ["api"]},
        {"tls": {"cert": "/a", "key": "/b"}},
        {"db": {"url": "postgresql://a@b/c", "max_connections": 9, "backup_command": ["dump"]}},
        {"log": {"level": "debug"}, "tracing": {"sample": 1.0}, "connections": {"most": 99}},
        {"security": {"agent_join_token_file": "/a", "initial_password_file": "/b"}},
    ],
)
def test_what_belongs_to_one_machine_or_process_may_differ(document: JsonObject) -> None:
    """Addresses, directories, how it works."""
    assert differences(of(), of(**document)) == []


@pytest.mark.parametrize(
    ("document", "name"),
    [
        ({"pools": [{"name": "default", "scheduler": {"type": "fair_share"}}]}, "pools"),
        ({"checkpoint_storage": {"type": "shared_fs", "host_path": "/a"}}, "checkpoint_storage"),
        ({"task_container_defaults": {"environment_variables": ["A=1"]}}, "task_container_defaults"),
        ({"security": {"trusted_proxies": ["10.0.0.0/8"]}}, "security"),
        ({"webhooks": {"signing_key": "another"}}, "webhooks"),
        ({"kill_timeout": 9.0}, "kill_timeout"),
    ],
)
def test_all_else_is_named_where_it_differs(document: JsonObject, name: str) -> None:
    """Secrets, too, which are not in the fingerprint."""
    assert differences(of(), of(**document)) == [name]
    assert differences(of(**document), of(**document)) == []
    assert "another" not in json.dumps(of(**document))


def test_a_setting_of_another_release_is_no_difference() -> None:
    """During an upgrade one of them does not know it."""
    assert differences({**of(), "from_the_future": "1"}, of()) == []


def test_without_the_secret_of_the_cluster_nobody_can_guess() -> None:
    """Whoever may read the table could try passwords otherwise."""
    settings = MasterSettings()
    assert set(fingerprints(settings, b"a").values()).isdisjoint(fingerprints(settings, b"b").values())


def test_each_setting_is_one_or_the_other() -> None:
    """A new one must be agreed on unless somebody says otherwise."""
    apart = {"host", "dir", "roles", "tls", "port", "db", "connections", "log", "tracing"}
    assert agreed(MasterSettings()).keys() == MasterSettings.model_fields.keys() - apart
