"""The contract as OpenAPI, written from the declarations.

FastAPI's document, with what the wire says and Python does not: parameters under ``/api/v1`` in camel case, our error
body instead of FastAPI's 422, and who may call each route (``x-allow``).
"""

from __future__ import annotations

import hashlib
import re
from typing import cast

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic.alias_generators import to_camel

from tenax import __version__
from tenax.jsonvalue import JsonObject
from tenax.master.api.http.routing import allowed

_ERROR: JsonObject = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "reason", "error"],
            "properties": {
                "code": {"type": "integer"},
                "reason": {"type": "string"},
                "error": {"type": "string"},
                "message": {"type": "string"},
            },
        }
    },
}


def document(app: FastAPI) -> JsonObject:
    """The contract of ``app``; made once and kept on it."""
    if app.openapi_schema is None:
        app.openapi_schema = cast("dict[str, object]", _write(app))
    return cast(JsonObject, app.openapi_schema)


def encoded(app: FastAPI) -> bytes:
    """The contract as JSON, made once; that takes most of a second: call it in a thread."""
    made = getattr(app.state, "openapi_json", None)
    if made is None:
        made = app.state.openapi_json = msgspec.json.encode(document(app))
    return cast(bytes, made)


def digest(app: FastAPI) -> str:
    """Names the contract: another one has another digest. The first time in a thread, as `encoded`."""
    made = getattr(app.state, "openapi_digest", None)
    if made is None:
        made = app.state.openapi_digest = hashlib.sha256(encoded(app)).hexdigest()[:16]
    return cast(str, made)


def _write(app: FastAPI) -> JsonObject:
    made = cast(JsonObject, get_openapi(title="Tenax", version=__version__, routes=app.routes))
    policies = {
        (route.path_format, method): allowed(route.endpoint)
        for route in app.routes
        if isinstance(route, APIRoute)
        for method in route.methods or ()
    }
    paths = cast("dict[str, dict[str, JsonObject]]", made["paths"])
    spelled: JsonObject = {}
    for path, operations in paths.items():
        for method, operation in operations.items():
            allow = policies[path, method.upper()]
            operation["x-allow"] = allow.value if allow is not None else None
            _finish(operation, camel=path.startswith("/api/v1/"))
        spelled[_spelled(path)] = cast(JsonObject, operations)
    made["paths"] = spelled
    schemas = cast(JsonObject, cast(JsonObject, made.setdefault("components", {})).setdefault("schemas", {}))
    schemas["Error"] = _ERROR
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    return made


def _finish(operation: JsonObject, *, camel: bool) -> None:
    responses = cast(JsonObject, operation["responses"])
    responses.pop("422", None)
    responses["default"] = {
        "description": "An error, and what to do about it.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
    }
    if camel:
        for parameter in cast("list[JsonObject]", operation.get("parameters", [])):
            parameter["name"] = _camel(str(parameter["name"]))


def _spelled(path: str) -> str:
    if not path.startswith("/api/v1/"):
        return path
    return re.sub(r"\{(\w+)(:path)?\}", lambda match: "{" + to_camel(match[1]) + "}", path)


def _camel(name: str) -> str:
    return ".".join(to_camel(part) for part in name.split("."))
