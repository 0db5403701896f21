"""The format of output: tables and JSON on stdout, messages on stderr, colour only where a terminal shows it."""

from __future__ import annotations

import contextlib
import datetime
import json
import math
import shutil
import sys
from typing import Callable, Iterable, List, Mapping, Optional, Protocol, Sequence, Tuple, TypeVar

import click

from tenax.cli.console import exits, layout
from tenax.cli.console.layout import TableColumn as TableColumn
from tenax.client.connection import reading
from tenax.display.terminal import visible_line
from tenax.jsonvalue import Json, JsonObject

Element = TypeVar("Element")
#: The columns of a list, each with what stands there for an element of the list.
Columns = Sequence[Tuple[TableColumn, Callable[[Element], str]]]


class Ran(Protocol):
    """Something that runs, and waits before and between."""

    @property
    def started(self) -> Optional[datetime.datetime]: ...
    @property
    def ended(self) -> Optional[datetime.datetime]: ...
    @property
    def ran_s(self) -> Optional[float]: ...


class Answered(Protocol):
    """A value of the client's, with the answer that it was read from."""

    @property
    def raw(self) -> JsonObject: ...


AnyAnswered = TypeVar("AnyAnswered", bound=Answered)
#: By the last part of a state.
_COLORS = {
    "COMPLETED": "green",
    "ERROR": "red",
    "FAILED": "red",
    "RUNNING": "cyan",
    "ACTIVE": "cyan",
    "STARTING": "cyan",
    "PULLING": "cyan",
    "QUEUED": "yellow",
    "PAUSED": "yellow",
    "CANCELED": "bright_black",
    "DELETED": "bright_black",
    "KILLED": "bright_black",
    "up": "green",
    "down": "red",
    "away": "red",
    "STOPPING": "yellow",
    "PAUSING": "yellow",
    "CANCELING": "yellow",
    "ENDING": "yellow",
    "FAILING": "red",
    "draining": "yellow",
    "disabled": "yellow",
    "failed": "red",
}


#: What people say for states that are named for what comes after them.
_WORDED = {
    "STOPPING_COMPLETED": "STOPPING",
    "STOPPING_PAUSED": "PAUSING",
    "STOPPING_CANCELED": "CANCELING",
    "STOPPING_KILLED": "ENDING",
    "STOPPING_ERROR": "FAILING",
}


def worded(name: str) -> str:
    """A state as people say it; programs get it as it is."""
    return _WORDED.get(name, name)


def table(columns: Sequence[TableColumn], rows: Iterable[Sequence[str]]) -> None:
    """Print a table: with colour and fitted to its width on a terminal, as plain aligned text elsewhere."""
    listed = [[visible_line(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        for line in plain(columns, listed):
            print(line)
        return
    lines, left_out = fitted_lines(columns, listed, shutil.get_terminal_size().columns)
    for line in lines:
        click.echo(line)
    if left_out:
        say(f"This terminal is too narrow for {', '.join(left_out)}: --csv and --json have everything.")


def fitted_lines(
    columns: Sequence[TableColumn], rows: Sequence[Sequence[str]], room: int
) -> Tuple[List[str], Sequence[str]]:
    """The lines of a table for a terminal so many characters wide, and the columns that it is too narrow for."""
    rows = [[worded(cell) if column.state else cell for column, cell in zip(columns, row)] for row in rows]
    fitted = layout.fit(columns, rows, room)
    head = [columns[index].title for index in fitted.shown]
    lines = [click.style(line, bold=True) for line in _side_by_side(columns, fitted, head)]
    for row in rows:
        lines += _side_by_side(columns, fitted, [row[index] for index in fitted.shown])
        lines += [click.style(line, dim=True) for line in layout.below(row, fitted, room)]
    return lines, fitted.left_out


def _side_by_side(columns: Sequence[TableColumn], fitted: layout.FittedTable, cells: Sequence[str]) -> List[str]:
    """The lines of one row, without what goes below it; states are coloured."""
    shown = [columns[index] for index in fitted.shown]
    blocks = [
        layout.broken(cell, room) if column.wraps else [layout.cut(cell, room)]
        for column, cell, room in zip(shown, cells, fitted.widths)
    ]
    lines = []
    for number in range(max((len(block) for block in blocks), default=0)):
        parts = []
        for column, block, room in zip(shown, blocks, fitted.widths):
            text = block[number] if number < len(block) else ""
            color = _style(text) if column.state else ""
            laid = layout.padded(text, room, column.right)
            parts.append(click.style(laid, fg=color) if color else laid)
        lines.append("  ".join(parts).rstrip())
    return lines


def plain(columns: Sequence[TableColumn], rows: Sequence[Sequence[str]]) -> List[str]:
    """The lines of a table without colour, as wide as they need to be."""
    lines = [[column.title for column in columns], *rows]
    widths = [max(layout.width(line[index]) for line in lines) for index in range(len(columns))]
    return [
        "  ".join(
            layout.padded(cell, width, column.right) for cell, width, column in zip(line, widths, columns)
        ).rstrip()
        for line in lines
    ]


def csv(columns: Sequence[TableColumn], rows: Iterable[Sequence[str]]) -> None:
    """Print a table as comma-separated values, the titles in small letters first."""
    import csv as writing

    writer = writing.writer(sys.stdout, lineterminator="\n")
    writer.writerow([column.title.lower() for column in columns])
    writer.writerows(rows)


def listing(
    columns: Sequence[TableColumn],
    rows: Sequence[Sequence[str]],
    raw: Sequence[JsonObject],
    as_json: bool,
    as_csv: bool,
) -> None:
    """Print a list as a table, as JSON of ``raw``, or as CSV (see `tenax.cli.console.options.list_options`)."""
    if as_json:
        document(list(raw))
    elif as_csv:
        csv(columns, rows)
    else:
        table(columns, rows)


def cells(columns: Columns[Element], elements: Sequence[Element]) -> Tuple[List[TableColumn], List[List[str]]]:
    """Columns and rows of a table with a row for each element."""
    return [column for column, _ in columns], [[cell(element) for _, cell in columns] for element in elements]


def records(columns: Columns[AnyAnswered], elements: Sequence[AnyAnswered], as_json: bool, as_csv: bool) -> None:
    """Print a list of what the master answered as a table, as JSON, or as CSV."""
    listing(*cells(columns, elements), [element.raw for element in elements], as_json, as_csv)


def details(rows: Sequence[Tuple[str, str]], raw: JsonObject, as_json: bool) -> None:
    """Print what is known of something, names and values without the empty ones, or as JSON ``raw``."""
    if as_json:
        document(raw)
    else:
        pairs([row for row in rows if row[1]])


def pairs(rows: Sequence[Sequence[str]]) -> None:
    """Print names and values, one pair a line; a terminal gets what is longer broken between words."""
    width = max((layout.width(name) for name, _ in rows), default=0)
    room = shutil.get_terminal_size().columns - width - 2 if sys.stdout.isatty() else None
    for name, value in rows:
        lines = value.splitlines() or [""]
        first, *rest = lines if room is None else [row for line in lines for row in layout.between_words(line, room)]
        click.echo(click.style(layout.padded(name, width, False), bold=True) + "  " + first)
        for line in rest:
            click.echo(" " * (width + 2) + line)


def document(value: Json) -> None:
    """Print JSON."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


def say(message: str) -> None:
    """A message to the user, after what was printed before it where both go into one file."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    click.echo(message, err=True)


def warn(message: str) -> None:
    """A message that should not be overlooked."""
    say(click.style("warning: ", fg="yellow") + message)


def fail(message: str) -> None:
    """The error that ends a command."""
    say(click.style("error: ", fg="red", bold=True) + message)


def state(name: str) -> str:
    """A state in its colour; click takes the colour out again where it cannot be shown."""
    color = _style(name)
    return click.style(worded(name), fg=color) if color else worded(name)


def confirm(question: str) -> None:
    """Ask, and end the command unless the answer is yes; where nobody answers it says how to do without."""
    try:
        agreed = click.confirm(question, err=True)
    except click.Abort:
        if sys.stdin is not None and sys.stdin.isatty():
            raise
        say("")
        raise click.UsageError(
            "nobody is here to answer, without a terminal: nothing was done. To do it without being asked, add --yes."
        ) from None
    if not agreed:
        say("Nothing was done.")
        raise click.exceptions.Exit(exits.FAILED)


def cautioned(text: str) -> str:
    """Text that should not be overlooked."""
    return click.style(text, fg="yellow")


def number(value: Optional[float]) -> str:
    """A metric: six significant digits; empty for none."""
    if value is None:
        return ""
    if math.isfinite(value) and value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.6g}"


def percent(value: Optional[float]) -> str:
    """0.345 as ``34 %``."""
    return "" if value is None else f"{math.floor(value * 100)} %"


def moment(value: Optional[datetime.datetime]) -> str:
    """A time in the zone of this machine."""
    return "" if value is None else value.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def duration(seconds: Optional[float]) -> str:
    """``8s``, ``3m20s``, ``5h02m``, ``3d04h``."""
    if seconds is None:
        return ""
    whole = int(max(0.0, seconds))
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if minutes == 0:
        return f"{whole}s"
    if hours == 0:
        return f"{minutes}m{whole % 60:02d}s"
    if days == 0:
        return f"{hours}h{minutes % 60:02d}m"
    return f"{days}d{hours % 24:02d}h"


def ran(subject: Ran) -> str:
    """How long something ran; of masters that do not say it, how long it took with all waiting."""
    return duration(subject.ran_s) if subject.ran_s is not None else between(subject.started, subject.ended)


def waited(subject: Ran) -> str:
    """How long it did not run since it was made; empty where that is not known, or next to nothing."""
    whole = reading.span_s(subject.started, subject.ended)
    if whole is None or subject.ran_s is None or whole - subject.ran_s < 1:
        return ""
    return duration(whole - subject.ran_s)


def between(start: Optional[datetime.datetime], end: Optional[datetime.datetime]) -> str:
    """How long something took, or has taken until now."""
    return duration(reading.span_s(start, end))


def size(count: int) -> str:
    """Bytes: ``512 B``, ``3.4 MiB``."""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def short(value: Json) -> str:
    """A value of a hyperparameter or metric in a line."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def assignments(values: Mapping[str, Json]) -> str:
    """``lr=0.01 width=64``."""
    return " ".join(f"{name}={short(value)}" for name, value in values.items())


def _style(name: str) -> str:
    return _COLORS.get(name.rpartition("_")[2], "")
