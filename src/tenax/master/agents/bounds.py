"""What an agent may say, and how much: whoever runs one machine has no say over the others, nor over the master.

Rules it keeps:

- a hello with more than an agent has is refused, with what is too much;
- of a report what is too long is cut, since a container must be able to end whatever its agent says of it;
- how far an agent has obeyed is believed if the master has told it so (`proof_of`).
"""

from __future__ import annotations

import hashlib
import hmac

import msgspec

from tenax.errors import InvalidInput
from tenax.scheduler.snapshot import MAX_LABELS
from tenax.wire.agents import AgentReport, ContainerReport, Hello

MAX_SLOTS = 1024
#: Containers that one agent has, or has reported and not been told to remove.
MAX_CONTAINERS = 10_000
#: Characters of a name, an address, a version; of the reason of an exit.
MAX_TEXT, MAX_REASON = 255, 4000
#: Of each list of what tasks are allowed, and characters of each entry.
_MAX_ALLOWED, _MAX_PATH = 1000, 4096
#: What a column of the database holds.
_MAX_NUMBER = (1 << 31) - 1
_MAX_BYTES = (1 << 63) - 1


def check_hello(hello: Hello) -> None:
    """Raises InvalidInput for what no agent has."""
    if len(hello.slots) > MAX_SLOTS or len(hello.containers) > MAX_CONTAINERS:
        raise InvalidInput(f"an agent has at most {MAX_SLOTS} slots and {MAX_CONTAINERS} containers")
    if len({slot.id for slot in hello.slots}) < len(hello.slots):
        raise InvalidInput("two slots of this agent have one number")
    if any(not 0 <= slot.id <= _MAX_NUMBER for slot in hello.slots):
        raise InvalidInput(f"the number of a slot lies in 0 .. {_MAX_NUMBER}")
    texts = [hello.agent_version, hello.hostname, hello.runtime, hello.place]
    texts += [text for slot in hello.slots for text in (slot.kind, slot.name, slot.uuid, slot.fault)]
    texts += [text for label in hello.labels.items() for text in label]
    texts += [text for each in hello.containers for text in (each.container_id, each.cluster_id)]
    if not all(_is_text(text, MAX_TEXT) for text in texts):
        raise InvalidInput(f"names have at most {MAX_TEXT} characters, and no NUL among them")
    if len(hello.labels) > MAX_LABELS:
        raise InvalidInput(f"an agent has at most {MAX_LABELS} labels")
    if any(slot.memory is not None and not 0 <= slot.memory <= _MAX_BYTES for slot in hello.slots):
        raise InvalidInput(f"the memory of a device lies in 0 .. {_MAX_BYTES} bytes")
    allowed = hello.allowed
    if allowed is not None:
        lists = (allowed.bind_mounts, allowed.capabilities, allowed.devices)
        if any(len(entries) > _MAX_ALLOWED for entries in lists):
            raise InvalidInput(f"an agent allows at most {_MAX_ALLOWED} bind mounts, capabilities and devices each")
        if not all(_is_text(entry, _MAX_PATH) for entries in lists for entry in entries):
            raise InvalidInput(f"what an agent allows has at most {_MAX_PATH} characters each, and no NUL among them")


def check_report(report: AgentReport, waiting: int) -> None:
    """``waiting``: containers of which this connection has said something before. Raises InvalidInput for too many."""
    # Those that it has may be among those that it reports.
    if waiting + len(report.containers) > 2 * MAX_CONTAINERS or len(report.gone) > MAX_CONTAINERS:
        raise InvalidInput(f"an agent has at most {MAX_CONTAINERS} containers")


def bounded(report: ContainerReport) -> ContainerReport:
    """The same with what is too long cut, and without what no container has."""
    name, address = report.container_id, report.address
    ended = report.exit
    if ended is not None:
        ended = msgspec.structs.replace(
            ended,
            code=_number(ended.code),
            signal=_number(ended.signal),
            reason=_cut(ended.reason),
            spool_lost=_cut(ended.spool_lost),
        )
    return msgspec.structs.replace(
        report,
        container_id=name.replace("\0", "")[:MAX_TEXT],
        address=address if _is_text(address, MAX_TEXT) else "",
        exit=ended,
    )


def proof_of(secret: bytes, agent_id: str, generation: int, revision: int) -> str:
    """What the master gives an agent with desired states of that revision, and nobody else can make."""
    obeyed = f"desired states:{agent_id}:{generation}:{revision}".encode()
    return hmac.new(secret, obeyed, hashlib.sha256).hexdigest()


def has_obeyed(secret: bytes, agent_id: str, hello: Hello) -> bool:
    """Whether the agent was sent the desired states that it says it has obeyed."""
    return hmac.compare_digest(
        proof_of(secret, agent_id, hello.generation, hello.revision).encode(), hello.proof.encode()
    )


def _is_text(text: str, most: int) -> bool:
    return len(text) <= most and "\0" not in text


def _cut(text: str) -> str:
    text = text.replace("\0", "")
    return text if len(text) <= MAX_REASON else text[: MAX_REASON - 1] + "…"


def _number(number: int | None) -> int | None:
    return number if number is None or -_MAX_NUMBER <= number <= _MAX_NUMBER else None
