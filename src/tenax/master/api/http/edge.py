"""The outermost layer of every request: names, sizes, counters, one line of log.

Pure ASGI, so that streams pass untouched. Rules it keeps:

- under ``/api/v1``, and on the routes of old scripts, query parameters are renamed to snake case and every body counts
  as JSON: clients send either spelling, and bodies without Content-Type or with a wrong one;
- a body over the limit is refused with 413 before it is held in memory; whoever has not said who they are may send
  `UNKNOWN_BODY_BYTES`; a large one that does not go to a file has a place before it is read (`held_bodies`);
- a body arrives within `BODY_S`, and at `BODY_BYTES_PER_S` after that, or it is refused with 408: only the time for
  which the master waits counts;
- cookies are taken out of the headers: the framework would parse all of them, for each request, in quadratic time;
- a query has at most `MAX_PARAMETERS`;
- a NUL in path or query is refused: it could not be stored;
- an error that nobody foresaw is logged once, here, and told to the caller as ours; one of the database, on a route of
  tasks or agents, as one to try again: they know no better, and what they have to say is not lost meanwhile;
- each has an id (`tenax.master.observability.log_context`);
- the log line names method, route, status and duration; never the query, a header or a body.
"""

from __future__ import annotations

import asyncio
import re
import time
from urllib.parse import parse_qsl, urlencode

import asyncpg
import structlog
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tenax.errors import InvalidInput, TenaxError, TooLarge, TryAgain
from tenax.master.access.authorization import CONTENT_TYPE, COOKIES, NOBODY, Allow, Caller
from tenax.master.api.http.errors import error_response
from tenax.master.api.http.held_bodies import FREE_BYTES, MAX_BODY_BYTES, HeldBodies, HeldBody
from tenax.master.api.http.routing import allowed
from tenax.master.observability import counters, log_context, tracing

log = structlog.get_logger("tenax.http")

#: Of what is counted whatever its method was.
_ANY = "ANY"
#: What the oldest scripts call, with bodies as they are sent to ``/api/v1``.
_LEGACY = ("/login", "/logout", "/users")
#: The largest body without a credential: to log in, to join.
UNKNOWN_BODY_BYTES = 64 * 1024
#: Set in the state of a request whose body goes to a file.
GOES_TO_FILE = "goes_to_file"
BODY_S = 30.0
BODY_BYTES_PER_S = 8 * 1024
MAX_PARAMETERS = 2000
#: Who sends again what was answered with 503, and gives up at 500.
_TASKS = (Allow.TASK, Allow.REPORTER, Allow.AGENT)
_HUMP = re.compile(r"(?<=[a-z0-9])([A-Z])")


def to_snake(name: str) -> str:
    """``experimentIdFilter.notIn`` as ``experiment_id_filter.not_in``."""
    return _HUMP.sub(lambda match: "_" + match[1].lower(), name)


class Edge:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp, *, body_limit: int) -> None:
        self.app = app
        self.body_limit = body_limit
        self.held = HeldBodies()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        with log_context.request(scope["headers"]) as request_id:
            await self._handle(scope, receive, send, request_id)

    async def _handle(self, scope: Scope, receive: Receive, send: Send, request_id: str) -> None:
        refusal = self._refusal(scope)
        if refusal is None:
            _rename(scope)
        _put_cookies_away(scope)
        if scope["type"] == "websocket":
            await self.app(scope, receive, send)
            return
        with tracing.request(scope["method"], scope["headers"]) as span:
            exchange = _Exchange(scope, receive, send, self.body_limit, self.held, request_id)
            try:
                await self._answer(scope, receive, exchange, refusal)
            finally:
                exchange.finish(span)

    async def _answer(self, scope: Scope, receive: Receive, exchange: _Exchange, refusal: TenaxError | None) -> None:
        counters.IN_PROGRESS.inc()
        try:
            if refusal is not None:
                await error_response(scope["path"], refusal)(scope, receive, exchange.send)
            else:
                await self.app(scope, exchange.receive, exchange.send)
        except ClientDisconnect:
            # A task that was killed while it spoke: there is nobody to answer, and nothing is wrong here.
            log.debug("client gone", method=scope["method"], path=scope["path"])
        except Exception as error:
            log.exception("request failed", method=scope["method"], path=scope["path"])
            if exchange.started:
                raise
            await error_response(scope["path"], _for_tasks(scope, error))(scope, receive, exchange.send)
        finally:
            counters.IN_PROGRESS.dec()

    def _refusal(self, scope: Scope) -> TenaxError | None:
        if b"%00" in scope["query_string"] or "\x00" in scope["path"]:
            return InvalidInput("the address holds a NUL character: remove it")
        if scope["query_string"].count(b"&") >= MAX_PARAMETERS:
            return InvalidInput(f"a query has at most {MAX_PARAMETERS} parameters: ask for less at once")
        return _too_large(self.body_limit) if _content_length(scope) > self.body_limit else None


class _Exchange:
    """One request and its answer, counted."""

    def __init__(
        self, scope: Scope, receive: Receive, send: Send, body_limit: int, held: HeldBodies, request_id: str
    ) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self._request_id = request_id.encode()
        self._limit = body_limit
        self._held = held
        self._place: HeldBody | None = None
        self._taken = 0
        self._waited_s = 0.0
        self._complete = False
        self._status = 0
        self._began = time.perf_counter()

    @property
    def started(self) -> bool:
        return self._status != 0

    async def receive(self) -> Message:
        if self._complete:
            return await self._receive()
        allowed_s = BODY_S + self._taken / BODY_BYTES_PER_S - self._waited_s
        began = time.monotonic()
        try:
            async with asyncio.timeout(max(0.0, allowed_s)):
                message = await self._receive()
        except TimeoutError:
            reason = (
                f"the body did not arrive: after {BODY_S:g} seconds at least {BODY_BYTES_PER_S} bytes a second must"
            )
            raise HTTPException(408, reason, {"Connection": "close"}) from None
        self._waited_s += time.monotonic() - began
        if message["type"] == "http.request":
            self._taken += len(message.get("body", b""))
            self._complete = not message.get("more_body", False)
            await self._make_room()
        return message

    async def _make_room(self) -> None:
        """Raises HTTPException: the framework turns any other into a 400 while it reads a body."""
        state = self._scope.get("state", {})
        caller: Caller = state.get("caller", NOBODY)
        to_file = state.get(GOES_TO_FILE, False)
        limit = self._limit if to_file else min(self._limit, MAX_BODY_BYTES)
        if caller is NOBODY:
            limit = min(limit, UNKNOWN_BODY_BYTES)
        expected = self._taken
        if not to_file and self._place is None and self._taken > FREE_BYTES:
            expected = _content_length(self._scope) or limit
        if expected > limit:
            raise HTTPException(413, _too_large(limit).message)
        if expected > FREE_BYTES and not to_file and self._place is None:
            self._place = await self._held.take(caller, expected)

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            message["headers"] = [*message.get("headers", ()), (log_context.HEADER, self._request_id)]
        await self._send(message)

    def _counted_as(self) -> tuple[str, str]:
        """Method and route. What a caller without a login was refused is one: nobody else makes series, which stay."""
        route = self._scope.get("route")
        if route is None:
            return _ANY, "unmatched"
        refused = 400 <= self._status < 500 and self._scope.get("state", {}).get("caller", NOBODY) is NOBODY
        if (refused and allowed(route.endpoint) is not Allow.PUBLIC) or self._status == 405:
            return _ANY, "refused"
        return self._scope["method"], route.path

    def finish(self, span: tracing.Span) -> None:
        if self._place is not None:
            self._place.leave()
        seconds = time.perf_counter() - self._began
        method, route = self._counted_as()
        counters.REQUESTS.labels(method, route, str(self._status)).inc()
        counters.REQUEST_SECONDS.labels(method, route).observe(seconds)
        self._describe(span)
        log.debug("request", method=method, route=route, status=self._status, ms=round(seconds * 1000, 1))

    def _describe(self, span: tracing.Span) -> None:
        if not tracing.is_on():
            return
        matched = self._scope.get("route")
        if matched is not None:
            span.update_name(f"{self._scope['method']} {matched.path}")
            span.set_attribute("http.route", matched.path)
        span.set_attribute("http.response.status_code", self._status)
        for name, value in log_context.known().items():
            span.set_attribute(f"tenax.{name}", value)
        if self._status >= 500:
            tracing.failed(span, str(self._status))


def _for_tasks(scope: Scope, error: Exception) -> Exception:
    """An error of the database that nobody listed, as tasks and agents are told of it."""
    if isinstance(error, asyncpg.PostgresError | asyncpg.InterfaceError) and allowed(scope.get("endpoint")) in _TASKS:
        return TryAgain("the master met an error of its database: try again in a moment; its log has the details")
    return error


def _rename(scope: Scope) -> None:
    if not scope["path"].startswith(("/api/v1/", *_LEGACY)):
        return
    query = scope["query_string"]
    if query:
        pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
        scope["query_string"] = urlencode([(to_snake(name), value) for name, value in pairs]).encode("latin-1")
    sent = [value for name, value in scope["headers"] if name == b"content-type"]
    scope[CONTENT_TYPE] = b",".join(sent).decode("latin-1")
    headers = [pair for pair in scope["headers"] if pair[0] != b"content-type"]
    scope["headers"] = [*headers, (b"content-type", b"application/json")]


def _put_cookies_away(scope: Scope) -> None:
    cookies = [value for name, value in scope["headers"] if name == b"cookie"]
    if cookies:
        scope["headers"] = [pair for pair in scope["headers"] if pair[0] != b"cookie"]
        scope[COOKIES] = b"; ".join(cookies).decode("latin-1")


def _content_length(scope: Scope) -> int:
    """0 where it is not given."""
    return next((int(value) for name, value in scope["headers"] if name == b"content-length" and value.isdigit()), 0)


def _too_large(limit: int) -> TooLarge:
    size = f"{limit / 2**20:g} MiB" if limit >= 2**20 else f"{limit / 2**10:.3g} KiB"
    return TooLarge(f"the request is larger than {size}, which is the most that this master takes here")
