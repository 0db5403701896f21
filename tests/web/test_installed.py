"""The page of an installed Tenax: it comes with the wheel, and neither node nor a checkout is needed to serve it."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import uuid
from pathlib import Path

import asyncpg
import httpx2
import pytest

from tenax.local.postgres import EmbeddedPostgres
from tests.kits import plain_http
from tests.kits.database import database_in
from tests.kits.machine import free_port, wait_for
from tests.web.site import ROOT

HTML = {"Accept": "text/html,application/xhtml+xml"}


@pytest.fixture(scope="module")
def installed(built: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the wheel of this checkout was installed."""
    directory = tmp_path_factory.mktemp("installed")
    packed = directory / "dist"
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(packed)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = packed.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
    target = directory / "site-packages"
    done = subprocess.run([*pip, "--target", str(target), str(wheel)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return target


def test_a_wheel_serves_the_page_without_node(
    installed: Path, postgres: EmbeddedPostgres, template: str, tmp_path: Path
) -> None:
    """`/` leads to it, what it names is kept for ever, and what is none of it is no page."""
    name = f"w_{uuid.uuid4().hex}"
    dsn = database_in(postgres.dsn, name)
    asyncio.run(_create(postgres.dsn, name, template))
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYTHON")},
        "PATH": str(tmp_path / "nothing"),
        "PYTHONPATH": str(installed),
        "TENAX_MASTER_DB__URL": dsn,
        "TENAX_MASTER_ROLES": "[api]",
    }
    where = [sys.executable, "-c", "import tenax; print(tenax.__file__)"]
    said = subprocess.run(where, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert said.startswith(str(installed))
    url = f"http://127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "tenax.master", "--port", url.rpartition(":")[2], "--dir", str(tmp_path / "m")]
    with subprocess.Popen([*command, "--log-level", "warning"], env=environment, cwd=tmp_path) as master:
        try:
            wait_for(lambda: _answers(url) or master.poll() is not None, "the master")
            assert master.poll() is None
            with httpx2.Client(verify=False, base_url=url, headers=HTML, follow_redirects=True, timeout=120) as browser:
                page = browser.get("/")
                assert (page.status_code, page.url.path) == (200, "/ui/")
                named = re.findall(r"\./(assets/[\w.-]+)", page.text)
                assert len(named) > 1
                for name in named:
                    asset = browser.get(f"/ui/{name}")
                    assert asset.status_code == 200
                    assert "immutable" in asset.headers["cache-control"]
                nope = browser.get("/api/nope")
                assert (nope.status_code, nope.headers["content-type"]) == (404, "application/json")
        finally:
            master.terminate()


async def _create(server: str, name: str, template: str) -> None:
    conn = await asyncpg.connect(server)
    await conn.execute(f"create database {name} template {template}")
    await conn.close()


def _answers(url: str) -> bool:
    try:
        return plain_http.get(f"{url}/info", timeout=5).status_code == 200
    except httpx2.TransportError:
        return False
