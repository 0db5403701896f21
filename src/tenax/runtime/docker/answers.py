"""What the Docker Engine API answered, as our words. Pure but for this machine's boot."""

from __future__ import annotations

import signal
from datetime import datetime

from tenax.jsonvalue import Json, JsonObject
from tenax.runtime.directory import VERSION, Card
from tenax.runtime.docker.config import LABEL, LABEL_CLUSTER, LABEL_GENERATION
from tenax.runtime.docker.engine import EngineRefused
from tenax.runtime.exit_reason import killed_by
from tenax.runtime.processes import boot_id
from tenax.wire.agents import Exit

#: Errors of creating or starting that are the request's: names, paths, images, users.
_REQUESTS = frozenset({400, 404})


def ended(state: JsonObject, made_in_boot: str, *, requested: bool) -> Exit:
    """How a container ended, from the engine's words."""
    code = int(str(state.get("ExitCode", 0)))
    if made_in_boot != boot_id() and _finished(state) >= _boot_time():
        # The engine found it dead when it came up.
        return Exit(reason="the machine was restarted while it ran", platform=True)
    if state.get("OOMKilled") is True and code != 0:
        return Exit(signal=signal.SIGKILL, reason="out of memory: the kernel killed it", out_of_memory=True)
    if state.get("Error"):
        return Exit(code=code, reason=f"the engine says: {state['Error']}", platform=True)
    if 128 < code < 128 + signal.NSIG:
        # Shells and inits say it so; an engine does not tell it from an exit with that code.
        return Exit(signal=code - 128, reason=killed_by(code - 128, requested=requested))
    return Exit(code=code, reason="" if code == 0 else f"exited with code {code}")


def is_machines(refused: EngineRefused) -> bool:
    """Whether a refusal to create or start is the machine's fault."""
    if refused.status in _REQUESTS:
        return False
    users_errors = ("executable file not found", "no such file or directory", "permission denied", "bind source path")
    return not any(word in refused.message for word in users_errors)


def status_of(container: JsonObject) -> str:
    return str(as_object(container["State"]).get("Status", ""))


def pid_of(container: JsonObject | None) -> int | None:
    number = int(str(as_object(container["State"]).get("Pid", 0))) if container is not None else 0
    return number or None


def image_in(container: JsonObject | None) -> str:
    return str(container["Image"]) if container is not None else ""


def user_in(container: JsonObject) -> str:
    """As whom it runs."""
    return str(as_object(container["Config"]).get("User") or "")


def card_of(container: JsonObject) -> Card:
    """For one whose directory was lost: from its labels."""
    labels = as_object(as_object(container["Config"])["Labels"])
    return Card(
        v=VERSION,
        container_id=str(labels[LABEL]),
        cluster_id=str(labels[LABEL_CLUSTER]),
        generation=int(str(labels[LABEL_GENERATION])),
        boot_id=boot_id(),
    )


def _finished(state: JsonObject) -> float:
    """Unix time of the end; 0 where the engine does not say."""
    text = str(state.get("FinishedAt", ""))
    try:
        return datetime.fromisoformat(text[:19] + "+00:00").timestamp()
    except ValueError:
        return 0.0


def _boot_time() -> float:
    import psutil

    return psutil.boot_time()


def as_object(value: Json) -> JsonObject:
    assert isinstance(value, dict), "the engine answered with something else"
    return value
