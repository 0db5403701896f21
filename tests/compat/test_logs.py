"""`det trial logs` and `det task logs` with all that they can be asked, and the SDK's; each by what is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from tenax.jsonvalue import JsonObject
from tests.compat.client import BOTH, Det, Sdk
from tests.compat.experiments import CONFIG
from tests.compat.stories import Story
from tests.kits.machine import Machine


def shown(det: Det, story: Story, *words: object) -> str:
    return det("trial", "logs", story.trial, *words).out


@pytest.mark.parametrize(
    ("words", "there", "absent"),
    [
        ((), ("plain words", "mind the gap", "dire straits"), ()),
        (("--level", "ERROR"), ("dire straits",), ("plain words", "mind the gap")),
        (("--level", "WARNING"), ("dire straits", "mind the gap"), ("plain words",)),
        (("--rank-id", 3), ("mind the gap",), ("plain words", "dire straits")),
        (("--stdtype", "stderr"), ("dire straits",), ("plain words",)),
        (("--source", "master"), ("corrupt shard",), ("plain words",)),
        (("--source", "task"), ("plain words",), ("the trial is COMPLETED",)),
        (("--agent-id", "nowhere"), (), ("plain words",)),
        (("--container-id", "nothing"), (), ("plain words",)),
        (("--timestamp-before", "2001-01-01T00:00:00Z"), (), ("plain words",)),
        (("--timestamp-after", "2001-01-01T00:00:00Z"), ("plain words",), ()),
    ],
)
def test_what_is_asked_for_is_shown(
    det: Det, story: Story, words: tuple[object, ...], there: tuple[str, ...], absent: tuple[str, ...]
) -> None:
    """Every filter that the client has."""
    out = shown(det, story, *words)
    for text in there:
        assert text in out
    for text in absent:
        assert text not in out


def test_from_either_end(det: Det, story: Story) -> None:
    """The first lines, the last ones, all of them as JSON, and following one that has ended ends."""
    whole = [json.loads(line) for line in _lines(shown(det, story, "--json"))]
    assert [int(line["id"]) for line in whole] == list(range(len(whole)))
    first = [json.loads(line)["id"] for line in _lines(shown(det, story, "--json", "--head", 2))]
    last = [json.loads(line)["id"] for line in _lines(shown(det, story, "--json", "--tail", 2))]
    assert (first, last) == ([line["id"] for line in whole[:2]], [line["id"] for line in whole[-2:]])
    assert "plain words" in shown(det, story, "-f")


def _lines(out: str) -> list[str]:
    """JSON documents that were printed over several lines, one each."""
    decoder, found, place = json.JSONDecoder(), [], 0
    while (start := out.find("{", place)) >= 0:
        try:
            document, place = decoder.raw_decode(out, start)
        except ValueError:
            break
        found.append(json.dumps(document))
    return found


def test_logs_of_a_task(det: Det, sdk: Sdk, story: Story) -> None:
    """The same by the task's id."""
    task = cast(
        str,
        sdk(
            "from determined.common.api import bindings\n"
            "result = bindings.get_GetTrial(client._get_singleton_session(), trialId=number).trial.taskId",
            number=story.trial,
        ),
    )
    out = det("task", "logs", task, "--rank-id", 3).out
    assert "mind the gap" in out
    assert "plain words" not in out


@BOTH
def test_logs_of_the_sdk(sdk: Sdk, story: Story) -> None:
    """Lines as they are, filtered by text, level, rank and time; how many of them there are from an end."""
    found = sdk(
        "import warnings\n"
        "warnings.simplefilter('ignore')\n"
        "from determined.common.experimental.trial import LogLevel\n"
        "trial = client.get_trial(number)\n"
        "has = lambda text, lines: any(text in line for line in lines)\n"
        "result = [\n"
        "    has('plain words', trial.iter_logs()), has('plain words', trial.logs(follow=True)),\n"
        "    len(list(trial.iter_logs(head=2))), len(list(trial.iter_logs(tail=1))),\n"
        "    has('gap', trial.iter_logs(search_text='MIND the')),\n"
        "    has('plain', trial.iter_logs(search_text='MIND the')),\n"
        "    has('plain', trial.iter_logs(min_level=LogLevel.ERROR)),\n"
        "    has('gap', trial.iter_logs(rank_ids=[3])), has('plain', trial.iter_logs(timestamp_before=1000)),\n"
        "]",
        number=story.trial,
    )
    assert found == [True, True, 2, 1, True, False, False, True, False]


def test_fields_and_patterns(sdk: Sdk, story: Story) -> None:
    """What lines can be filtered by; a pattern of RE2; what excludes one another is refused."""
    found = cast(
        JsonObject,
        sdk(
            "from determined.common.api import bindings, errors\n"
            "session = client._get_singleton_session()\n"
            "fields = list(bindings.get_TrialLogsFields(session, trialId=number, follow=True))[-1]\n"
            "lines = list(bindings.get_TrialLogs(session, trialId=number, searchText='g.p$', enableRegex=True))\n"
            "try:\n"
            "    list(bindings.get_TrialLogs(session, trialId=number, follow=True, limit=3))\n"
            "    refused = False\n"
            "except errors.APIException as error:\n"
            "    refused = error.status_code == 400\n"
            "result = {'ranks': list(fields.rankIds), 'streams': sorted(fields.stdtypes),\n"
            "          'lines': [line.log.strip() for line in lines], 'refused': refused}",
            number=story.trial,
        ),
    )
    assert 3 in cast(list[int], found["ranks"])
    assert found["streams"] == ["stderr", "stdout"]
    assert found["lines"] == ["mind the gap"]
    assert found["refused"] is True


def test_following_one_that_runs(det: Det, sdk: Sdk, code: Path) -> None:
    """What is written meanwhile is shown, and the end of the trial ends it."""
    script = "import time\nfor n in range(5):\n    print('line', n, flush=True)\n    time.sleep(0.1)\n"
    (code / "train.py").write_text(script)
    trial = sdk(
        "import time\n"
        "experiment = client.create_experiment(config, directory)\n"
        "while not experiment.list_trials():\n"
        "    time.sleep(0.05)\n"
        "result = experiment.list_trials()[0].id",
        config={**CONFIG, "name": "followed", "entrypoint": "python3 train.py"},
        directory=str(code),
    )
    out = det("t", "logs", "-f", trial).out
    assert [f"line {n}" in out for n in range(5)] == [True] * 5


def test_tenax_asks_the_same(cluster: Machine, story: Story) -> None:
    """Its own filters, by text, pattern, level and stream."""

    def tenax(*words: object) -> str:
        return cluster.tenax("trial", "logs", str(story.trial), *(str(word) for word in words)).stdout

    assert "gap" in tenax("--search", "MIND", "--level", "warning")
    assert tenax("--search", "^dire .*s$", "--regex", "--stream", "stderr").count("\n") == 1
    assert tenax("--rank", 3, "--source", "task").count("\n") == 1
    assert tenax("--after", "2099-01-01T00:00:00Z") == ""


def test_a_line_forbids_another_try(sdk: Sdk, det: Det, code: Path) -> None:
    """A trial that may be restarted three times ends with its first failure, and its reason names the policy."""
    (code / "train.py").write_text("print('step 1: corrupt shard 7', flush=True)\nraise SystemExit(3)\n")
    trial = sdk(
        "experiment = client.create_experiment(config, directory)\n"
        "assert experiment.wait(interval=0.2) == client.ExperimentState.ERROR\n"
        "result = experiment.list_trials()[0].id",
        config={
            **CONFIG,
            "name": "forbidden",
            "entrypoint": "python3 train.py",
            "max_restarts": 3,
            "log_policies": [{"name": "bad data", "pattern": "corrupt shard", "action": "cancel_retries"}],
        },
        directory=str(code),
    )
    out = det("t", "logs", trial).out
    assert "log policy 'bad data' matched: 'step 1: corrupt shard 7'" in out
    assert "'bad data' forbids another try" in out
    assert "run 2" not in out
