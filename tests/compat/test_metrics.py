"""Streams of metrics as the SDK reads them, and charts as the bindings do."""

from __future__ import annotations

from typing import cast

from tenax.jsonvalue import JsonObject
from tests.compat.client import BOTH, Sdk
from tests.compat.stories import Story

_QUIET = "import warnings\nwarnings.simplefilter('ignore')\n"


@BOTH
def test_metrics_of_one_trial(sdk: Sdk, story: Story) -> None:
    """By group, in order of steps, by every name that the SDK has had for it."""
    found = cast(
        JsonObject,
        sdk(
            _QUIET + "trial = client.get_trial(number)\n"
            "told = lambda reports: [[one.steps_completed, one.metrics, one.group] for one in reports]\n"
            "result = {\n"
            "    'training': told(trial.iter_metrics('training')),\n"
            "    'validation': told(trial.iter_metrics('validation')),\n"
            "    'inference': told(trial.iter_metrics('inference')),\n"
            "    'same': told(trial.stream_metrics('training')) == told(trial.stream_training_metrics()),\n"
            "    'too': told(trial.stream_metrics('validation')) == told(trial.stream_validation_metrics()),\n"
            "    'run': [one.trial_run_id for one in trial.iter_metrics('training')],\n"
            "    'time': all(one.end_time is not None for one in trial.iter_metrics('training')),\n"
            "}",
            number=story.trial,
        ),
    )
    assert found["training"] == [[step, {"loss": 1.0 / step, "note": "x"}, "training"] for step in (1, 2, 3, 4)]
    assert found["validation"] == [
        [2, {"score": 2.0, "lost": 3}, "validation"],
        [4, {"score": 4.0, "lost": 1}, "validation"],
    ]
    assert found["inference"] == [[4, {"speed": 7.5}, "inference"]]
    assert (found["same"], found["too"], found["time"]) == (True, True, True)
    assert found["run"] == [1, 1, 1, 1]


def test_metrics_of_many_trials(sdk: Sdk, story: Story, finished: int) -> None:
    """Of several at once: by trial, then by step; without trials, or of unknown ones, an error."""
    found = cast(
        JsonObject,
        sdk(
            _QUIET + "from determined.common.api import errors\n"
            "other = client.get_experiment(finished).list_trials()[0].id\n"
            "ids = [number, other]\n"
            "told = lambda reports: [[one.trial_id, one.steps_completed] for one in reports]\n"
            "def refused(call):\n"
            "    try:\n"
            "        list(call())\n"
            "    except errors.APIException as error:\n"
            "        return error.status_code\n"
            "rows = told(client.iter_trials_metrics(ids, group='training'))\n"
            "result = {\n"
            "    'ordered': rows == sorted(rows) and {row[0] for row in rows} == set(ids),\n"
            "    'same': rows == told(client.stream_trials_metrics(ids, 'training'))\n"
            "        == told(client.stream_trials_training_metrics(ids)),\n"
            "    'validation': len(told(client.stream_trials_validation_metrics(ids))) > 2,\n"
            "    'none': refused(lambda: client.stream_trials_training_metrics([])),\n"
            "    'unknown': refused(lambda: client.stream_trials_validation_metrics([-1])),\n"
            "}",
            number=story.trial,
            finished=finished,
        ),
    )
    assert found == {"ordered": True, "same": True, "validation": True, "none": 400, "unknown": 404}


def test_charts(sdk: Sdk, story: Story) -> None:
    """Trials are compared by few points of each metric; values keep their step and time."""
    found = sdk(
        "from determined.common.api import bindings\n"
        "session = client._get_singleton_session()\n"
        "told = bindings.get_CompareTrials(session, trialIds=[number], maxDatapoints=3,\n"
        "    metricIds=['training.loss', 'validation.score'], timeSeriesFilter_name='batches',\n"
        "    timeSeriesFilter_integerRange_gte=2)\n"
        "(one,) = told.trials\n"
        "result = [[line.group, line.type.name, [[p.batches, p.values] for p in line.data]] for line in one.metrics]",
        number=story.trial,
    )
    assert found == [
        ["training", "TRAINING", [[step, {"loss": 1.0 / step}] for step in (2, 3, 4)]],
        ["validation", "VALIDATION", [[2, {"score": 2.0}], [4, {"score": 4.0}]]],
    ]
