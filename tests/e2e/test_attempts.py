"""What comes of an attempt that fails, is killed, will not leave, or says that its hyperparameters make no sense."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.e2e import noop
from tests.e2e.trials import config, output, ran, script
from tests.kits.cases import answers
from tests.kits.machine import ROOT, Machine, outlast, wait_for

NOOP = ROOT / "examples" / "noop"


def test_a_trial_that_fails_goes_on_from_its_latest_checkpoint(place: Machine, tmp_path: Path) -> None:
    """As often as it may, each time from the saved step; a step that was repeated counts once, as reported last."""
    hparams = {"reports": 9, "checkpoint_every": 2, "fail_at": 5, "log_dir": str(tmp_path)}
    experiment, (trial,) = ran(place, config(hyperparameters=hparams, max_restarts=2), NOOP)
    assert (experiment.state, trial.state, trial.restarts) == ("ERROR", "ERROR", 2)
    assert "RuntimeError: asked to fail at step 5" in trial.reason
    assert trial.reason in experiment.reason
    assert [line["step"] for line in noop.read(tmp_path, trial.id) if "event" in line] == [0, 4, 4]
    with place.client() as client:
        reports = list(client.trial(trial.id).metrics("validation"))
    assert [report.steps for report in reports] == [1, 2, 3, 4, 5]
    assert [report.run_id for report in reports] == [1, 1, 1, 1, 3]


def test_a_signal_from_elsewhere_is_named(place: Machine, tmp_path: Path) -> None:
    """The reason tells a process that somebody killed from one that failed; it counts as a failure of the task."""
    hparams = {"reports": 100_000, "seconds": 0.05, "log_dir": str(tmp_path)}
    with place.client() as client:
        number = client.create_experiment(config(hyperparameters=hparams), NOOP).id
    (book,) = wait_for(lambda: [book for book in noop.books(tmp_path).values() if book], "the first line of the script")
    os.kill(book[0]["pid"], signal.SIGKILL)
    assert outlast(place, number).state == "ERROR"
    with place.client() as client:
        (trial,) = client.experiment(number).trials()
    for word in ("SIGKILL", "not by the platform", "failed once"):
        assert word in trial.reason


@answers("task_services/preemption", "deadline passes without acknowledgement")
def test_who_will_not_leave_is_ended_when_its_time_is_up(place: Machine, tmp_path: Path) -> None:
    """A pause takes the slots back after preemption_timeout; nothing of it counts as a failure."""
    gate = tmp_path / "gate"
    code = script(
        tmp_path / "code",
        f"""
        import pathlib, time
        from tenax import core
        with core.init() as context:
            context.train.report_validation_metrics(1, {{"loss": 1.0}})
            while not pathlib.Path({str(gate)!r}).exists():
                time.sleep(0.02)
        """,
    )
    with place.client() as client:
        experiment = client.create_experiment(config(preemption_timeout=1), code)
        (trial,) = wait_for(lambda: [one for one in experiment.trials() if one.steps == 1], "a report")
        experiment.pause()
        wait_for(lambda: not any(agent.container_count for agent in client.agents()), "free slots")
        # The last that is heard of a container is not yet judged.
        wait_for(lambda: trial.reload().state == "PAUSED", "its trial to be paused")
        assert experiment.reload().state == "PAUSED"
        assert "did not leave in time" in trial.reload().reason
        gate.touch()
        experiment.activate()
    assert outlast(place, experiment.id).state == "COMPLETED"
    with place.client() as client:
        assert client.trial(trial.id).restarts == 0


def test_hyperparameters_that_make_no_sense_are_replaced(place: Machine, tmp_path: Path) -> None:
    """The trial ends without an error and without another try, and the search draws one more in its place."""
    code = script(
        tmp_path,
        """
        import tenax
        from tenax import core
        info = tenax.get_cluster_info()
        with core.init() as context:
            if info.trial.hparams["x"] < 0.5:
                raise core.InvalidHP("x is too small")
            context.train.report_validation_metrics(1, {"loss": info.trial.hparams["x"]})
        """,
    )
    document = config(
        hyperparameters={"x": {"type": "double", "minval": 0, "maxval": 1}},
        searcher={"name": "random", "metric": "loss", "max_trials": 3},
        reproducibility={"experiment_seed": 2},
        max_restarts=5,
    )
    experiment, trials = ran(place, document, code)
    assert experiment.state == "COMPLETED"
    invalid = [trial for trial in trials if float(str(trial.hparams["x"])) < 0.5]
    assert invalid
    assert len(trials) - len(invalid) == 3
    for trial in trials:
        assert (trial.state, trial.restarts) == ("COMPLETED", 0)
        assert ("hyperparameters are invalid" in trial.reason) == (trial in invalid)
    assert "x is too small" in output(place, invalid[0])


def test_a_kill_leaves_a_moment_to_save(place: Machine, tmp_path: Path) -> None:
    """SIGTERM, and SIGKILL for who does not listen; it is CANCELED, whatever code the script ends with."""
    saved, deaf = tmp_path / "saved", tmp_path / "deaf"
    code = script(
        tmp_path / "code",
        f"""
        import pathlib, signal, sys, tenax
        deaf = tenax.get_cluster_info().trial.hparams["deaf"]

        def save(number, frame):
            pathlib.Path({str(saved)!r}).touch()
            sys.exit(3)

        signal.signal(signal.SIGTERM, signal.SIG_IGN if deaf else save)
        pathlib.Path({str(deaf)!r} if deaf else {str(tmp_path / "ready")!r}).touch()
        while True:
            signal.pause()
        """,
    )
    searcher = {"name": "grid", "metric": "loss"}
    hparams = {"deaf": {"type": "categorical", "vals": [False, True]}}
    with place.client() as client:
        number = client.create_experiment(config(searcher=searcher, hyperparameters=hparams, max_restarts=5), code).id
    wait_for(lambda: deaf.exists() and (tmp_path / "ready").exists(), "both scripts")
    place.tenax("experiment", "kill", str(number))
    assert outlast(place, number).state == "CANCELED"
    assert saved.exists()
    with place.client() as client:
        trials = client.experiment(number).trials()
    assert [(trial.state, trial.restarts) for trial in trials] == [("CANCELED", 0)] * 2
