"""A small client of the Docker Engine API, over its unix socket or TCP; podman serves the same.

Only what a runtime needs, on the HTTP library that the agent has anyway: raw output as bytes (general clients decode it
and lose what is not UTF-8), streams without a time limit, statuses as they are.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

import aiohttp

from tenax.jsonvalue import Json, JsonObject
from tenax.runtime.port import RuntimeAway

#: The newest version of the API that this client was written for.
_NEWEST = (1, 47)
_ANSWER_S = 120.0
#: Of an archive that is read: enough for small files.
_ARCHIVE_BYTES = 1024 * 1024


class EngineRefused(Exception):
    """The engine answered with an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def usual_sockets(environ: Mapping[str, str] = os.environ) -> list[str]:
    """Where an engine may listen: ``DOCKER_HOST`` alone if it is set, else docker's and podman's places that exist."""
    if environ.get("DOCKER_HOST"):
        return [environ["DOCKER_HOST"]]
    places = ["/var/run/docker.sock", "/run/podman/podman.sock"]
    if environ.get("XDG_RUNTIME_DIR"):
        places += [environ["XDG_RUNTIME_DIR"] + "/docker.sock", environ["XDG_RUNTIME_DIR"] + "/podman/podman.sock"]
    return [f"unix://{place}" for place in places if Path(place).exists()]


class Engine:
    """One engine. Raises RuntimeAway where it does not answer, EngineRefused where it answers with an error."""

    def __init__(self, host: str) -> None:
        self.host = host
        if host.startswith("unix://"):
            self._connector: aiohttp.BaseConnector = aiohttp.UnixConnector(host.removeprefix("unix://"), limit=0)
            self._base = "http://engine"
        else:
            self._connector = aiohttp.TCPConnector(limit=0)
            self._base = host.replace("tcp://", "http://")
        self._client = aiohttp.ClientSession(connector=self._connector)
        self._version = ""
        self.is_podman = False

    async def open(self) -> None:
        """Agree on a version of the API."""
        try:
            async with self._client.get(f"{self._base}/version", timeout=aiohttp.ClientTimeout(10)) as reply:
                version = await reply.json(content_type=None)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise RuntimeAway(f"the container engine at {self.host} does not answer: {error}") from None
        offered = tuple(int(part) for part in str(version.get("ApiVersion", "1.41")).split(".")[:2])
        self._version = "v" + ".".join(map(str, min(offered, _NEWEST)))
        components = version.get("Components") or []
        self.is_podman = any("podman" in str(part.get("Name", "")).lower() for part in components)

    async def close(self) -> None:
        await self._client.close()

    async def get(self, path: str, **query: str) -> Json:
        async with self.stream("GET", path, query=query, timeout_s=_ANSWER_S) as reply:
            document: Json = await reply.json(content_type=None)
            return document

    async def post(self, path: str, body: JsonObject | None = None, **query: str) -> Json:
        """The answer's document; None where it has none."""
        async with self.stream("POST", path, query=query, body=body, timeout_s=_ANSWER_S) as reply:
            text = await reply.text()
            document: Json = json.loads(text) if text.strip() else None
            return document

    async def delete(self, path: str, **query: str) -> None:
        async with self.stream("DELETE", path, query=query, timeout_s=_ANSWER_S):
            pass

    async def put_archive(self, container: str, folder: str, archive: bytes) -> None:
        """Unpack a tar inside a container that was made."""
        query = {"path": folder}
        async with self.stream(
            "PUT", f"/containers/{quote(container)}/archive", query=query, data=archive, timeout_s=_ANSWER_S
        ):
            pass

    async def get_archive(self, container: str, path: str) -> bytes:
        """A tar with a file of a container, or the beginning of it. Raises EngineRefused where there is none."""
        query = {"path": path}
        async with self.stream(
            "GET", f"/containers/{quote(container)}/archive", query=query, timeout_s=_ANSWER_S
        ) as reply:
            content = bytearray()
            async for piece in reply.content.iter_any():
                content += piece
                if len(content) > _ARCHIVE_BYTES:
                    break
            return bytes(content)

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: JsonObject | None = None,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """An answer to be read piece by piece; without ``timeout_s`` for as long as it takes."""
        url = f"{self._base}/{self._version}{path}"
        timeout = aiohttp.ClientTimeout(total=timeout_s, sock_connect=10)
        try:
            async with self._client.request(
                method, url, params=query, json=body, data=data, headers=headers, timeout=timeout
            ) as reply:
                # Not modified: it is so already.
                if reply.status >= 400:
                    raise EngineRefused(reply.status, _message_in(await reply.text()))
                yield reply
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise RuntimeAway(f"the container engine at {self.host} does not answer: {error}") from None


def _message_in(body: str) -> str:
    try:
        document = json.loads(body)
    except ValueError:
        return body.strip()[:500]
    return str(document.get("message") or document.get("cause") or body)[:500] if isinstance(document, dict) else body
