"""A master with a page and something to show, in a process of its own: what the tests of the page stand on.

The rows are the same for all tests of this folder; what a test changes, it makes itself.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import shutil
import subprocess
import sys
import zlib
from collections.abc import Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

import asyncpg
import httpx2

from tenax.config.master import MasterSettings
from tenax.master.access.bootstrap import CREDENTIALS_FILE
from tenax.master.ingest.intake import Intake
from tenax.master.store.database.connection import Database
from tenax.master.telemetry.log_lines import Origin, OutputLine
from tests.kits import plain_http
from tests.kits.api import Api, answering, settings_in
from tests.kits.machine import free_port, wait_for
from tests.kits.many_experiments import Amount, seed
from tests.kits.telemetry import ASHA, Book
from tests.web import searched, trained

if TYPE_CHECKING:
    from playwright.sync_api import FloatRect, Locator, Page

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or "/usr/bin/chromium"
#: What Playwright turns off in Chromium, which takes the last of two lists; what is below an address bar that nobody
#: sees: a page of Chromium's own, loaded with each of ours, which took as much of the processor as ours did; and the
#: process that is kept ready for a page of another site.
_OFF = (
    *("AimEnabled", "AvoidCorsURLLoaderRestartOnRedirect", "AvoidUnnecessaryBeforeUnloadCheckSync"),
    *("DestroyProfileOnBrowserClose", "HttpsFirstBalancedModeAutoEnable", "HttpsUpgrades", "LensOverlay"),
    *("MediaRouter", "NetworkTimeServiceQuerying", "OptimizationHints", "PaintHolding", "PreconnectToSearch"),
    *("ThirdPartyStoragePartitioning", "WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup"),
    "SpareRendererForSitePerProcess",
)
#: Nothing leaves this machine, and nothing is asked of it but the pages.
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    # A name that is not this machine's own, so that it is no secure context.
    "--host-resolver-rules=MAP tenax.test 127.0.0.1",
    f"--disable-features={','.join(_OFF)}",
    # A tab keeps the process that it was opened in, empty: a second one would start for what is loaded into it.
    *("--disable-site-isolation-trials", "--renderer-process-limit=1"),
]
#: For whatever a page waits for, in milliseconds. A busy machine needs a fraction of it; one that is so busy that an
#: answer takes ten seconds asks again after fifty.
TIMEOUT_MS = 120_000
#: Whatever of a name or a line is taken for HTML makes itself known.
HOSTILE = "<img src=x onerror=\"document.title='broken in'\"><b>bold</b>"
HOSTILE_LINE = "\x1b[31m<script>document.title='broken in'</script>\x1b[0m 10%\r 100% done"
LONG = "ü" * 500
AMOUNT = Amount(experiments=260, users=5, projects=2, live=12)
STEPS = 40
#: Of whoever joins.
JOINED_PASSWORD = "Newcomer-of-2026"


@dataclass
class Site:
    """Where the master is, who may log in, and what is there."""

    url: str
    #: Of ``determined``, who is no administrator.
    password: str
    token: str
    #: Of ``admin``.
    admin_password: str = ""
    dsn: str = ""
    #: One that runs, of several trials; of one trial that has failed; with a name that is HTML; with a very long one.
    search: int = 0
    failed: int = 0
    hostile: int = 0
    long: int = 0
    #: The trial with metrics and output.
    trial: int = 0
    #: One that failed, by an exception in its third line.
    failed_trial: int = 0
    #: One that is no trial's, once somebody asks for it (`started`).
    task: str = ""
    #: Whether there is usage to show (`used`).
    usage: bool = False
    #: With two versions of one model, once somebody asks for it (`registered`).
    model: int = 0
    #: A search of many trials, and these, in order of creation.
    sweep: int = 0
    swept: list[int] = field(default_factory=list)
    #: A trial that is well and has all that trials have; one that is silent; an experiment that waits for slots.
    well: int = 0
    silent: int = 0
    waiting: int = 0
    errors: list[str] = field(default_factory=list)
    #: What a browser keeps of a login through the page, by who logged in.
    sessions: dict[str, dict[str, object]] = field(default_factory=dict)
    directory: Path = Path()
    #: What the master does, and settings of it beside, as its environment spells them.
    roles: str = "[api]"
    settings: dict[str, str] = field(default_factory=dict)

    def start(self) -> None:
        """The master, at the port of before; returns once it answers."""
        environment = {
            **os.environ,
            "TENAX_MASTER_DB__URL": self.dsn,
            "TENAX_MASTER_ROLES": self.roles,
            "TENAX_MASTER_CHECKPOINT_STORAGE": f"{{type: shared_fs, host_path: {self.directory / 'checkpoints'}}}",
            **self.settings,
        }
        port = self.url.rpartition(":")[2]
        command = [sys.executable, "-m", "tenax.master", "--port", port, "--dir", str(self.directory / "master")]
        log = self.directory / "master.log"
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                [*command, "--log-level", "warning"], env=environment, stdout=output, stderr=output
            )
        wait_for(lambda: _answers(self.url) or self.process.poll() is not None, "the master")
        assert self.process.poll() is None, log.read_text()[-3000:]

    def kill(self) -> None:
        """The master, as the machine would."""
        self.process.kill()
        self.process.wait()

    def write(self, statement: str, *values: object) -> None:
        """To the database, behind the master's back; also where an event loop runs in this thread already."""

        async def execute() -> None:
            conn = await asyncpg.connect(self.dsn)
            await conn.execute(statement, *values)
            await conn.close()

        with ThreadPoolExecutor(1) as thread:
            thread.submit(asyncio.run, execute()).result()

    def rename(self, experiment: int, name: str) -> None:
        """By the API, as somebody else does."""
        self.api("PATCH", f"/api/v1/experiments/{experiment}", {"name": name})

    def api(self, method: str, path: str, body: object = None) -> dict[str, object]:
        """What the API itself says."""
        return self._asked(self.token, method, path, body)

    def administer(self, method: str, path: str, body: object = None) -> dict[str, object]:
        """The same to an administrator."""
        login = {"username": "admin", "password": self.admin_password}
        token = plain_http.post(f"{self.url}/api/v1/auth/login", json=login).json()["token"]
        return self._asked(token, method, path, body)

    def _asked(self, token: str, method: str, path: str, body: object) -> dict[str, object]:
        headers = {"Authorization": f"Bearer {token}"}
        reply = plain_http.request(method, f"{self.url}{path}", json=body, headers=headers)
        assert reply.status_code == 200, reply.text
        return cast("dict[str, object]", reply.json())

    def make(self, name: str, state: str = "ACTIVE", count: int = 1, owner: str = "determined") -> list[int]:
        """Experiments for a test to change; in a thread of its own: that of a browser runs no other event loop."""
        return _in_thread(_add(self.dsn, name, state, count, owner))

    def started(self) -> str:
        """A task that waits, with output; the same whenever it is asked for."""
        if not self.task:
            config = "name: nightly check\nentrypoint: [python3, run.py]\nresources: {slots: 0}\n"
            self.task = str(self.api("POST", "/api/v1/generic-tasks", {"config": config})["taskId"])
            self.say(self.task, [f"line of a task, {number}" for number in range(40)])
        return self.task

    def used(self) -> None:
        """Usage of June 2025, of few and of many; the same whenever it is asked for."""
        if self.usage:
            return
        self.usage = True
        self.write(
            "insert into usage (container_id, allocation_id, rank, task_id, kind, experiment_id, user_id, username,"
            " workspace_name, labels, pool, agent_id, slots, requested_at, started_at, ended_at)"
            " select 'used ' || n, 'used.' || n, 0, 'used', case n % 9 when 0 then 'COMMAND' else 'TRIAL' end,"
            " case n % 9 when 0 then null else $1::bigint end, u.id, u.username, 'Uncategorized', '{night}', 'default',"
            " 'a' || n % 3, 1 + n % 8, t.at - make_interval(mins => n % 200), t.at,"
            " t.at + make_interval(mins => 30 * (n % 70))"
            " from generate_series(1, 240) n"
            " cross join lateral (select id, username from users order by id limit 1 offset n * n % 7) u"
            " cross join lateral (select timestamptz '2025-06-01 06:00:00+00' + make_interval(hours => 3 * n) as at) t",
            self.sweep,
        )

    def warned(self) -> None:
        """The master has said something in its log: that somebody may not log in."""
        login = {"username": "nobody at all", "password": "wrong", "isHashed": False}
        assert plain_http.post(f"{self.url}/api/v1/auth/login", json=login).status_code == 401

    def registered(self) -> int:
        """A model of two versions; the same whenever it is asked for."""
        if not self.model:
            self.model = self.make_model("digits of every page", notes="# Read\n\nthis first")
        return self.model

    def make_model(self, name: str, /, **told: object) -> int:
        """A model with the newest checkpoints of the trial that is well as versions, of which the second is told of."""
        made = self.api("POST", "/api/v1/models", {"name": name, "notes": told.get("notes", "")})
        model = int(cast("dict[str, int]", made["model"])["id"])
        newest, before = self.saved()[:2]
        self.api("POST", f"/api/v1/models/{model}/versions", {"checkpointUuid": before})
        self.api("POST", f"/api/v1/models/{model}/versions", {"checkpointUuid": newest, **told})
        return model

    def saved(self) -> list[str]:
        """Checkpoints of the trial that is well, the newest first; tests delete the oldest one."""
        asked = f"/api/v1/trials/{self.well}/checkpoints?orderBy=ORDER_BY_DESC"
        return [str(each["uuid"]) for each in cast("list[dict[str, object]]", self.api("GET", asked)["checkpoints"])]

    def make_trial(self, experiment: int) -> int:
        """A trial of an experiment, that runs."""
        return _in_thread(_add_trial(self.dsn, experiment))

    def say(self, task: str, lines: Sequence[str]) -> None:
        """Output of a task."""
        _in_thread(_said(self.dsn, task, lines))

    def post(self, task: str, lines: Sequence[str]) -> None:
        """The same through the master, so that whoever follows it is told."""
        logs = [{"taskId": task, "log": line, "level": "INFO"} for line in lines]
        # Only a task itself may, and an administrator.
        self.administer("POST", "/api/v1/task/logs", {"logs": logs})

    def speak(self) -> None:
        """The trial that is well says something, however long ago it was made: a silent one is not well."""
        trial = cast("dict[str, list[str]]", self.api("GET", f"/api/v1/trials/{self.well}")["trial"])
        self.post(trial["taskIds"][0], ["step 120 of 120, loss falls"])

    def experiment(self, number: int) -> dict[str, object]:
        """One of them, as the API says it is now."""
        return cast("dict[str, object]", self.api("GET", f"/api/v1/experiments/{number}")["experiment"])

    def found(self, sort: str, offset: int = 0, limit: int = 100) -> list[dict[str, object]]:
        """Experiments in the order of the master."""
        body = {"sort": sort, "offset": offset, "limit": limit, "filter": json.dumps({"showArchived": False})}
        rows = self.api("POST", "/api/v1/experiments-search", body)["experiments"]
        return [row["experiment"] for row in cast("list[dict[str, dict[str, object]]]", rows)]

    @property
    def total(self) -> int:
        """Experiments that are not archived."""
        body = {"limit": -2, "filter": json.dumps({"showArchived": False})}
        page = self.api("POST", "/api/v1/experiments-search", body)["pagination"]
        return int(cast("dict[str, int]", page)["total"])


@contextmanager
def serving(server: str, dsn: str, template: str, directory: Path, amount: Amount = AMOUNT) -> Iterator[Site]:
    """The site, on a database of its own."""
    site = asyncio.run(_make(server, dsn, template, directory, amount))
    port = free_port()
    site.url = f"http://127.0.0.1:{port}"
    site.dsn, site.directory = dsn, directory
    # What receives messages in a test is on this machine.
    site.settings = {"TENAX_MASTER_WEBHOOKS__ALLOWED_NETWORKS": "[127.0.0.0/8]"}
    site.start()
    try:
        login = {"username": "determined", "password": site.password}
        site.token = plain_http.post(f"{site.url}/api/v1/auth/login", json=login).json()["token"]
        yield site
    finally:
        site.process.terminate()
        site.process.wait()


@contextmanager
def scheduling(server: str, dsn: str, template: str, directory: Path, **settings: str) -> Iterator[Site]:
    """A master that schedules, with nothing in it, on a database of its own: ``pretend_fleet`` brings machines."""
    _in_thread(_copy(server, dsn, template))
    named = {f"TENAX_MASTER_{name.upper()}": value for name, value in settings.items()}
    site = Site(f"http://127.0.0.1:{free_port()}", "", "", dsn=dsn, directory=directory, roles="[api, loops]")
    site.settings = named
    site.start()
    try:
        drawn = json.loads((directory / "master" / CREDENTIALS_FILE).read_text())["users"]
        site.password, site.admin_password = drawn["determined"], drawn["admin"]
        login = {"username": "admin", "password": site.admin_password}
        site.token = plain_http.post(f"{site.url}/api/v1/auth/login", json=login).json()["token"]
        yield site
    finally:
        site.process.terminate()
        site.process.wait()


async def _copy(server: str, dsn: str, template: str) -> None:
    admin = await asyncpg.connect(server)
    await admin.execute(f"create database {dsn.rpartition('/')[2].partition('?')[0]} template {template}")
    await admin.close()


def _answers(url: str) -> bool:
    with suppress(httpx2.TransportError):
        return plain_http.get(f"{url}/info", timeout=5).status_code == 200
    return False


async def _make(server: str, dsn: str, template: str, directory: Path, amount: Amount) -> Site:
    await _copy(server, dsn, template)
    database = await Database.open(dsn)
    try:
        async with answering(database, settings_in(directory)) as api:
            async with database.transaction() as conn:
                await seed(conn, amount)
            site = Site("", api.passwords["determined"], "", api.passwords["admin"], dsn)
            await _tell(api, site)
            return site
    finally:
        await database.close()


async def _tell(api: Api, site: Site) -> None:
    """Experiments of ``determined`` with something in them."""
    book = Book(api.master.db, api.master.intake)
    site.search, site.failed, site.hostile, site.long = [await book.experiment(ASHA) for _ in range(4)]
    trials = [await book.trial(experiment=site.search) for _ in range(3)]
    for place, trial in enumerate(trials):
        for step in range(1, STEPS + 1):
            loss = 2 / (step * (1 + 0.2 * place)) + 0.05 * math.sin(step)
            await book.report(trial, "training", step, {"loss": loss, "lr": 0.1 * 0.9**step})
            if step % 5 == 0:
                odd = "NaN" if step == 20 else loss * 1.1
                await book.report(trial, "validation", step, {"loss": loss * 1.1, HOSTILE: odd})
    site.trial = trials[0]
    names = {site.search: "asha over digits", site.failed: "out of memory", site.hostile: HOSTILE, site.long: LONG}
    async with api.master.db.transaction() as conn:
        owner = await conn.fetchval("select id from users where username = 'determined'")
        for number, name in names.items():
            await conn.execute("update experiment_documents set name = $2 where experiment_id = $1", number, name)
            await conn.execute("update experiments set owner_id = $2 where id = $1", number, owner)
        await conn.execute(
            "update experiments set state = 'ERROR', ended_at = now(), reason = $2 where id = $1",
            site.failed,
            "trial 1 failed: CUDA out of memory",
        )
        task = await conn.fetchval("select task_id from trials where id = $1", site.trial)
        await conn.execute("insert into agent_slots (agent_id, slot_id, kind, name) values ('a1', 0, 'cpu', 'small')")
    lines = [OutputLine(1_795_000_000_000_000 + n * 1000, f"step {n} of 600") for n in range(600)]
    lines.append(OutputLine(1_795_000_001_000_000, HOSTILE_LINE))
    await api.master.intake.logs.posted(task, lines, [Origin("", "", "a1", "task", "stdout")])
    await _fail(api, book, site)
    site.sweep, site.swept = await searched.make(api, book)
    made = await trained.make(api, book)
    site.well, site.silent, site.waiting = made.well, made.silent, made.waiting


async def _fail(api: Api, book: Book, site: Site) -> None:
    """A trial that raised, with its output."""
    site.failed_trial = await book.trial(experiment=site.failed)
    attempt = await book.run(site.failed_trial, 1)
    raised = b"Traceback (most recent call last):\n  File \"code/train.py\", line 3\nKeyError: 'x'\nbye\n"
    name = attempt.allocation_id
    await api.master.intake.logs.output("a1", name, "stderr", 0, zlib.compress(raised))
    async with api.master.db.transaction() as conn:
        await conn.execute(
            "update trials set state = 'ERROR', ended_at = now(), reason = $2 where id = $1",
            site.failed_trial,
            "your code raised KeyError: 'x' (exited with code 1)",
        )


async def _add(dsn: str, name: str, state: str, count: int, owner: str) -> list[int]:
    database = await Database.open(dsn)
    try:
        numbers = [await Book(database, cast("Intake", None)).experiment(ASHA) for _ in range(count)]
        async with database.transaction() as conn:
            for place, number in enumerate(numbers, 1):
                shown = name if count == 1 else f"{name} {place}"
                await conn.execute("update experiment_documents set name = $2 where experiment_id = $1", number, shown)
                await conn.execute(
                    "update experiments set state = $2, owner_id = (select id from users where username = $3),"
                    " ended_at = case when $2 in ('ACTIVE', 'PAUSED') then null else now() end where id = $1",
                    number,
                    state,
                    owner,
                )
                await conn.execute(
                    "update jobs set owner_id = (select id from users where username = $2),"
                    " ended_at = (select ended_at from experiments e where e.id = $1)"
                    " where job_id = (select job_id from experiments e where e.id = $1)",
                    number,
                    owner,
                )
        return numbers
    finally:
        await database.close()


async def _add_trial(dsn: str, experiment: int) -> int:
    database = await Database.open(dsn)
    try:
        return await Book(database, cast("Intake", None)).trial(experiment=experiment)
    finally:
        await database.close()


async def _said(dsn: str, task: str, lines: Sequence[str]) -> None:
    database = await Database.open(dsn)
    try:
        made = [OutputLine(1_795_000_000_000_000 + n * 1000, line) for n, line in enumerate(lines)]
        intake = Intake(database, MasterSettings().budgets)
        await intake.logs.posted(task, made, [Origin("", "", "a1", "task", "stdout")])
        intake.threads.close()
    finally:
        await database.close()


def _in_thread(made: Coroutine[object, object, T]) -> T:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, made).result()


def log_in(page: Page, site: Site, address: str = "", who: str = "determined") -> None:
    """Through the page, as a person does."""
    page.goto(f"{site.url}/ui/{address}")
    page.get_by_label("User name").fill(who)
    page.get_by_label("Password").fill(site.admin_password if who == "admin" else site.password)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("navigation", name="Places").wait_for()


def join(site: Site, who: str) -> None:
    """A new user, if there is none of that name."""
    login = {"username": "admin", "password": site.admin_password}
    token = plain_http.post(f"{site.url}/api/v1/auth/login", json=login).json()["token"]
    made = {"user": {"username": who, "active": True}, "password": JOINED_PASSWORD, "isHashed": False}
    headers = {"Authorization": f"Bearer {token}"}
    reply = plain_http.post(f"{site.url}/api/v1/users", json=made, headers=headers)
    assert reply.status_code in (200, 409), reply.text


def enter(page: Page, site: Site, who: str) -> None:
    """Through the page, as one who joined."""
    page.goto(f"{site.url}/ui/")
    page.get_by_label("User name").fill(who)
    page.get_by_label("Password").fill(JOINED_PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("heading", name="Home", level=1).wait_for()


def drawn(page: Page) -> None:
    """Once what was done is on the screen: a frame has begun after it, and the next one as well."""
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def box_of(part: Locator) -> FloatRect:
    """Where it stays, in pixels of the window: a chart that is drawn anew is nowhere for a moment, and a page that is
    still filling moves it."""

    def look() -> FloatRect | None:
        box = part.bounding_box()
        for _ in range(3):
            drawn(part.page)
            if part.bounding_box() != box:
                return None
        return box

    return wait_for(look, "a place in the window")


def hover_until(part: Locator, shows: Locator) -> None:
    """The mouse on a part until something is to be seen for it: a page that is still filling moves it from under it."""

    def look() -> bool:
        part.hover()
        drawn(part.page)
        return shows.count() > 0

    wait_for(look, "what the mouse on a part brings up")
    shows.wait_for()


def fits(page: Page) -> None:
    """Once nothing is wider than the window, which may have just changed its size, and the window itself does not
    scroll beside what scrolls in it; fails where it stays so."""
    inside = (
        "document.documentElement.scrollWidth <= innerWidth && document.documentElement.scrollHeight <= innerHeight"
    )
    # Asked as a debugger does: the page's policy lets no script wait in it.
    wait_for(lambda: page.evaluate(inside), "all to be inside the window")
