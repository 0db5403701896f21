"""``json`` and ``jsonb`` on a connection: Python values on both sides. A number that JSON does not have is refused."""

from __future__ import annotations

import json

import msgspec
from asyncpg import Connection

from tenax.jsonvalue import Json, JsonObject, cut_deeper, is_deeper

#: Lists and objects in one another, of a document that is read: what writes JSON ends at 255 with those around it.
_MAX_SHOWN_DEPTH = 200


async def use(conn: Connection) -> None:
    """From now on on this connection."""
    for name, encoder, decoder in (("json", _encode, _decode), ("jsonb", _encode_b, _decode_b)):
        await conn.set_type_codec(name, schema="pg_catalog", format="binary", encoder=encoder, decoder=decoder)


def _encode(value: Json) -> bytes:
    return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()


def _encode_b(value: Json) -> bytes:
    # The first byte is the version of PostgreSQL's binary format of jsonb.
    return b"\x01" + _encode(value)


def _decode(data: bytes) -> Json:
    # What is nested too deeply was stored before that was refused: the rest of it is shown, so that no list fails.
    try:
        value: Json = msgspec.json.decode(data)
    except RecursionError:
        return {}
    if data.count(b"{") + data.count(b"[") > _MAX_SHOWN_DEPTH and is_deeper(value, _MAX_SHOWN_DEPTH):
        return cut_deeper(value, _MAX_SHOWN_DEPTH)
    return value


def decoded(text: str) -> JsonObject:
    """A document that was read as text."""
    value = _decode(text.encode())
    assert isinstance(value, dict)
    return value


def _decode_b(data: bytes) -> Json:
    return _decode(data[1:])
