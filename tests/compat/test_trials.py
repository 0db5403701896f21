"""Every verb of `det trial`, the SDK's trials, and runs as Determined's bindings know them; each by its effect."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import cast

from tenax.jsonvalue import Json, JsonObject
from tests.compat.client import BOTH, Det, RealClient, Sdk
from tests.compat.experiments import CONFIG
from tests.compat.stories import Story
from tests.kits.machine import Machine, wait_for

_BINDINGS = "from determined.common.api import bindings\nsession = client._get_singleton_session()\n"


def test_describe(det: Det, story: Story) -> None:
    """As a table with its steps, as JSON with its workloads, page by page, and as CSV."""
    table = det("t", "describe", story.trial).out
    assert f"| {story.experiment}" in table or f" {story.experiment} " in table
    assert "COMPLETED" in table
    assert '"score": 4.0' in table
    told = cast(JsonObject, det("trial", "describe", story.trial, "--json").json)
    trial, workloads = cast(JsonObject, told["trial"]), cast(list[JsonObject], told["workloads"])
    assert trial["hparams"] == {"width": 16, "kind": "wide"}
    assert cast(JsonObject, cast(JsonObject, trial["summaryMetrics"])["avg_metrics"])["loss"] is not None
    kinds = [next(kind for kind, one in workload.items() if one is not None) for workload in workloads]
    assert kinds.count("training") == 4
    assert kinds.count("validation") == 2
    assert kinds.count("checkpoint") == 2
    assert '"loss": 0.25' in det("t", "describe", story.trial, "--metrics").out
    assert "Experiment ID," in det("t", "describe", story.trial, "--csv").out


def test_download(det: Det, story: Story, tmp_path: Path) -> None:
    """Those that the client takes for the best and the latest of two; its ``--uuid`` never gets so far as to ask."""
    for which, sort in (("--best", ("--sort-by", "score", "--smaller-is-better", "True")), ("--latest", ())):
        target = tmp_path / which.strip("-")
        assert det("t", "download", story.trial, which, *sort, "-q", "-o", target).out.strip() == str(target)
        assert len((target / "weights").read_text()) in (20, 40)


def test_kill(det: Det, sdk: Sdk, code: Path) -> None:
    """By the command line and by the SDK: the trial ends, and says that it was killed."""
    (code / "train.py").write_text("import time\ntime.sleep(600)\n")
    for end in (lambda trial: det("t", "kill", trial), lambda trial: sdk("client.get_trial(n).kill()", n=trial)):
        experiment, trial = cast(
            list[int],
            sdk(
                "import time\n"
                "experiment = client.create_experiment(config, directory)\n"
                "while not experiment.list_trials():\n"
                "    time.sleep(0.05)\n"
                "result = [experiment.id, experiment.list_trials()[0].id]",
                config={**CONFIG, "name": "to be killed", "entrypoint": "python3 train.py"},
                directory=str(code),
            ),
        )
        end(trial)
        _wait_for_state(sdk, trial, "CANCELED")
        told = cast(JsonObject, det("t", "describe", trial, "--json").json)
        assert cast(JsonObject, told["trial"])["endTime"]
        sdk("client.get_experiment(n).kill()", n=experiment)


def _wait_for_state(sdk: Sdk, trial: int, state: str) -> None:
    wait_for(lambda: sdk("result = client.get_trial(n).state.name", n=trial) == state, f"trial {trial} to be {state}")


def test_log_retention(det: Det, story: Story) -> None:
    """What is set for a trial is shown with it; what is no number of days is refused by the client itself."""
    for words, days in ((("--days", 50), 50), (("--forever",), -1)):
        det("t", "set", "log-retention", story.trial, *words)
        told = cast(JsonObject, det("t", "describe", story.trial, "--json").json)
        assert cast(JsonObject, told["trial"])["logRetentionDays"] == days
    assert det("t", "set", "log-retention", story.trial, "--days", 40000, check=False).code != 0


def test_support_bundle(admin: RealClient, story: Story, tmp_path: Path) -> None:
    """An archive with the trial, its experiment, its log and the master's."""
    admin.det("t", "support-bundle", story.trial, "-o", tmp_path)
    (path,) = tmp_path.glob("det-bundle-trial-*.tar.gz")
    with tarfile.open(path) as bundle:
        parts = {Path(name).name: bundle.extractfile(name) for name in bundle.getnames()}
        assert set(parts) == {"trial_logs.txt", "master_logs.txt", "api_trial_call.json", "api_experiment_call.json"}
        assert b"plain words" in parts["trial_logs.txt"].read()  # type: ignore[union-attr]
        assert json.loads(parts["api_trial_call.json"].read())["id"] == story.trial  # type: ignore[union-attr]


def test_support_bundle_of_who_is_no_administrator(real: RealClient, story: Story, tmp_path: Path) -> None:
    """It is made, and says that the master's log is not in it."""
    real.det("t", "support-bundle", story.trial, "-o", tmp_path)
    (path,) = tmp_path.glob("det-bundle-trial-*.tar.gz")
    with tarfile.open(path) as bundle:
        parts = {Path(name).name: bundle.extractfile(name) for name in bundle.getnames()}
        assert b"for administrators" in parts["master_logs.txt"].read()  # type: ignore[union-attr]
        assert b"plain words" in parts["trial_logs.txt"].read()  # type: ignore[union-attr]


@BOTH
def test_a_trial_of_the_sdk(sdk: Sdk, story: Story) -> None:
    """What it is, its experiment, its checkpoints in every order that the SDK offers."""
    found = cast(
        JsonObject,
        sdk(
            "import warnings\n"
            "warnings.simplefilter('ignore')\n"
            "trial = client.get_trial(number)\n"
            "trial.reload()\n"
            "step = lambda one: one.metadata['steps_completed']\n"
            "by = client.CheckpointSortBy\n"
            "up, down = client.OrderBy.ASC, client.OrderBy.DESC\n"
            "result = {\n"
            "    'state': trial.state.name, 'hparams': trial.hparams, 'of': trial.get_experiment().id,\n"
            "    'best': [step(one) for one in trial.list_checkpoints()],\n"
            "    'rising': [step(one) for one in trial.list_checkpoints(by.BATCH_NUMBER, up)],\n"
            "    'falling': [step(one) for one in trial.list_checkpoints(by.BATCH_NUMBER, down)],\n"
            "    'metric': [step(one) for one in trial.list_checkpoints('lost', up, max_results=1)],\n"
            "    'top': step(trial.top_checkpoint()),\n"
            "    'worst': step(trial.top_checkpoint('score', smaller_is_better=True)),\n"
            "    'latest': step(trial.select_checkpoint(latest=True)),\n"
            "    'chosen': step(trial.select_checkpoint(best=True)),\n"
            "    'all': sorted(step(one) for one in trial.get_checkpoints()),\n"
            "    'summary': sorted(trial.summary_metrics),\n"
            "}",
            number=story.trial,
        ),
    )
    assert found == {
        "state": "COMPLETED",
        "hparams": {"width": 16, "kind": "wide"},
        "of": story.experiment,
        "best": [4, 2],
        "rising": [2, 4],
        "falling": [4, 2],
        "metric": [4],
        "top": 4,
        "worst": 2,
        "latest": 4,
        "chosen": 4,
        "all": [2, 4],
        "summary": ["avg_metrics", "inference", "validation_metrics"],
    }


def test_runs_in_a_table(sdk: Sdk, story: Story) -> None:
    """A run is found by its columns, hyperparameters, metrics and metadata; what was written comes back."""
    conditions: list[Json] = [
        _condition("experimentName", "=", "story", "RUN"),
        _condition("hp.width", ">=", 16, "RUN_HYPERPARAMETERS", "NUMBER"),
        _condition("validation.score.max", "=", 4, "VALIDATIONS", "NUMBER"),
        _condition("metadata.team.lead", "contains", "ada", "RUN_METADATA"),
    ]
    group = {"kind": "group", "conjunction": "and", "children": conditions}
    found = cast(
        JsonObject,
        sdk(
            _BINDINGS + "metadata = {'team': {'lead': 'Ada'}, 'n': [1, 2]}\n"
            "body = bindings.v1PostRunMetadataRequest(runId=number, metadata=metadata)\n"
            "bindings.post_PostRunMetadata(session, body=body, runId=number)\n"
            "kept = bindings.get_GetRunMetadata(session, runId=number).metadata\n"
            "asked = bindings.v1SearchRunsRequest(projectId=1, filter=told, sort='startTime=desc')\n"
            "answer = bindings.post_SearchRuns(session, body=asked)\n"
            "columns = bindings.get_GetProjectColumns(session, id=1, tableType=bindings.v1TableType.RUN).columns\n"
            "ranges = bindings.get_GetProjectNumericMetricsRange(session, id=1).ranges\n"
            "result = {\n"
            "    'kept': kept == metadata,\n"
            "    'runs': [[r.id, r.state.name, r.experiment.name, r.logPolicyMatched] for r in answer.runs],\n"
            "    'columns': [one.column for one in columns],\n"
            "    'ranges': [one.metricsName for one in ranges],\n"
            "    'values': bindings.get_GetMetadataValues(session, key='team.lead', projectId=1).values,\n"
            "}",
            number=story.trial,
            told=json.dumps({"filterGroup": group, "showArchived": False}),
        ),
    )
    assert found["kept"] is True
    assert found["runs"] == [[story.trial, "COMPLETED", "story", "amiss"]]
    assert {"hp.width", "metadata.team.lead", "validation.score.max"} <= set(cast(list[str], found["columns"]))
    assert "validation.score.max" in cast(list[str], found["ranges"])
    assert found["values"] == ["Ada"]


def _condition(column: str, operator: str, value: Json, location: str, kind: str = "TEXT") -> JsonObject:
    return {
        "kind": "field",
        "columnName": column,
        "operator": operator,
        "value": value,
        "location": f"LOCATION_TYPE_{location}",
        "type": f"COLUMN_TYPE_{kind}",
    }


def test_runs_are_acted_upon(sdk: Sdk, story: Story) -> None:
    """Archived and shown again; what cannot be done is said for each."""
    found = sdk(
        _BINDINGS + "def act(verb, request, **more):\n"
        "    body = getattr(bindings, f'v1{request}Request')(runIds=[number], projectId=1, **more)\n"
        "    return [one.error for one in getattr(bindings, f'post_{request}')(session, body=body).results]\n"
        "def listed():\n"
        "    told = '{\"showArchived\": false}'\n"
        "    asked = bindings.v1SearchRunsRequest(projectId=1, filter=told, limit=-1)\n"
        "    return number in [run.id for run in bindings.post_SearchRuns(session, body=asked).runs]\n"
        "result = [act('archive', 'ArchiveRuns'), listed(), act('unarchive', 'UnarchiveRuns'), listed(),\n"
        "          act('kill', 'KillRuns'), act('pause', 'PauseRuns')[0] != '', act('resume', 'ResumeRuns')[0] != '']",
        number=story.trial,
    )
    assert found == [[""], False, [""], True, [""], True, True]


def test_tenax_does_the_same(cluster: Machine, story: Story, tmp_path: Path) -> None:
    """Its own command line: trials and runs listed, filtered, annotated, fetched and bundled."""

    def tenax(*words: object) -> str:
        return cluster.tenax(*(str(word) for word in words)).stdout

    (listed,) = cast(list[JsonObject], json.loads(tenax("trial", "list", story.experiment, "--best", 1, "--json")))
    assert listed["id"] == story.trial
    assert tenax("trial", "metrics", story.trial, "--csv").splitlines()[0] == "step,lost,score"
    tenax("run", "metadata", story.trial, "--set", "who=Bob", "--set", "depth.of=3")
    filters = ("--filter", "metadata.who=Bob", "--filter", "hp.width>=16", "--filter", "state=COMPLETED")
    (run,) = cast(list[JsonObject], json.loads(tenax("run", "list", *filters, "--json")))
    assert (run["id"], run["metadata"]) == (story.trial, {**cast(JsonObject, run["metadata"]), "who": "Bob"})
    tenax("run", "metadata", story.trial, "--unset", "who", "--unset", "depth.of")
    assert json.loads(tenax("run", "list", *filters, "--json")) == []
    assert "hp.width" in tenax("run", "columns", 1)
    tenax("run", "archive", story.trial)
    tenax("run", "unarchive", story.trial)
    tenax("trial", "download", story.trial, "-o", tmp_path / "best")
    assert len((tmp_path / "best" / "weights").read_text()) == 40
    bundle = tenax("trial", "support-bundle", story.trial, "-o", tmp_path).strip()
    with tarfile.open(bundle) as archive:
        assert {Path(name).name for name in archive.getnames()} >= {"trial.json", "trial_logs.txt", "workloads.json"}
    tenax("trial", "set", "log-retention", story.trial, "--days", 7)
    assert json.loads(tenax("trial", "describe", story.trial, "--json"))["trial"]["logRetentionDays"] == 7
