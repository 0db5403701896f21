"""Scripts that fail: the trial ends with the reason in words, its log holds what happened, and the search goes on."""

from __future__ import annotations

import math
import re
from pathlib import Path

from tests.e2e.trials import config, output, ran, script
from tests.kits.machine import Machine, outlast

ADAPTIVE = {
    "name": "adaptive_asha",
    "metric": "loss",
    "time_metric": "epochs",
    "max_time": 4,
    "max_trials": 4,
    "max_concurrent_trials": 2,
}
ONE_OF_FOUR = {
    "which": {"type": "categorical", "vals": [0, 1, 2, 3]},
    "seed": {"type": "int", "minval": 0, "maxval": 1},
}

REPORTS = """
    import tenax
    from tenax import core
    info = tenax.get_cluster_info()
    with core.init() as context:
        for epoch in range(1, 5):
            context.train.report_validation_metrics(epoch, {metrics})
            if context.preempt.should_preempt():
                break
"""

FAILS_AT_STEP = """
    import tenax
    from tenax import core
    info = tenax.get_cluster_info()
    with core.init() as context:
        for step in range(1, {steps} + 1):
            context.train.report_training_metrics(step, {{"loss": 1.0}})
            if step > 5:
                context.train.report_validation_metrics(step, {{"loss": 1.0}})
                break
        else:
            dict()["no such key"]
"""


def test_a_checkpoint_directory_that_cannot_be_written_ends_the_trial(place: Machine, tmp_path: Path) -> None:
    """At its start, before hours are spent; directory and cause stand in the reason and in the log."""
    (tmp_path / "a-file").write_text("not a directory")
    storage = {"type": "directory", "container_path": str(tmp_path / "a-file" / "checkpoints")}
    code = script(tmp_path / "code", "print('never started')")
    experiment, (trial,) = ran(place, config(checkpoint_storage=storage), code)
    assert (experiment.state, trial.state) == ("ERROR", "ERROR")
    log = output(place, trial)
    for text in (trial.reason, log):
        assert str(tmp_path / "a-file") in text
        assert "checkpoint" in text
    assert "never started" not in log


def test_the_same_failure_twice_in_a_row_ends_a_trial_that_says_nothing_of_restarts(
    place: Machine, tmp_path: Path
) -> None:
    """After two runs and not after six, with what to do, whether it got to a first step or not."""
    wanted = config()
    wanted.pop("max_restarts", None)
    reports = script(tmp_path / "reports", FAILS_AT_STEP.format(steps=3))
    for code, error in ((script(tmp_path / "imports", "import no_such_module"), "ModuleNotFound"), (reports, "Key")):
        experiment, (trial,) = ran(place, wanted, code)
        assert (experiment.state, trial.state, trial.restarts) == ("ERROR", "ERROR", 1), trial.reason
        assert f"{error}Error in workdir/train.py, line" in trial.reason
        assert f"tenax experiment fork {experiment.id} DIRECTORY" in trial.reason
        assert "set max_restarts" in trial.reason
    # Whoever continues it has two runs again: what failed before is not held against the first.
    place.tenax("experiment", "continue", str(experiment.id))
    assert outlast(place, experiment.id).state == "ERROR"
    with place.client() as client:
        (again,) = client.experiment(experiment.id).trials()
    assert (again.state, again.restarts) == ("ERROR", 1)


def test_a_trial_that_goes_on_has_another_task_and_one_log(place: Machine, tmp_path: Path) -> None:
    """Who follows it reads all of it; each task has its own lines, and the script is told the newest."""
    code = script(tmp_path, "import os\nprint('this is', os.environ['DET_TASK_ID'])\nraise SystemExit(3)")
    experiment, _ = ran(place, config(max_restarts=0), code)
    for _ in range(2):
        place.tenax("experiment", "continue", str(experiment.id))
        outlast(place, experiment.id)
    with place.client() as client:
        (trial,) = client.experiment(experiment.id).trials()
        first = trial.task_id.removesuffix("-2")
        tasks = [first, f"{first}-1", f"{first}-2"]
        assert trial.task_ids == tasks
        lines = [line.log for line in trial.logs(follow=True)]
        assert [line for line in lines if line.startswith("this is")] == [f"this is {task}" for task in tasks]
        parts = [line["log"] for task in tasks for line in client.session.lines(f"/api/v1/tasks/{task}/logs")]
        assert [str(part).rstrip("\n") for part in parts] == [line.rstrip("\n") for line in lines]
        runs = [client.session.get(f"/api/v1/tasks/{task}")["task"] for task in tasks]
    for number, task in enumerate(tasks):
        assert f"'allocationId': '{task}.{number + 1}'" in str(runs[number])


def test_what_a_trial_of_a_search_has_shown_costs_the_others_one_run(place: Machine, tmp_path: Path) -> None:
    """They run the same code. Whoever continues the search has changed something, or hopes so: it is shown anew."""
    document = config(
        hyperparameters=ONE_OF_FOUR,
        searcher={"name": "random", "metric": "loss", "max_trials": 4, "max_concurrent_trials": 1},
    )
    document.pop("max_restarts")
    experiment, trials = ran(place, document, script(tmp_path, "import no_such_module"))
    assert [(trial.state, trial.restarts) for trial in trials] == [("ERROR", 1), *[("ERROR", 0)] * 3]
    for trial in trials[1:]:
        assert "ModuleNotFoundError: No module named 'no_such_module'" in trial.reason
        assert f"two runs of trial {trials[0].id} failed at the same place" in trial.reason
    place.tenax("experiment", "continue", str(experiment.id))
    assert outlast(place, experiment.id).state == "ERROR"
    with place.client() as client:
        assert sum(trial.restarts for trial in client.experiment(experiment.id).trials()) == 1


def test_what_tries_again_comes_before_what_has_not_begun(place: Machine, tmp_path: Path) -> None:
    """Else each of a search's trials had failed once before any had failed twice, and nothing was shown to any."""
    searcher = {"name": "random", "metric": "loss", "max_trials": 8}
    document = config(hyperparameters=ONE_OF_FOUR, searcher=searcher)
    document.pop("max_restarts")
    _, trials = ran(place, document, script(tmp_path, "import no_such_module"), 120.0)
    with place.client() as client:
        slots = sum(len(agent.slots) for agent in client.agents())
    assert len(trials) == 8
    assert sum(trial.restarts for trial in trials) <= slots < 8


def test_the_same_failure_a_step_further_is_tried_again(place: Machine, tmp_path: Path) -> None:
    """It may be another batch, another file, another moment of a network."""
    wanted = config()
    wanted.pop("max_restarts", None)
    code = script(tmp_path, FAILS_AT_STEP.format(steps="info.trial._trial_run_id + 2"))
    experiment, (trial,) = ran(place, wanted, code)
    assert (experiment.state, trial.state, trial.restarts) == ("COMPLETED", "COMPLETED", 3)


def test_a_script_that_raises_at_import_is_tried_as_often_as_allowed(place: Machine, tmp_path: Path) -> None:
    """The reason is the last line of its traceback, the log has all of it, and max_restarts is kept to."""
    code = script(
        tmp_path,
        """
        import os
        print("try", os.environ["DET_TRIAL_RUN_ID"])
        import no_such_module
        """,
    )
    experiment, (trial,) = ran(place, config(max_restarts=2), code)
    assert (experiment.state, trial.state) == ("ERROR", "ERROR")
    assert trial.restarts == 2
    assert "ModuleNotFoundError: No module named 'no_such_module'" in trial.reason
    assert "max_restarts is 2" in trial.reason
    log = output(place, trial)
    assert re.findall(r"\btry \d$", log, re.MULTILINE) == ["try 1", "try 2", "try 3"]
    assert log.count("Traceback (most recent call last)") == 3


def test_a_metric_that_the_search_does_not_find_ends_that_trial_alone(place: Machine, tmp_path: Path) -> None:
    """With what was expected and what came, without another try; the search has its other trials."""
    wrong = "{'accuracy': 0.5} if info.trial.hparams['which'] == 0 else {'loss': 1.0 / epoch, 'epochs': epoch}"
    code = script(tmp_path, REPORTS.replace("{metrics}", wrong))
    document = config(
        hyperparameters=ONE_OF_FOUR, searcher=ADAPTIVE, max_restarts=5, reproducibility={"experiment_seed": 3}
    )
    experiment, trials = ran(place, document, code)
    spoiled = [trial for trial in trials if trial.hparams["which"] == 0]
    assert 0 < len(spoiled) < len(trials)
    for trial in trials:
        assert trial.state == ("ERROR" if trial in spoiled else "COMPLETED")
        assert trial.restarts == 0
    for trial in spoiled:
        for word in ("'loss'", "'epochs'", "accuracy = 0.5", "searcher.metric"):
            assert word in trial.reason
        assert "accuracy = 0.5" in output(place, trial)
    assert experiment.state == "COMPLETED"


def test_a_metric_that_is_no_number_is_kept_and_ranked_worst(place: Machine, tmp_path: Path) -> None:
    """The trial goes on to its end; a warning in its log names it; another trial is the best."""
    nan = "{'loss': float('nan') if info.trial.hparams['which'] == 0 else 1.0 + epoch, 'epochs': epoch}"
    code = script(tmp_path, REPORTS.replace("{metrics}", nan))
    searcher = {**ADAPTIVE, "smaller_is_better": False}
    document = config(hyperparameters=ONE_OF_FOUR, searcher=searcher, reproducibility={"experiment_seed": 3})
    experiment, trials = ran(place, document, code)
    assert experiment.state == "COMPLETED"
    assert {trial.state for trial in trials} == {"COMPLETED"}
    spoiled = [trial for trial in trials if trial.hparams["which"] == 0]
    assert 0 < len(spoiled) < len(trials)
    assert experiment.best_trial_id not in {trial.id for trial in spoiled}
    for trial in spoiled:
        with place.client() as client:
            reported = [report.metrics["loss"] for report in client.trial(trial.id).metrics("validation")]
        assert reported
        assert all(math.isnan(float(str(value))) for value in reported)
        log = output(place, trial)
        assert f"trial {trial.id}" in log
        assert "ranks worst" in log


def test_a_program_that_is_not_there_is_named(place: Machine, tmp_path: Path) -> None:
    """As a shell would, with the exit code that it has for it."""
    code = script(tmp_path, "")
    _, (trial,) = ran(place, config(entrypoint=["/no/such/program", "train.py"]), code)
    assert trial.state == "ERROR"
    assert "/no/such/program" in trial.reason
    assert "/no/such/program" in output(place, trial)
