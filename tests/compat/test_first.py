"""The first things that somebody does who comes with Determined's client."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from tests.compat.conftest import Det, Sdk


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
