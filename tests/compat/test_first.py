"""The first things that somebody does who comes with Determined's client."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

from tests.compat.client import Det, Sdk
from tests.compat.experiments import CONFIG


def test_who_am_i(det: Det) -> None:
    """`det user whoami` logs in and tells the name."""
    assert "determined" in det("user", "whoami").out


def test_create_and_follow(det: Det, sdk: Sdk, config: Path, code: Path) -> None:
    """`det experiment create -f` prints the script's output and ends when the trial has ended."""
    done = det("e", "create", config, code, "-f")
    assert "done after 3" in done.out
    number = int(done.out.split("Created experiment ")[1].split()[0])
    state = sdk("result = client.get_experiment(number).wait(interval=0.2).value", number=number)
    assert state == "STATE_COMPLETED"
    told = cast(list[dict[str, dict[str, object]]], det("e", "describe", number, "--json").json)
    assert [one["experiment"]["state"] for one in told] == ["STATE_COMPLETED"]


def test_versions(det: Det) -> None:
    """The master says the version whose interface it has, so that the client has nothing to warn about."""
    done = det("version")
    assert done.out.count("0.38.1") >= 2
    assert "warning" not in (done.out + done.err).lower()


def test_preview_of_a_search(det: Det, tmp_path: Path) -> None:
    """What a search would do, as the client draws it: its settings and how many trials of which length."""
    told = {
        **CONFIG,
        "hyperparameters": {"lr": {"type": "double", "minval": 0.1, "maxval": 1.0}},
        "searcher": {
            "name": "adaptive_asha",
            "metric": "score",
            "max_trials": 8,
            "time_metric": "batches",
            "max_time": 64,
        },
    }
    path = tmp_path / "search.yaml"
    path.write_text(json.dumps(told))
    out = det("preview-search", path).out
    assert "adaptive_asha" in out
    assert "Trials" in out
    assert any(line.split("|")[-1].strip().startswith("train") for line in out.splitlines())
