"""What is taken, what is said of it, and what has to be asked."""

from __future__ import annotations

import pytest

from tenax.cli.experiment.from_script.command_line import script_call
from tenax.cli.experiment.from_script.configuration import (
    ScriptMetrics,
    SearcherChoice,
    SearchLimits,
    entrypoint,
    searcher_for,
    single_trial,
)
from tenax.cli.experiment.from_script.spaces import space_of
from tenax.errors import InvalidInput

LRS = "--lr 1e-4..1e-1:log"
ACCURACY = ("accuracy", "epochs")


def search(
    flags: str, limits: SearchLimits, names: tuple[str, ...] = ACCURACY, metric: str = "", goal: str = ""
) -> SearcherChoice:
    return searcher_for(
        script_call(flags.split(), (), (), space_of), ScriptMetrics("train.py", names, metric, goal), limits
    )


def test_with_a_time_the_worse_trials_stop_early() -> None:
    """Time, metric and direction come from the script's text, and all of it is said."""
    choice = search(LRS, SearchLimits(20, 16))
    assert choice.searcher == {
        "name": "adaptive_asha",
        "metric": "accuracy",
        "smaller_is_better": False,
        "time_metric": "epochs",
        "max_time": 16,
        "max_trials": 20,
    }
    said = " ".join(choice.remarks)
    for part in ("accuracy", "--metric", "--goal max", "adaptive_asha", "20 trials", "epochs = 16", "--time-metric"):
        assert part in said


def test_what_is_asked_for_is_taken_and_not_said_again() -> None:
    choice = search(LRS, SearchLimits(20, 16, "passes"), (), "elo", "max")
    assert choice.searcher["time_metric"] == "passes"
    assert (choice.searcher["metric"], choice.searcher["smaller_is_better"]) == ("elo", False)
    assert choice.remarks == ("adaptive_asha: 20 trials, of which the best go on to passes = 16.",)


def test_a_time_that_no_report_names_is_that_of_its_step() -> None:
    """Which every report has."""
    choice = search(LRS, SearchLimits(20, 1000), ("loss",))
    assert choice.searcher["time_metric"] == "batches"
    assert "counted by the step" in choice.remarks[-1]


def test_without_a_time() -> None:
    """As many as were asked for; of what can be counted, all."""
    assert search(LRS, SearchLimits(5)).searcher["name"] == "random"
    grid = search("--lr 0.1,0.2 --width 1,2,3 --amp true,false:switch --depth 4", SearchLimits())
    assert grid.searcher == {"name": "grid", "metric": "accuracy", "smaller_is_better": False}
    assert "all 12 combinations" in grid.remarks[-1]


@pytest.mark.parametrize(
    ("flags", "limits", "message"),
    [
        ("--lr 0.1", SearchLimits(5), "nothing to search.*tenax submit"),
        ("", SearchLimits(5), "nothing to search"),
        (LRS, SearchLimits(), "--trials 20"),
        (LRS, SearchLimits(None, 16), "--trials 20"),
        (LRS, SearchLimits(5, None, "epochs"), "add --time"),
    ],
)
def test_what_is_missing_is_asked_for(flags: str, limits: SearchLimits, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        search(flags, limits)


def test_what_ranks_the_trials_is_never_guessed() -> None:
    """Neither the metric, where there are none or several, nor a direction that its name does not say."""
    limits = SearchLimits(5)
    with pytest.raises(InvalidInput, match=r"--metric NAME.*train\.py does not say"):
        search(LRS, limits, ())
    with pytest.raises(InvalidInput, match=r"reports accuracy, f1 and loss: .*--metric loss"):
        search(LRS, limits, ("accuracy", "f1", "loss", "epochs"))
    with pytest.raises(InvalidInput, match="of elo are better: --goal min or --goal max"):
        search(LRS, limits, ("elo",))
    assert search(LRS, limits, ("elo",), goal="min").searcher["smaller_is_better"] is True
    assert search(LRS, limits, ("val_mape",)).searcher["smaller_is_better"] is True


def test_one_trial_takes_a_metric() -> None:
    """As a run by hand does; it decides on nothing but the best checkpoint."""
    for names, metric, smaller in (
        ((), "validation_loss", True),
        (("accuracy", "epochs"), "accuracy", False),
        (("accuracy", "loss"), "loss", True),
        (("elo",), "elo", True),
    ):
        choice = single_trial(ScriptMetrics("train.py", names))
        assert choice.searcher == {"name": "single", "metric": metric, "smaller_is_better": smaller}
        assert metric in choice.remarks[0]
    assert single_trial(ScriptMetrics("train.py", (), "elo", "max")).remarks == ()


def test_the_entrypoint() -> None:
    """The script as it is where it has no hyperparameters; ranks where it has several slots."""
    plain = script_call([], ("{lr}",), (), space_of)
    assert entrypoint("train.py", plain, 1) == ["python3", "train.py", "{lr}"]
    ranks = ["-m", "tenax.launch.torch_distributed"]
    assert entrypoint("train.py", plain, 2) == ["python3", *ranks, "train.py", "{lr}"]
    varied = script_call(["--lr", "1,2"], ("{lr}",), (), space_of)
    assert entrypoint("src/train.py", varied, 2) == [
        *("python3", "-m", "tenax.launch.with_hparams", *ranks),
        *("src/train.py", "--lr", "{lr}", "{{lr}}"),
    ]
