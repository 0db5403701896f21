"""Masters with one role each, as processes on one database."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import cast

import pytest

from tenax.agent.link import Link, MasterUnreachable
from tenax.config.agent import AgentSettings
from tenax.config.master import Role
from tests.kits.api import Api
from tests.kits.machine import wait_for
from tests.kits.master.process import MasterProcess


def ask(port: object, path: str) -> tuple[int, dict[str, object]]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as reply:
            return reply.status, dict(json.loads(reply.read()))
    except urllib.error.HTTPError as error:
        with error:
            return error.code, dict(json.loads(error.read()))


async def test_each_role_has_its_health(database_url: str, tmp_path: Path) -> None:
    """One serves the API and says that the loops are elsewhere, the other makes the passes and serves no API."""
    api = MasterProcess(tmp_path, database_url, "--port", "0", ROLES="[api]")
    loops = MasterProcess(tmp_path, database_url, "--port", "0", ROLES="[loops]")
    try:
        api_port, loops_port = (process.wait_for("serving")["port"] for process in (api, loops))
        status, health = ask(api_port, "/health")
        assert (status, health["roles"]) == (200, {"api": "up", "loops": "elsewhere"})
        status, health = ask(loops_port, "/health")
        assert (status, health["roles"]) == (200, {"api": "elsewhere", "loops": "up"})
        answers = {
            (name, role): ask(port, f"/health?role={role}")[0]
            for name, port in (("api", api_port), ("loops", loops_port))
            for role in ("api", "loops")
        }
        assert answers == {("api", "api"): 200, ("api", "loops"): 503, ("loops", "api"): 503, ("loops", "loops"): 200}
        assert ask(api_port, "/health?role=proxies")[0] == 400
        assert ask(api_port, "/api/v1/master")[0] == 200
        for path in ("/api/v1/experiments", "/api/v1/auth/login", "/ui/", "/", "/agents/session"):
            # To try again: whoever was led here goes on elsewhere, or later.
            status, refusal = ask(loops_port, path)
            assert status == 503
            assert "serves no API" in json.dumps(refusal)
        # It is the one that makes passes.
        wait_for(lambda: _passes(loops_port) > 0 or None, "a pass")
        assert _passes(api_port) == 0
    finally:
        for process in (api, loops):
            assert process.end() == 0
            process.close()


async def test_an_agent_that_is_led_to_it_waits(database_url: str, tmp_path: Path) -> None:
    """It does not take that for a refusal."""
    loops = MasterProcess(tmp_path, database_url, "--port", "0", ROLES="[loops]")
    try:
        url = f"http://127.0.0.1:{loops.wait_for('serving')['port']}"
        link = Link(AgentSettings(master_url=url, agent_id="box"))
        await link.open()
        try:
            with pytest.raises(MasterUnreachable, match="503"):
                await link.websocket("/agents/session", 10.0)
            with pytest.raises(MasterUnreachable, match="503"):
                await link.post("/agents/join", b"{}")
        finally:
            await link.close()
    finally:
        assert loops.end() == 0
        loops.close()


async def test_a_process_without_either_role_is_not_well(api: Api) -> None:
    """Where its database is away."""
    api.master.settings = api.master.settings.model_copy(update={"roles": (Role.PROXY,)})
    assert (await api.nobody.get("/health")).status_code == 200
    api.master.listener._connected.clear()
    assert (await api.nobody.get("/health")).status_code == 503


def _passes(port: object) -> float:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as reply:
        lines = cast(bytes, reply.read()).decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("tenax_loop_passes_total"))
