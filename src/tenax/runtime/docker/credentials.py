"""Credentials for pulling an image: of the specification, or as ``docker login`` left them on this machine."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from collections.abc import Mapping
from pathlib import Path

from tenax.jsonvalue import Json

_DOCKER_HUB = "https://index.docker.io/v1/"
_HELPER_S = 20.0


def registry_of(image: str) -> str:
    """The registry's key in Docker's configuration."""
    first, slash, _ = image.partition("/")
    is_host = bool(slash) and ("." in first or ":" in first or first == "localhost")
    return first if is_host and first not in ("docker.io", "index.docker.io") else _DOCKER_HUB


async def auth_header(image: str, given: Mapping[str, str], environ: Mapping[str, str] = os.environ) -> str:
    """The value of ``X-Registry-Auth``; "" for none. Raises OSError: a pull without it would be refused for good."""
    login: Mapping[str, Json] | None = dict(given) if given else await _from_docker(registry_of(image), environ)
    if not login:
        return ""
    document = {"serveraddress": registry_of(image), **login}
    return base64.urlsafe_b64encode(json.dumps(document).encode()).decode()


async def _from_docker(registry: str, environ: Mapping[str, str]) -> Mapping[str, Json] | None:
    folder = Path(environ.get("DOCKER_CONFIG") or Path(environ.get("HOME", "/root"), ".docker"))
    try:
        config = json.loads((folder / "config.json").read_text())
    except (FileNotFoundError, NotADirectoryError, PermissionError, ValueError):
        return None
    helper = (config.get("credHelpers") or {}).get(registry) or config.get("credsStore")
    if helper:
        return await _ask_helper(str(helper), registry)
    entry = (config.get("auths") or {}).get(registry) or {}
    try:
        username, _, password = base64.b64decode(entry.get("auth", "")).decode().partition(":")
    except ValueError:
        return None
    return {"username": username, "password": password} if username else None


async def _ask_helper(helper: str, registry: str) -> Mapping[str, Json] | None:
    """Docker's protocol: the registry on standard input, a document with user name and secret back."""
    try:
        process = await asyncio.create_subprocess_exec(
            f"docker-credential-{helper}",
            "get",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        async with asyncio.timeout(_HELPER_S):
            output, _ = await process.communicate(registry.encode())
        answer = json.loads(output)
    except (FileNotFoundError, PermissionError, ValueError, TimeoutError):
        return None
    return {"username": answer.get("Username", ""), "password": answer.get("Secret", "")}
