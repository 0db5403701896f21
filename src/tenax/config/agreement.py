"""What masters of one cluster must agree on: every setting but those that belong to one machine or one process; and
what one takes over from its settings file while it runs.

Two that differ work on, each by its own: the one that runs a loop decides by its settings there, and a request is
answered by those of the master that takes it. So what differs is named.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping

from tenax.config.master import MasterSettings
from tenax.config.settings import in_clear
from tenax.jsonvalue import JsonObject

#: Of one machine: what another master of the cluster has of its own.
OF_THE_MACHINE = ("host", "dir", "roles", "tls")
#: Of its security: files beside it.
FILES = ("agent_join_token_file", "initial_password_file")
#: How one process works, and where it is.
_OF_THE_PROCESS = ("port", "db", "connections", "log", "tracing")
#: What is only ever read where it is used.
RELOADABLE = ("pools", "renting", "default_compute_pool", "default_aux_pool", "task_container_defaults")


def agreed(settings: MasterSettings) -> JsonObject:
    """Those settings, secrets in clear."""
    document = in_clear(settings)
    for name in (*OF_THE_MACHINE, *_OF_THE_PROCESS):
        del document[name]
    security = document["security"]
    assert isinstance(security, dict)
    for name in FILES:
        del security[name]
    return document


def fingerprints(settings: MasterSettings, secret: bytes) -> dict[str, str]:
    """Setting -> digest, which tells nobody without ``secret`` what it is."""
    return {
        name: hmac.new(secret, json.dumps([name, value], sort_keys=True).encode(), hashlib.sha256).hexdigest()[:32]
        for name, value in agreed(settings).items()
    }


def differences(ours: Mapping[str, str], theirs: Mapping[str, str]) -> list[str]:
    """The settings that differ; one that a release does not have yet is none."""
    return sorted(name for name in ours.keys() & theirs.keys() if ours[name] != theirs[name])


def changed(running: MasterSettings, read: MasterSettings) -> list[str]:
    """The settings that are taken over and are other than those that the master runs with."""
    return _other(RELOADABLE, running, read)


def left(started: MasterSettings, read: MasterSettings) -> list[str]:
    """The settings that are other than at the start, and wait for the next one."""
    return _other(sorted(type(read).model_fields.keys() - set(RELOADABLE)), started, read)


def merged(running: MasterSettings, read: MasterSettings) -> MasterSettings:
    """What the master runs with from now on."""
    return running.model_copy(update={name: getattr(read, name) for name in RELOADABLE})


def _other(names: Iterable[str], before: MasterSettings, after: MasterSettings) -> list[str]:
    return [name for name in names if getattr(before, name) != getattr(after, name)]
