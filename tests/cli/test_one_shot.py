"""`tenax command`, `task` and `template`: what is asked of the master, what is said to the person."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from tenax.cli.console import exits
from tests.kits.cli.command_line import Tenax
from tests.kits.pretend_master import PretendMaster, Reply, refused

ONE = "aaaaaaaa-1111-4111-8111-111111111111"
TWO = "aaaabbbb-2222-4222-8222-222222222222"


def command(name: str = ONE, **changes: object) -> dict[str, object]:
    return {
        "id": name,
        "description": "Command (calm-cedar-otter)",
        "state": "STATE_TERMINATED",
        "username": "ann",
        "resourcePool": "default",
        "startTime": "2026-01-01T10:00:00Z",
        "endTime": "2026-01-01T10:00:05Z",
        "exitCode": 0,
        "exitStatus": "it finished",
        "workspaceId": 1,
        "priority": 42,
        **changes,
    }


def line(text: str, source: str = "task", stream: str = "stdout") -> dict[str, object]:
    return {
        "result": {"id": text, "log": text + "\n", "message": f"[time] {text}", "source": source, "stdtype": stream}
    }


def launched(master: PretendMaster, *states: dict[str, object]) -> None:
    """Each look at it gives the next of these."""
    master.on("POST", "/api/v1/commands", {"command": command(state="STATE_QUEUED"), "config": {}})
    replies = [{"command": command(**state), "config": {"entrypoint": ["x"]}} for state in states or ({},)]
    master.on("GET", f"/api/v1/commands/{ONE}", *replies)
    lines = [line("hello"), line("wrong", stream="stderr"), line("it finished", source="master")]
    master.on("GET", f"/api/v1/tasks/{ONE}/logs", Reply(lines=lines))


def test_run_says_why_it_waits_prints_both_streams_and_ends_with_the_exit_code(
    tenax: Tenax, master: PretendMaster
) -> None:
    """What master and agent say about it is not among its output."""
    waiting = {"state": "STATE_QUEUED", "endTime": None, "exitStatus": "", "reason": "no free slots"}
    launched(master, waiting, waiting, {"exitCode": 7})
    done = tenax("cmd", "run", "--slots", "2", "--config", "resources.priority=5", "--", "prog", "--flag", "x y")
    assert (done.code, done.out) == (7, "hello\n")
    assert done.err.splitlines() == ["queued: no free slots", "wrong"]
    body = master.sent("POST", "/api/v1/commands")[0].body
    assert isinstance(body, dict)
    assert body["config"] == {"resources": {"priority": 5, "slots": 2}, "entrypoint": ["prog", "--flag", "x y"]}


def test_options_after_the_program_are_the_programs(tenax: Tenax, master: PretendMaster) -> None:
    """Also without the dashes between."""
    launched(master)
    assert tenax("cmd", "run", "-d", "ls", "-d", "--all").out == f"{ONE}\n"
    body = master.sent("POST", "/api/v1/commands")[0].body
    assert isinstance(body, dict)
    assert body["config"] == {"entrypoint": ["ls", "-d", "--all"]}


def test_run_sends_files_under_their_names(tenax: Tenax, master: PretendMaster, tmp_path: Path) -> None:
    """And the content of a directory as it is there."""
    launched(master)
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir" / "inner.txt").write_text("1")
    (tmp_path / "a.txt").write_text("2")
    tenax("cmd", "run", "-d", "-c", str(tmp_path / "dir"), "-f", str(tmp_path / "a.txt"), "true")
    body = master.sent("POST", "/api/v1/commands")[0].body
    assert isinstance(body, dict)
    sent = {file["path"]: base64.b64decode(file["content"]) for file in body["files"]}
    assert sent == {"inner.txt": b"1", "a.txt": b"2"}


def test_a_command_that_did_not_end_by_itself_is_told_of(tenax: Tenax, master: PretendMaster) -> None:
    """With an exit code of its own."""
    launched(master, {"exitCode": None, "exitStatus": "killed by bob"})
    done = tenax("cmd", "run", "x")
    assert (done.code, "killed by bob" in done.err) == (exits.NOT_COMPLETED, True)


def test_nothing_to_run_is_told_before_anything_is_asked(tenax: Tenax, master: PretendMaster) -> None:
    """There is no program."""
    done = tenax("cmd", "run")
    assert (done.code, "nothing to run" in done.err) == (exits.FAILED, True)
    assert not master.sent("POST", "/api/v1/commands")


def test_the_beginning_of_an_id_is_enough(tenax: Tenax, master: PretendMaster) -> None:
    """Unless it may be several; a description will do, too."""
    page = {"total": 2, "endIndex": 2}
    both = {"commands": [command(), command(TWO, description="mine")], "pagination": page}
    master.on("GET", "/api/v1/commands", both)
    for name in (ONE, TWO):
        master.on("GET", f"/api/v1/commands/{name}", {"command": command(name), "config": {}})
        master.on("POST", f"/api/v1/commands/{name}/kill", {})
    assert tenax("cmd", "kill", "aaaaa", "mine").out == f"Command {ONE} is being ended\nCommand {TWO} is being ended\n"
    done = tenax("cmd", "kill", "aaaa")
    assert (done.code, "give its id" in done.err) == (exits.FAILED, True)
    assert tenax("cmd", "kill", "zzz").code == exits.NOT_FOUND
    assert tenax("cmd", "kill", "--force", "zzz", "mine").code == exits.OK


def test_commands_are_listed_as_asked(tenax: Tenax, master: PretendMaster) -> None:
    """Mine, or everybody's; as a table, JSON, CSV, or ids alone."""
    master.on("GET", "/api/v1/commands", {"commands": [command()], "pagination": {"total": 1, "endIndex": 1}})
    assert ONE in tenax("cmd", "list").out
    assert master.sent("GET", "/api/v1/commands")[0].query["users"] == ["ann"]
    assert json.loads(tenax("cmd", "list", "--all", "--json").out)[0]["id"] == ONE
    assert "users" not in master.sent("GET", "/api/v1/commands")[1].query
    title, row = tenax("cmd", "list", "--csv").out.splitlines()
    assert (title.split(",")[0], row.split(",")[0]) == ("id", ONE)
    assert tenax("cmd", "list", "-q").out == f"{ONE}\n"


@pytest.mark.parametrize("verb", ["pause", "unpause", "kill"])
def test_a_verb_on_a_task(tenax: Tenax, master: PretendMaster, verb: str) -> None:
    """It is asked for, and said."""
    master.on("GET", f"/api/v1/tasks/{ONE}", {"task": {"taskId": ONE, "taskType": "TASK_TYPE_GENERIC"}})
    master.on("POST", f"/api/v1/tasks/{ONE}/{verb}", {})
    assert tenax("task", verb, ONE).out.startswith(f"Task {ONE} is ")
    assert len(master.sent("POST", f"/api/v1/tasks/{ONE}/{verb}")) == 1


def test_what_runs_is_listed_by_age(tenax: Tenax, master: PretendMaster) -> None:
    """Of every kind; its beginning names a task."""
    summary = {
        f"{name}.1": {
            "taskId": name,
            "allocationId": f"{name}.1",
            "name": f"task {name[4]}",
            "registeredTime": time,
            "slotsNeeded": 1,
            "resources": [{"agentDevices": {"a1": {}}}],
            "state": "STATE_QUEUED" if reason else "STATE_RUNNING",
            "reason": reason,
        }
        for name, time, reason in (
            (ONE, "2026-01-02T00:00:00Z", "waits for 1 free slot"),
            (TWO, "2026-01-01T00:00:00Z", ""),
        )
    }
    master.on("GET", "/api/v1/tasks", {"allocationIdToSummary": summary})
    rows = tenax("task", "list", "--csv").out.splitlines()[1:]
    assert [row.split(",")[:5] for row in rows] == [
        [TWO, "task b", "RUNNING", "1", "a1"],
        [ONE, "task a", "QUEUED", "1", "a1"],
    ]
    assert "waits for 1 free slot" in tenax("task", "list").out
    assert [task["taskId"] for task in json.loads(tenax("task", "list", "--waiting", "--json").out)] == [ONE]
    master.on("GET", f"/api/v1/tasks/{TWO}", {"task": {"taskId": TWO, "taskType": "TASK_TYPE_TRIAL", "allocations": [
        {"state": "STATE_QUEUED", "reason": "waits for 2 free slots"}]}})  # fmt: skip
    shown = tenax("task", "describe", "aaaab").out
    assert "TRIAL" in shown
    assert "QUEUED" in shown
    assert "waits for 2 free slots" in shown


def test_a_template_is_set_whether_it_is_there_or_not(tenax: Tenax, master: PretendMaster, tmp_path: Path) -> None:
    """Made first, changed where there is one."""
    (tmp_path / "t.yaml").write_text("max_restarts: 1\n")
    made = {"template": {"name": "a/b", "config": {"max_restarts": 1}}}
    master.on("POST", "/api/v1/templates/a%2Fb", refused(409, "there is one"))
    master.on("PATCH", "/api/v1/templates/a%2Fb", made)
    assert tenax("template", "set", "a/b", str(tmp_path / "t.yaml")).out == "Set template a/b\n"
    assert master.sent("PATCH", "/api/v1/templates/a%2Fb")[0].body == {"max_restarts": 1}
    master.on("GET", "/api/v1/templates/a%2Fb", made)
    assert tenax("tpl", "describe", "a/b").out == "max_restarts: 1\n"
