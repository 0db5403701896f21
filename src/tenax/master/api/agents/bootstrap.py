"""How a machine becomes an agent: the master's own wheel, and the script that installs it and starts the agent.

Rules it keeps: the wheel goes to whoever could join (a join token, also that of the operator's file or of a rented
machine, in the body), and using it for that uses nothing up; a script is made for administrators, with a new token for
one agent; it names no address that means the machine itself unless that is meant.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import anyio.to_thread
from fastapi import Request, Response
from fastapi.responses import StreamingResponse
from pydantic import ValidationError

from tenax.config.provider import is_own_address
from tenax.config.provider.agent_install import AgentInstallSettings
from tenax.errors import Forbidden, InvalidInput, TryAgain
from tenax.master.access.authorization import Allow
from tenax.master.access.bootstrap import join_token
from tenax.master.access.task_tokens import token_hash
from tenax.master.agents.admission import check_may_prepare
from tenax.master.agents.hub import AGENT_ID
from tenax.master.api.agents import messages
from tenax.master.api.agents.join_tokens import PREFIX, seconds_of, view_of
from tenax.master.api.http.callers import CallerDep, MasterDep
from tenax.master.api.http.routing import Routes
from tenax.master.context import Master
from tenax.master.provision.at_hand import AtHand, at_hand_script
from tenax.master.provision.wheel import AgentWheel, own_wheel
from tenax.master.store.agents import join_tokens

routes = Routes("Agents")

#: Bytes that are sent at a time.
_PIECE = 1 << 18
#: Characters of the addresses of all masters, and of certificates.
_MAX_URLS, _MAX_CERTIFICATE = 2000, 32 * 1024
_ADDRESS = re.compile(r"https?://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?:/[A-Za-z0-9._~/-]*)?")
#: Nothing but certificates: no key goes along.
_CERTIFICATES = re.compile(
    r"\s*(?:-----BEGIN CERTIFICATE-----\n(?:[A-Za-z0-9+/=]{1,128}\n)+-----END CERTIFICATE-----\s*)+"
)


@routes.post("/agents/wheel", "GetAgentWheel", allow=Allow.PUBLIC, response_class=Response)
async def get_wheel(master: MasterDep, request: Request) -> Response:
    """The master's own tenax, as a wheel. A line each: a join token; a rented machine's id, or nothing; its SHA-256.

    Without the SHA-256 whatever this master has is sent, with it in the header ``X-SHA256``; 503: this one has another.
    """
    token, machine_id, sha256 = ((await request.body()).decode(errors="replace").split("\n") + [""] * 3)[:3]
    if not token:
        raise Forbidden("a join token has to come with it: tenax agent bootstrap makes a script that has one")
    file_token = join_token(master.settings) if master.settings.security.agent_join_by_file else None
    async with master.db.connection() as conn:
        await check_may_prepare(conn, token, machine_id, master.cluster.secret, file_token)
    wheel = await _wheel()
    if sha256.strip() not in ("", wheel.sha256):
        raise TryAgain("this master's tenax is not the one that the script was made for: make a new script")
    headers = {
        "Content-Length": str(len(wheel.content)),
        "Content-Disposition": f'attachment; filename="{wheel.name}"',
        "X-SHA256": wheel.sha256,
    }
    return StreamingResponse(_pieces(wheel), media_type="application/octet-stream", headers=headers)


@routes.post("/api/v1/agents/bootstrap", "PostAgentBootstrap", allow=Allow.ADMIN, creates=True, secret=True)
async def post_bootstrap(
    master: MasterDep, caller: CallerDep, body: messages.PostAgentBootstrapRequest
) -> messages.PostAgentBootstrapResponse:
    """Make the script that makes an agent of a machine, with a new join token for one use in it."""
    settings = _install_settings(body)
    token = PREFIX + secrets.token_urlsafe(32)
    machine = AtHand(_address(body), _pool(master, body.pool), token, _agent_id(body), _certificate(body))
    seconds = seconds_of(body.lifespan)
    script = at_hand_script(machine, settings, await _wheel())
    async with master.db.transaction() as conn:
        made = await join_tokens.create(
            conn,
            token_hash(token),
            caller.person.id,
            description=f"in a script of tenax agent bootstrap, for the pool {machine.pool}",
            agent_id=machine.agent_id or None,
            uses=1,
            seconds=seconds,
        )
    return messages.PostAgentBootstrapResponse(script=script, join_token=view_of(made))


async def _wheel() -> AgentWheel:
    return await anyio.to_thread.run_sync(own_wheel)


async def _pieces(wheel: AgentWheel) -> AsyncIterator[bytes]:
    # In pieces: what a slow line has not taken yet is held once, for all.
    view = memoryview(wheel.content)
    for offset in range(0, len(view), _PIECE):
        yield bytes(view[offset : offset + _PIECE])


def _address(body: messages.PostAgentBootstrapRequest) -> str:
    urls = [url.strip().rstrip("/") for url in body.master_url.split(",")]
    if len(body.master_url) > _MAX_URLS or not all(_ADDRESS.fullmatch(url) and _is_whole(url) for url in urls):
        raise InvalidInput("masterUrl: write where the machine reaches the master, as in https://master.example.org")
    if not body.own_address and (own := [url for url in urls if is_own_address(url)]):
        raise InvalidInput(
            f"masterUrl: {own[0]} means, on each machine, that machine itself: name the address under which others "
            "reach this master (--master-url), or say that the master's own machine is meant (--same-machine)"
        )
    return ",".join(urls)


def _is_whole(url: str) -> bool:
    """Whether what stands between brackets is an address, and what follows a colon a port."""
    try:
        return urlsplit(url).port != 0
    except ValueError:
        return False


def _pool(master: Master, name: str) -> str:
    name = name or master.settings.default_compute_pool
    if master.settings.pool(name) is None:
        known = ", ".join(sorted(pool.name for pool in master.settings.pools))
        raise InvalidInput(f"there is no pool {name!r}; the pools are {known}")
    if not name.isprintable():
        raise InvalidInput(f"the name of the pool {name!r} cannot stand in a script: make its agents by hand")
    return name


def _agent_id(body: messages.PostAgentBootstrapRequest) -> str:
    if body.agent_id and not AGENT_ID.fullmatch(body.agent_id):
        raise InvalidInput("agentId: the name of an agent is 1 to 128 letters, digits, dots, dashes and underscores")
    return body.agent_id


def _certificate(body: messages.PostAgentBootstrapRequest) -> str:
    text = body.certificate.replace("\r\n", "\n").strip()
    if len(text) > _MAX_CERTIFICATE or (text and not _CERTIFICATES.fullmatch(text)):
        raise InvalidInput("certificate: send certificates in PEM and nothing else")
    return text


def _install_settings(body: messages.PostAgentBootstrapRequest) -> AgentInstallSettings:
    given = {"python": body.python, "index_url": body.index_url, "wheelhouse": body.wheelhouse}
    try:
        return AgentInstallSettings.model_validate({name: text for name, text in given.items() if text})
    except ValidationError as error:
        [first, *_] = error.errors()
        where = "".join(f"{name}: " for name in first["loc"])
        raise InvalidInput(where + first["msg"].removeprefix("Value error, ")) from None
