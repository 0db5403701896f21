"""A trial that goes on after its end: a task more each time, and one log, one history, one account for all of them."""

from __future__ import annotations

import asyncio
import json
import zlib
from dataclasses import dataclass
from pathlib import Path

import pytest

from tenax.jsonvalue import JsonObject
from tenax.lifecycle.container import ContainerState, Ending
from tenax.master.allocations import events as allocation_events
from tenax.master.allocations.events import MemberReport
from tenax.master.loops.loop import PassContext
from tenax.master.store.experiments import continuing
from tenax.master.store.experiments import rows as experiments
from tenax.master.store.logs import retention
from tenax.master.store.logs import rows as logs
from tenax.master.submission.continuing import continued, overlaid
from tests.kits.api import Api, bearer
from tests.kits.master.deleting import context, make_pass
from tests.kits.master.experiments import CONFIG, create
from tests.kits.master.follower import following
from tests.kits.master.server import serving
from tests.kits.rows import Attempt, add_agent, add_trial, run_attempt

__all__ = ["context"]

SINGLE = CONFIG.replace("{name: random, metric: accuracy, smaller_is_better: false, max_trials: 8}",
                        "{name: single, metric: loss}")  # fmt: skip
#: What an experiment leaves that is gone has none of these.
TABLES = (
    "trials",
    "tasks",
    "allocations",
    "containers",
    "log_tasks",
    "log_chunks",
    "log_streams",
    "checkpoint_uploads",
)


@dataclass
class Story:
    """An experiment, and what happens to its trials."""

    api: Api
    experiment: int

    async def value(self, sql: str, *arguments: object) -> object:
        async with self.api.master.db.connection() as conn:
            value: object = await conn.fetchval(sql, *arguments)
            return value

    async def execute(self, sql: str, *arguments: object) -> None:
        async with self.api.master.db.transaction() as conn:
            await conn.execute(sql, *arguments)

    async def run(self, trial: int, text: str = "") -> Attempt:
        """Its next attempt runs, and writes."""
        async with self.api.master.db.transaction() as conn:
            attempt = await run_attempt(conn, trial)
        if text:
            await self.write(attempt, text)
        return attempt

    async def write(self, attempt: Attempt, text: str, offset: int = 0) -> None:
        body = zlib.compress(f"{text}\n".encode())
        await self.api.master.intake.logs.output("a1", attempt.containers[0], "stdout", offset, body)

    async def end(self, attempt: Attempt, code: int = 0) -> None:
        """The attempt, and with it the trial."""
        ending = Ending(code, None, f"exited with code {code}")
        async with self.api.master.db.transaction() as conn:
            await conn.execute("update experiment_documents set config = jsonb_set(config, '{max_restarts}', '0')")
            await allocation_events.members_reported(
                conn, [MemberReport(attempt.containers[0], ContainerState.TERMINATED, ending)]
            )
            await conn.execute("update containers set gone_at = now() where container_id = $1", attempt.containers[0])
            await conn.execute("delete from slots_in_use where container_id = $1", attempt.containers[0])

    async def go_on(self) -> None:
        """The experiment has ended, and is continued."""
        await self.execute("update experiments set state = 'ERROR', ended_at = now() where id = $1", self.experiment)
        reply = await self.api.user.post("/api/v1/experiments/continue", {"id": self.experiment})
        assert reply.status_code == 200, reply.text

    async def trial(self, trial: int) -> JsonObject:
        return dict((await self.api.user.get(f"/api/v1/trials/{trial}")).json()["trial"])

    async def texts(self, path: str, **query: object) -> list[str]:
        """What the task or trial has written, without what the platform says of it."""
        lines = (await self.api.user.get(f"{path}/logs", sources="task", **query)).text.splitlines()
        return [json.loads(line)["result"]["log"].rstrip("\n") for line in lines]


async def begun(api: Api, config: str = SINGLE, trials: int = 1) -> tuple[Story, list[int]]:
    """An experiment with so many trials."""
    experiment: int = (await create(api, config))["experiment"]["id"]  # type: ignore[index]
    async with api.master.db.transaction() as conn:
        await add_agent(conn, "a1", 8)
        return Story(api, experiment), [await add_trial(conn, experiment, seq) for seq in range(1, trials + 1)]


async def continued_twice(api: Api, config: str = SINGLE) -> tuple[Story, int, list[str]]:
    """A trial that has ended after three tasks with a run each; and these tasks."""
    story, (trial,) = await begun(api, config)
    for number in range(1, 4):
        attempt = await story.run(trial, f"run {number}")
        await story.end(attempt, code=1)
        if number < 3:
            await story.go_on()
    tasks = (await story.trial(trial))["taskIds"]
    assert isinstance(tasks, list)
    return story, trial, [str(task) for task in tasks]


async def test_each_time_it_has_one_more_task(api: Api) -> None:
    """Named after the first, the newest last; the former have ended, and runs are counted through."""
    story, trial, tasks = await continued_twice(api)
    first = tasks[0]
    shown = await story.trial(trial)
    assert tasks == [first, f"{first}-1", f"{first}-2"]
    assert shown["taskId"] == tasks[-1]
    for number, task in enumerate(tasks, 1):
        described = (await api.user.get(f"/api/v1/tasks/{task}")).json()["task"]
        assert described["taskType"] == "TASK_TYPE_TRIAL"
        assert described["endTime"]
        assert [each["allocationId"] for each in described["allocations"]] == [f"{task}.{number}"]
    await story.go_on()
    assert (await api.user.get(f"/api/v1/tasks/{first}-3")).json()["task"]["endTime"] is None


async def test_the_eleventh_comes_after_the_second(api: Api) -> None:
    """Tasks are in the order of their making, and not in that of their letters."""
    story, (trial,) = await begun(api)
    await story.end(await story.run(trial))
    for _ in range(11):
        await story.execute("update trials set state = 'ERROR', ended_at = now()")
        await story.go_on()
    tasks = (await story.trial(trial))["taskIds"]
    assert isinstance(tasks, list)
    assert [str(task).rpartition("-")[2] for task in tasks[1:]] == [str(number) for number in range(1, 12)]


async def test_of_a_search_only_trials_that_go_on_have_another_task(api: Api) -> None:
    """One that had completed keeps the one it had."""
    story, (well, ill) = await begun(api, CONFIG, trials=2)
    await story.end(await story.run(well))
    await story.end(await story.run(ill), code=1)
    await story.go_on()
    assert [len((await story.trial(trial))["taskIds"]) for trial in (well, ill)] == [1, 2]  # type: ignore[arg-type]
    attempt = await story.run(ill)
    assert attempt.allocation_id.endswith("-1.2")
    await story.end(attempt, code=1)
    await story.go_on()
    assert [len((await story.trial(trial))["taskIds"]) for trial in (well, ill)] == [1, 3]  # type: ignore[arg-type]


async def test_its_output_is_one_log_and_that_of_each_task_is_its_own(api: Api) -> None:
    """Numbered through, each line in one task, the platform's own among them; filters and searches see all of it."""
    story, trial, tasks = await continued_twice(api)
    path = f"/api/v1/trials/{trial}"
    assert await story.texts(path) == ["run 1", "run 2", "run 3"]
    whole = [json.loads(line)["result"] for line in (await api.user.get(f"{path}/logs")).text.splitlines()]
    assert [line["id"] for line in whole] == [str(number) for number in range(6)]
    parts = []
    for number, task in enumerate(tasks, 1):
        assert await story.texts(f"/api/v1/tasks/{task}") == [f"run {number}"]
        answer = (await api.user.get(f"/api/v1/tasks/{task}/logs")).text.splitlines()
        parts += [json.loads(line)["result"] for line in answer]
        (fields,) = (await api.user.get(f"/api/v1/tasks/{task}/logs/fields")).text.splitlines()
        assert json.loads(fields)["result"]["allocationIds"] == [f"{task}.{number}"]
    assert [line["id"] for line in parts] == [line["id"] for line in whole]
    (fields,) = (await api.user.get(f"{path}/logs/fields")).text.splitlines()
    assert len(json.loads(fields)["result"]["allocationIds"]) == 3
    window = (await api.user.get(f"{path}/logs/lines", limit=2)).json()
    assert ([line["number"] for line in window["lines"]], window["total"]) == ([4, 5], 6)
    assert (await api.user.get(f"{path}/logs/hits", searchText="run 1")).json()["first"][0] == 0
    assert (await api.user.get(f"{path}/logs/failure")).json()["line"]["number"] == 5
    assert await story.value("select count(*) from log_tasks") == 1


async def test_lines_without_an_attempt_are_of_the_task_that_has_them(api: Api) -> None:
    """Of the master, of Determined's shipper, and what a former task still sends after the next was made."""
    story, (trial,) = await begun(api)
    before = await story.run(trial, "old")
    await story.end(before)
    await story.go_on()
    first, newest = (await story.trial(trial))["taskIds"]  # type: ignore[misc]
    async with api.master.db.transaction() as conn:
        await logs.append_system_line(conn, str(newest), "of the newest")
        await logs.append_system_line(conn, str(first), "of the first")
        await logs.append_system_lines(conn, [logs.SystemLine(str(newest), "of the newest, too")])
    line = {"task_id": newest, "timestamp": "2026-11-20T10:00:00Z", "log": "shipped\n"}
    reply = await api.admin.post("/api/v1/task/logs", {"logs": [line]})
    assert reply.status_code == 200, reply.text
    await story.execute("update containers set gone_at = null")
    await story.write(before, "late", offset=4)
    texts = {}
    for task in (first, newest):
        lines = (await api.user.get(f"/api/v1/tasks/{task}/logs")).text.splitlines()
        texts[task] = [json.loads(line)["result"]["log"].strip() for line in lines]
    assert [texts[first][0], *texts[first][2:]] == ["old", "of the first", "late"]
    assert texts[newest] == ["of the newest", "of the newest, too", "shipped"]


async def test_who_follows_it_goes_on_over_a_continue(api: Api) -> None:
    """No line is lost or comes twice; who follows a task is at the end with it."""
    story, (trial,) = await begun(api)
    attempt = await story.run(trial, "run 1")
    first = str((await story.trial(trial))["taskId"])
    of_trial = asyncio.ensure_future(story.texts(f"/api/v1/trials/{trial}", follow=True))
    of_first = asyncio.ensure_future(story.texts(f"/api/v1/tasks/{first}", follow=True))
    async with api.master.db.transaction() as conn:
        # Both at once: nobody sees the trial ended.
        await conn.execute("update trials set state = 'ERROR', ended_at = now()")
        await conn.execute("update tasks set ended_at = now()")
        await conn.execute("update allocations set state = 'TERMINATED', ended_at = now()")
        await conn.execute("update experiments set state = 'ERROR', ended_at = now()")
        stored = (await experiments.plan(conn, story.experiment)).config
        pool = api.master.settings.pool("default")
        assert pool is not None
        ended = await continuing.trials_of(conn, story.experiment)
        new = continued(story.experiment, stored, overlaid(stored, "", pool), pool, ended)
        await continuing.go_on(conn, await experiments.lock(conn, story.experiment), new)
        await logs.append_system_line(conn, first, "it goes on")
    assert await of_first == ["run 1"]
    again = await story.run(trial, "run 2")
    assert again.allocation_id == f"{first}-1.2"
    assert not of_trial.done()
    await story.end(again)
    await api.heard()
    assert await of_trial == ["run 1", "run 2"]
    assert attempt.allocation_id == f"{first}.1"


@pytest.mark.parametrize("opened", ["before", "after"])
async def test_a_page_that_shows_it_sees_its_output_grow(api: Api, opened: str) -> None:
    """Opened before it went on, or after: how many lines there are of all its tasks."""
    story, (trial,) = await begun(api)
    first = str((await story.trial(trial))["taskId"])
    await story.end(await story.run(trial, "run 1"), code=1)
    if opened == "after":
        await story.go_on()
    async with serving(api) as port, following(port, bearer(api.user), f"trials/{trial}") as page:
        await page.hello()
        if opened == "before":
            await story.go_on()
        await story.run(trial, "run 2")
        # Word of the lines before may come first.
        await page.change("output", first, trialId=trial, lines=3)


async def test_what_it_held_counts_all_its_tasks(api: Api) -> None:
    """Slot hours, how long it took, its history, its newest attempt, and the account of its experiment."""
    story, trial, tasks = await continued_twice(api)
    await story.execute("update allocations set assigned_at = ended_at - interval '10 seconds'")
    await story.execute("update containers set started_at = ended_at - interval '5 seconds'")
    await story.execute("update usage set started_at = ended_at - interval '10 seconds'")
    await story.go_on()
    shown = await story.trial(trial)
    assert shown["wallClockTime"] == 30
    assert shown["runningSeconds"] == 15
    history = (await api.user.get(f"/api/v1/trials/{trial}/events")).json()["events"]
    assert [each["runId"] for each in history if each["kind"].endswith("STARTED")] == [3, 2, 1]
    health = (await api.user.get(f"/api/v1/trials/{trial}/health")).json()
    assert (health["slots"], health["agents"]) == (1, ["a1"])
    assert await story.value("select array_agg(task_id order by started_at) from usage") == tasks
    assert await story.value("select count(distinct experiment_id) from usage") == 1


async def test_its_checkpoints_stay_its_own(api: Api) -> None:
    """What the former task saved is listed with its task, and may be said again by a later run of the trial."""
    story, (trial,) = await begun(api)
    attempt = await story.run(trial)
    uuid = "0f3c2a1b-0000-4000-8000-000000000001"
    first = str((await story.trial(trial))["taskId"])

    async def report(attempt: Attempt, task: str, steps: int) -> None:
        speaker = await api.task(attempt.allocation_id)
        body = {"uuid": uuid, "taskId": task, "allocationId": attempt.allocation_id, "state": "STATE_COMPLETED",
                "metadata": {"steps_completed": steps}, "resources": {}}  # fmt: skip
        reply = await speaker.post("/api/v1/checkpoints", body)
        assert reply.status_code == 200, reply.text

    await report(attempt, first, 5)
    await story.end(attempt, code=1)
    await story.go_on()
    await report(await story.run(trial), f"{first}-1", 6)
    (listed,) = (await api.user.get(f"/api/v1/trials/{trial}/checkpoints")).json()["checkpoints"]
    assert (listed["taskId"], listed["metadata"]["steps_completed"]) == (first, 6)


async def test_its_output_is_kept_from_the_end_of_the_newest_task(api: Api) -> None:
    """While it goes on nothing is removed; what the trial says of its days counts for all of it, and all of it goes."""
    story, trial, _ = await continued_twice(api)
    await story.execute("update log_tasks set ended_at = now() - interval '9 days'")
    await story.go_on()
    assert await story.value("select ended_at is null from log_tasks") is True
    reply = await api.user.put(f"/api/v1/trials/{trial}/retain_logs", {"numDays": 1})
    assert reply.status_code == 200, reply.text
    assert await story.value("select keep_days from log_tasks") == 1
    async with api.master.db.transaction() as conn:
        assert await retention.clean(conn, 1) == (0, 0)
    await story.end(await story.run(trial, "run 4"))
    assert (
        await story.value("select l.ended_at = k.ended_at from log_tasks l, trials t join tasks k using (task_id)")
        is True
    )
    await api.user.patch(f"/api/v1/experiments/{story.experiment}", {"name": "other"})
    await story.execute(
        "update tasks k set ended_at = now() - interval '2 days' from trials t where t.task_id = k.task_id"
    )
    async with api.master.db.transaction() as conn:
        assert (await retention.clean(conn, -1))[0] == 1
    assert await story.value("select count(*) from log_chunks") == 0


async def test_the_days_of_its_experiment_count_for_all_its_output(api: Api) -> None:
    """Set when it has gone on already."""
    story, _, _ = await continued_twice(api)
    await story.execute("update experiment_documents set log_retention_days = 3")
    assert await story.value("select keep_days from log_tasks") == 3


def storage_of(api: Api) -> str:
    """The cluster's, which is there."""
    storage = api.master.settings.checkpoint_storage
    Path(str(storage["host_path"])).mkdir()
    return json.dumps(storage)


@pytest.mark.parametrize("whole", [True, False])
async def test_nothing_of_it_is_left_behind(api: Api, context: PassContext, whole: bool) -> None:
    """With its experiment, or as a run by itself."""
    story, trial, tasks = await continued_twice(api, SINGLE if whole else CONFIG)
    await story.execute("insert into storage_backends (config) values ($1::text::jsonb)", storage_of(api))
    for task in tasks:
        await story.execute(
            "insert into checkpoint_uploads (uuid, task_id, allocation_id, storage_id)"
            " select gen_random_uuid(), task_id, allocation_id, s.id from allocations, storage_backends s"
            " where task_id = $1",
            task,
        )
    await story.execute("update experiments set state = 'ERROR', ended_at = now()")
    if whole:
        await api.user.delete(f"/api/v1/experiments/{story.experiment}")
        assert await make_pass(api, context) is None
    else:
        answer = (await api.user.post("/api/v1/runs/delete", {"runIds": [trial], "projectId": 1})).json()
        assert answer["results"][0]["error"] == ""
    assert {table: await story.value(f"select count(*) from {table}") for table in TABLES} == dict.fromkeys(TABLES, 0)


@pytest.mark.parametrize("whole", [True, False])
async def test_it_stays_while_something_of_a_former_task_is_on_a_machine(
    api: Api, context: PassContext, whole: bool
) -> None:
    """Whose container may still write files."""
    story, trial, tasks = await continued_twice(api, SINGLE if whole else CONFIG)
    await story.execute("update containers set gone_at = null where allocation_id = $1", f"{tasks[0]}.1")
    await story.execute("update experiments set state = 'ERROR', ended_at = now()")
    if whole:
        await api.user.delete(f"/api/v1/experiments/{story.experiment}")
        await make_pass(api, context)
    else:
        answer = (await api.user.post("/api/v1/runs/delete", {"runIds": [trial], "projectId": 1})).json()
        assert "still on a machine" in answer["results"][0]["error"]
    assert await story.value("select count(*) from trials") == 1


async def test_the_late_end_of_a_former_attempt_is_nothing_to_it(api: Api) -> None:
    """Its experiment was ended for an error of the platform, and continued before its machine had ended the attempt."""
    story, (trial,) = await begun(api)
    attempt = await story.run(trial)
    await story.execute("update trials set state = 'ERROR', ended_at = now()")
    await story.go_on()
    await story.end(attempt, code=1)
    shown = await story.trial(trial)
    assert (shown["state"], shown["restarts"]) == ("STATE_QUEUED", 0)


async def test_what_waits_for_a_line_has_had_it(api: Api) -> None:
    """A trigger of a webhook is for the first line of a trial, and names the task that wrote it."""
    story, (trial,) = await begun(api)

    async def wait_for_line(name: str) -> None:
        trigger = {"triggerType": "TRIGGER_TYPE_TASK_LOG", "condition": {"regex": "memory"}}
        body = {"name": name, "url": "http://hooks.example/x", "webhookType": "WEBHOOK_TYPE_DEFAULT",
                "mode": "WEBHOOK_MODE_WORKSPACE", "triggers": [trigger]}  # fmt: skip
        reply = await api.admin.post("/api/v1/webhooks", body)
        assert reply.status_code == 200, reply.text

    await wait_for_line("before")
    await story.end(await story.run(trial, "out of memory"), code=1)
    await story.go_on()
    await wait_for_line("after")
    await story.run(trial, "out of memory again")
    first, newest = (await story.trial(trial))["taskIds"]  # type: ignore[misc]
    told = await story.value(
        "select array_agg(event #>> '{event_data,task_log,task_id}' order by id) from webhook_deliveries"
    )
    assert told == [first, newest]
