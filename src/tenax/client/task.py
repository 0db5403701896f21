"""What a task says to its master, as itself: requests with the allocation's token. Standard library only, Python 3.9.

``attempt`` is one try; ``call`` tries again for ``retry_for_s`` seconds. What comes out of a failure:

- :class:`MasterAway` (try again): no connection, a broken one, 408, 425, 429 or any 5xx; carries how long to wait.
- a :class:`tenax.errors.UserError` with the master's message: 401, 403, 404, 409 and other 4xx.

Every request of a task is harmless when sent twice, by its own identity or by a key, so all of them are retried. One
client serves one thread at a time (a lock sees to it); threads that wait long (the preemption watcher, the shipper)
have a :meth:`TaskClient.twin`.
"""

from __future__ import annotations

import os
import threading
import time

from tenax.backoff import PASSING, Backoff, Retry
from tenax.client.connection import fast_json
from tenax.client.connection.http1 import Connection, Http1Response, NoAnswer, ProtocolError
from tenax.errors import AlreadyExists, Forbidden, InvalidInput, NotAuthenticated, NotFound, TryAgain, UserError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Optional

    from tenax.jsonvalue import Json

#: Seconds for which a call is tried again, unless the caller names another time.
RETRY_FOR_S = 60.0
BACKOFF = Backoff(first=0.05, ceiling=3.0)
_PLAIN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
_KINDS: dict[int, type[UserError]] = {401: NotAuthenticated, 403: Forbidden, 404: NotFound, 409: AlreadyExists}


class MasterAway(TryAgain):
    """The master cannot be reached: try again in a moment."""

    def __init__(self, message: Optional[str] = None, *, retry_after: float = 0.0) -> None:
        super().__init__(message, retry_after=retry_after)


def retry() -> Retry:
    """What a task does about a master that is away: count the failures, wait longer after each."""
    return Retry(BACKOFF, _chance)


def _chance() -> float:
    return os.urandom(1)[0] / 256.0


class TaskClient:
    """The master as a task sees it; ``master_url`` (several between commas), ``cert_file`` and ``cert_name`` as in
    `tenax.client.connection.http1`."""

    def __init__(self, master_url: str, token: str, *, cert_file: str = "", cert_name: str = "") -> None:
        self.master_url = master_url
        self._token = token
        self._cert_file = cert_file
        self._cert_name = cert_name
        #: Which address would answer, once that was looked into.
        self._advice: Optional[str] = None
        self._lock = threading.Lock()
        self._connection = self._connect()

    def twin(self) -> TaskClient:
        """Another client for the same master, with a connection of its own."""
        return TaskClient(self.master_url, self._token, cert_file=self._cert_file, cert_name=self._cert_name)

    def attempt(
        self,
        method: str,
        path: str,
        *,
        query: Optional[Mapping[str, object]] = None,
        body: Optional[Mapping[str, object]] = None,
        raw: Optional[bytes] = None,
        timeout: float = 30.0,
        key: str = "",
    ) -> Json:
        """One request; the parsed answer. ``key``: by which a repeat is known. Raises MasterAway or a UserError."""
        content = raw if raw is not None else (fast_json.dumps(body).encode() if body else b"")
        headers = {"Grpc-Metadata-x-allocation-token": f"Bearer {self._token}"}
        if key:
            headers["Idempotency-Key"] = key
        with self._lock:
            try:
                response = self._connection.request(method, path + query_string(query), content, headers, timeout)
                if _is_away(response):
                    self._connection.leave()
            except OSError as error:
                raise MasterAway(self._why_away(error)) from error
        return self._read(response)

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Optional[Mapping[str, object]] = None,
        body: Optional[Mapping[str, object]] = None,
        timeout: float = 30.0,
        retry_for_s: float = RETRY_FOR_S,
        creates: bool = False,
    ) -> Json:
        """As ``attempt``, again and again while the master is away. Raises MasterAway after ``retry_for_s`` seconds.

        ``creates``: something new is made of it, once.
        """
        key = os.urandom(16).hex() if creates else ""
        deadline = time.monotonic() + retry_for_s
        attempts = retry()
        while True:
            try:
                return self.attempt(method, path, query=query, body=body, timeout=timeout, key=key)
            except MasterAway as away:
                pause = attempts.pause(away.retry_after)
                if time.monotonic() + pause > deadline:
                    raise
                time.sleep(pause)

    def abort(self) -> None:
        """From another thread: end the request that is under way, if any, and all later ones, with MasterAway."""
        self._connection.abort()

    def close(self) -> None:
        self._connection.close()

    def forget(self) -> None:
        """After a fork, in the child: leave the parent's connection alone and have one of our own when needed."""
        self._lock = threading.Lock()
        self._connection = self._connect()

    def _connect(self) -> Connection:
        return Connection(self.master_url, cert_file=self._cert_file, cert_name=self._cert_name)

    def _why_away(self, error: OSError) -> str:
        if isinstance(error, (NoAnswer, ProtocolError)) or "SSL" in str(error):
            from tenax.client.connection import other_scheme

            if self._advice is None and other_scheme.may_explain(error):
                self._advice = other_scheme.advice([url.strip() for url in self.master_url.split(",")])
            if self._advice:
                return self._advice
        return f"the master at {self.master_url} cannot be reached: {error}"

    def _read(self, response: Http1Response) -> Json:
        if response.status == 200:
            if not response.body:
                return None
            try:
                return fast_json.loads(response.body.decode("utf-8", "replace"))
            except ValueError:
                raise MasterAway(f"what answers at {self.master_url} is not a master: its answer is not JSON") from None
        text = _message_of(response)
        if _is_away(response):
            raise MasterAway(
                f"the master at {self.master_url} is not ready ({response.status}): {text}",
                retry_after=_retry_after(response),
            )
        raise _KINDS.get(response.status, InvalidInput)(text)


def _is_away(response: Http1Response) -> bool:
    return response.status >= 500 or response.status in PASSING


def query_string(query: Optional[Mapping[str, object]]) -> str:
    """``{"a": 1, "b": None}`` -> ``?a=1``."""
    pairs = [f"{name}={quote(str(value))}" for name, value in (query or {}).items() if value is not None]
    return "?" + "&".join(pairs) if pairs else ""


def quote(text: str) -> str:
    """Percent-encode all but what a URL carries as it is (``urllib.parse`` would cost 2 ms to import)."""
    return "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in text.encode())


def _message_of(response: Http1Response) -> str:
    """The message of an error body in any of the master's shapes."""
    text = response.body.decode("utf-8", "replace")
    try:
        document = fast_json.loads(text)
    except ValueError:
        document = None
    if isinstance(document, dict):
        error = document.get("error", document)
        if isinstance(error, dict):
            error = error.get("error") or error.get("message")
        if isinstance(error, str) and error:
            return error
    return text[:500] or f"status {response.status}"


def _retry_after(response: Http1Response) -> float:
    """Seconds that the master asks for; 0 where it names none."""
    text = response.headers.get("retry-after", "")
    return float(text) if text.replace(".", "", 1).isdigit() else 0.0
