"""SQL is text, one file per noun: blocks that begin with ``-- name: some_name``, loaded once per process.

The statements of ``store/experiments/*.py`` are in ``store/experiments/queries.sql``::

    Q = load("experiments")
    await conn.fetchrow(Q.get, experiment_id)
    await existing(conn, f"experiment {experiment_id}", Q.get, experiment_id)  # or NotFound

What several statements share is a block of its own: ``{{name}}`` (of the same file) or ``{{noun.name}}`` stands for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from importlib import resources
from typing import TypeVar

from asyncpg import Connection, Record

from tenax.errors import Impossible, NotFound

Row = TypeVar("Row")

_FRAGMENT = re.compile(r"\{\{(?:([a-z]+)\.)?([a-z][a-z0-9_]*)\}\}")
_HEADER = re.compile(r"^-- name: ([a-z][a-z0-9_]*)[ \t]*$", re.MULTILINE)


class Queries:
    """The statements of one noun; an attribute is the text of the statement of that name."""

    def __init__(self, noun: str, statements: dict[str, str]) -> None:
        self._noun = noun
        self._statements = statements

    def __getattr__(self, name: str) -> str:
        try:
            text = self._statements[name]
        except KeyError:
            raise AttributeError(f"{self._noun}/queries.sql has no statement {name!r}") from None
        return _FRAGMENT.sub(self._fragment, text)

    def __dir__(self) -> list[str]:
        return list(self._statements)

    def _fragment(self, reference: re.Match[str]) -> str:
        noun, name = reference.groups()
        text: str = getattr(self if noun is None else load(noun), name)
        return text


@cache
def load(noun: str) -> Queries:
    """The statements of ``store/<noun>/queries.sql``. Raises Impossible for a name given twice, or a nameless one."""
    text = resources.files("tenax.master.store").joinpath(noun, "queries.sql").read_text(encoding="utf-8")
    head, *parts = _HEADER.split(text)
    if any(line.strip() and not line.startswith("--") for line in head.splitlines()):
        raise Impossible(f"{noun}/queries.sql begins with a statement that has no name")
    statements: dict[str, str] = {}
    for name, body in zip(parts[::2], parts[1::2]):
        if name in statements:
            raise Impossible(f"{noun}/queries.sql has two statements {name!r}")
        statements[name] = body.strip().removesuffix(";")
    return Queries(noun, statements)


async def existing(conn: Connection, what: str, query: str, *parameters: object) -> Record:
    """The row of what a caller names. Raises NotFound: there is no ``what``."""
    row = await conn.fetchrow(query, *parameters)
    if row is None:
        raise NotFound(f"{what} not found")
    return row


def row_as(kind: type[Row], row: Mapping[str, object], /, **types: Callable[..., object]) -> Row:
    """A dataclass made of the columns that its fields name; ``types``: of those that are more than the driver gives."""
    values = {field.name: row[field.name] for field in fields(kind)}  # type: ignore[arg-type]  # a dataclass
    return kind(**values | {name: make(values[name]) for name, make in types.items()})
