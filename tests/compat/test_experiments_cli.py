"""Every verb of `det experiment`, with what it does."""

from __future__ import annotations

import csv
import json
import tarfile
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import cast

import pytest

from tenax.jsonvalue import JsonObject
from tests.compat.client import Det, RealClient, Sdk
from tests.compat.experiments import CONFIG


@pytest.fixture
def paused(det: Det, config: Path, code: Path) -> Iterator[int]:
    """An experiment that waits to be activated; killed in the end."""
    made = det("e", "create", config, code, "--paused")
    number = int(made.out.split("Created experiment ")[1].split()[0])
    yield number
    det("e", "kill", number, check=False)


def described(det: Det, number: int) -> JsonObject:
    """The experiment as it is told."""
    (told,) = cast(list[JsonObject], det("e", "describe", number, "--json").json)
    return cast(JsonObject, told["experiment"])


def ended(sdk: Sdk, number: int) -> str:
    """Wait for the end; the state."""
    return str(sdk("result = client.get_experiment(number).wait(interval=0.2).value", number=number))


def table(text: str) -> list[dict[str, str]]:
    """CSV as it is printed."""
    return list(csv.DictReader(StringIO(text)))


def test_create_with_everything(det: Det, config: Path, code: Path, tmp_path: Path) -> None:
    """Overrides, more files, a project; the text is as typed where nothing is laid over it."""
    extra = tmp_path / "extra.txt"
    extra.write_text("more")
    typed = tmp_path / "typed.yaml"
    typed.write_text("# a comment\n" + "\n".join(f"{key}: {json.dumps(value)}" for key, value in CONFIG.items()) + "\n")
    made = det(
        "e", "create", config, code, "--paused", "-i", extra, "--project_id", 1,
        "--config", "name=laid over", "--config", "max_restarts=4",
    )  # fmt: skip
    number = int(made.out.split("Created experiment ")[1].split()[0])
    one = described(det, number)
    assert (one["name"], one["state"], one["projectId"]) == ("laid over", "STATE_PAUSED", 1)
    assert cast(JsonObject, one["config"])["max_restarts"] == 4
    det("e", "download-model-def", number, "--output-dir", tmp_path)
    with tarfile.open(tmp_path / f"experiment_{number}_model_def.tgz") as tar:
        assert sorted(tar.getnames()) == ["extra.txt", "train.py"]
    other = det("e", "create", typed, "--paused")
    second = int(other.out.split("Created experiment ")[1].split()[0])
    assert str(described(det, second)["originalConfig"]).startswith("# a comment")
    for one_of in (number, second):
        det("e", "kill", one_of)
    refused = det("e", "create", config, code, "--config", "searcher.name=nonsense", check=False)
    assert (refused.code, "nonsense" in refused.err) == (1, True)


def test_create_in_test_mode(det: Det, config: Path, code: Path) -> None:
    """It is checked first, then a short experiment runs to its end."""
    done = det("e", "create", config, code, "--test-mode")
    assert "configuration validation succeeded" in done.out
    assert "Model definition test succeeded" in done.out


def test_activate_pause_cancel_and_wait(det: Det, sdk: Sdk, paused: int, config: Path, code: Path) -> None:
    """Each has its effect; waiting ends with the experiment, and its exit code tells how."""
    det("e", "activate", paused)
    det("e", "wait", paused, "--polling-interval", 1)
    assert described(det, paused)["state"] == "STATE_COMPLETED"
    made = det("e", "create", config, code, "--config", "entrypoint=sleep 600")
    number = int(made.out.split("Created experiment ")[1].split()[0])
    det("e", "pause", number)
    assert described(det, number)["state"] == "STATE_PAUSED"
    det("e", "unpause", number)
    assert described(det, number)["state"] != "STATE_PAUSED"
    det("e", "cancel", number)
    assert described(det, number)["state"] in ("STATE_STOPPING_CANCELED", "STATE_CANCELED")
    # What cannot be asked to leave is ended.
    det("e", "kill", number)
    waited = det("e", "wait", number, "--polling-interval", 1, check=False)
    assert waited.code == 1
    assert described(det, number)["state"] == "STATE_CANCELED"


def test_kill(det: Det, sdk: Sdk, paused: int) -> None:
    """At once, also what never ran."""
    det("e", "kill", paused)
    assert ended(sdk, paused) == "STATE_CANCELED"


def test_archive_and_unarchive(det: Det, sdk: Sdk, paused: int) -> None:
    """Archived it is in no list but that of all; before its end it cannot be."""
    early = det("e", "archive", paused, check=False)
    assert (early.code, "has not ended" in early.err) == (1, True)
    det("e", "kill", paused)
    ended(sdk, paused)
    det("e", "archive", paused)
    listed = {row["ID"] for row in table(det("e", "list", "--csv").out)}
    everything = {row["ID"]: row for row in table(det("e", "list", "--all", "--csv").out)}
    assert str(paused) not in listed
    assert everything[str(paused)]["Archived"] == "True"
    det("e", "unarchive", paused)
    assert str(paused) in {row["ID"] for row in table(det("e", "list", "--csv").out)}


def test_list(det: Det, real: RealClient, admin: RealClient, finished: int, paused: int) -> None:
    """One's own, or everybody's; page by page; with the project."""
    (row,) = [row for row in table(det("e", "list", "--csv").out) if row["ID"] == str(finished)]
    assert (row["Owner"], row["Name"], row["State"], row["Progress"]) == (
        "determined",
        "finished",
        "COMPLETED",
        "100.0%",
    )
    assert str(finished) not in {row["ID"] for row in table(admin.det("e", "list", "--csv").out)}
    assert str(finished) in {row["ID"] for row in table(admin.det("e", "list", "--all", "--csv").out)}
    shown = table(det("e", "list", "--csv", "--show_project").out)
    assert {row["Project"] for row in shown if row["ID"] == str(finished)} == {"Uncategorized"}
    page = table(det("e", "list", "--csv", "--limit", 1, "--offset", 1, "--pages", "1").out)
    assert len(page) == 1


def test_describe(det: Det, finished: int, tmp_path: Path) -> None:
    """With metrics, as CSV into files, and several at once."""
    shown = det("e", "describe", finished, "--metrics").out
    assert ("Training Metric: loss" in shown, "Validation Metric: score" in shown) == (True, True)
    det("e", "describe", finished, "--metrics", "--outdir", tmp_path)
    (trial,) = table((tmp_path / "trials.csv").read_text())
    assert (trial["Experiment ID"], trial["State"]) == (str(finished), "COMPLETED")
    steps = table((tmp_path / "workloads.csv").read_text())
    assert [row["# of Batches"] for row in steps] == ["1", "2", "3"]
    assert (steps[2]["Validation Metric: score"], steps[2]["Checkpoint State"]) == ("3.0", "COMPLETED")
    both = cast(list[JsonObject], det("e", "describe", f"{finished},{finished}", "--json").json)
    assert len(both) == 2
    missing = det("e", "describe", 99999, check=False)
    assert (missing.code, "99999" in missing.err) == (1, True)


def test_config(det: Det, finished: int) -> None:
    """With every default, as YAML."""
    told = det("e", "config", finished).out
    assert ("name: finished" in told, "max_restarts: 0" in told, "save_trial_best: 1" in told) == (True, True, True)


def test_logs(det: Det, finished: int) -> None:
    """The output of the first trial."""
    assert "done after 3" in det("e", "logs", finished).out
    told = det("e", "logs", finished, "--json", "--tail", 1).out
    line, _ = json.JSONDecoder().raw_decode(told)
    assert (line["trialId"] > 0, told.count('"trialId"')) == (True, 1)
    assert "done after 3" in det("e", "logs", finished, "--head", 500).out


def test_list_trials_and_checkpoints(det: Det, finished: int) -> None:
    """As CSV and as tables."""
    (trial,) = table(det("e", "list-trials", finished, "--csv").out)
    assert (trial["State"], trial["# of Batches"]) == ("COMPLETED", "3")
    assert trial["Trial ID"] in det("e", "lt", finished, "--limit", 1).out
    (checkpoint,) = table(det("e", "list-checkpoints", finished, "--csv").out)
    assert checkpoint["State"] == "COMPLETED"
    assert checkpoint["UUID"] in det("e", "lc", finished, "--best", 1).out


def test_download(det: Det, finished: int, tmp_path: Path) -> None:
    """The best checkpoint, or those that another metric puts first."""
    place = tmp_path / "checkpoints"
    det("e", "download", finished, "-o", place, "--quiet")
    (uuid,) = [one.name for one in place.iterdir()]
    assert (place / uuid / "weights").read_text() == "w" * 10
    again = tmp_path / "again"
    det("e", "download", finished, "-o", again, "--sort-by", "score", "--smaller-is-better", "false", "--top-n", 2)
    assert (again / uuid / "weights").read_text() == "w" * 10


def test_labels(det: Det, paused: int) -> None:
    """Added once, removed again."""
    for label in ("a", "b", "a"):
        det("e", "label", "add", paused, label)
    assert described(det, paused)["labels"] == ["a", "b"]
    det("e", "label", "remove", paused, "a")
    assert described(det, paused)["labels"] == ["b"]


def test_set(det: Det, paused: int, sdk: Sdk) -> None:
    """Words, share of the cluster, what is kept of checkpoints and output."""
    det("e", "set", "name", paused, "another")
    det("e", "set", "description", paused, "what it is for")
    det("e", "set", "max-slots", paused, 3)
    det("e", "set", "weight", paused, 2.5)
    det("e", "set", "priority", paused, 17)
    det(
        "e",
        "set",
        "gc-policy",
        paused,
        "--save-experiment-best",
        2,
        "--save-trial-best",
        3,
        "--save-trial-latest",
        4,
        "--yes",
    )
    det("e", "set", "log-retention", paused, "--days", 20)
    one = described(det, paused)
    config = cast(dict[str, JsonObject], one["config"])
    assert (one["name"], one["description"]) == ("another", "what it is for")
    shares = [config["resources"][name] for name in ("max_slots", "weight", "priority")]
    assert shares == [3, 2.5, 17]
    kept = [config["checkpoint_storage"][f"save_{name}"] for name in ("experiment_best", "trial_best", "trial_latest")]
    assert kept == [2, 3, 4]
    det("e", "set", "max-slots", paused, "none")
    det("e", "set", "log-retention", paused, "--forever")
    config = cast(dict[str, JsonObject], described(det, paused)["config"])
    assert config["resources"]["max_slots"] is None
    refused = det("e", "set", "priority", paused, 100, check=False)
    assert (refused.code, "99" in refused.err) == (1, True)


def test_gc_policy_is_shown_before_it_is_set(det: Det, finished: int) -> None:
    """The client asks what would go; without an answer nothing is changed."""
    asked = det("e", "set", "gc-policy", finished, "--save-experiment-best", 0, "--save-trial-best", 0,
                "--save-trial-latest", 0, check=False)  # fmt: skip
    storage = cast(dict[str, JsonObject], described(det, finished)["config"])["checkpoint_storage"]
    assert storage["save_trial_best"] == 1, asked.out


def test_move(det: Det, sdk: Sdk, paused: int) -> None:
    """Into a project of another workspace."""
    det("w", "create", "compat-moves")
    det("p", "create", "compat-moves", "target")
    det("e", "move", paused, "compat-moves", "target")
    one = described(det, paused)
    assert (one["workspaceName"], one["projectName"]) == ("compat-moves", "target")
    det("e", "move", paused, "Uncategorized", "Uncategorized")
    assert described(det, paused)["projectId"] == 1
    det("w", "delete", "compat-moves", "--yes")


def test_continue(det: Det, sdk: Sdk, config: Path, code: Path, tmp_path: Path) -> None:
    """The same trial goes on from its checkpoint, with other settings, as another task; each has its own lines."""
    made = det("e", "create", config, code, "-f")
    number = int(made.out.split("Created experiment ")[1].split()[0])
    assert ended(sdk, number) == "STATE_COMPLETED"
    of_trial = (
        "from determined.common.api import bindings as b\n"
        "number = client.get_experiment(number).get_trials()[0].id\n"
        "s = client._determined._session\n"
        "trial = b.get_GetTrial(s, trialId=number).trial\n"
    )
    (task,) = sdk(f"{of_trial}result = trial.taskIds", number=number)
    more = tmp_path / "more.yaml"
    more.write_text("entrypoint: python3 train.py 5\n")
    det("e", "continue", number, "--config-file", more, "--config", "name=continued", "-f")
    assert ended(sdk, number) == "STATE_COMPLETED"
    one = described(det, number)
    assert (one["name"], one["numTrials"]) == ("continued", 1)
    (trial,) = table(det("e", "list-trials", number, "--csv").out)
    assert trial["# of Batches"] == "5"
    output = det("e", "logs", number).out
    assert output.index("done after 3") < output.index("done after 5")
    task_ids, newest = sdk(f"{of_trial}result = [trial.taskIds, trial.taskId]", number=number)
    assert task_ids == [task, newest] == [task, f"{task}-1"]
    assert sdk(f"{of_trial}result = b.get_GetTask(s, taskId=trial.taskId).task.taskId", number=number) == newest
    # Names of further tasks are none to `det task logs`: the pattern that it has for them is that of a UUID.
    logged = det("task", "logs", task).out
    assert "done after 3" in logged
    assert "done after 5" not in logged
    lines = sdk(f"{of_trial}result = [line.log for line in b.get_TaskLogs(s, taskId=trial.taskId)]", number=number)
    assert any("done after 5" in line for line in lines)
    assert not any("done after 3" in line for line in lines)
    shown = det("trial", "describe", "--json", sdk(f"{of_trial}result = trial.id", number=number)).out
    assert newest in shown


def test_delete(det: Det, sdk: Sdk, config: Path, code: Path) -> None:
    """With its rows, in the background; TensorBoard files can go before."""
    made = det("e", "create", config, code, "-f")
    number = int(made.out.split("Created experiment ")[1].split()[0])
    ended(sdk, number)
    det("e", "delete-tb-files", number)
    det("e", "delete", number, "--yes")
    gone = (
        "import time\n"
        "from determined.common.api import errors\n"
        "result = False\n"
        "for _ in range(1200):\n"
        "    try:\n"
        "        client.get_experiment(number)\n"
        "    except errors.NotFoundException:\n"
        "        result = True\n"
        "        break\n"
        "    time.sleep(0.1)"
    )
    assert sdk(gone, number=number) is True
