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
from tenax.master.store.logs.rows import LogSpan
from tenax.master.telemetry.log_lines import LEVELS, NO_RANK, clean, is_gap
from tenax.wire.task_names import CANNOT_START
from tenax.wire.tracebacks import cut, exception_at, exception_line, last_frame, last_traceback, of_rank

#: Chunks of output that are read, from the end.
CHUNKS = 8
#: How messages of `tenax.exec.trial` itself begin.
_FIRST_PROGRAM = "tenax: "
#: What a launcher raises about the ranks that it started.
_LAUNCHERS = re.compile(r"(?:torch\.\S+\.)?ChildFailedError\b")
_ROOT_CAUSE = "Root Cause (first observed failure):"
#: What our own launcher says last (`tenax.launch.watch`).
_FIRST_FAILED = re.compile(r"tenax: rank \d+ failed first(?:: (?P<raised>[\w.]+)\b.* \(in (?P<place>.+, line \d+)\))?")
#: How scripts refuse their options: argparse, then click.
_USAGE, _REFUSAL = re.compile(r"[Uu]sage: "), re.compile(r"\S.*: error: |Error: ")
_ERROR = LEVELS.index("ERROR")
_FACT = re.compile(r"\s*(rank|exitcode)\s*: (-?\d+)\b")


def with_exit_reason(ending: Ending, lines: Sequence[str]) -> Ending:
    """The ending, with what the last lines of the script's error output say in its reason."""
    if not ending.failed or ending.signal is not None:
        return ending
    return replace(ending, reason=explained(ending.reason, lines_that_explain(ending, lines)))


def lines_that_explain(ending: Ending, lines: Sequence[str]) -> Sequence[str]:
    """Of these last lines those that can be why it ended so; none of a program that a signal ended.

    Python leaves with 1 where an exception ends it. Of another code one is the reason only where nothing is written
    after it: it may have been caught and logged.
    """
    if ending.signal is not None:
        return ()
    if ending.code in (None, 1):
        return lines
    at = exception_at(lines)
    rest = () if at is None else [line for line in lines[at + 1 :] if line.strip()]
    return lines_that_explain(ending, rest) if rest else lines


def explained(reason: str, lines: Sequence[str]) -> str:
    """``reason`` with what these last lines add: why it was not started, what it raised, or just the last of them.

    A line of one of several ranks begins with ``[rankN]: ``.
    """
    last = of_rank(next(filter(_FIRST_FAILED.match, lines), _last(lines)))[1]
    if last.startswith(_FIRST_PROGRAM):
        return f"{cut(last[len(_FIRST_PROGRAM) :].rstrip(' .'))} ({reason})"
    raised = exception_line(lines)
    if raised is not None and _LAUNCHERS.match(raised):
        return f"{_first_failure(lines) or f'your code raised {raised}'} ({reason})"
    if raised is not None:
        return f"your code raised {raised} ({reason})"
    return f"{reason}; its last line of error output: {cut(last.strip())}" if last else reason


def _last(lines: Sequence[str]) -> str:
    return next((line for line in reversed(lines) if line.strip()), "")


def failure_place(lines: Sequence[str]) -> str | None:
    """Where the last traceback of the script itself ends: ``KeyError in code/train.py, line 12``; None: nowhere.

    What its configuration keeps from starting fails before the script, and options that the script does not take fail
    at its command line.
    """
    if any(line.startswith(CANNOT_START) for line in lines):
        return "before the script, as it is configured"
    blamed = next((match for match in map(_FIRST_FAILED.match, reversed(lines)) if match), None)
    if blamed is not None:
        return f"{blamed['raised']} in {blamed['place']}" if blamed["place"] else _refused_options(lines)
    lines = _before_launchers(lines)
    raised, place = exception_line(lines), last_frame(lines)
    if raised is None:
        return _refused_options(lines)
    return f"{raised.partition(':')[0]} in {place}" if place else None


def _refused_options(lines: Sequence[str]) -> str | None:
    """What a script says that does not take the options it was started with."""
    texts = [of_rank(line)[1] for line in lines]
    refusal = next((at for at in range(len(texts) - 1, -1, -1) if _REFUSAL.match(texts[at])), 0)
    if any(map(_USAGE.match, texts[:refusal])):
        return f"its command line: {cut(texts[refusal].strip())}"
    return None


def _first_failure(lines: Sequence[str]) -> str:
    """Of ranks that were started together: which failed first, and how; empty where the launcher does not say."""
    root = next((at for at, line in enumerate(lines) if line.startswith(_ROOT_CAUSE)), len(lines))
    facts = (_FACT.match(line) for line in lines[root:])
    reported = {match[1]: match[2] for match in facts if match}
    if "rank" not in reported:
        return ""
    own = exception_line([line for line in lines if of_rank(line)[0] == reported["rank"]])
    if own is not None:
        return f"rank {reported['rank']} raised {own}"
    anyones = exception_line(_before_launchers(lines))
    if anyones is not None:
        return f"your code raised {anyones}"
    code = int(reported.get("exitcode", 1))
    return f"rank {reported['rank']} {f'was ended by {_signal(-code)}' if code < 0 else f'exited with code {code}'}"


def _before_launchers(lines: Sequence[str]) -> Sequence[str]:
    """Without what launchers say at the end: on several machines there may be several."""
    while (raised := exception_line(lines)) is not None and _LAUNCHERS.match(raised):
        lines = lines[: last_traceback(lines)]
    return lines


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


async def last_errors(conn: Connection, task_id: str, container_ids: Collection[str]) -> dict[str, list[str]]:
    """The last lines of standard error of each of these containers, of those that wrote any."""
    try:
        place = await logs.place_of(conn, task_id)
    except NotFound:
        return {}
    spans = list(reversed(await logs.last_spans_of(conn, place, container_ids, CHUNKS)))
    return {name: [text for _, text in lines] for name, lines in _errors_of_each(spans, container_ids).items()}


def errors_of(spans: Sequence[LogSpan], container_ids: Collection[str]) -> list[tuple[int, str]]:
    """Number and text of the lines of standard error of these containers.

    Of each in order, and one container after the other, since machines speak at the same time; who spoke last is last.
    """
    return [entry for written in _errors_of_each(spans, container_ids).values() for entry in written]


def _errors_of_each(spans: Sequence[LogSpan], container_ids: Collection[str]) -> dict[str, list[tuple[int, str]]]:
    lines: dict[str, list[tuple[int, str]]] = {}
    for span in spans:
        ours = {
            number: origin.container_id
            for number, origin in enumerate(span.chunk.origins)
            if origin.container_id in container_ids and origin.stdtype == "stderr"
        }
        for at, line in enumerate(log_packing.unpack(span.chunk)) if ours else ():
            container_id = ours.get(line.origin)
            if container_id is not None and not is_gap(line.text):
                written = lines.pop(container_id, [])
                written.append((span.first_line + at, _of_rank(line.rank, clean(line.text))))
                # Put in anew each time: whoever spoke last is last.
                lines[container_id] = written
    return lines


def evidence(spans: Sequence[LogSpan], container_ids: Collection[str]) -> int | None:
    """The number of the line that shows why these containers failed; None: none does.

    What their code raised, of several ranks that which failed first, else the last line of their error output; where
    they wrote none, what the platform says of their end. ``spans`` are the last ones of the task, in order.
    """
    errors = errors_of(spans, container_ids)
    at = _evidence_at([text for _, text in errors])
    return _last_of_platform(spans) if at is None else errors[at][0]


def _evidence_at(lines: Sequence[str]) -> int | None:
    last = next((at for at in range(len(lines) - 1, -1, -1) if lines[at].strip()), None)
    blamed = next((match for match in map(_FIRST_FAILED.match, reversed(lines)) if match), None)
    if blamed is not None and blamed["raised"]:
        raised = blamed["raised"]
        named = (at for at in range(len(lines) - 1, -1, -1) if of_rank(lines[at])[1].startswith(raised))
        return next(named, last)
    if last is not None and lines[last].startswith(_FIRST_PROGRAM):
        return last
    at = exception_at(_before_launchers(lines))
    return exception_at(lines) or last if at is None else at


def _last_of_platform(spans: Sequence[LogSpan]) -> int | None:
    for span in reversed(spans):
        for at, line in reversed(list(enumerate(log_packing.unpack(span.chunk)))):
            if line.level >= _ERROR and span.chunk.origins[line.origin].source != "task":
                return span.first_line + at
    return None


def _of_rank(rank: int, text: str) -> str:
    return text if rank == NO_RANK or of_rank(text)[0] else f"[rank{rank}]: {text}"
