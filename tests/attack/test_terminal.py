"""What one person writes into a log or a name reaches other people's terminals: nothing there obeys it."""

from __future__ import annotations

import io
import json
import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from tenax.cli.main import run
from tenax.client.connection.saved_logins import TokenStore
from tenax.config.master import LogSettings
from tenax.display.terminal import VisibleStream, is_name, visible
from tenax.master.observability.log import set_up
from tests.kits.api import Api
from tests.kits.cli.experiments import experiment, serve, trial
from tests.kits.cli.terminal import on_terminal
from tests.kits.master.experiments import CONFIG, create
from tests.kits.pretend_master import PretendMaster, Reply

#: Clipboard, title, another page of the screen, the cursor, a string for the terminal to answer, and 8-bit forms.
ESCAPES = (
    "\x1b]52;c;cm0gLXJmIH4K\x07",
    "\x1b]0;root@master\x1b\\",
    "\x1b[?1049h",
    "\x1b[2J\x1b[H",
    "\x1b[1A\x1b[2K",
    "\x1bP$q\x1b\\",
    "\x1b[6n",
    "\x1bc",
    "\x9b2J",
    "\x9d52;c;cm0K\x9c",
    "\x90q\x9c",
    "over\rwritten",
    "back\b\b\b\bspace",
    "\x07\x0e\x7f",
    "\u202etxt.exe\u2066",
)
NASTY = "".join(ESCAPES)
#: Whatever a terminal obeys, besides colours, line feeds and tabs.
OBEYED = re.compile("\x1b(?!\\[[0-9;:]*m)|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture
def master(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[PretendMaster]:
    """A master where everything is called something nasty."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with PretendMaster().running() as running:
        monkeypatch.setenv("DET_MASTER", running.url)
        TokenStore().put(running.url, "ann", "t")
        running.on("GET", "/api/v1/me", {"user": {"username": "ann", "id": 2}})
        one = experiment(name=NASTY, description=f"{NASTY}\n{NASTY}", labels=[NASTY], notes=NASTY, username=NASTY)
        config = {"searcher": {"name": "random", "metric": NASTY}, "description": NASTY}
        serve(running, {**one, "config": config, "stateReason": NASTY}, trial(3, best=0.5))
        running.on("GET", "/api/v1/experiments", {"experiments": [one], "pagination": {}})
        line = {"result": {"id": "1", "message": f"\x1b[31mred {NASTY}", "level": "LOG_LEVEL_INFO", "log": NASTY}}
        running.on("GET", "/api/v1/trials/3/logs", Reply(lines=[line, line]))
        running.on("GET", "/api/v1/trials/3", {"trial": trial(3)})
        running.on("GET", "/api/v1/models/x", Reply({"error": {"code": 5, "error": NASTY}}, 404))
        yield running


COMMANDS = [
    ("experiment", "list"),
    ("experiment", "list", "--csv"),
    ("experiment", "list", "--json"),
    ("experiment", "describe", "7"),
    ("experiment", "config", "7"),
    ("trial", "logs", "3"),
    ("trial", "logs", "3", "--json"),
    ("model", "describe", "x"),
    ("experiment", NASTY.replace("\0", "")),
]


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_prints_what_a_terminal_obeys(
    master: PretendMaster, command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """Into a file, a pipe, or in an error; JSON stays JSON, and means the same."""
    run(list(command))
    shown = capsys.readouterr()
    assert not OBEYED.search(shown.out + shown.err)
    assert "]52;c;" in shown.out + shown.err
    if "--json" in command and command[0] == "experiment":
        assert json.loads(shown.out)[0]["name"] == NASTY


@pytest.mark.parametrize("command", [*COMMANDS, ("experiment", "wait", "7")])
def test_a_terminal_gets_colours_and_nothing_else(master: PretendMaster, command: tuple[str, ...]) -> None:
    """Its own answer, too: what is followed moves the cursor by itself alone."""
    if command[1] == "wait":
        running = experiment(name=NASTY, stateReason=NASTY)
        ended = experiment(name=NASTY, state="STATE_COMPLETED")
        master.on("GET", "/api/v1/experiments/7", {"experiment": running}, {"experiment": ended})
    with on_terminal(*command) as terminal:
        terminal.end()
        shown = terminal.shown.replace("\r\n", "\n")
    if command[1] == "wait":
        # Rich shows and hides the cursor, and goes up a line.
        shown = re.sub("\x1b\\[(\\?25[lh]|[12]?[AK]|[0-9]*[AK])|\r", "", shown)
    assert not OBEYED.search(shown)
    if command == ("trial", "logs", "3"):
        assert "\x1b[31mred" in shown
        assert "\x1b[0m" in shown


@given(st.text(st.characters(codec="utf-8"), max_size=60))
def test_nothing_that_is_visible_is_obeyed(text: str) -> None:
    """Of any text; what it shows is a name if the text was one, and shown twice it is the same."""
    for colors in (False, True):
        shown = visible(text, colors=colors)
        assert not OBEYED.search(shown)
        assert visible(shown, colors=colors) == shown
    assert not is_name(text) or visible(text) == text
    below = io.StringIO()
    print(text, file=VisibleStream(below))  # type: ignore[arg-type]
    assert not OBEYED.search(below.getvalue())


def test_a_colour_ends_with_its_line() -> None:
    """So that a line which hides its text hides no other."""
    assert visible("a\x1b[8mb\nc", colors=True) == "a\x1b[8mb\x1b[0m\nc"
    assert visible("a\x1b[8mb\x1b[0m\nc", colors=True) == "a\x1b[8mb\x1b[0m\nc"
    assert visible("a\x1b[8mb\nc") == "ab\nc"


def test_the_log_of_the_master_is_visible(capsys: pytest.CaptureFixture[str]) -> None:
    """Names and addresses of others stand in it."""
    try:
        set_up(LogSettings(color=True))
        handler = logging.getLogger().handlers[0]
        assert isinstance(handler, logging.StreamHandler)
        handler.setStream(sys.stderr)
        structlog.get_logger("tenax.attack").warning(NASTY, path=NASTY)
        shown = capsys.readouterr().err
    finally:
        set_up(LogSettings(level="warning", color=False))
    assert "u001b" in shown
    assert not OBEYED.search(shown)


@pytest.mark.parametrize("name", ["a\x1b[2Jb", "a\x9b2Jb", "a\nb", "a\tb", "a\rb", "a\u202eb", "a\x7fb"])
async def test_no_name_holds_a_control_character(api: Api, name: str) -> None:
    """Whatever is named: it is refused, and the refusal says what is wrong without repeating it."""
    number = (await create(api))["experiment"]["id"]
    workspace = (await api.admin.post("/api/v1/workspaces", {"name": "fine"})).json()["workspace"]["id"]
    quoted = json.dumps(name)
    path = "".join(f"%{byte:02X}" for byte in name.encode())
    webhook = {
        "name": name,
        "url": "http://example.org",
        "webhookType": "WEBHOOK_TYPE_DEFAULT",
        "triggers": [{"triggerType": "TRIGGER_TYPE_CUSTOM"}],
    }
    posts: list[tuple[str, str, object]] = [
        ("POST", "/api/v1/experiments", {"config": CONFIG.replace("name: digits", f"name: {quoted}")}),
        ("POST", "/api/v1/experiments", {"config": CONFIG.replace("[vision, small]", f"[{quoted}]")}),
        ("PATCH", f"/api/v1/experiments/{number}", {"name": name}),
        ("PATCH", f"/api/v1/experiments/{number}", {"labels": [name]}),
        ("PUT", f"/api/v1/experiments/{number}/labels/{path}", None),
        ("PUT", f"/api/v1/experiments/by-external-id/{path}", {"config": CONFIG, "unmanaged": True}),
        ("POST", "/api/v1/models", {"name": name}),
        ("POST", "/api/v1/models", {"name": "m", "labels": [name]}),
        ("POST", "/api/v1/workspaces", {"name": name}),
        ("PATCH", f"/api/v1/workspaces/{workspace}", {"name": name}),
        ("POST", f"/api/v1/workspaces/{workspace}/projects", {"name": name}),
        ("PATCH", "/api/v1/projects/1", {"name": name}),
        ("POST", "/api/v1/projects/1/notes", {"name": name, "contents": "c"}),
        ("POST", "/api/v1/users", {"user": {"username": name}, "password": "p" * 12}),
        ("POST", "/api/v1/users", {"user": {"username": "u", "displayName": name}, "password": "p" * 12}),
        ("PATCH", "/api/v1/users/2", {"displayName": name}),
        ("POST", "/api/v1/groups", {"name": name}),
        ("POST", f"/api/v1/templates/{path}", {"config": {}}),
        ("POST", "/api/v1/webhooks", webhook),
        ("POST", "/api/v1/generic-tasks", {"config": f"name: {quoted}\nentrypoint: [sh]\n"}),
    ]
    for method, where, body in posts:
        reply = await api.admin.ask(method, where, body)
        # A line feed in an address leads to no route.
        refused = (400, 404) if "\n" in name and path in where else (400,)
        assert reply.status_code in refused, (method, where, reply.text)
        assert not OBEYED.search(reply.json()["error"]["error"]), (method, where, reply.text)
