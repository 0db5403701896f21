"""Metadata of a run on the command line: leaves by their paths, and a document with some of them changed."""

from __future__ import annotations

import json
from typing import List, Sequence, Tuple

from tenax.errors import InvalidInput
from tenax.jsonvalue import Json, JsonObject


def leaves(document: JsonObject, prefix: str = "") -> List[Tuple[str, str]]:
    """(path with dots, value) of each leaf."""
    found: List[Tuple[str, str]] = []
    for key, value in document.items():
        if isinstance(value, dict) and value:
            found += leaves(value, f"{prefix}{key}.")
        else:
            found.append((prefix + key, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)))
    return found


def changed(document: JsonObject, settings: Sequence[str], unwanted: Sequence[str]) -> JsonObject:
    """A copy with ``KEY=VALUE`` set and keys removed; a key is a path with dots. Raises InvalidInput."""
    made: JsonObject = json.loads(json.dumps(document))
    for setting in settings:
        path, equals, text = setting.partition("=")
        if not equals or not path:
            raise InvalidInput(f"{setting!r} sets nothing: write KEY=VALUE")
        *parents, name = path.split(".")
        _inside(made, parents, path)[name] = _value(text)
    for path in unwanted:
        *parents, name = path.split(".")
        if _inside(made, parents, path).pop(name, _ABSENT) is _ABSENT:
            raise InvalidInput(f"there is no {path} to remove")
    return made


_ABSENT: JsonObject = {}


def _inside(document: JsonObject, parents: Sequence[str], path: str) -> JsonObject:
    for parent in parents:
        inner = document.setdefault(parent, {})
        if not isinstance(inner, dict):
            raise InvalidInput(f"{path}: {parent} is a value, and holds no keys")
        document = inner
    return document


def _value(text: str) -> Json:
    try:
        value: Json = json.loads(text)
    except ValueError:
        return text
    return value
