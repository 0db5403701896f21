"""The agent's HTTP to the master: one pool of connections, one way to say what went wrong.

Two kinds of failure, which callers treat differently: `MasterUnreachable` (no connection, or 502, 503, 504: try again
for as long as it takes) and `MasterRefused` (it answered, and the answer is no).
"""

from __future__ import annotations

import asyncio
import random
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar
from zlib import crc32

import aiohttp
import msgspec
import structlog

from tenax.backoff import Backoff, Retry
from tenax.client.connection import other_scheme
from tenax.client.connection.http1 import ALIVE, ALIVE_S
from tenax.config.agent import AgentSettings, is_loopback
from tenax.errors import TenaxError, UserError

log = structlog.get_logger("tenax.agent")

Answer = TypeVar("Answer")
_AWAY = frozenset({502, 503, 504})
_CONNECT_S = 10.0
_ANSWER_S = 60.0
#: Of what was asked of a master that is not asked any more.
_LEFT_S = 3.0
_TELL_EVERY_S = 5.0
#: How often it is looked into whether a master has TLS, after failures that can come from that.
_SCHEME_EVERY_S = 30.0
#: Of a websocket that is opened where there is another master.
_HANDSHAKE_S = 10.0
BACKOFF = Backoff(first=0.1, ceiling=5.0)


class MasterUnreachable(TenaxError):
    """The master cannot be reached."""

    def __init__(self, message: str, *, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class MasterRefused(TenaxError):
    """The master answered, and refused."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def retry() -> Retry:
    """What an agent does about a master that is away: count the failures, wait longer after each."""
    return Retry(BACKOFF, random.random)


class Link:
    """Requests to one of the masters, and to another once that one fails. ``credential`` is set once it is known."""

    def __init__(self, settings: AgentSettings) -> None:
        self._urls = settings.master_urls
        # Agents begin with different ones, and always the same.
        self.at = crc32(settings.agent_id.encode()) % len(self._urls)
        self.credential = ""
        #: Of several those that are known to answer.
        self._answering: set[str] = set()
        #: Of what is under way at each of them.
        self._under_way: dict[str, set[asyncio.Timeout]] = {url: set() for url in self._urls}
        #: When another master may be told of in the log, on the loop's clock.
        self._tell_at = 0.0
        #: When it may be looked into again whether a master has TLS; and which address to use instead, of each.
        self._scheme_at = 0.0
        self._advice: dict[str, str] = {}
        self.tls = _tls(settings)
        self._server_name = settings.tls.master_cert_name
        self._client: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        timeout = aiohttp.ClientTimeout(total=None, connect=_CONNECT_S, sock_read=_ANSWER_S)
        connector = aiohttp.TCPConnector(limit=64, keepalive_timeout=30)
        # The environment's proxy, if it names one; but nobody's proxy leads back to this machine.
        proxied = not any(is_loopback(url) for url in self._urls)
        self._client = aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=proxied)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()

    @property
    def url(self) -> str:
        """Of the master that is asked now."""
        return self._urls[self.at]

    @property
    def has_others(self) -> bool:
        """Whether there are several masters."""
        return len(self._urls) > 1

    def move_on(self, failed: str) -> None:
        """Ask another master from now on, where there are several, unless that was done since ``failed`` was asked."""
        if self.url != failed or not self.has_others:
            return
        self.at = (self.at + 1) % len(self._urls)
        now = asyncio.get_running_loop().time()
        if now >= self._tell_at:
            # All may be away, and each container asks again and again.
            self._tell_at = now + _TELL_EVERY_S
            log.warning("asking another master", url=self.url)
        # What the other does not answer now is asked of this one; nothing here ends for what was thought of it before.
        for url, at in ((failed, now + _LEFT_S), (self.url, None)):
            for limit in self._under_way[url]:
                if not limit.expired():
                    limit.reschedule(at)

    async def post(
        self,
        path: str,
        body: bytes,
        *,
        query: Mapping[str, str] | None = None,
        token: str | None = None,
        content_type: str = "application/octet-stream",
    ) -> bytes:
        """The body of a good answer. Raises MasterUnreachable, MasterRefused."""
        async with self._ask("POST", path, query=query, body=body, token=token, content_type=content_type) as reply:
            return await reply.read()

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> bytes:
        """The body of a good answer. Raises MasterUnreachable, MasterRefused."""
        async with self._ask("GET", path, query=query) as reply:
            return await reply.read()

    async def download(self, path: str, chunk_bytes: int = 256 * 1024) -> AsyncIterator[bytes]:
        """A large body in pieces. Raises MasterUnreachable, MasterRefused."""
        async with self._ask("GET", path) as reply:
            async for chunk in reply.content.iter_chunked(chunk_bytes):
                yield chunk

    async def websocket(self, path: str, heartbeat_s: float) -> aiohttp.ClientWebSocketResponse:
        """Raises MasterUnreachable, MasterRefused."""
        url = self.url
        async with self._moving_on(url):
            # One that hangs takes connections and answers none.
            async with asyncio.timeout(_HANDSHAKE_S if self.has_others else None):
                try:
                    return await self._open_client.ws_connect(
                        url + path,
                        headers=self._headers(None),
                        ssl=self.tls,
                        server_hostname=self._server_name,
                        heartbeat=heartbeat_s,
                        max_msg_size=256 * 1024 * 1024,
                        timeout=aiohttp.ClientWSTimeout(ws_close=2.0),
                    )
                except aiohttp.WSServerHandshakeError as error:
                    # One that is ending, or cannot take another agent.
                    self.move_on(url)
                    raise _failure(error.status, f"{url}{path}: {error.message}") from None

    @asynccontextmanager
    async def _moving_on(self, url: str) -> AsyncIterator[None]:
        """Raises MasterUnreachable where nobody answers, after which another master is asked."""
        try:
            await self._look_up(url)
            yield
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self._answering.discard(url)
            self.move_on(url)
            advice = await self._other_scheme(url, error)
            raise MasterUnreachable(f"{advice} (--master-url)" if advice else _unreachable(url, error)) from None

    async def _look_up(self, url: str) -> None:
        """Of several masters, whether this one answers at all: one that hangs takes connections all the same.

        Raises ClientError, TimeoutError.
        """
        if not self.has_others or url in self._answering:
            return
        async with (
            asyncio.timeout(ALIVE_S),
            self._open_client.get(url + ALIVE, ssl=self.tls, server_hostname=self._server_name) as reply,
        ):
            await reply.read()
        self._answering.add(url)

    async def _other_scheme(self, url: str, error: Exception) -> str:
        """Which address to use instead, where the error comes from ``http`` for a master with TLS, or the reverse."""
        unmet = isinstance(error, aiohttp.ClientConnectorError) and not isinstance(error, aiohttp.ClientSSLError)
        if unmet or isinstance(error, TimeoutError) or not other_scheme.may_explain(error):
            return ""
        now = asyncio.get_running_loop().time()
        if now >= self._scheme_at:
            # A master that ends breaks many connections at once.
            self._scheme_at = now + _SCHEME_EVERY_S
            self._advice = {url: await asyncio.to_thread(other_scheme.advice, [url])}
        return self._advice.get(url, "")

    @property
    def _open_client(self) -> aiohttp.ClientSession:
        assert self._client is not None, "open() comes first"
        return self._client

    def _headers(self, token: str | None) -> dict[str, str]:
        bearer = token if token is not None else self.credential
        return {"Authorization": f"Bearer {bearer}"} if bearer else {}

    @asynccontextmanager
    async def _ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        token: str | None = None,
        content_type: str = "",
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        headers = self._headers(token)
        if content_type:
            headers["Content-Type"] = content_type
        url = self.url
        async with self._moving_on(url):
            async with (
                self._limited(url),
                self._open_client.request(
                    method,
                    url + path,
                    params=query,
                    data=body,
                    headers=headers,
                    ssl=self.tls,
                    server_hostname=self._server_name,
                ) as reply,
            ):
                if reply.status >= 300:
                    text = (await reply.content.read(4096)).decode(errors="replace")
                    raise _failure(reply.status, _message_in(text), _seconds(reply.headers.get("Retry-After")))
                yield reply

    @asynccontextmanager
    async def _limited(self, url: str) -> AsyncIterator[None]:
        """Raises MasterUnreachable some time after another master is asked."""
        limit = asyncio.timeout(None)
        try:
            async with limit:
                self._under_way[url].add(limit)
                try:
                    yield
                finally:
                    self._under_way[url].discard(limit)
        except TimeoutError:
            if not limit.expired():
                raise
            raise MasterUnreachable(f"the master at {url} did not answer, and another one is asked") from None


def decoded(body: bytes, kind: type[Answer]) -> Answer:
    """An answer as a value. Raises MasterRefused where it is something else: not from a master of ours."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.MsgspecError as error:
        raise MasterRefused(200, f"the answer is not what this version understands: {error}") from None


def _failure(status: int, text: str, retry_after: float = 0.0) -> MasterUnreachable | MasterRefused:
    message = f"the master answered {status}: {text}" if text else f"the master answered {status}"
    return MasterUnreachable(message, retry_after=retry_after) if status in _AWAY else MasterRefused(status, message)


def _message_in(body: str) -> str:
    """The sentence in an error's body, whichever of our shapes it has."""
    try:
        document = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return body.strip()[:300]
    error = document.get("error", document) if isinstance(document, dict) else document
    while isinstance(error, dict):
        error = error.get("error") or error.get("reason") or error.get("message") or ""
    return str(error)[:300]


def _seconds(header: str | None) -> float:
    try:
        return max(0.0, min(60.0, float(header or 0)))
    except ValueError:
        return 0.0


def _unreachable(url: str, error: BaseException) -> str:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return (
            f"the certificate of the master at {url} is not one that this machine trusts ({error.certificate_error}): "
            "copy it here and name it with --master-cert FILE; for another name in it set tls.master_cert_name"
        )
    return f"cannot reach the master at {url}: {str(error) or type(error).__name__}"


def _tls(settings: AgentSettings) -> ssl.SSLContext | bool:
    """Raises UserError where the certificate cannot be used."""
    if not settings.uses_tls or settings.tls.master_cert is None:
        return True
    try:
        return ssl.create_default_context(cafile=str(settings.tls.master_cert))
    except (OSError, ssl.SSLError) as error:
        raise UserError(f"cannot use {settings.tls.master_cert} as the master's certificate: {error}") from None


def address_towards(local: str) -> str:
    """Where other machines reach this one: the address that faces the master, or the one that faces the network."""
    if local and not local.startswith("127.") and local != "::1":
        return local
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            # No packet is sent: the system only says which address it would use.
            probe.connect(("192.0.2.1", 9))
            return str(probe.getsockname()[0])
        except OSError:
            return local or "127.0.0.1"


def read_secret(path: Path, what: str) -> str:
    """A secret from a file. Raises UserError, without the secret."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read the {what} from {path}: {error}") from None


async def pause(seconds: float, unless: asyncio.Event | None = None) -> None:
    """Wait, but no longer than until ``unless`` is set."""
    if unless is None:
        await asyncio.sleep(seconds)
        return
    try:
        async with asyncio.timeout(seconds):
            await unless.wait()
    except TimeoutError:
        pass
