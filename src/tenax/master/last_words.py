"""What a script said before it failed, so that the reason of an exit is in its own words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from asyncpg import Connection

from tenax.errors import NotFound
from tenax.lifecycle.container import Ending
from tenax.master.store import log_packing, logs

#: Chunks of output that are looked at, from the end.
_CHUNKS = 8
_LONGEST = 300
#: How `tenax.exec.trial` begins what it says itself.
_FIRST_PROGRAM = "tenax: "
_BEGINNING = "Traceback (most recent call last):"
#: The line that names an exception: ``package.SomeError: text``.
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?:: .*)?$")


async def in_its_own_words(conn: Connection, task_id: str, container_ids: Sequence[str], ending: Ending) -> Ending:
    """The ending, with what the script's error output says about it in its reason."""
    if not ending.failed or ending.signal is not None:
        return ending
    lines = await _errors(conn, task_id, frozenset(container_ids))
    return replace(ending, reason=explained(ending.reason, lines))


def explained(reason: str, lines: Sequence[str]) -> str:
    """``reason`` with what these last lines add: why it was not started, what it raised, or just what it said last."""
    last = next((line for line in reversed(lines) if line.strip()), "")
    if last.startswith(_FIRST_PROGRAM):
        return f"{_cut(last[len(_FIRST_PROGRAM) :].rstrip(' .'))} ({reason})"
    raised = exception_line(lines)
    if raised is not None:
        return f"your code raised {raised} ({reason})"
    return f"{reason}; its last words: {_cut(last.strip())}" if last else reason


def exception_line(lines: Sequence[str]) -> str | None:
    """The line that names the exception of the last traceback; None where there is none."""
    for start in range(len(lines) - 1, -1, -1):
        if lines[start].strip() == _BEGINNING:
            break
    else:
        return None
    for line in lines[start + 1 :]:
        if line and not line[0].isspace() and _EXCEPTION.match(line):
            return _cut(line)
    return None


def _cut(line: str) -> str:
    return line if len(line) <= _LONGEST else line[:_LONGEST] + "..."


async def _errors(conn: Connection, task_id: str, container_ids: frozenset[str]) -> list[str]:
    """The last lines of standard error of these containers, in order."""
    try:
        place = await logs.place_of(conn, task_id)
    except NotFound:
        return []
    found: list[str] = []
    for span in reversed(await logs.spans(conn, place, descending=True, limit=_CHUNKS)):
        ours = {
            number
            for number, origin in enumerate(span.chunk.origins)
            if origin.container_id in container_ids and origin.stdtype == "stderr"
        }
        if ours:
            found += [line.text for line in log_packing.unpack(span.chunk) if line.origin in ours]
    return found
