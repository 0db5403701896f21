"""Spools and output of what runs elsewhere, over the wire: stored once, by their owner, whenever they come."""

from __future__ import annotations

import json
import zlib

from tests.kits.api import Api, Client
from tests.kits.master.unmanaged import state, trial

PASSWORD = "Secret-Words-9"


def line(n: int, kind: str, body: object) -> bytes:
    return json.dumps({"n": n, "kind": kind, "at": 1790000000.0 + n, "body": body}).encode() + b"\n"


def metrics(n: int, step: int, group: str = "validation", **values: float) -> bytes:
    return line(n, "metrics", {"group": group, "stepsCompleted": step, "metrics": values})


async def ship(who: Client, number: int, body: bytes, run: int = 1, stream: str = "reports") -> dict[str, object]:
    reply = await who.ask("POST", f"/api/v1/trials/{number}/runs/{run}/spool?stream={stream}", body)
    assert reply.status_code == 200, reply.text
    answer: dict[str, object] = reply.json()
    return answer


async def output(who: Client, number: int, offset: int, text: str, run: int = 1, more: str = "") -> int:
    path = f"/api/v1/trials/{number}/runs/{run}/output?stream=stdout&offset={offset}&host=here{more}"
    reply = await who.ask("POST", path, zlib.compress(text.encode()))
    assert reply.status_code == 200, reply.text
    following: int = reply.json()["next"]
    return following


async def shown(api: Api, number: int) -> dict[str, object]:
    found: dict[str, object] = (await api.user.get(f"/api/v1/trials/{number}")).json()["trial"]
    return found


async def test_hyperparameters_that_no_script_has_cost_their_line(api: Api) -> None:
    """So many that the master would be busy with them alone, and text that no database takes: the rest is stored."""
    number = await trial(api)
    many = {"hparams": {f"h{place}": place for place in range(20_000)}}
    answer = await ship(api.user, number, line(1, "run_start", many) + metrics(2, 1, score=3.0))
    assert answer["acked"] == 2
    assert "at most" in str(answer["refused"])
    answer = await ship(api.user, number, line(3, "run_start", {"hparams": {"a\0": "b\0"}}) + metrics(4, 2, score=2.0))
    assert answer["acked"] == 4
    assert (await shown(api, number))["bestValidation"] is not None


async def test_lines_are_stored_once(api: Api) -> None:
    """What is sent again is nothing new; a gap is answered with where to go on; no lines are a question."""
    number = await trial(api)
    both = metrics(1, 1, score=3.0) + metrics(2, 2, score=2.0)
    for _ in range(2):
        assert await ship(api.user, number, both) == {"acked": 2, "refused": []}
    assert (await ship(api.user, number, b""))["acked"] == 2
    assert (await ship(api.user, number, metrics(4, 4, score=1.0)))["acked"] == 2
    assert (await ship(api.user, number, both + metrics(3, 3, score=1.0)))["acked"] == 3
    series = await api.user.get(f"/api/v1/trials/{number}/series", metric="score", group="validation")
    assert series.status_code == 200, series.text
    assert series.json()["values"] == [3.0, 2.0, 1.0]
    assert (await shown(api, number))["bestValidation"]["totalBatches"] == 3  # type: ignore[index]


async def test_what_a_script_declares(api: Api) -> None:
    """Its hyperparameters become the trial's, and are found by; its checkpoint is the trial's latest."""
    number = await trial(api)
    uuid = "0d6e4079-4c8e-4f5f-9a39-2f4e2b1c0098"
    saved = {
        "uuid": uuid,
        "stepsCompleted": 7,
        "metadata": {"steps_completed": 7},
        "resources": {"state.json": 3},
        "storage": {"type": "directory", "container_path": "/somewhere"},
    }
    body = line(1, "run_start", {"checkpointStorage": None, "hparams": {"lr": 0.5}}) + line(2, "checkpoint", saved)
    assert await ship(api.user, number, body) == {"acked": 2, "refused": []}
    assert (await shown(api, number))["hparams"] == {"lr": 0.5}
    assert (await api.user.post(f"/api/v1/trials/{number}/start", {"resume": True})).json() == {
        "trialRunId": 2,
        "latestCheckpoint": uuid,
        "stepsCompleted": 7,
    }
    # What an older run says changes nothing of the newer one.
    await ship(api.user, number, line(3, "run_start", {"checkpointStorage": None, "hparams": {"lr": 9}}))
    assert (await shown(api, number))["hparams"] == {"lr": 0.5}


async def test_what_comes_after_the_end(api: Api) -> None:
    """Lines and output of a trial that has ended are stored, and change nothing of its end."""
    number = await trial(api)
    ended = await api.user.patch(f"/api/v1/trials/{number}", {"state": "STATE_ERROR", "reason": "exit code 3"})
    assert ended.status_code == 200, ended.text
    assert await ship(api.user, number, metrics(1, 1, score=1.0)) == {"acked": 1, "refused": []}
    assert await output(api.user, number, 0, "late\n") == 5
    assert (await state(api, number))[0] == "STATE_ERROR"
    assert (await shown(api, number))["reason"] == "exit code 3"
    assert "late" in (await api.user.get(f"/api/v1/trials/{number}/logs")).text


async def test_output_goes_by_its_offsets(api: Api) -> None:
    """Sent twice it is stored once; a line that is in two parts is one; a progress bar is its last state."""
    number = await trial(api)
    assert await output(api.user, number, 0, "one\ntw") == 6
    assert await output(api.user, number, 0, "one\ntw") == 6
    assert await output(api.user, number, 0, "") == 6
    assert await output(api.user, number, 3, "\ntwo\n 10%\r 20%\nrest", more="&age_ms=1000") == 22
    assert await output(api.user, number, 22, "", more="&final=true") == 22
    found = [
        json.loads(each)["result"] for each in (await api.user.get(f"/api/v1/trials/{number}/logs")).text.splitlines()
    ]
    assert [each["log"].rstrip("\n") for each in found] == ["one", "two", " 20%", "rest"]


async def test_who_may(api: Api) -> None:
    """Nobody else but an administrator; no run that was not started; no trial of the cluster's own."""
    number = await trial(api, start=False)
    path = "/api/v1/trials/{}/runs/{}/spool?stream=s"
    assert (await api.user.ask("POST", path.format(number, 1))).status_code == 404
    await api.user.post(f"/api/v1/trials/{number}/start", {})
    assert (await api.user.ask("POST", path.format(number, 2))).status_code == 404
    assert (await api.user.ask("POST", path.format(number + 1, 1))).status_code == 404
    made = await api.admin.post("/api/v1/users", {"user": {"username": "ann", "active": True}, "password": PASSWORD})
    assert made.status_code == 200, made.text
    ann = await api.login("ann", PASSWORD)
    assert (await ann.ask("POST", path.format(number, 1))).status_code == 403
    assert (await ann.ask("POST", f"/api/v1/trials/{number}/runs/1/output?stream=stdout&offset=0")).status_code == 403
    assert (await ship(api.admin, number, metrics(1, 1, score=1.0)))["acked"] == 1


async def test_a_reason_is_said_once(api: Api) -> None:
    """That of its only trial is the experiment's; it is not said a second time."""
    number = await trial(api)
    await api.user.patch(f"/api/v1/trials/{number}", {"state": "STATE_ERROR", "reason": "exit code 3: bad luck"})
    above = (await shown(api, number))["experimentId"]
    experiment = (await api.user.get(f"/api/v1/experiments/{above}")).json()["experiment"]
    assert experiment["reason"] == "exit code 3: bad luck"
