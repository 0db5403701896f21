"""Refusals of the API: what they say, and whether they say it as clients read it."""

from __future__ import annotations

import json

#: What a request may be answered with, however odd it is, but for what leads to the web page.
STATUSES = {200, 400, 401, 403, 404, 405, 409, 413, 415, 416, 422, 429, 501}


def refusal(reply: object) -> str:
    """What a refusal says."""
    return reply.json()["error"]["error"]  # type: ignore[attr-defined, no-any-return]


def says_why(path: str, text: str) -> bool:
    """Whether it is an error as the client reads it."""
    told = json.loads(text)
    if not path.startswith("/api/v1"):
        return bool(told.get("message"))
    error = told.get("error")
    return isinstance(error, dict) and {"code", "reason", "error"} <= set(error) and bool(error["error"])
