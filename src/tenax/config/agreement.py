"""What masters of one cluster must agree on: every setting but those that belong to one machine or one process.

Two that differ work on, each by its own: the one that runs a loop decides by its settings there, and a request is
answered by those of the master that takes it. So what differs is named.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping

from tenax.config.master import MasterSettings
from tenax.config.settings import in_clear
from tenax.jsonvalue import JsonObject

#: Of one machine: what another master of the cluster has of its own.
OF_THE_MACHINE = ("host", "dir", "roles", "tls")
#: Of its security: files beside it.
FILES = ("agent_join_token_file", "initial_password_file")
#: How one process works, and where it is.
_OF_THE_PROCESS = ("port", "db", "connections", "log", "tracing")


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
