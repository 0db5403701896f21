"""Checkpoints are collected: what is on the disk is what the policy keeps, also through the death of the master."""

from __future__ import annotations

from pathlib import Path

from tenax.client.checkpoints import Checkpoint, Policy
from tenax.client.experiments import Experiment
from tenax.jsonvalue import Json
from tests.e2e.collecting import SAVING, all_of, collected_and_deleted, on_disk
from tests.e2e.trials import config, output, script
from tests.kits.machine import Machine, outlast, wait_for

#: Is killed while it writes its second checkpoint.
DYING = """
    import os
    import signal
    from tenax import core

    with core.init() as context:
        with context.checkpoint.store_path({"steps_completed": 1}) as (path, _):
            (path / "whole.bin").write_text("w")
        with context.checkpoint.store_path({"steps_completed": 2}) as (path, _):
            (path / "half.bin").write_text("h")
            os.kill(os.getpid(), signal.SIGKILL)
"""


def submit(place: Machine, directory: Path, text: str, policy: Policy, **hparams: Json) -> tuple[int, Path]:
    """The number of a new experiment, and where its checkpoints go."""
    storage = directory / "checkpoints"
    storage.mkdir()
    section: dict[str, Json] = {
        "type": "shared_fs",
        "host_path": str(storage),
        "save_experiment_best": policy.experiment_best,
        "save_trial_best": policy.trial_best,
        "save_trial_latest": policy.trial_latest,
    }
    document = config(
        name="collected",
        hyperparameters=hparams,
        searcher={"name": "grid" if "x" in hparams else "single", "metric": "loss"},
        checkpoint_storage=section,
    )
    with place.client() as client:
        return client.create_experiment(document, script(directory / "code", text)).id, storage


def kept(checkpoints: list[Checkpoint], policy: Policy) -> set[str]:
    """What the rule keeps of an experiment that has ended, counted out."""
    worth = {one.uuid: one.searcher_metric for one in checkpoints}
    assert None not in worth.values()
    best = sorted(checkpoints, key=lambda one: (one.searcher_metric or 0.0, one.raw["reportTime"]))
    stay = {one.uuid for one in best[: policy.experiment_best]}
    for trial in {one.trial_id for one in checkpoints}:
        own = [one for one in best if one.trial_id == trial]
        stay |= {one.uuid for one in own[: policy.trial_best]}
        own.sort(key=lambda one: -one.steps)
        stay |= {one.uuid for one in own[: policy.trial_latest]}
    return stay


def test_what_is_on_the_disk_is_what_the_policy_keeps(shared: Machine, tmp_path: Path) -> None:
    """After a search of several trials, and after each change of the policy; the records of all stay."""
    policy = Policy(2, 2, 1)
    x: Json = {"type": "categorical", "vals": [1.0, 2.0, 3.0]}
    number, storage = submit(shared, tmp_path, SAVING, policy, x=x, saves=6, files=2)
    ended = outlast(shared, number)
    assert ended.state == "COMPLETED", output(shared, ended.trials()[0])
    _, checkpoints = all_of(shared, number)
    assert len(checkpoints) == 18
    for next_policy in (policy, Policy(1, 1, 0), Policy(1, 0, 0), Policy(0, 0, 0)):
        with shared.client() as client:
            experiment = client.experiment(number)
            if next_policy != policy:
                experiment.set_checkpoint_policy(next_policy)
            expected = kept(checkpoints, next_policy)
            wait_for(lambda wanted=expected: on_disk(storage) == wanted or None, f"{next_policy}")  # type: ignore[misc]
            told = wait_for(
                lambda one=experiment, wanted=expected: _settled(one, wanted),  # type: ignore[misc]
                "the records to follow",
            )
            assert all(one.reasons for one in told.checkpoints)
    assert len(all_of(shared, number)[1]) == 18
    with shared.client() as client:
        assert client.experiment(number).garbage().policy == Policy(0, 0, 0)


def test_the_command_line_shows_what_would_go_and_why(shared: Machine, tmp_path: Path) -> None:
    """Without changing anything; then what is asked for is done, and some files of the rest."""
    x: Json = {"type": "categorical", "vals": [1.0]}
    number, storage = submit(shared, tmp_path, SAVING, Policy(0, 0, 9), x=x, saves=3, files=2)
    assert outlast(shared, number).state == "COMPLETED"
    best, _, latest = sorted(all_of(shared, number)[1], key=lambda one: (one.searcher_metric or 0.0, one.steps))
    words = ("experiment", "gc-policy", str(number), "--save-trial-best", "1", "--save-trial-latest", "0")
    table = shared.tenax(*words, "--dry-run").stdout
    assert f"{best.uuid}  stays" in table
    assert table.count("goes") == 2
    assert "1st of its trial by loss" in table
    told = shared.json(*words, "--dry-run")
    assert isinstance(told, dict)
    assert len(on_disk(storage)) == 3
    done = shared.tenax(*words, "--yes").stdout
    assert "2 checkpoints" in done
    wait_for(lambda: on_disk(storage) == {best.uuid} or None, "two to go")
    shared.tenax("checkpoint", "rm", best.uuid, "--glob", "0.*", "--yes")
    # Not one of the directories that the operator listed: a task of the owner deletes there.
    left = ["1.bin", "metadata.json"]
    wait_for(lambda: sorted(path.name for path in (storage / best.uuid).iterdir()) == left or None, "a file to go")
    with shared.client() as client:
        # The task says so when it has deleted.
        wait_for(lambda: client.checkpoint(best.uuid).state == "PARTIALLY_DELETED", "its record to say so")
        listed = shared.tenax("checkpoint", "list", str(number), "--state", "PARTIALLY_DELETED", "--csv").stdout
        assert [line.split(",")[0] for line in listed.splitlines()[1:]] == [best.uuid]
        one = client.checkpoint(best.uuid)
        assert one.add_metadata({"note": "good"}).remove_metadata(["absent"]).metadata["note"] == "good"
        assert one.metrics() == []
    assert latest.uuid not in on_disk(storage)
    # A task has still to be started for it.
    assert "is being deleted" in shared.tenax("checkpoint", "delete", best.uuid, "-y").stdout
    wait_for(lambda: not on_disk(storage) or None, "the last to go")
    with shared.client() as client:
        wait_for(lambda: client.checkpoint(best.uuid).state == "DELETED" or None, "its record to say so")


def _settled(experiment: Experiment, expected: set[str]) -> object:
    told = experiment.garbage()
    there = {one.uuid for one in told.checkpoints}
    return told if there == expected and not told.removals and not told.going else None


def test_a_master_that_dies_while_it_collects_loses_nothing(shared: Machine, tmp_path: Path) -> None:
    """Killed with some of the files gone: after its return the rest is gone, too, and every record says so."""
    number, storage = submit(
        shared, tmp_path, SAVING, Policy(0, 0, 100), x={"type": "categorical", "vals": [1.0]}, saves=12, files=1
    )
    assert outlast(shared, number).state == "COMPLETED"
    assert len(on_disk(storage)) == 12
    for name in on_disk(storage):
        # Deleting takes a while, and writing them does not.
        for extra in range(1000):
            (storage / name / f"extra-{extra}").touch()
    pid = shared.pid("master")
    with shared.client() as client:
        client.experiment(number).set_checkpoint_policy(Policy(0, 0, 1))
    wait_for(lambda: len([name for name in on_disk(storage) if name[0] != "."]) < 12 or None, "the first to go")
    shared.kill("master")
    wait_for(lambda: shared.pid("master") not in (None, pid) or None, "the master's return")
    wait_for(shared.answers, "an answer of the master")
    _, checkpoints = all_of(shared, number)
    latest = {max(checkpoints, key=lambda one: one.steps).uuid}
    wait_for(lambda: on_disk(storage) == latest or None, "all files but the latest to go")

    def states() -> dict[str, int]:
        found = [one.state for one in all_of(shared, number)[1]]
        return {state: found.count(state) for state in found}

    wait_for(lambda: states() == {"DELETED": 11, "COMPLETED": 1} or None, "every record to say so")


def test_an_upload_that_broke_off_is_found(shared: Machine, tmp_path: Path) -> None:
    """The script is killed in the middle of it: no record names those files, and still they go. So does the rest."""
    number, storage = submit(shared, tmp_path, DYING, Policy(0, 1, 1))
    assert outlast(shared, number).state == "ERROR"
    _, (whole,) = all_of(shared, number)
    wait_for(lambda: on_disk(storage) == {whole.uuid} or None, "the end of what was half written")
    with shared.client() as client:
        client.experiment(number).delete()
    wait_for(lambda: not on_disk(storage) or None, "the end of everything")


def test_what_the_master_may_not_touch_a_task_deletes(shared: Machine, tmp_path: Path) -> None:
    """A place that only the script has named: the files go all the same, as their owner's doing, on an agent."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    text = SAVING.replace("core.init()", f"core.init(checkpoint_storage={str(elsewhere)!r})")
    x: Json = {"type": "categorical", "vals": [1.0]}
    number, _ = submit(shared, tmp_path, text, Policy(0, 0, 1), x=x, saves=3, files=1)
    collected_and_deleted(shared, number, elsewhere)
