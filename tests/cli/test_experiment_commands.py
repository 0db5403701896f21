"""What is done to experiments from the command line, to one of them or to all that a filter chooses."""

from __future__ import annotations

import base64
import csv
import io
from pathlib import Path

import pytest

from tenax.cli.console import exits
from tests.kits.cli.command_line import Tenax
from tests.kits.cli.experiments import experiment, serve, trial
from tests.kits.pretend_master import PretendMaster, refused

PATH = "/api/v1/experiments/7"


def body(master: PretendMaster, method: str, path: str) -> object:
    """Of the last request there."""
    return master.sent(method, path)[-1].body


def test_the_list_is_filtered_ordered_and_printed_as_csv(tenax: Tenax, master: PretendMaster) -> None:
    """Filters go to the master; the CSV has every column."""
    master.on("GET", "/api/v1/experiments", {"experiments": [experiment()], "pagination": {}})
    master.on("GET", "/api/v1/projects/key/CATS", {"project": {"id": 4, "name": "cats"}})
    done = tenax("e", "list", "--csv", "--name", "dig", "--label", "a", "--label", "b", "--state", "running",
                 "--project", "CATS", "--sort-by", "metric", "--user", "eve")  # fmt: skip
    (row,) = csv.DictReader(io.StringIO(done.out))
    assert (row["id"], row["name"], row["reason"]) == ("7", "digits", "")
    query = master.sent("GET", "/api/v1/experiments")[0].query
    sent_query = {name: query[name] for name in ("name", "labels", "states", "projectId", "users", "sortBy", "orderBy")}
    assert sent_query == {
        "name": ["dig"],
        "labels": ["a", "b"],
        "states": ["STATE_RUNNING"],
        "projectId": ["4"],
        "users": ["eve"],
        "sortBy": ["SORT_BY_SEARCHER_METRIC_VAL"],
        "orderBy": ["ORDER_BY_DESC"],
    }
    tenax("e", "list", "--sort-by", "name", "--archived")
    query = master.sent("GET", "/api/v1/experiments")[-1].query
    assert (query["orderBy"], query["archived"], query["users"]) == (["ORDER_BY_ASC"], ["true"], ["ann"])


def test_trials_as_csv(tenax: Tenax, master: PretendMaster) -> None:
    """The columns are the same whatever they hold."""
    serve(master, experiment(), trial(1, best=0.5), trial(2, best=0.9))
    rows = list(csv.DictReader(io.StringIO(tenax("e", "list-trials", "7", "--csv").out)))
    assert [row["best"] for row in rows] == ["0.5", "0.9"]
    assert list(rows[0])[-2:] == ["hyperparameters", "reason"]


def test_verbs_for_all_that_are_chosen(tenax: Tenax, master: PretendMaster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Among one's own, after asking; what is refused is told, and is the exit code."""
    master.on("GET", "/api/v1/experiments", {"experiments": [], "pagination": {"total": 2}})
    master.on("GET", "/api/v1/users/ann/by-username", {"user": {"id": 2, "username": "ann"}})
    results = [{"id": 7, "error": ""}, {"id": 8, "error": "it has ended"}]
    master.on("POST", "/api/v1/projects/0/experiments/kill", {"results": results})
    paths: list[str] = []
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda text: paths.append(text) or "n")
    assert tenax("e", "kill", "--state", "QUEUED").code == exits.FAILED
    assert not master.sent("POST", "/api/v1/projects/0/experiments/kill")
    done = tenax("e", "kill", "--state", "QUEUED", "--name", "sweep", "--yes")
    assert (done.code, done.out) == (exits.FAILED, "Experiment 7 is being ended\n")
    assert "experiment 8: it has ended" in done.err
    sent = body(master, "POST", "/api/v1/projects/0/experiments/kill")
    assert sent["filters"] == {  # type: ignore[index]
        "name": "sweep",
        "description": None,
        "labels": [],
        "states": ["STATE_QUEUED"],
        "archived": None,
        "userIds": [2],
    }
    for arguments in ([], ["7", "--name", "x"]):
        assert tenax("e", "kill", *arguments).code == exits.USAGE


def test_what_has_ended_is_not_said_to_be_ending(tenax: Tenax, master: PretendMaster) -> None:
    """The master takes the request and does nothing; of what runs it is said what happens now."""
    for path in ("experiments/7/cancel", "experiments/7/kill", "trials/1/kill"):
        master.on("POST", f"/api/v1/{path}", {})
    for state, ends in (("COMPLETED", "had ended: COMPLETED"), ("RUNNING", "is being ended")):
        serve(master, experiment(state=f"STATE_{state}"))
        master.on("GET", "/api/v1/trials/1", {"trial": trial(1, state)})
        assert tenax("e", "kill", "7").out == f"Experiment 7 {ends}\n"
        assert tenax("t", "kill", "1").out == f"Trial 1 {ends}\n"
    serve(master, experiment(state="STATE_ERROR"))
    assert tenax("e", "cancel", "7").out == "Experiment 7 had ended: ERROR\n"


def test_nothing_is_chosen(tenax: Tenax, master: PretendMaster) -> None:
    """Nothing is asked and nothing sent."""
    master.on("GET", "/api/v1/experiments", {"experiments": [], "pagination": {"total": 0}})
    done = tenax("e", "delete", "--label", "never")
    assert (done.code, done.out) == (exits.OK, "")
    assert "None" in done.err


EDITS = {
    "name": (["name", "7", "new"], {"name": "new"}),
    "description": (["description", "7", "text"], {"description": "text"}),
    "notes": (["notes", "7", "n"], {"notes": "n"}),
    "max-slots": (["max-slots", "7", "3"], {"resources": {"maxSlots": 3}}),
    "no max-slots": (["max-slots", "7", "none"], {"resources": {"maxSlots": None}}),
    "weight": (["weight", "7", "2.5"], {"resources": {"weight": 2.5}}),
    "priority": (["priority", "7", "9"], {"resources": {"priority": 9}}),
}


@pytest.mark.parametrize(("arguments", "sent"), EDITS.values(), ids=EDITS.keys())
def test_set(tenax: Tenax, master: PretendMaster, arguments: list[str], sent: object) -> None:
    """What is set is sent, and nothing else."""
    master.on("GET", PATH, {"experiment": experiment()})
    master.on("PATCH", PATH, {"experiment": experiment(name="new")})
    assert tenax("e", "set", *arguments).code == exits.OK
    assert body(master, "PATCH", PATH) == sent


WRONG = (
    ["priority", "7", "100"],
    ["weight", "7", "0"],
    ["max-slots", "7", "-1"],
    ["log-retention", "7"],
    ["log-retention", "7", "--days", "3", "--forever"],
)


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_set_refuses_what_cannot_be(tenax: Tenax, arguments: list[str]) -> None:
    """Before anything is asked."""
    assert tenax("e", "set", *arguments).code == exits.USAGE


def test_log_retention(tenax: Tenax, master: PretendMaster) -> None:
    """In days, or for ever."""
    master.on("GET", PATH, {"experiment": experiment()})
    master.on("PUT", f"{PATH}/retain_logs", {})
    assert "30 days" in tenax("e", "set", "log-retention", "7", "--days", "30").out
    assert "forever" in tenax("e", "set", "log-retention", "7", "--forever").out
    assert [request.body["numDays"] for request in master.sent("PUT", f"{PATH}/retain_logs")] == [30, -1]  # type: ignore[index]


def test_labels_and_moving(tenax: Tenax, master: PretendMaster) -> None:
    """Several labels at once; a project is named as everywhere."""
    master.on("GET", PATH, {"experiment": experiment()})
    master.on("PUT", f"{PATH}/labels/a%2Fb", {"labels": ["a/b"]})
    master.on("PUT", f"{PATH}/labels/c", {"labels": ["a/b", "c"]})
    master.on("DELETE", f"{PATH}/labels/c", {"labels": []})
    assert tenax("e", "label", "add", "7", "a/b", "c").out == "Experiment 7 has a/b, c\n"
    assert tenax("e", "label", "remove", "7", "c").out == "Experiment 7 has no labels\n"
    master.on("GET", "/api/v1/projects/4", {"project": {"id": 4, "name": "cats", "workspaceName": "w"}})
    master.on("POST", f"{PATH}/move", {})
    assert "'cats'" in tenax("e", "move", "7", "4").out
    assert body(master, "POST", f"{PATH}/move") == {"experimentId": 7, "destinationProjectId": 4}


def test_continue_and_fork(tenax: Tenax, master: PretendMaster, tmp_path: Path) -> None:
    """What is laid over is sent; a fork names its parent, and takes its code."""
    serve(master, experiment(state="STATE_COMPLETED"), trial(1, "COMPLETED", best=0.5))
    master.on(
        "POST", "/api/v1/experiments/continue", {"experiment": experiment(), "notices": ["it will wait: no slots"]}
    )
    override = tmp_path / "more.yaml"
    override.write_text("max_restarts: 3\n")
    done = tenax("e", "continue", "7", "--config-file", str(override), "--config", "name=better")
    assert (done.out, "no slots" in done.err) == ("Experiment 7 continues\n", True)
    sent = body(master, "POST", "/api/v1/experiments/continue")
    assert sent == {"id": 7, "overrideConfig": "max_restarts: 3\nname: better\n"}
    master.on("POST", "/api/v1/experiments", {"experiment": experiment(id=9)})
    assert tenax("e", "fork", "7", "--config", "name=fork").out == "Created experiment 9 from experiment 7\n"
    forked = body(master, "POST", "/api/v1/experiments")
    assert (forked["parentId"], forked["modelDefinition"]) == (7, [])  # type: ignore[index]
    assert "name: fork" in forked["config"]  # type: ignore[index]
    master.on("POST", "/api/v1/experiments/continue", refused(400, "it has not ended"))
    assert tenax("e", "continue", "7").code == exits.FAILED


def test_the_code_is_fetched(tenax: Tenax, master: PretendMaster, tmp_path: Path) -> None:
    """As a file of a name that tells whose it is; an experiment without code says so."""
    master.on("GET", PATH, {"experiment": experiment()})
    master.on("GET", f"{PATH}/model_def", {"b64Tgz": base64.b64encode(b"tgz").decode()}, {"b64Tgz": ""})
    tenax("e", "download-model-def", "7", "--output-dir", str(tmp_path / "new"))
    assert (tmp_path / "new" / "experiment_7_model_def.tgz").read_bytes() == b"tgz"
    assert tenax("e", "download-model-def", "7").code == exits.NOT_FOUND
    master.on("DELETE", f"{PATH}/tensorboard-files", {})
    assert tenax("e", "delete-tb-files", "7", "--yes").code == exits.OK
    master.on("GET", f"{PATH}/checkpoints", {"checkpoints": [], "pagination": {}})
    assert tenax("e", "download", "7").code == exits.NOT_FOUND
    assert tenax("e", "download", "7", "--sort-by", "loss").code == exits.USAGE


def test_an_experiment_by_its_name(tenax: Tenax, master: PretendMaster) -> None:
    """Where it alone has that name; of several the numbers are told, and nothing is done to any."""
    known = [
        {"id": 7, "name": "digits"},
        {"id": 8, "name": "twice"},
        {"id": 9, "name": "twice"},
        {"id": 5, "name": "digit"},
    ]
    master.on("GET", "/api/v1/experiments", {"experiments": known})
    master.on("GET", "/api/v1/experiments/7", {"experiment": {**known[0], "state": "STATE_RUNNING"}})
    master.on("POST", "/api/v1/experiments/7/kill", {})
    assert tenax("experiment", "kill", "digits").out.startswith("Experiment 7 ")
    several = tenax("experiment", "kill", "twice")
    assert several.code == exits.FAILED
    assert "8, 9" in several.err
    assert tenax("experiment", "kill", "digi").code == exits.NOT_FOUND
    assert [request.path for request in master.asked if request.method == "POST"] == ["/api/v1/experiments/7/kill"]


def test_an_empty_file_is_named(tenax: Tenax, tmp_path: Path) -> None:
    """Nothing is asked of the master."""
    (tmp_path / "empty.yaml").write_text("\n")
    done = tenax("e", "create", str(tmp_path / "empty.yaml"))
    assert (done.code, f"{tmp_path}/empty.yaml is empty" in done.err) == (exits.FAILED, True)
