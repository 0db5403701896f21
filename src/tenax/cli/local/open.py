"""``tenax open``: the web page, in the browser, logged in as whoever asks."""

from __future__ import annotations

import html
import os
import subprocess
import sys
import tempfile
import webbrowser
from typing import Optional
from urllib.parse import urlencode

import click

from tenax.cli.console import output
from tenax.cli.console.options import Access, pass_access

#: Until the file that leads there is removed, in seconds: the ticket in it is no good any more then.
_FILE_S = 35
_SWEEPER = "import os, sys, time; time.sleep(float(sys.argv[1])); os.unlink(sys.argv[2])"
_PAGE = """<!doctype html><meta charset="utf-8"><title>Tenax</title>
<meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0;url={address}">
"""


@click.command("open")
@click.argument("experiment", metavar="[EXPERIMENT]", type=int, required=False)
@click.option("--trial", type=int, metavar="ID", help="Open this trial.")
@click.option("--print", "printed", is_flag=True, help="Print the address instead, for a browser elsewhere.")
@pass_access
def open_page(access: Access, experiment: Optional[int], trial: Optional[int], printed: bool) -> None:
    """Open the web page in the browser, logged in as you are here.

    A browser that somebody else is logged in with asks first. What leads there is good once, for half a minute.
    """
    if experiment is not None and trial is not None:
        raise click.UsageError("Name an experiment or a trial, not both.")
    session = access.session()
    where = "/"
    if experiment is not None or trial is not None:
        where = f"/trials/{trial}" if experiment is None else f"/experiments/{experiment}"
        # Whatever is not there is said here, not by a page that has nothing to show.
        session.get(f"/api/v1{where}")
    address = f"{session.url}/ui{where}"
    if printed or not _has_browser():
        print(address)
        if not printed:
            output.say("There is no browser here: open that address where there is one, and log in.")
        return
    me = session.get("/api/v1/me")["user"]
    ticket = session.call("POST", "/api/v1/auth/tickets")["ticket"]
    assert isinstance(me, dict)
    # Behind the mark nothing is sent to the master, nor written to its log, nor to those of a proxy.
    fragment = urlencode({"ticket": str(ticket), "user": str(me["username"]), "next": where})
    path = _leading_to(f"{session.url}/ui/open#{fragment}")
    # Before the browser: some are waited for, and whoever ends that leaves nothing behind.
    subprocess.Popen(
        [sys.executable, "-c", _SWEEPER, str(_FILE_S), path],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    if not webbrowser.open(f"file://{path}"):
        print(address)
        output.say("The browser could not be started: open that address in it, and log in.")
        return
    output.say(f"Opened {address} in the browser.")


def _has_browser() -> bool:
    """One with windows: in a terminal one would be in the way."""
    return sys.platform == "darwin" or any(os.environ.get(name) for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"))


def _leading_to(address: str) -> str:
    """A page for this user alone that leads on: others of the machine can read what a program is started with.

    It lies in the home directory, and is not hidden: browsers that are kept in a box read nothing else.
    """
    home = os.path.expanduser("~")
    directory = home if os.access(home, os.W_OK) else None
    with tempfile.NamedTemporaryFile(
        "w", prefix="tenax-open-", suffix=".html", dir=directory, delete=False, encoding="utf-8"
    ) as file:
        file.write(_PAGE.format(address=html.escape(address)))
    return file.name
