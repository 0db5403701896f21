"""A session with a master: requests, streams, logins; errors of the master become those of `tenax.errors`.

Not thread-safe. Requests that a master refuses because it is not ready are retried for a while. Those that may have
been carried out are so only where the master knows a repeat: reading ones, and creations, which carry a key.
"""

from __future__ import annotations

import copy
import json
import os
import socket
import ssl
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple, Type, Union
from urllib.parse import quote, unquote

from tenax.backoff import Backoff, Retry
from tenax.client.connection import trust
from tenax.client.connection.address import MasterTarget, Unreachable, canonical, target
from tenax.client.connection.http1 import ALIVE, ALIVE_S
from tenax.client.connection.login import SessionLogin, hashed_password
from tenax.client.connection.reading import error_message, parsed
from tenax.client.connection.saved_logins import TokenStore
from tenax.errors import (
    AlreadyExists,
    Forbidden,
    InvalidInput,
    NotAuthenticated,
    NotFound,
    TenaxError,
    TryAgain,
    Unsupported,
    UserError,
)
from tenax.jsonvalue import JsonObject
from tenax.local.state_dir import StateDir, read_json, text_of

if TYPE_CHECKING:
    import httpx2

QueryValue = Union[None, bool, int, float, str, Sequence[str], Sequence[int]]
Query = Mapping[str, QueryValue]

#: A connection is made in this time or not at all.
CONNECT_S = 10.0
#: Between two pieces of an answer; uploads of large contexts are digested before the first.
READ_S = 300.0
#: The same of what only asks, and is no stream.
ASK_S = 60.0
#: How long a master that is away or not ready is tried again.
RETRY_S = 10.0
BACKOFF = Backoff(first=0.2, ceiling=2.0)
#: How long a remote address where nothing listens is tried again.
ABSENCE_S = 3.0

#: A proxy may be spoken to with TLS.
_PROXIES = ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")

#: What the master's router says, which knows no such address.
_NO_ROUTE = "Not Found"
_KINDS: Dict[int, Type[TenaxError]] = {
    400: InvalidInput,
    401: NotAuthenticated,
    403: Forbidden,
    404: NotFound,
    409: AlreadyExists,
    413: InvalidInput,
    501: Unsupported,
    503: TryAgain,
}


class BrokenStream(TenaxError):
    """The master stopped in the middle of an answer."""


class SessionAborted(TenaxError):
    """It was ended from another thread."""


class MasterFailed(TenaxError):
    """The master met an error of its own."""


@dataclass(frozen=True)
class _Request:
    method: str
    path: str
    body: Optional[JsonObject] = None
    query: Optional[Query] = None
    accept: str = "application/json"
    #: Between two pieces of the answer; None: as long as it takes.
    read_s: Optional[float] = READ_S
    anonymous: bool = False
    once: bool = False
    #: Tells the master that what is sent again is the same request.
    key: str = ""
    #: Bytes instead of an object.
    raw: Optional[bytes] = None


class Session:
    """HTTP to one master, as one user.

    ``url``: see `address` beside this; ``user`` and ``token``: see `login`; ``certificate``: a PEM file, or
    ``noverify``; ``retry_for_s``: for how many seconds a master that is away or not ready is tried again; ``read_s``:
    how long it may be silent within an answer; ``local``: the directory of the cluster that answers there, if it is
    one of this machine.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        *,
        user: Optional[str] = None,
        token: Optional[str] = None,
        certificate: Optional[str] = None,
        retry_for_s: float = RETRY_S,
        read_s: float = READ_S,
        store: Optional[TokenStore] = None,
        local: Optional[StateDir] = None,
    ) -> None:
        meant = target(url) if local is None else MasterTarget(canonical(url or ""), local=local)
        self.url = meant.url
        #: All masters of the cluster.
        self.urls = (meant.url, *meant.others)
        #: Which of them is asked.
        self._at = 0
        #: Of several those that are known to answer.
        self._answering: Set[str] = set()
        #: Which cluster that is and how it came to be meant, where nobody named it today; for people.
        self.notice = meant.notice
        self.store = store if store is not None else TokenStore()
        self._local = meant.local
        self._login = SessionLogin(self.url, user=user, token=token, store=self.store, local=self._local)
        #: A file, or ``noverify``; "" for what the system trusts.
        self.certificate = certificate or os.environ.get("DET_MASTER_CERT_FILE") or self._local_certificate()
        self._retry_for_s = retry_for_s
        self._read_s = read_s
        #: Which address to use instead, once that was looked into.
        self._advice: Optional[str] = None
        self._opened: Optional[httpx2.Client] = None
        #: The answer that is being streamed.
        self._streaming: Optional[httpx2.Response] = None
        #: It was ended by `abort`.
        self.aborted = False

    def get(self, path: str, query: Optional[Query] = None) -> JsonObject:
        """The object at ``path``. Raises the errors of `tenax.errors`, Unreachable, MasterFailed."""
        return self.call("GET", path, query=query)

    def post(self, path: str, body: Optional[JsonObject] = None) -> JsonObject:
        """Send ``body``; the object that comes back."""
        return self.call("POST", path, body=body)

    def create(self, path: str, body: Optional[JsonObject] = None) -> JsonObject:
        """Send ``body`` to where something new is made of it; sent again, it is made once."""
        # As `uuid.uuid4`, which takes a task 6 ms to import.
        return self._object(_Request("POST", path, body=body, key=os.urandom(16).hex()))

    def get_anonymously(self, path: str) -> JsonObject:
        """The object at a path that needs no login."""
        return self._object(_Request("GET", path, read_s=ASK_S, anonymous=True))

    def call(
        self,
        method: str,
        path: str,
        *,
        body: Optional[JsonObject] = None,
        query: Optional[Query] = None,
        once: bool = False,
    ) -> JsonObject:
        """One request and its answer, an object. ``once``: never sent a second time."""
        read_s = ASK_S if method == "GET" else READ_S
        return self._object(_Request(method, path, body=body, query=query, read_s=read_s, once=once))

    def ship(self, path: str, query: Query, content: bytes) -> JsonObject:
        """Send bytes, once; the object that comes back."""
        return self._object(_Request("POST", path, query=query, raw=content, once=True))

    def lines(self, path: str, query: Optional[Query] = None) -> Iterator[JsonObject]:
        """The results of a streaming answer as they come. Raises BrokenStream when it ends before its time."""
        from tenax.client.connection.transport import httpx2

        with self.stream("GET", path, query=query) as response:
            try:
                for line in response.iter_lines():
                    value = parsed(line.encode()) if line.strip() else None
                    if not isinstance(value, dict):
                        continue
                    if "error" in value:
                        raise BrokenStream(error_message(value) or "the master broke off")
                    result = value.get("result")
                    if isinstance(result, dict):
                        yield result
                self._go_on()
            except httpx2.TransportError as error:
                self._go_on()
                raise BrokenStream(f"The connection to {self.url} broke off: {error}") from None

    @contextmanager
    def stream(
        self, method: str, path: str, *, query: Optional[Query] = None, accept: str = "*/*"
    ) -> Iterator[httpx2.Response]:
        """An answer whose body is read piece by piece."""
        response = self._streaming = self._send(_Request(method, path, query=query, accept=accept, read_s=None))
        try:
            self._go_on()
            yield response
        finally:
            self._streaming = None
            response.close()

    def log_in(self, user: str, password: str, *, remember: bool = True) -> str:
        """Trade name and password for a token, and remember it for this master. Raises NotAuthenticated."""
        token = self._ask_for_token(user, hashed_password(password))
        if remember:
            self.store.put(self.url, user, token)
        self._login = SessionLogin(self.url, user=user, token=token, store=self.store, local=self._local)
        return token

    def logged_in_by(self) -> str:
        """How this session came to its user, for people. Raises NotAuthenticated, Unreachable."""
        self._token()
        return self._login.how

    def another(self, *, retry_for_s: float = 0.0) -> Session:
        """One of the same login for another thread; unless it is to, it tries nothing again.

        Raises NotAuthenticated, Unreachable.
        """
        # Whoever logs in does so once, for both.
        self._token()
        # Beginning with the one that answers this.
        named = ",".join((*self.urls[self._at :], *self.urls[: self._at]))
        made = Session(
            named, certificate=self.certificate, retry_for_s=retry_for_s, store=self.store, local=self._local
        )
        made._login = copy.copy(self._login)
        return made

    def abort(self) -> None:
        """From another thread: end the stream that is under way, and refuse later requests, with SessionAborted."""
        self.aborted = True
        response = self._streaming
        if response is not None:
            with suppress(OSError):
                # Not that of the SSL socket, which takes away what the other thread reads with.
                socket.socket.shutdown(response.extensions["network_stream"].get_extra_info("socket"), socket.SHUT_RDWR)

    def _go_on(self) -> None:
        if self.aborted:
            raise SessionAborted()

    def forget(self, user: str) -> None:
        """Forget every remembered login of ``user`` at this master."""
        self.store.drop(self.url, user)
        self._login.forget(user)

    def close(self) -> None:
        """Let go of the connections."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    @property
    def answering(self) -> str:
        """The address of the master that is asked now: the last that answered."""
        return self.urls[self._at]

    def _object(self, request: _Request) -> JsonObject:
        from tenax.client.connection.transport import httpx2

        response = self._send(request)
        try:
            value = parsed(response.read())
        except httpx2.TransportError as error:
            raise self._unreachable(error) from None
        finally:
            response.close()
        return value if isinstance(value, dict) else {}

    def _send(self, request: _Request) -> httpx2.Response:
        headers = {"Accept": request.accept}
        if request.body is not None or request.raw is not None:
            headers["Content-Type"] = "application/json" if request.raw is None else "application/octet-stream"
        if request.key:
            headers["Idempotency-Key"] = request.key
        while True:
            self._go_on()
            if not request.anonymous:
                headers["Authorization"] = f"Bearer {self._token()}"
            response = self._until_ready(request, headers)
            if response.status_code == 401 and not request.anonymous and self._login.refused():
                response.close()
                continue
            if response.status_code != 200:
                raise self._failure(request.path, response)
            return response

    def _token(self) -> str:
        try:
            return self._login.token(self._ask_for_token)
        except NotAuthenticated:
            # If nothing answers, say that instead.
            self.get_anonymously("/info")
            raise

    def _until_ready(self, request: _Request, headers: Dict[str, str]) -> httpx2.Response:
        from tenax.client.connection.transport import httpx2

        started, tried = time.monotonic(), 0
        retry = Retry(BACKOFF)
        while True:
            pause = retry.pause()
            waited = time.monotonic() + pause - started
            late = waited > self._retry_for_s
            try:
                response = self._attempt(request, headers)
                if response.status_code != 503 or request.once or late:
                    return response
                response.close()
                self._move_on()
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                tried += 1
                if self._move_on() and tried < len(self.urls):
                    continue
                if late or waited > self._absence_s() or trust.is_about_trust(error) or self._other_scheme(error):
                    raise self._unreachable(error) from None
            except httpx2.TransportError as error:
                # It may have been done. Who was silent for long is not asked for as long once more.
                self._move_on()
                late = late or time.monotonic() - started > self._retry_for_s
                if late or not (request.method == "GET" or request.key) or self._other_scheme(error):
                    raise self._unreachable(error) from None
            time.sleep(pause)

    def _move_on(self) -> bool:
        """Ask another master from now on; False where there is one alone."""
        self._answering.discard(self.urls[self._at])
        self._at = (self._at + 1) % len(self.urls)
        return len(self.urls) > 1

    def _attempt(self, request: _Request, headers: Dict[str, str]) -> httpx2.Response:
        from tenax.client.connection.transport import httpx2

        client = self._client()
        self._look_up(client, self.urls[self._at])
        read_s = None if request.read_s is None else min(request.read_s, self._read_s)
        built = client.build_request(
            request.method,
            self.urls[self._at] + request.path,
            content=request.raw if request.body is None else json.dumps(request.body).encode(),
            params=_parameters(request.query),
            headers=headers,
            timeout=httpx2.Timeout(READ_S, connect=CONNECT_S, read=read_s),
        )
        return client.send(built, stream=True)

    def _look_up(self, client: httpx2.Client, url: str) -> None:
        """Of several masters, whether this one answers at all. Raises httpx2.ConnectError, httpx2.ConnectTimeout."""
        from tenax.client.connection.transport import httpx2

        if len(self.urls) == 1 or url in self._answering:
            return
        limit = httpx2.Timeout(ALIVE_S, connect=CONNECT_S, read=ALIVE_S)
        question = client.build_request("GET", url + ALIVE, content=None, params=[], headers={}, timeout=limit)
        try:
            response = client.send(question, stream=True)
            response.read()
            response.close()
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            raise
        except httpx2.TransportError:
            raise httpx2.ConnectTimeout(f"it takes connections, and did not answer within {ALIVE_S:g} s") from None
        self._answering.add(url)

    def _absence_s(self) -> float:
        """How long it makes sense to wait where nothing listens: a master that is kept up will be back."""
        if self._local is None:
            return ABSENCE_S
        return self._retry_for_s if self._local.is_locked() else 0.0

    def _client(self) -> httpx2.Client:
        if self._opened is None:
            from tenax.client.connection.transport import httpx2

            self._opened = httpx2.Client(verify=self._trust(), follow_redirects=False, trust_env=True)
        return self._opened

    def _trust(self) -> Union[bool, ssl.SSLContext]:
        if self.certificate == "noverify":
            return False
        if not self.certificate and not os.environ.get(trust.NAME):
            # Reading the system's certificates takes 100 ms, and plain HTTP has no use for them.
            return not all(url.startswith("http://") for url in self.urls) or any(
                os.environ.get(name) for name in _PROXIES
            )
        return trust.trusting(self.certificate)

    def _local_certificate(self) -> str:
        return text_of(read_json(self._local.supervisor), "certificate") if self._local is not None else ""

    def _ask_for_token(self, user: str, hashed: str) -> str:
        body: JsonObject = {"username": user, "password": hashed, "isHashed": True}
        try:
            answer = self._object(_Request("POST", "/api/v1/auth/login", body=body, anonymous=True))
        except NotAuthenticated:
            raise NotAuthenticated(f"Wrong name or password for {user!r} at {self.url}.") from None
        return text_of(answer, "token")

    def _failure(self, path: str, response: httpx2.Response) -> TenaxError:
        body = response.read()
        response.close()
        value = parsed(body)
        message = error_message(value) if isinstance(value, dict) else body[:500].decode("utf-8", "replace").strip()
        if response.status_code == 401:
            return NotAuthenticated(self._login.why_refused())
        if not isinstance(value, dict) and message.startswith("<"):
            # A page, of whatever else answers there.
            return Unreachable(
                f"What answers at {self.url} is no master of Tenax, or a proxy before one "
                f"(status {response.status_code}): name the master's address with --master, or DET_MASTER."
            )
        if message == _NO_ROUTE:
            message = _no_such(path) or message
        kind = _KINDS.get(response.status_code)
        if kind is not None:
            return kind(message or None)
        if 400 <= response.status_code < 500:
            return UserError(message or f"The master refused it with status {response.status_code}.")
        return MasterFailed(message or f"The master answered with status {response.status_code}.")

    def _other_scheme(self, error: Exception) -> str:
        """Which address to use instead, where the error comes from ``http`` for a master with TLS, or the reverse."""
        from tenax.client.connection import other_scheme
        from tenax.client.connection.transport import httpx2

        unmet = isinstance(error, httpx2.ConnectError) and "SSL" not in str(error)
        if unmet or not other_scheme.may_explain(error):
            return ""
        if self._advice is None:
            self._advice = other_scheme.advice(self.urls)
        return self._advice

    def _unreachable(self, error: Exception) -> Unreachable:
        advice = self._other_scheme(error)
        if advice:
            return Unreachable(f"{advice[0].upper()}{advice[1:]} (--master, DET_MASTER).")
        reason, where = str(error) or type(error).__name__, " or ".join(self.urls)
        if trust.is_about_trust(error):
            return Unreachable(f"What answers at {where} is not trusted ({reason}). {trust.hint(error)}")
        if self._local is not None or any(url.startswith(("http://127.", "http://localhost")) for url in self.urls):
            hint = "Is the cluster up? tenax status; tenax up."
        else:
            hint = "Check the address (--master, DET_MASTER) and the network."
        return Unreachable(f"No master answers at {where} ({reason}). {hint}")


def at(template: str, *parts: Union[str, int]) -> str:
    """A path whose ``{}`` are filled with escaped parts."""
    return template.format(*(quote(str(part), safe="") for part in parts))


def _no_such(path: str) -> str:
    """The message for a name with a slash, which was taken for two parts of an address; empty where there is none."""
    split = next((part for part in path.split("?")[0].split("/") if "%2F" in part), "")
    return f"There is no {unquote(split)!r}: a name has no slash." if split else ""


def _parameters(query: Optional[Query]) -> List[Tuple[str, Union[str, int, float, bool, None]]]:
    pairs: List[Tuple[str, Union[str, int, float, bool, None]]] = []
    for name, value in (query or {}).items():
        if value is None:
            continue
        if isinstance(value, bool):
            pairs.append((name, "true" if value else "false"))
        elif isinstance(value, (int, float, str)):
            pairs.append((name, str(value)))
        else:
            pairs.extend((name, str(item)) for item in value)
    return pairs
