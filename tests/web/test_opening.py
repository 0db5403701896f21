"""``tenax open``: from a terminal that is logged in to a browser that is not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, expect

from tenax.cli.console import exits
from tests.kits.machine import wait_for
from tests.web.site import TIMEOUT_MS, Site, log_in

TENAX = Path(sys.executable).with_name("tenax")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Of a person who is logged in by their environment, with a browser that notes what it is started with."""
    made = tmp_path / "home"
    made.mkdir()
    (made / "browser").write_text(f'#!/bin/sh\nprintf "%s" "$1" > {made}/started\n')
    (made / "browser").chmod(0o755)
    return made


def tenax_open(home: Path, site: Site, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "DET_MASTER": site.url,
        "DET_USER": "determined",
        "DET_PASS": site.password,
        **more,
    }
    return subprocess.run(
        [str(TENAX), "open", *arguments], env=environment, capture_output=True, text=True, check=True, timeout=120
    )


def led_to(home: Path, site: Site, *arguments: str) -> str:
    """Where the browser was led to."""
    said = tenax_open(home, site, *arguments, BROWSER=f"{home}/browser %s").stderr
    assert "in the browser" in said
    wait_for((home / "started").exists, "the browser")
    started = (home / "started").read_text()
    path = Path(started.removeprefix("file://"))
    # What others of the machine see of the browser's command line says nothing, and the file is for its owner alone.
    assert (started.startswith("file://"), "ticket" in started, path.stat().st_mode & 0o777) == (True, False, 0o600)
    match = re.search(r'url=([^"]+)"', path.read_text())
    assert match is not None
    return started


def test_a_terminal_opens_a_page_that_is_logged_in(context: BrowserContext, site: Site, home: Path) -> None:
    """On the experiment that was named; nothing of the ticket stays in the address or the history."""
    started = led_to(home, site, str(site.search))
    page = context.new_page()
    addresses: list[str] = []
    page.on("request", lambda sent: addresses.append(sent.url))
    page.goto(started)
    expect(page.get_by_role("heading", name="asha over digits")).to_be_visible()
    assert page.url == f"{site.url}/ui/experiments/{site.search}"
    sent = [address for address in addresses if address.startswith(site.url)]
    assert [address for address in sent if "ticket=" in address.partition("#")[0]] == []
    assert "ticket=" not in page.evaluate("JSON.stringify({...localStorage, ...sessionStorage}) + location.href")
    # The same link again leads nowhere in another browser, and says what to do.
    other = context.browser.new_context() if context.browser else context
    again = other.new_page()
    again.set_default_timeout(TIMEOUT_MS)
    again.goto(started)
    expect(again.get_by_role("alert")).to_contain_text("used already")
    assert "ticket" not in again.url
    again.get_by_role("link", name="Log in").click()
    again.get_by_label("Password").wait_for()
    other.close()


def test_somebody_else_is_asked_first(context: BrowserContext, site: Site, home: Path) -> None:
    """A browser with another's login keeps it, unless its user says otherwise."""
    page = context.new_page()
    log_in(page, site, who="admin")
    started = led_to(home, site)
    page.goto(started)
    page.get_by_role("button", name="Stay admin").click()
    expect(page.get_by_role("button", name="admin")).to_be_visible()
    (home / "started").unlink()
    page.goto(led_to(home, site))
    page.get_by_role("button", name="Go on as determined").click()
    expect(page.get_by_role("button", name="determined")).to_be_visible()


def test_who_was_logged_in_last_is_asked_first(context: BrowserContext, site: Site, home: Path) -> None:
    """Another site may send a browser that is logged out here, with a ticket of its own user."""
    page = context.new_page()
    log_in(page, site, who="admin")
    context.clear_cookies()
    page.goto(led_to(home, site))
    page.get_by_role("link", name="Log in as admin").wait_for()
    me = context.request.get(f"{site.url}/api/v1/me")
    assert me.status == 401
    page.get_by_role("button", name="Log in as determined").click()
    expect(page.get_by_role("button", name="determined")).to_be_visible()
    context.clear_cookies()
    (home / "started").unlink()
    page.goto(led_to(home, site))
    expect(page.get_by_role("button", name="determined")).to_be_visible()


def test_one_who_is_logged_in_goes_on(context: BrowserContext, site: Site, home: Path) -> None:
    """As the same person no new login is made: the ticket is left to end."""
    page = context.new_page()
    log_in(page, site)
    before = context.cookies()
    page.goto(led_to(home, site, "--trial", str(site.trial)))
    page.get_by_role("heading", name=f"Trial {site.trial}").wait_for()
    assert context.cookies() == before


def test_without_a_browser_the_address_is_printed(site: Site, home: Path) -> None:
    """For another machine's browser; it holds no ticket."""
    done = tenax_open(home, site, str(site.search))
    assert done.stdout == f"{site.url}/ui/experiments/{site.search}\n"
    assert "no browser here" in done.stderr
    assert list(home.glob("tenax-open-*")) == []


def test_what_is_not_there_is_said_in_the_terminal(site: Site, home: Path) -> None:
    """No browser is started for a page that has nothing to show."""
    for arguments in (["99999999"], ["--trial", "99999999"], ["0"], ["-1"]):
        with pytest.raises(subprocess.CalledProcessError) as failed:
            tenax_open(home, site, *arguments, BROWSER=f"{home}/browser %s")
        assert failed.value.returncode in (exits.NOT_FOUND, exits.USAGE)
        assert "not found" in failed.value.stderr or "No such option" in failed.value.stderr
    assert not (home / "started").exists()
