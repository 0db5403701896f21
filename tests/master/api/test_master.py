"""The master's own: settings without secrets, its log, the cluster's message, gauges, how long output is kept."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone

import pytest
import structlog
from pydantic import SecretStr

from tenax.config.display import HIDDEN
from tenax.config.master import DatabaseSettings, LogSettings, MasterSettings
from tenax.config.schedule import Every
from tenax.master.api.cluster.shown_settings import master_config_shown
from tenax.master.api.http import streaming
from tenax.master.loops.loop import PassContext
from tenax.master.loops.retention import Retention
from tenax.master.observability import log as log_setup
from tenax.master.observability.log import OWN_LOG, OwnLog
from tenax.master.store.database import leases
from tenax.master.store.database.wakeups import Woken
from tenax.master.store.logs import rows as logs
from tests.kits.api import Api
from tests.kits.cases import answers
from tests.kits.master.attempts import running
from tests.kits.master.experiments import create
from tests.kits.master.refusals import refusal
from tests.kits.rows import add_experiment, add_trial

NEWS = Woken(frozenset(), full=False)
log = structlog.get_logger("tenax.test")


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # The client of these tests talks, too.
    monkeypatch.setattr(logging.getLogger("httpx2"), "disabled", True)
    monkeypatch.setattr(logging.getLogger("asyncio"), "disabled", True)
    yield
    log_setup.set_up(LogSettings(level="warning", color=False))


@answers("master_config/printable", "TestPrintableConfig")
def test_settings_are_shown_without_secrets() -> None:
    """Wherever they stand; what is not secret is there ("master_config/printable")."""
    registry = {"username": "ada", "password": "geheim-1", "auth": "geheim-2"}
    settings = MasterSettings(
        cluster_name="lab",
        db=DatabaseSettings(url=SecretStr("postgresql://u:geheim-3@h/d")),
        checkpoint_storage={"type": "s3", "bucket": "b", "access_key": "geheim-4", "secret_key": "geheim-5"},
        task_container_defaults={
            "registry_auth": registry,
            "environment_variables": ["WANDB_API_KEY=geheim-6", "PLAIN=shown"],
            "image": "python:3.11",
        },
    )
    shown = master_config_shown(settings)
    assert "geheim" not in json.dumps(shown)
    assert shown["cluster_name"] == "lab"
    assert shown["checkpoint_storage"] == {"type": "s3", "bucket": "b", "access_key": HIDDEN, "secret_key": HIDDEN}
    defaults = shown["task_container_defaults"]
    assert isinstance(defaults, dict)
    assert defaults["environment_variables"] == [f"WANDB_API_KEY={HIDDEN}", "PLAIN=shown"]
    assert defaults["image"] == "python:3.11"


async def test_level_and_colour_change_while_it_runs(api: Api) -> None:
    """Of what the mask names alone; the rest needs a restart, and says so."""
    assert (await api.user.get("/api/v1/master/config")).status_code == 403
    path = "/api/v1/master/config"

    async def shown() -> dict[str, object]:
        current: dict[str, object] = (await api.admin.get(path)).json()["config"]["log"]
        return current

    start = OWN_LOG.following
    log.info("not said")
    config = {"log": {"level": "LOG_LEVEL_DEBUG", "color": True}}
    await api.admin.patch(path, {"config": config, "fieldMask": {"paths": ["log.level"]}})
    assert await shown() == {"level": "debug", "color": False, "json_lines": False}
    log.debug("said", number=3)
    await api.admin.patch(path, {"config": {"log": {"color": True}}, "fieldMask": "log.color"})
    assert await shown() == {"level": "debug", "color": True, "json_lines": False}
    await api.admin.patch(path, {"config": {"log": {"level": "LOG_LEVEL_CRITICAL", "color": False}}})
    assert await shown() == {"level": "critical", "color": False, "json_lines": False}
    log.error("not said either")
    messages = [entry.message for entry in OWN_LOG.since(start) if entry.message.endswith("[tenax.test]")]
    assert messages == ["said number=3 [tenax.test]"]
    for mask in ("db.url", "log.file", "x"):
        reply = await api.admin.patch(path, {"config": {}, "fieldMask": {"paths": [mask]}})
        assert "cannot change while the master runs" in refusal(reply)
    assert (await api.admin.patch(path, {"config": {"log": {"level": "LOUD"}}})).status_code == 400
    assert (await api.user.patch(path, {"config": config})).status_code == 403


async def lines(api: Api, **query: object) -> list[dict[str, object]]:
    reply = await api.admin.get("/api/v1/master/logs", **query)
    assert reply.status_code == 200, reply.text
    return [json.loads(line)["result"]["logEntry"] for line in reply.text.splitlines()]


async def test_its_newest_lines_can_be_read(api: Api) -> None:
    """From an offset or from the end, so many; with level, time and traceback."""
    log_setup.set_up(LogSettings(level="info", color=True))
    log.info("one", job="x")
    logging.getLogger("library").warning("two %s", "words")
    try:
        raise ZeroDivisionError("three")
    except ZeroDivisionError:
        log.exception("it broke")
    entries = await lines(api, offset=-3)
    assert [entry["message"] for entry in entries[:2]] == ["one job=x [tenax.test]", "two words [library]"]
    assert "ZeroDivisionError: three" in str(entries[2]["message"])
    assert [entry["level"] for entry in entries] == ["LOG_LEVEL_INFO", "LOG_LEVEL_WARNING", "LOG_LEVEL_ERROR"]
    first = int(str(entries[0]["id"]))
    assert [entry["id"] for entry in entries] == [first, first + 1, first + 2]
    assert [entry["id"] for entry in await lines(api, offset=first, limit=2)] == [first, first + 1]
    assert await lines(api, offset=first + 3) == []
    assert (await api.admin.get("/api/v1/master/logs", limit=-1)).status_code == 400
    assert (await api.admin.get("/api/v1/master/logs", offset="x")).status_code == 400


async def test_a_follower_hears_what_comes(api: Api) -> None:
    """As soon as it is said, until its limit is reached, or the master ends."""
    log_setup.set_up(LogSettings(level="info", color=False))
    following = OWN_LOG.following
    held = asyncio.create_task(lines(api, offset=following, limit=2, follow="true"))
    open_end = asyncio.create_task(lines(api, offset=following, follow="true"))
    await asyncio.sleep(0)
    log.info("first")
    await asyncio.to_thread(log.info, "second, of a thread")
    assert [str(entry["message"]) for entry in await held] == ["first [tenax.test]", "second, of a thread [tenax.test]"]
    api.master.shutdown.set()
    assert len(await open_end) == 2


async def test_a_follower_whose_access_ends_hears_no_more(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logged out, deactivated: the next line is not sent, and the last one says why; others hear on."""
    monkeypatch.setattr(streaming, "RECHECK_S", 0.0)
    log_setup.set_up(LogSettings(level="info", color=False))
    path = {"offset": OWN_LOG.following, "follow": "true"}
    assert (await api.admin.patch("/api/v1/users/2", {"admin": True})).status_code == 200
    leaving = await api.login("determined", api.passwords["determined"])
    readers = {"out": leaving, "off": api.user, "stays": api.admin}
    streams = {name: asyncio.create_task(who.get("/api/v1/master/logs", **path)) for name, who in readers.items()}
    await asyncio.sleep(0)
    assert (await leaving.post("/api/v1/auth/logout")).status_code == 200
    assert (await api.admin.patch("/api/v1/users/2", {"active": False})).status_code == 200
    log.info("secret")
    for name, status in (("out", 401), ("off", 403)):
        (last,) = [json.loads(line) for line in (await streams[name]).text.splitlines()]
        assert last["error"]["httpCode"] == status
    api.master.shutdown.set()
    assert "secret" in (await streams["stays"]).text


def test_old_lines_go() -> None:
    """The numbers of those that are left stay; a reader begins with the oldest."""
    ring = OwnLog(lines=3)
    for number in range(5):
        ring.handle(logging.makeLogRecord({"msg": f"line {number}", "levelname": "INFO"}))
    assert [(entry.number, entry.message) for entry in ring.since(0, 2)] == [(2, "line 2"), (3, "line 3")]
    assert [entry.number for entry in ring.since(4)] == [4]
    assert ring.since(9) == []


def stamp(hours: float) -> str:
    return (datetime.now(timezone.utc) + timedelta(hours=hours)).isoformat().replace("+00:00", "Z")


async def test_a_message_is_shown_in_its_time(api: Api) -> None:
    """By GetMaster while it lasts, to all; before that to administrators who ask for it; the next takes its place."""
    path = "/api/v1/master/cluster_message"

    async def shown() -> str | None:
        message = (await api.nobody.get("/api/v1/master")).json()["clusterMessage"]
        return None if message is None else str(message["message"])

    assert (await api.user.get(path)).status_code == 403
    assert (await api.admin.get(path)).json() == {"clusterMessage": None}
    assert (await api.admin.ask("PUT", path, {"message": "soon", "startTime": stamp(1)})).status_code == 200
    assert await shown() is None
    assert (await api.admin.get(path)).json()["clusterMessage"]["message"] == "soon"
    now = {"message": "maintenance", "startTime": stamp(-1), "duration": "2h"}
    await api.admin.ask("PUT", path, now)
    assert await shown() == "maintenance"
    message = (await api.admin.get(path)).json()["clusterMessage"]
    begins, ends = (datetime.fromisoformat(message[name]) for name in ("startTime", "endTime"))
    assert ends - begins == timedelta(hours=2)
    async with api.master.db.transaction() as conn:
        await conn.execute("update cluster_message set ends_at = now()")
    assert await shown() is None
    assert (await api.admin.get(path)).json() == {"clusterMessage": None}
    await api.admin.ask("PUT", path, {"message": "for good", "startTime": stamp(-1), "endTime": None})
    assert await shown() == "for good"
    assert (await api.admin.delete(path)).status_code == 200
    assert (await api.admin.delete(path)).status_code == 200
    assert await shown() is None
    assert (await api.user.ask("PUT", path, now)).status_code == 403
    assert (await api.user.delete(path)).status_code == 403


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"message": ""}, "message"),
        ({"message": "x" * 251}, "message"),
        ({"message": "x", "duration": "long"}, "duration"),
        ({"message": "x", "duration": "9999999w"}, "duration"),
        ({"message": "x", "startTime": "tomorrow"}, "start"),
        ({"message": "x", "startTime": stamp(2), "endTime": stamp(1)}, "endTime"),
        ({"message": "x", "startTime": stamp(-2), "endTime": stamp(-1)}, "endTime"),
        ({"message": "x", "endTime": stamp(1), "duration": "1h"}, "endTime"),
        ({"message": 7}, "message"),
    ],
)
async def test_messages_that_make_no_sense_are_refused(api: Api, body: dict[str, object], reason: str) -> None:
    """With the field named."""
    reply = await api.admin.ask("PUT", "/api/v1/master/cluster_message", body)
    assert reply.status_code == 400
    assert reason in refusal(reply)


async def test_prometheus_is_told_what_belongs_together(api: Api) -> None:
    """Containers, allocations, tasks, jobs, experiments, labels; agents and slots by what they do."""
    run = await running(api)
    async with api.master.db.transaction() as conn:
        await conn.execute("update agent_slots set kind = 'cuda', uuid = 'GPU-' || slot_id")
    text = (await api.user.get("/prom/det-state-metrics")).text
    container, allocation = run.attempt.containers[0], run.attempt.allocation_id
    assert f'det_container_id_allocation_id{{allocation_id="{allocation}",container_id="{container}"}} 1.0' in text
    assert f'det_gpu_uuid_container_id{{container_id="{container}",gpu_uuid="GPU-0"}} 1.0' in text
    assert 'det_experiment_id_label{experiment_id="' in text
    assert 'label="vision"' in text
    assert 'tenax_slots{kind="cuda",pool="default",state="free"} 3.0' in text
    assert 'tenax_agents{pool="default",state="enabled"} 1.0' in text
    assert 'tenax_attempts{pool="default",state="placed"} 1.0' in text
    (target,) = (await api.user.get("/prom/det-http-sd-config")).json()
    assert target["targets"] == ["10.0.0.1:8080", "10.0.0.1:9400"]
    assert "tenax_http_requests_total" in (await api.user.get("/debug/prom/metrics")).text
    for path in ("/prom/det-state-metrics", "/prom/det-http-sd-config", "/debug/prom/metrics"):
        assert (await api.nobody.get(path)).status_code == 401


async def output_of(api: Api, config: dict[str, object] | None = None, *, days_ago: float | None) -> tuple[int, str]:
    """A trial with two lines of output, which ended so long ago; None: it goes on."""
    async with api.master.db.transaction() as conn:
        trial = await add_trial(conn, await add_experiment(conn, config=config))  # type: ignore[arg-type]
        task = await conn.fetchval("select task_id from trials where id = $1", trial)
        await logs.append_system_line(conn, task, "one\ntwo")
        if days_ago is not None:
            ended = datetime.now(timezone.utc) - timedelta(days=days_ago)
            await conn.execute("update trials set state = 'COMPLETED', ended_at = $2 where id = $1", trial, ended)
            await conn.execute("update tasks set ended_at = $2 where task_id = $1", task, ended)
    return trial, task


async def kept(api: Api) -> set[str]:
    async with api.master.db.connection() as conn:
        assert {row["task_id"] for row in await conn.fetch("select task_id from log_tasks")} == {
            row["task_id"] for row in await conn.fetch("select task_id from log_chunks")
        }
        return {row["task_id"] for row in await conn.fetch("select task_id from log_tasks")}


async def test_output_is_kept_as_long_as_the_narrowest_says(api: Api) -> None:
    """Trial, experiment, configuration, master; what runs keeps all of it, and -1 is for ever."""
    week = {"searcher": {"name": "single", "metric": "loss"}, "retention_policy": {"log_retention_days": 7}}
    for_ever, default = await output_of(api, days_ago=100), await output_of(api, days_ago=1)
    young, old = await output_of(api, week, days_ago=6.9), await output_of(api, week, days_ago=7.1)
    going_on = await output_of(api, week, days_ago=None)
    changed = await output_of(api, week, days_ago=100)
    retain = "/api/v1/trials/{}/retain_logs"
    assert (await api.admin.ask("PUT", retain.format(for_ever[0]), {"numDays": -1})).status_code == 200
    assert (await api.admin.ask("PUT", retain.format(changed[0]), {"num_days": 101})).status_code == 200
    assert (await api.admin.post("/api/v1/cleanup_logs")).json() == {"removedCount": "2"}
    assert await kept(api) == {for_ever[1], default[1], young[1], going_on[1], changed[1]}
    assert (await api.admin.post("/api/v1/cleanup_logs")).json() == {"removedCount": "0"}
    left = "/api/v1/trials/{}/remaining_log_retention_days"
    days = [
        (await api.user.get(left.format(added[0]))).json()["remainingDays"]
        for added in (for_ever, young, old, going_on)
    ]
    assert days == [-1, 1, 0, 7]
    assert (await api.user.post("/api/v1/cleanup_logs")).status_code == 403


async def test_retention_is_said_by_the_owner(api: Api) -> None:
    """In days that make sense."""
    experiment = (await create(api))["experiment"]
    async with api.master.db.transaction() as conn:
        trial = await add_trial(conn, experiment["id"])  # type: ignore[index]
    path = f"/api/v1/trials/{trial}/retain_logs"
    assert (await api.user.ask("PUT", path, {"numDays": 3})).status_code == 200
    assert (await api.user.get(f"/api/v1/trials/{trial}/remaining_log_retention_days")).json()["remainingDays"] == 3
    for days in (-2, 32768, "x", None):
        assert (await api.user.ask("PUT", path, {"numDays": days})).status_code == 400
    assert (await api.user.ask("PUT", "/api/v1/trials/999/retain_logs", {"numDays": 3})).status_code == 404
    assert (await api.user.get("/api/v1/trials/999/remaining_log_retention_days")).status_code == 404
    foreign, _ = await output_of(api, days_ago=None)
    assert (await api.user.ask("PUT", f"/api/v1/trials/{foreign}/retain_logs", {"numDays": 3})).status_code == 403


async def test_the_loop_cleans_up_at_the_times_of_its_schedule(api: Api) -> None:
    """Not at once after a start, then whenever it is due; a master that takes over goes on where the other was."""
    await output_of(api, days_ago=2)
    async with api.master.db.transaction() as conn:
        lease = await leases.acquire(conn, "retention", "test", 3600.0)
    assert lease is not None
    context = PassContext(api.master.db, lease)
    hourly = Retention(1, Every(3600.0))
    assert await Retention(1, None).make_pass(context, NEWS) is None
    first = await hourly.make_pass(context, NEWS)
    assert first is not None
    assert len(await kept(api)) == 1
    again = await hourly.make_pass(context, NEWS)
    assert again is not None
    assert 3500 < again <= 3600
    async with api.master.db.transaction() as conn:
        await conn.execute("update chores set done_at = now() - interval '61 minutes'")
    await Retention(1, Every(3600.0)).make_pass(context, NEWS)
    assert await kept(api) == set()
    following = await hourly.make_pass(context, NEWS)
    assert following is not None
    assert following > 3500


async def test_what_readers_of_the_configuration_look_for(api: Api) -> None:
    """Under Determined's names: what places tasks, the pools, the switches; and no provider of logins where none is."""
    config = (await api.admin.get("/api/v1/master/config")).json()["config"]
    assert config["resource_manager"]["type"] == "agent"
    assert [pool["pool_name"] for pool in config["resource_pools"]] == ["default"]
    assert config["feature_switches"] == []
    assert "sso_providers" not in (await api.nobody.get("/info")).json()


async def test_tasks_are_listed_for_scripts(api: Api) -> None:
    """By the id of their attempt, in names with underscores; the version of an agent compares with the master's."""
    run = await running(api)
    listed = (await api.user.get("/tasks")).json()
    (attempt,) = listed.values()
    assert list(listed) == [attempt["allocation_id"]]
    assert (attempt["name"], len(attempt["resources"])) == (f"Trial {run.trial} (Experiment 1)", 1)
    assert list(attempt["resources"][0]["agent_devices"]) == ["a1"]
    (agent,) = (await api.user.get("/api/v1/agents")).json()["agents"]
    assert agent["version"] == (await api.nobody.get("/info")).json()["version"]
