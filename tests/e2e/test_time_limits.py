"""``resources.time_limit``: runs that are over their time save, leave and go on; what would come no further ends."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.trials import config, output, ran, script
from tests.kits.machine import Machine, wait_for

#: Its first run goes on until it is asked to leave, however slow the machine; one that goes on ends by itself.
SAVES = """
    import time
    from tenax import core, get_cluster_info
    latest = get_cluster_info().latest_checkpoint
    with core.init() as context:
        step, last = 0, None
        if latest is not None:
            with context.checkpoint.restore_path(latest) as path:
                step = int((path / "step").read_text())
                last = step + 5
        leaves = False
        while step != last and not leaves:
            step += 1
            context.train.report_validation_metrics(step, {"loss": 1.0 / step})
            time.sleep(0.05)
            leaves = context.preempt.should_preempt()
        with context.checkpoint.store_path({"steps_completed": step}) as (path, _):
            (path / "step").write_text(str(step))
"""
NEVER_SAVES = """
    import time
    from tenax import core
    with core.init() as context:
        context.train.report_validation_metrics(1, {"loss": 1.0})
        time.sleep(600)
"""


def test_a_run_over_its_time_saves_and_the_trial_goes_on(place: Machine, tmp_path: Path) -> None:
    """In another run, from where the one before saved; that counts as no restart."""
    # Asked after half of it; by its end the script has to be at work, on a busy machine too.
    document = config(resources={"slots_per_trial": 1, "time_limit": "60s"})
    experiment, (trial,) = ran(place, document, script(tmp_path, SAVES))
    assert (experiment.state, trial.state, trial.restarts) == ("COMPLETED", "COMPLETED", 0), trial.reason
    log = output(place, trial)
    assert "run 1 has ended: it saved and left when asked to; the trial goes on" in log
    with place.client() as client:
        points = client.trial(trial.id).series("loss", points=0)
    assert [point.steps for point in points] == list(range(1, len(points) + 1))
    assert len(points) > 5


def test_a_limit_holds_for_what_runs_already(place: Machine, tmp_path: Path) -> None:
    """It is set, and taken away again; a run that saved nothing by then is the last, however often it may fail: the
    next one would come no further."""
    with place.client() as client:
        experiment = client.create_experiment(config(max_restarts=5), script(tmp_path, NEVER_SAVES))
        wait_for(lambda: any(one.steps for one in experiment.trials()), "a trial that has reported")
        experiment.edit(time_limit=3600.0)
        assert client.experiment(experiment.id).config["resources"]["time_limit"] == 3600
        experiment.edit(without_time_limit=True)
        assert client.experiment(experiment.id).config["resources"]["time_limit"] is None
        experiment.edit(time_limit=1.0)
        ended = experiment.wait(interval=0.1)
        (trial,) = ended.trials()
    assert (ended.state, trial.state, trial.restarts) == ("ERROR", "ERROR", 0)
    assert "its time limit was over before it had saved anything" in trial.reason
    assert "save more often, or raise resources.time_limit" in trial.reason


def test_a_command_over_its_time_ends(place: Machine) -> None:
    """It cannot save, and what it did before is not known: it is not started again."""
    with place.client() as client:
        command = client.run_command(["sleep", "600"], config={"resources": {"slots": 0, "time_limit": 2}})
        ended = command.wait(interval=0.1)
    assert "its time limit was over" in ended.reason
