"""``tenax dev``: the page from its sources, with the data of a master."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import httpx2
from playwright.sync_api import Browser

from tests.kits import plain_http
from tests.kits.machine import free_port, wait_for
from tests.web.site import TIMEOUT_MS, Site, log_in


def test_a_page_deep_within_is_served_from_its_sources(browser: Browser, site: Site) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [str(Path(sys.executable).with_name("tenax")), "-m", site.url, "dev", "--port", str(port)]
    who = {"DET_USER": "determined", "DET_PASS": site.password}
    with subprocess.Popen(command, env={**os.environ, **who}, start_new_session=True) as served:
        try:
            wait_for(lambda: _answers(url) or served.poll() is not None, "Vite")
            assert served.poll() is None
            assert "/ui/@vite/client" in plain_http.get(f"{url}/ui/experiments/{site.search}").text
            context = browser.new_context()
            context.set_default_timeout(TIMEOUT_MS)
            page = context.new_page()
            log_in(page, replace(site, url=url), f"experiments/{site.search}")
            page.get_by_role("heading", name="asha over digits").wait_for()
            context.close()
        finally:
            os.killpg(served.pid, signal.SIGTERM)


def _answers(url: str) -> bool:
    try:
        return plain_http.get(f"{url}/ui/", timeout=5).status_code == 200
    except httpx2.TransportError:
        return False
