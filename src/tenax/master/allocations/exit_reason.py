"""The exit reason of a script that failed: what it raised, or the last line of its error output."""

from __future__ import annotations

import re
import signal
from collections.abc import Collection, Sequence
from dataclasses import replace

from asyncpg import Connection

from tenax.errors import NotFound
from tenax.lifecycle.container import Ending
from tenax.master.store.logs import packing as log_packing
from tenax.master.store.logs import rows as logs
from tenax.master.telemetry.log_lines import NO_RANK, clean

#: Chunks of output that are read, from the end.
_CHUNKS = 8
_LONGEST = 300
#: How messages of `tenax.exec.trial` itself begin.
_FIRST_PROGRAM = "tenax: "
_BEGINNING = "Traceback (most recent call last):"
#: The line that names an exception: ``package.SomeError: text``.
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?:: .*)?$")
#: How PyTorch, and `_errors`, begin what one of several ranks says.
_RANK = re.compile(r"\[rank(\d+)\]: ?")
#: What a launcher raises about the ranks that it started.
_LAUNCHERS = re.compile(r"(?:torch\.\S+\.)?ChildFailedError\b")
_ROOT_CAUSE = "Root Cause (first observed failure):"
_FRAME = re.compile(r'\s*File "(.+)", line (\d+)')
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_FACT = re.compile(r"\s*(rank|exitcode)\s*: (-?\d+)\b")


def with_exit_reason(ending: Ending, lines: Sequence[str]) -> Ending:
    """The ending, with what the last lines of the script's error output say in its reason."""
    if not ending.failed or ending.signal is not None:
        return ending
    return replace(ending, reason=explained(ending.reason, lines))


def explained(reason: str, lines: Sequence[str]) -> str:
    """``reason`` with what these last lines add: why it was not started, what it raised, or just the last of them.

    A line of one of several ranks begins with ``[rankN]: ``.
    """
    last = _split(next((line for line in reversed(lines) if line.strip()), ""))[1]
    if last.startswith(_FIRST_PROGRAM):
        return f"{_cut(last[len(_FIRST_PROGRAM) :].rstrip(' .'))} ({reason})"
    raised = exception_line(lines)
    if raised is not None and _LAUNCHERS.match(raised):
        return f"{_first_failure(lines) or f'your code raised {raised}'} ({reason})"
    if raised is not None:
        return f"your code raised {raised} ({reason})"
    return f"{reason}; its last line of error output: {_cut(last.strip())}" if last else reason


def exception_line(lines: Sequence[str]) -> str | None:
    """The line that names the exception of the last traceback; None where there is none."""
    start = _last_traceback(lines)
    if start is None:
        return None
    rank, _ = _split(lines[start])
    for other, line in map(_split, lines[start + 1 :]):
        if other == rank and line and not line[0].isspace() and _EXCEPTION.match(line):
            return _cut(line)
    return None


def failure_place(lines: Sequence[str]) -> str | None:
    """Where the last traceback of the script itself ends: ``KeyError in code/train.py, line 12``; None: nowhere.

    The folders before the last one differ from run to run.
    """
    raised = exception_line(lines)
    if raised is not None and _LAUNCHERS.match(raised):
        lines = lines[: _last_traceback(lines)]
        raised = exception_line(lines)
    start = _last_traceback(lines)
    if raised is None or start is None:
        return None
    rank, _ = _split(lines[start])
    frames = []
    for other, line in map(_split, lines[start + 1 :]):
        if other == rank and line and not line[0].isspace():
            break
        match = _FRAME.match(line) if other == rank else None
        if match:
            frames.append(f"{'/'.join(match[1].split('/')[-2:])}, line {match[2]}")
    return f"{raised.partition(':')[0]} in {frames[-1]}" if frames else None


def _first_failure(lines: Sequence[str]) -> str:
    """Of ranks that were started together: which failed first, and how; empty where the launcher does not say."""
    root = next((at for at, line in enumerate(lines) if line.startswith(_ROOT_CAUSE)), len(lines))
    facts = (_FACT.match(line) for line in lines[root:])
    reported = {match[1]: match[2] for match in facts if match}
    if "rank" not in reported:
        return ""
    own = exception_line([line for line in lines if _split(line)[0] == reported["rank"]])
    if own is not None:
        return f"rank {reported['rank']} raised {own}"
    launchers = _last_traceback(lines)
    anyones = exception_line(lines[:launchers])
    if anyones is not None:
        return f"your code raised {anyones}"
    code = int(reported.get("exitcode", 1))
    return f"rank {reported['rank']} {f'was ended by {_signal(-code)}' if code < 0 else f'exited with code {code}'}"


def _last_traceback(lines: Sequence[str]) -> int | None:
    return next((at for at in range(len(lines) - 1, -1, -1) if _split(lines[at])[1].strip() == _BEGINNING), None)


def _split(line: str) -> tuple[str, str]:
    """The rank, empty for none, and the rest of a line."""
    line = _COLOURS.sub("", line)
    match = _RANK.match(line)
    return (match[1], line[match.end() :]) if match else ("", line)


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _cut(line: str) -> str:
    return line if len(line) <= _LONGEST else line[:_LONGEST] + "..."


async def last_errors(conn: Connection, task_id: str, container_ids: Collection[str]) -> list[str]:
    """The last lines of standard error of these containers, in order."""
    try:
        place = await logs.place_of(conn, task_id)
    except NotFound:
        return []
    lines: list[str] = []
    for span in reversed(await logs.spans(conn, place, descending=True, limit=_CHUNKS)):
        ours = {
            number
            for number, origin in enumerate(span.chunk.origins)
            if origin.container_id in container_ids and origin.stdtype == "stderr"
        }
        if ours:
            lines += [
                _of_rank(line.rank, clean(line.text)) for line in log_packing.unpack(span.chunk) if line.origin in ours
            ]
    return lines


def _of_rank(rank: int, text: str) -> str:
    return text if rank == NO_RANK or _RANK.match(text) else f"[rank{rank}]: {text}"
