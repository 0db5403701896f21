"""Every case of the shared case file on webhooks: who is told, how often, in which words, and how it is signed.

Lines of output are taken in as an agent ships them; what waits for a webhook is counted before it is sent. The rules of
delivery, which the file says in words ("webhooks/delivery"), are `test_webhook_delivery`.
"""

from __future__ import annotations

import json
import zlib
from typing import Any

import pytest
import yaml

from tenax.lifecycle.experiment import ExperimentState
from tenax.master.store.webhooks import events as webhook_events
from tenax.master.webhooks.payloads import body_of
from tenax.master.webhooks.sender import signature
from tests.kits.api import Api
from tests.kits.cases import answers, load
from tests.kits.master.experiments import CONFIG, create
from tests.kits.rows import Attempt, add_agent, add_trial, run_attempt

_CASES: Any = load("webhooks") or {
    "task_log_payloads": [],
    "log_scan": {"cases": []},
    "state_change": [],
}


def on_line(regex: str) -> dict[str, object]:
    return {"triggerType": "TRIGGER_TYPE_TASK_LOG", "condition": {"regex": regex}}


def on_state(state: str) -> dict[str, object]:
    return {"triggerType": "TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE", "condition": {"state": state}}


async def workspace(api: Api, name: str | None) -> int | None:
    """Its number; made where it is not there."""
    if name is None:
        return None
    listed = (await api.admin.get("/api/v1/workspaces")).json()["workspaces"]
    known = {shown["name"]: shown["id"] for shown in listed}
    if name not in known:
        known[name] = (await api.admin.post("/api/v1/workspaces", {"name": name})).json()["workspace"]["id"]
    return int(known[name])


async def hook(api: Api, case: Any, triggers: list[dict[str, object]], name: str) -> int:
    """A webhook as a case describes it."""
    body = {
        "name": case.get("name", name),
        "url": "http://192.0.2.1/",
        "webhookType": case.get("type", "WEBHOOK_TYPE_DEFAULT"),
        "mode": f"WEBHOOK_MODE_{case.get('mode', 'workspace').upper()}",
        "workspaceId": await workspace(api, case.get("workspace")),
        "triggers": triggers,
    }
    reply = await api.admin.post("/api/v1/webhooks", body)
    assert reply.status_code == 200, reply.text
    number: int = reply.json()["webhook"]["id"]
    return number


async def experiment(api: Api, workspace_name: str, config: dict[str, object] | None = None) -> int:
    """One of that workspace, with this beside its configuration."""
    made = (await create(api, CONFIG + (yaml.safe_dump(config) if config else "")))["experiment"]["id"]
    if workspace_name not in ("default", "Uncategorized"):
        number = await workspace(api, workspace_name)
        async with api.master.db.transaction() as conn:
            project = await conn.fetchval(
                "insert into projects (workspace_id, name, key) values ($1, 'p', $2) on conflict (key)"
                " do update set name = 'p' returning id",
                number,
                f"K{number}",
            )
            await conn.execute("update experiments set project_id = $2 where id = $1", made, project)
    return int(made)


async def attempt(api: Api, experiment_id: int, agent: str) -> tuple[int, Attempt]:
    async with api.master.db.transaction() as conn:
        await add_agent(conn, agent, 1)
        trial = await add_trial(conn, experiment_id)
        return trial, await run_attempt(conn, trial, (agent,))


async def ship(api: Api, agent: str, run: Attempt, lines: list[str]) -> None:
    raw = "".join(f"{line}\n" for line in lines).encode()
    await api.master.intake.logs.output(agent, run.containers[0], "stdout", 0, zlib.compress(raw), final=False)


async def told(api: Api, numbers: dict[str, int]) -> dict[str, int]:
    """How many messages there are for each webhook."""
    async with api.master.db.connection() as conn:
        rows = await conn.fetch("select webhook_id, count(*) as n from webhook_deliveries group by webhook_id")
    counts = {row["webhook_id"]: row["n"] for row in rows}
    return {name: counts.get(number, 0) for name, number in numbers.items()}


@answers("webhooks/delivery", "one webhook with two equal triggers and one with one: 3 deliveries per state change")
async def test_a_message_for_each_trigger(api: Api) -> None:
    """Two equal triggers of one webhook and one of another: three messages for a change of state."""
    numbers = {str(n): await hook(api, {}, [on_state("COMPLETED")] * n, f"h{n}") for n in (1, 2)}
    made = await experiment(api, "default")
    async with api.master.db.transaction() as conn:
        await webhook_events.experiment_changed(conn, made, ExperimentState.COMPLETED)
    assert await told(api, numbers) == {"1": 1, "2": 2}


@pytest.mark.skipif(load("webhooks") is None, reason="the case files are not there")
def test_the_signature_of_the_cases() -> None:
    """Over the time and the body."""
    case = _CASES["signature"]
    assert signature(case["key"], case["timestamp"], case["body"].encode()) == case["signature"]


@pytest.mark.parametrize("case", _CASES["state_change"], ids=lambda case: case["name"])
async def test_changes_of_state_as_the_cases_say(api: Api, case: Any) -> None:
    """One message for each trigger that names the state."""
    triggers = [on_state(state) for state in case["triggers"]] or [on_line("no such line")]
    number = await hook(api, {}, triggers, "h")
    made = await experiment(api, "default")
    async with api.master.db.transaction() as conn:
        await webhook_events.experiment_changed(conn, made, ExperimentState(case["state"]))
    assert await told(api, {"h": number}) == {"h": case["events"]}


@pytest.mark.parametrize("case", _CASES["log_scan"]["cases"], ids=lambda case: json.dumps(case["events"]))
async def test_lines_of_output_as_the_cases_say(api: Api, case: Any) -> None:
    """A pattern is told of once for each task; which webhooks hear of it goes by workspace, mode and name."""
    numbers = {
        name: await hook(api, {"name": name, **webhook}, [on_line(regex) for regex in webhook["regex"]], name)
        for name, webhook in _CASES["log_scan"]["webhooks"].items()
    }
    for name in case.get("deleted", ()):
        assert (await api.admin.delete(f"/api/v1/webhooks/{numbers[name]}")).status_code == 200
    _, run = await attempt(api, await experiment(api, case["workspace"], case["experiment"]), "n1")
    await ship(api, "n1", run, case["logs"])
    counts = await told(api, numbers)
    assert {name: counts[name] for name in case["events"]} == case["events"]


@pytest.mark.parametrize("mode", ["specific_mode", "workspace_mode"] if "specific_mode" in _CASES else [])
async def test_modes_as_the_cases_say(api: Api, mode: str) -> None:
    """Of one mode a webhook hears only where it is named, of the other unless it is excluded."""
    part = _CASES[mode]
    ended = [on_state("COMPLETED")]
    numbers = {name: await hook(api, hooked, ended, name) for name, hooked in part["webhooks"].items()}
    for step in part["steps"]:
        wishes = {name: step[name] for name in ("webhook_name", "exclude") if step.get(name)}
        made = await experiment(api, part["experiment_workspace"], {"integrations": {"webhooks": wishes}})
        async with api.master.db.transaction() as conn:
            await webhook_events.experiment_changed(conn, made, ExperimentState.COMPLETED)
        assert await told(api, numbers) == step["total_events"], step


@pytest.mark.parametrize(
    "case",
    [case for case in _CASES["task_log_payloads"] if case["input"]["task"] == "trial"],
    ids=lambda case: " ".join((case["input"]["webhook_type"], case["input"]["base_url"])),
)
async def test_messages_on_lines_as_the_cases_say(api: Api, case: Any) -> None:
    """To the letter, but for what each message has of its own; beside blocks Slack gets a text for notifications."""
    given = case["input"]
    number = await hook(api, {"type": given["webhook_type"]}, [on_line(given["regex"])], "h")
    made = await experiment(api, "default")
    trial, _ = await attempt(api, made, given["node"])
    # The case's pattern does not match its line: the match is its own.
    async with api.master.db.transaction() as conn:
        task = await conn.fetchval("select task_id from trials where id = $1", trial)
        trigger = await conn.fetchval("select id from webhook_triggers where webhook_id = $1", number)
        assert await webhook_events.log_line_matched(conn, trigger, task, given["log"], given["node"])
        event = await conn.fetchval("select event from webhook_deliveries")
    kind = given["webhook_type"].removeprefix("WEBHOOK_TYPE_")
    message = json.loads(body_of(kind, event, given["base_url"]))
    ids = {"{task_id}": task, "{experiment_id}": str(made), "{trial_id}": str(trial)}
    expected = json.dumps(case["payload"])
    for name, value in ids.items():
        expected = expected.replace(name, value)
    own = (*case["ignore"], "text") if kind == "SLACK" else case["ignore"]
    assert {name: value for name, value in message.items() if name not in own} == json.loads(expected)


@pytest.mark.parametrize(
    "case",
    [case for case in _CASES["task_log_payloads"] if case["input"]["task"] != "trial" and not case["ignore"]],
    ids=lambda case: case["input"]["base_url"],
)
def test_slack_reads_what_kind_of_task_wrote_a_line(case: Any) -> None:
    """Where it is no trial's: to the letter, but for the text of notifications."""
    given = case["input"]
    line = {
        "task_id": "{task_id}",
        "task_type": given["task"].upper(),
        "node_name": given["node"],
        "triggering_log": given["log"],
    }
    event: Any = {"condition": {"regex": given["regex"]}, "event_data": {"task_log": line}}
    shown = json.loads(body_of("SLACK", event, given["base_url"]))
    assert {name: shown[name] for name in case["payload"]} == case["payload"]
