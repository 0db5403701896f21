"""How errors look on the wire, once for all routes.

``/api/v1``: ``{"error": {"code", "reason", "error", "message"}}`` with gRPC's number and name, as Determined's clients
read it (``message`` is what its stream parser looks at). Other routes: ``{"message"}``.
What is ours and passing is 503 with ``Retry-After``: the only answer that an unmodified client tries again. Where
something may have been created that would be created twice, it is 500 and says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import asyncpg
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection

from tenax.errors import (
    AlreadyExists,
    Forbidden,
    InvalidInput,
    NotAuthenticated,
    NotFound,
    NotNow,
    Overtaken,
    Stale,
    TooLarge,
    TooOften,
    TryAgain,
    Unsupported,
    UserError,
)
from tenax.jsonvalue import JsonObject
from tenax.master.api.http.creations import AnswerLost
from tenax.master.observability import log_context


@dataclass(frozen=True, slots=True)
class ErrorKind:
    """How one kind of error travels."""

    status: int
    code: int
    reason: str


INVALID = ErrorKind(400, 3, "InvalidArgument")
NOT_FOUND = ErrorKind(404, 5, "NotFound")
TOO_LARGE = ErrorKind(413, 8, "ResourceExhausted")
TOO_OFTEN = ErrorKind(429, 8, "ResourceExhausted")
INTERNAL = ErrorKind(500, 13, "Internal")
UNAVAILABLE = ErrorKind(503, 14, "Unavailable")
UNAUTHENTICATED = ErrorKind(401, 16, "Unauthenticated")
FORBIDDEN = ErrorKind(403, 7, "PermissionDenied")
UNIMPLEMENTED = ErrorKind(501, 12, "Unimplemented")

#: Problems of one request that are listed; more are only counted.
_MAX_PROBLEMS = 20

#: First match wins.
KINDS: tuple[tuple[type[BaseException], ErrorKind], ...] = (
    (InvalidInput, INVALID),
    (NotFound, NOT_FOUND),
    (AlreadyExists, ErrorKind(409, 6, "AlreadyExists")),
    (NotAuthenticated, UNAUTHENTICATED),
    (Forbidden, FORBIDDEN),
    (NotNow, ErrorKind(400, 9, "FailedPrecondition")),
    (Overtaken, ErrorKind(412, 10, "Aborted")),
    (TooLarge, TOO_LARGE),
    (TooOften, TOO_OFTEN),
    (Unsupported, UNIMPLEMENTED),
    (UserError, INVALID),
    (AnswerLost, ErrorKind(500, 2, "Unknown")),
    (TryAgain, UNAVAILABLE),
    # Someone else changed the row first: the same request again may well succeed.
    (Stale, UNAVAILABLE),
    # A value that fits the message but not the column, for example an id beyond 64 bits.
    (asyncpg.DataError, INVALID),
    (asyncpg.ProgramLimitExceededError, INVALID),
    # A reference to what is not there, or a value that a constraint forbids, which no check caught before.
    (asyncpg.IntegrityConstraintViolationError, INVALID),
)

#: What the framework itself refuses, by status.
BY_STATUS: dict[int, ErrorKind] = {
    400: INVALID,
    401: UNAUTHENTICATED,
    403: FORBIDDEN,
    404: NOT_FOUND,
    405: ErrorKind(405, 12, "Unimplemented"),
    413: TOO_LARGE,
}


def kind_of(error: BaseException) -> ErrorKind:
    """How ``error`` travels; `INTERNAL` for what nobody raised on purpose."""
    if isinstance(error, HTTPException):
        return BY_STATUS.get(error.status_code, ErrorKind(error.status_code, 2, "Unknown"))
    return next((kind for known, kind in KINDS if isinstance(error, known)), INTERNAL)


def message_of(error: BaseException) -> str:
    """What the caller reads; nothing of ours that they could not act upon."""
    if isinstance(error, HTTPException):
        return str(error.detail)
    kind = kind_of(error)
    if kind is INTERNAL:
        return f"the master met an error of its own; its log has the details{_of_request()}"
    if isinstance(error, asyncpg.PostgresError | asyncpg.DataError):
        if "value out of int" in str(error):
            return "a number is larger than any number or count here can be"
        return f"a value cannot be stored: {error}"
    return str(error)


def _of_request() -> str:
    request_id = log_context.request_id()
    return f" (request {request_id})" if request_id else ""


def error_body(path: str, kind: ErrorKind, message: str) -> JsonObject:
    """The body for a route at ``path``."""
    if path.startswith("/api/v1"):
        return {"error": {"code": kind.code, "reason": kind.reason, "error": message, "message": message}}
    return {"message": message}


def error_response(path: str, error: BaseException) -> JSONResponse:
    """The answer of a route at ``path`` that ended in ``error``."""
    kind = kind_of(error)
    headers: dict[str, str] = {}
    if kind in (UNAVAILABLE, TOO_OFTEN):
        headers["Retry-After"] = str(max(1, math.ceil(getattr(error, "retry_after", 1.0))))
    if kind is UNAUTHENTICATED:
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, HTTPException) and error.headers:
        headers.update(error.headers)
    return JSONResponse(error_body(path, kind, message_of(error)), status_code=kind.status, headers=headers)


def stream_error(error: BaseException) -> JsonObject:
    """The last line of a stream that broke off: an object for one line of NDJSON."""
    kind = kind_of(error)
    return {
        "error": {
            "grpcCode": kind.code,
            "httpCode": kind.status,
            "message": message_of(error),
            "httpStatus": kind.reason,
            "details": [],
        }
    }


def install(app: FastAPI) -> None:
    """Answer in this form whatever a handler raises."""

    async def answer(connection: HTTPConnection, error: Exception) -> Response:
        # Sent by the framework, also where a websocket is refused: sent here, too, it would be an error.
        return error_response(connection.url.path, error)

    async def answer_invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return error_response(request.url.path, InvalidInput(_problems(error.errors())))

    app.add_exception_handler(RequestValidationError, answer_invalid)
    app.add_exception_handler(HTTPException, answer)
    for known, _ in KINDS:
        assert issubclass(known, Exception)
        app.add_exception_handler(known, answer)


def _problems(errors: Iterable[object]) -> str:
    problems = []
    for item in errors:
        assert isinstance(item, dict)
        place = ".".join(str(step) for step in item["loc"] if step not in ("body", "query", "path"))
        text = str(item["msg"]).removeprefix("Value error, ")
        problems.append(f"{place}: {text}" if place else text)
    more = len(problems) - _MAX_PROBLEMS
    return "; ".join(problems[:_MAX_PROBLEMS]) + (f"; and {more} more" if more > 0 else "")
