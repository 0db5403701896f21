"""What nobody should send, sent to every operation by somebody who may call it: a refusal in words, never our error.

The table of values is small and the same for every field, so that an operation that is new is tried without a word
here; `test_fuzz` does the same with a hundred examples an operation. Each operation gets a few of the values in an
ordinary run, the next one the next few, and all of them in a long one.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from itertools import cycle, islice
from typing import cast
from urllib.parse import quote

import pytest

from tenax.jsonvalue import JsonObject
from tenax.master.api.http.openapi import document
from tenax.master.api.http.routing import Declared
from tests.kits.api import Client
from tests.kits.master.refusals import STATUSES, says_why
from tests.kits.sandbox import undone
from tests.kits.world import World
from tests.master.api.matrix import ROWS, Row, Who
from tests.master.api.requests import DECLARED, SKIPPED, filled, master_settings, path_of, world

__all__ = ["master_settings", "world"]

#: In the place of any field.
VALUES: tuple[object, ...] = (
    None,
    True,
    -1,
    2**31,
    2**63,
    10**30,
    1.5,
    "",
    "x",
    "-9",
    "\ud800",
    "a\u0000b",
    "x" * 10_000,
    [],
    [None],
    [[]],
    {},
    {"a": None},
    {"": {"": [{}]}},
)
#: In the place of any parameter of a query.
TEXTS = ("", "x", "-1", "9" * 30, "1e9", "%FF%FE", "[]", "😀")
#: In the place of what a path names.
NAMES = ("-1", "9" * 30, "%F0%9F%98%80", "a%2Fb", "x" * 500)
TIMEOUT_S = 60.0
#: How many values an operation gets in the place of all its fields, of a query's parameters, or of a path's names. Each
#: field alone gets one, or all.
SOME = pytest.mark.parametrize("count", [3, pytest.param(len(VALUES), marks=pytest.mark.long, id="all")])


@SOME
async def test_bodies(world: World, count: int) -> None:
    """All fields at once, and one after another in a body that is right otherwise."""
    schemas = cast(JsonObject, document(world.api.app))
    wrong, turns = [], cycle(VALUES)
    for route, client in callable_routes(world):
        row = ROWS[route.operation]
        for body in bodies(schemas, route, filled(row.body, world), turns, count):
            problem = await tried(world, client, route, row, "", json.dumps(body).encode())
            wrong += [problem] if problem else []
    assert not wrong, "\n".join(wrong)


@SOME
async def test_queries_and_paths(world: World, count: int) -> None:
    """Parameters that are no values, and names of nothing."""
    schemas = cast(JsonObject, document(world.api.app))
    wrong, texts, strange = [], cycle(TEXTS), cycle(NAMES)
    for route, client in callable_routes(world):
        row = ROWS[route.operation]
        body = b"" if row.body is None else json.dumps(filled(row.body, world)).encode()
        names = parameters(schemas, route)
        for word in islice(texts, min(count, len(TEXTS))) if names else ():
            query = "&".join(f"{name}={word if word.startswith('%') else quote(word)}" for name in names)
            problem = await tried(world, client, route, row, query, body)
            wrong += [problem] if problem else []
        for name in islice(strange, min(count, len(NAMES))) if "{" in route.path else ():
            problem = await tried(world, client, route, row, row.query, body, name)
            wrong += [problem] if problem else []
    assert not wrong, "\n".join(wrong)


def callable_routes(world: World) -> Iterator[tuple[Declared, Client]]:
    """Operations, each with somebody who may call it."""
    for operation, row in ROWS.items():
        route = DECLARED[operation]
        if route.method == "WEBSOCKET" or operation in SKIPPED:
            continue
        client = {Who.TASK: world.own_task, Who.AGENT: world.agent}.get(row.who, world.admin)
        yield route, client


def bodies(
    schemas: JsonObject, route: Declared, right: object, turns: Iterator[object], count: int
) -> Iterator[object]:
    """Bodies for an operation that takes one: so many of one value each; then each field has the next one, alone, or
    each of them where all are asked for."""
    fields = properties(schemas, route)
    if fields is None:
        return
    yield from (dict.fromkeys(fields, value) for value in islice(turns, count))
    known = right if isinstance(right, dict) else {}
    alone = count if count >= len(VALUES) else 1
    yield from ({**known, name: value} for name in fields for value in islice(turns, alone))


def properties(schemas: JsonObject, route: Declared) -> list[str] | None:
    """The fields of its body at the first level; None for an operation without one."""
    body = operation_of(schemas, route).get("requestBody")
    if not isinstance(body, dict):
        return None
    schema = body["content"]["application/json"]["schema"]
    reference = schema.get("$ref") or next(
        (option["$ref"] for option in schema.get("anyOf", []) if "$ref" in option), ""
    )
    named = schemas["components"]["schemas"].get(reference.rpartition("/")[2], {})
    return list(named.get("properties", {})) or ["a"]


def parameters(schemas: JsonObject, route: Declared) -> list[str]:
    listed = operation_of(schemas, route).get("parameters", [])
    # One that keeps an answer open is not what is tried here.
    return [
        parameter["name"]
        for parameter in listed
        if parameter["in"] == "query" and parameter["name"] not in ("follow", "timeoutSeconds")
    ]


def operation_of(schemas: JsonObject, route: Declared) -> dict[str, object]:
    for path in schemas["paths"].values():
        for operation in path.values():
            if operation["operationId"] == route.operation:
                return operation
    raise AssertionError(f"{route.operation} is not in the contract")


async def tried(
    world: World, client: Client, route: Declared, row: Row, query: str, body: bytes, name: str | None = None
) -> str | None:
    """Ask; what is wrong with the answer, in a line."""
    path = path_of(world, route, row) if name is None else re.sub(r"\{[^}]*\}", name, route.path)
    about = f"{route.operation} {path[:80]}?{query[:80]} {body[:120]!r}"
    async with undone(world.api.master):
        try:
            async with asyncio.timeout(TIMEOUT_S):
                reply = await client.ask(route.method, f"{path}?{query}" if query else path, body)
        except TimeoutError:
            return f"{about}: no answer"
    if reply.status_code == row.status == 302:
        return None
    if reply.status_code not in STATUSES:
        return f"{about}: {reply.status_code} {reply.text[:200]}"
    if reply.status_code != 200 and not says_why(path, reply.text):
        return f"{about}: {reply.status_code} without a reason: {reply.text[:200]}"
    return None
