"""``core.init``, what a trial reports, and the same script off the cluster."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

import tenax
from tenax import core
from tenax.client import ModelVersion
from tenax.core import info as info_module
from tenax.core.distributed import how_to_launch
from tenax.core.info import read_cluster_info
from tenax.core.train import TrainContext
from tenax.errors import InvalidInput, NotNow
from tests.kits.ranks import on_ranks
from tests.kits.task_master import TaskMaster


def local_reports(data: Path) -> list[dict[str, object]]:
    (path,) = data.glob("runs/*/reports.jsonl")
    return [json.loads(line) for line in path.open()]


def test_off_cluster(off_cluster: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Off the cluster the same calls work: reports in a local file, checkpoints in the user's data, no questions."""
    with core.init() as context:
        assert context.info is None
        context.train.report_training_metrics(1, {"loss": 1.0})
        context.train.report_validation_metrics(1, {"loss": 2.0})
        context.train.report_progress(0.5)
        context.train.set_status("validating")
        assert context.train.get_experiment_best_validation() is None
        assert context.train.get_metadata() is None
        assert context.train.set_metadata({"a": 1}) is None
        context.alert("title", "text")
        with context.checkpoint.store_path({"steps_completed": 1}) as (path, storage_id):
            (path / "x").write_text("1")
        assert context.checkpoint.get_metadata(storage_id) == {"steps_completed": 1}
        assert not context.preempt.should_preempt()
        assert context.distributed.size == 1
    assert (off_cluster / "checkpoints" / storage_id / "x").exists()
    assert [record["kind"] for record in local_reports(off_cluster)] == [
        "metrics", "metrics", "progress", "runner_state", "checkpoint"
    ]  # fmt: skip
    assert f"reports go to {off_cluster}/runs/" in capsys.readouterr().err
    assert tenax.get_cluster_info() is None


def test_off_cluster_without_reports(off_cluster: Path) -> None:
    """A script that reports nothing leaves nothing."""
    with core.init():
        pass
    assert not off_cluster.exists()


def test_invalid_hp_off_cluster(off_cluster: Path) -> None:
    """InvalidHP ends the script with 0 there too."""
    with pytest.raises(SystemExit) as ended, core.init():
        raise core.InvalidHP("no")
    assert ended.value.code == 0
    assert local_reports(off_cluster)[0]["body"] == {"reason": "EXITED_REASON_INVALID_HP"}


def test_first_record_is_the_start(trial: Path, master: TaskMaster) -> None:
    """A run begins with a record of where its checkpoints go, without policies."""
    with core.init() as context:
        assert context.info is not None
        assert context.info.trial.hparams["nested"] == {"units": 3}
    assert [record["kind"] for record in master.records()] == ["run_start"]
    assert master.bodies_of("run_start") == [
        {"checkpointStorage": {"type": "directory", "container_path": f"{trial}/checkpoints"}}
    ]


def test_the_search_stands_above_what_a_run_by_hand_has(trial: Path, master: TaskMaster) -> None:
    """What it did not choose is as by hand: a script that was submitted as it is found no such name."""
    with core.init(hparams={"lr": 7.0, "warmup": 3}) as context:
        assert context.hparams == {"lr": 0.1, "warmup": 3, "nested": {"units": 3}}


def test_validations_are_not_held_back(trial: Path, master: TaskMaster) -> None:
    """A validation is sent while the script goes on: the search waits for it."""
    with core.init() as context:
        context.train.report_validation_metrics(1, {"loss": 1})
        master.wait_for(lambda: len(master.records("metrics")) == 1)
        context.train.report_validation_metrics(2, {"loss": 1})
        master.wait_for(lambda: len(master.records("metrics")) == 2)


def test_groups(trial: Path, master: TaskMaster) -> None:
    """Any group with a usable name can be reported; others are refused in the call."""
    with core.init() as context:
        context.train.report_metrics("inference", 4, {"x": 1})
        for group in ("", "a.b", "gpu"):
            with pytest.raises(InvalidInput, match="group"):
                context.train.report_metrics(group, 4, {"x": 1})
        with pytest.raises(ValueError, match="'x' is None"):
            context.train.report_metrics("validation", 4, {"x": None})
    assert [body["group"] for body in master.bodies_of("metrics")] == ["inference"]


def test_progress(trial: Path, master: TaskMaster) -> None:
    """Progress is from 0 to 1; steps too small to see are not sent, the end always is."""
    with core.init() as context:
        for value in [0.0, 0.00001, 0.5, 0.5001, 1.0]:
            context.train.report_progress(value)
        for wrong in (-0.1, 1.1, float("nan")):
            with pytest.raises(InvalidInput, match="from 0 to 1"):
                context.train.report_progress(wrong)
    assert [body["progress"] for body in master.bodies_of("progress")] == [0.0, 0.5, 1.0]


def test_best_validation(trial: Path, master: TaskMaster) -> None:
    """The best validation of the experiment is asked of the master; none yet is None."""
    path = "/api/v1/experiments/3/searcher/best_searcher_validation_metric"
    with core.init() as context:
        assert context.train.get_experiment_best_validation() is None
        master.answers[path] = (200, {"metric": 0.25}, {})
        assert context.train.get_experiment_best_validation() == 0.25
        master.answers[path] = (200, {"metric": "NaN"}, {})
        assert str(context.train.get_experiment_best_validation()) == "nan"


def test_metadata(trial: Path, master: TaskMaster) -> None:
    """Metadata of the run is stored by the master and read from it."""
    path = "/api/v1/runs/7/metadata"
    master.answers[path] = (200, {"metadata": {"a": [1, "NaN"]}}, {})
    with core.init() as context:
        assert context.train.set_metadata({"a": [1, float("nan")]}) == {"a": [1, "NaN"]}
        assert master.bodies[path] == {"metadata": {"a": [1, "NaN"]}}
        assert context.train.get_metadata() == {"a": [1, "NaN"]}


def test_alert(trial: Path, master: TaskMaster, capsys: pytest.CaptureFixture[str]) -> None:
    """An alert goes to the webhooks; one that cannot be sent does not stop the training."""
    path = "/api/v1/webhooks/custom"
    master.answers[path] = (200, {}, {})
    with core.init() as context:
        context.alert("slow", "loss is flat", level="warn")
        assert master.bodies[path] == {
            "experimentId": 3,
            "trialId": 7,
            "data": {"title": "slow", "description": "loss is flat", "level": "LOG_LEVEL_WARNING"},
        }
        del master.answers[path]
        context.alert("again")
        assert "'again' was not sent" in capsys.readouterr().err
        with pytest.raises(InvalidInput, match="level must be one of"):
            context.alert("x", level="loud")


def test_which_checkpoint_a_task_uses(trial: Path, master: TaskMaster) -> None:
    """By itself, by its UUID, and by a version of a model; what is neither is told, and sent to nobody."""
    path = "/api/v1/trial-source-info"
    master.answers[path] = (200, {}, {})
    checkpoint = {"uuid": "u-1", "state": "STATE_COMPLETED"}
    version = ModelVersion.read({"version": 3, "checkpoint": checkpoint, "model": {"id": 5, "name": "m"}}, None)  # type: ignore[arg-type]
    source = {"trialId": 7, "checkpointUuid": "u-1", "trialSourceInfoType": "TRIAL_SOURCE_INFO_TYPE_INFERENCE"}
    with core.init() as context:
        for given in (version.checkpoint, "u-1"):
            context.experimental.report_task_using_checkpoint(given)
            assert master.bodies.pop(path) == {"trialSourceInfo": source}
        context.experimental.report_task_using_model_version(version)
        assert master.bodies.pop(path) == {"trialSourceInfo": {**source, "modelId": 5, "modelVersion": 3}}
        with pytest.raises(InvalidInput, match="a checkpoint or its UUID is needed"):
            context.experimental.report_task_using_checkpoint(7)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="a version of a registered model is needed"):
            context.experimental.report_task_using_model_version("m")  # type: ignore[arg-type]
        assert path not in master.bodies


def test_which_checkpoint_a_script_uses(off_cluster: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with core.init() as context:
        context.experimental.report_task_using_checkpoint("u-1")
    assert "this task uses checkpoint u-1" in capsys.readouterr().err


def test_other_ranks_do_not_report(off_cluster: Path, tmp_path: Path) -> None:
    """Reports of a rank that is not the chief are refused with a hint."""

    def work(distributed: core.DistributedContext) -> object:
        context = core.init(distributed=distributed)
        if distributed.rank == 0:
            context.train.report_training_metrics(1, {})
            return None
        for attempt in (
            lambda: context.train.report_training_metrics(1, {}),
            lambda: context.train.report_progress(0.1),
            lambda: context.train.set_status("x"),
        ):
            with pytest.raises(NotNow, match=r"only the chief may .* this is rank 1"):
                attempt()
        return "refused"

    assert on_ranks(work, 2) == [None, "refused"]


def test_several_slots_need_ranks(trial: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task with several slots that starts one process is told how to start several."""
    (trial / "info/cluster.json").write_text(
        (trial / "info/cluster.json").read_text().replace('"slot_ids":[0]', '"slot_ids":[0,1]')
    )
    with pytest.raises(InvalidInput, match=r"runs with 2 slots.*tenax\.launch\.torch_distributed.*from_torch"):
        core.init()
    for name, value in (("RANK", "1"), ("WORLD_SIZE", "2"), ("GROUP_WORLD_SIZE", "1")):
        monkeypatch.setenv(name, value)
    with pytest.raises(InvalidInput, match=r"2 slots, .* started this as rank 1 of 2: pass core.init\(dist.* script$"):
        core.init()


@pytest.mark.parametrize(
    ("entrypoint", "line"),
    [
        ("python3 min.py --lr 1", "python3 min.py --lr 1"),
        (["python3", "min.py"], "python3 min.py"),
        ("cd code && python3 min.py", "python3 train.py"),
        ("torchrun min.py", "python3 train.py"),
    ],
)
def test_the_entrypoint_to_write_is_ones_own_behind_a_launcher(trial: Path, entrypoint: object, line: str) -> None:
    """Where it is a single line of a Python."""
    config = json.loads((trial / "info/trial.json").read_text())
    config["config"]["entrypoint"] = entrypoint
    (trial / "info/trial.json").write_text(json.dumps(config))
    info = read_cluster_info(str(trial))
    assert how_to_launch(info) == f"write entrypoint: python3 -m tenax.launch.torch_distributed {line}"


def test_ranks_with_an_output_of_their_own(off_cluster: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a script has put there, and what is closed, is left as it is."""

    class Quiet:
        def reconfigure(self) -> None:
            raise AssertionError("for the script alone")

    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    monkeypatch.setattr(sys, "stdout", Quiet())
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(io.BytesIO()))
    sys.stderr.close()
    assert core.init().info is None


def test_a_process_that_no_launcher_started(off_cluster: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever takes a place among ranks that there are not hears how to start them, with and without PyTorch."""
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InvalidInput, match=r"start it with python3 -m tenax.launch.torch_dist.*init_process_group"):
        core.DistributedContext.from_torch_distributed()
    for name in ("torch", "torch.distributed"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InvalidInput, match=r"start it with python3 -m tenax\.launch\.processes python3 train\.py$"):
        core.DistributedContext.from_torch_distributed()


@pytest.fixture
def second_of_two(trial: Path) -> Path:
    """The second machine of a trial on two."""
    (trial / "info/rendezvous.json").write_text(
        '{"container_addrs":["10.0.0.1","10.0.0.2"],"container_rank":1,"container_slot_counts":[1,1]}'
    )
    return trial


def test_a_job_that_was_not_told_of_the_other_machines(second_of_two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not begin: torchrun by itself makes a job of each machine, and each of them would report."""
    with pytest.raises(InvalidInput, match=r"runs on 2 machines.*tenax\.launch\.torch_distributed"):
        core.init()
    monkeypatch.setenv("WORLD_SIZE", "1")
    with pytest.raises(InvalidInput, match=r"not told of the others.*tenax\.launch\.torch_distributed python3"):
        core.init(distributed=core.DummyDistributedContext())


def test_a_second_chief_reports_nothing(second_of_two: Path, master: TaskMaster) -> None:
    """Whoever made the only rank by hand hears of it at the first report, which reaches no master."""
    with core.init(distributed=core.DummyDistributedContext()) as context:
        for report in (
            lambda: context.train.report_training_metrics(1, {"loss": 1.0}),
            lambda: context.train.report_progress(0.5),
        ):
            with pytest.raises(NotNow, match="not told of the others"):
                report()
    assert master.records("metrics") == []


def test_task_that_is_no_trial(trial: Path, master: TaskMaster, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a command there is no training to report, but checkpoints can be stored where a storage is given."""
    for path in (trial / "info").iterdir():
        path.unlink()
    monkeypatch.setenv("DET_TASK_TYPE", "COMMAND")
    with core.init(checkpoint_storage=str(trial / "mine")) as context:
        with pytest.raises(NotNow, match="COMMAND: only trials"):
            _ = context.train
        storage_id = context.checkpoint.upload(str(trial / "info"))
        assert not context.preempt.should_preempt()
    assert master.bodies_of("checkpoint")[0]["uuid"] == storage_id
    with core.init() as context, pytest.raises(InvalidInput, match="no checkpoint_storage"):
        _ = context.checkpoint


def test_info_of_a_command(trial: Path) -> None:
    """Without info files the environment describes the task; what only trials have says so."""
    for path in (trial / "info").iterdir():
        path.unlink()
    info = read_cluster_info(str(trial))
    assert info is not None
    assert (info.agent_id, info.slot_ids, info.gpu_uuids, info.latest_checkpoint) == ("agent-1", [0], [], None)
    for attempt in (lambda: info.trial, lambda: info.container_addrs):
        with pytest.raises(NotNow):
            attempt()


def test_info_of_a_trial(trial: Path) -> None:
    """The info of a trial is complete, under the names that Determined's users know."""
    info = tenax.get_cluster_info()
    assert info is not None
    assert info is tenax.get_cluster_info()
    assert (info.trial.trial_id, info.trial.experiment_id, info.trial.trial_seed) == (7, 3, 1234)
    assert (info.container_addrs, info.container_rank, info.container_slot_counts) == (["127.0.0.1"], 0, [1])
    assert info.user_data == {"where": "here"}


def test_names_are_there() -> None:
    """Every public name loads, and a wrong one is an AttributeError."""
    for name in core.__all__:
        assert getattr(core, name) is not None
    assert set(core.__all__) <= set(dir(core))
    assert tenax.core is core
    for module in (core, tenax):
        with pytest.raises(AttributeError, match="no_such_name"):
            _ = module.no_such_name


def test_closing_by_hand(off_cluster: Path) -> None:
    """A context without a with-block is closed by ``close``, and says so to late reports."""
    context = core.init()
    train: TrainContext = context.train
    train.report_training_metrics(1, {})
    context.close()
    with pytest.raises(NotNow, match="closed"):
        train.report_training_metrics(2, {})
    assert info_module.get_cluster_info() is None


@pytest.mark.parametrize(("metric", "said"), [("validation_los", True), ("validation_loss", False)])
def test_a_mistyped_searcher_metric(
    trial: Path, master: TaskMaster, capsys: pytest.CaptureFixture[str], metric: str, said: bool
) -> None:
    """Is said in the log, once, when a validation is whole; what a step reports may come in parts."""
    with core.init() as context:
        assert context.info is not None
        context.info.trial._config["searcher"] = {"name": "single", "metric": metric}
        for step in (1, 2, 3):
            context.train.report_validation_metrics(step, {"accuracy": 0.5})
            context.train.report_validation_metrics(step, {"validation_loss": 0.5})
    shown = capsys.readouterr().err
    assert shown.count("which no validation has: they report accuracy, validation_loss") == int(said)


@pytest.mark.parametrize("mode", core.TensorboardMode)
def test_whether_reports_become_tensorboard_files_can_be_said_until_the_first(
    trial: Path, tmp_path: Path, mode: core.TensorboardMode
) -> None:
    """By who makes the context, and later by who trains in it."""
    kept = tmp_path / "kept"
    other = next(each for each in core.TensorboardMode if each is not mode)
    with core.init(checkpoint_storage=str(kept), tensorboard_mode=other) as context:
        context.set_tensorboard_mode(mode)
        context.train.report_training_metrics(1, {"loss": 0.5})
        context.set_tensorboard_mode(mode)
        with pytest.raises(NotNow, match="before the first report"):
            context.set_tensorboard_mode(other)
    assert bool(list(kept.rglob("*tfevents*"))) == (mode is core.TensorboardMode.AUTO)
