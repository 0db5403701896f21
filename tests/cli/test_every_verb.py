"""What holds for every command, found by walking them."""

from __future__ import annotations

import os
import subprocess
import sys

import click
import pytest

from tenax.cli.console.lazy import StrictCommand
from tests.kits.cli.command_line import Tenax
from tests.kits.cli.verbs import ours
from tests.kits.pretend_master import PretendMaster

#: Options that order or count, and do not choose.
NO_FILTERS = {"as_json", "as_csv", "sort_by", "sort", "reverse", "limit", "most", "quiet", "details"}
#: What lists without being called a list.
ALSO_LISTS = {
    ("run", "columns"),
    ("model", "labels"),
    ("queue", "stats"),
    ("quota", "show"),
    ("webhook", "deliveries"),
    ("trial", "metrics"),
    ("local", "metrics"),
    ("usage", "raw"),
    ("simulate",),
    ("usage", "aggregated"),
    ("machine", "cost"),
}


def lists() -> dict[str, click.Command]:
    return {
        " ".join(path): command
        for path, command in ours()
        if path[-1] == "list" or path[-1].startswith("list-") or path in ALSO_LISTS
    }


@pytest.mark.parametrize("path", sorted(lists()))
def test_every_list_has_filters_and_is_for_programs_too(path: str) -> None:
    """--json, --csv, and at least one option that chooses."""
    options = {str(parameter.name) for parameter in lists()[path].params if isinstance(parameter, click.Option)}
    assert {"as_json", "as_csv"} <= options
    assert options - NO_FILTERS


def test_what_prints_rows_is_a_list() -> None:
    """Whatever has --csv is walked above, but for what is named by numbers, and what shows all, a policy or steps."""
    with_csv = {
        " ".join(path) for path, command in ours() if any(parameter.name == "as_csv" for parameter in command.params)
    }
    assert with_csv - lists().keys() == {
        "token describe",
        "machine logs",
        "machine audit",
        "machine check",
        "experiment gc-policy",
        "experiment set gc-policy",
    }


@pytest.mark.parametrize(
    "verb",
    [
        " ".join(path)
        for path, command in ours()
        if any(
            isinstance(parameter, click.Argument) and parameter.required and parameter.name != "text"
            for parameter in command.params
        )
    ],
)
def test_an_empty_word_names_nothing(verb: str, tenax: Tenax) -> None:
    """A variable of a script that is not set is told, before anything is asked of a master."""
    command = {" ".join(path): candidate for path, candidate in ours()}[verb]
    empty = [""] * sum(isinstance(parameter, click.Argument) for parameter in command.params)
    done = tenax(*verb.split(), *empty)
    assert (done.code, done.out) == (2, "")


def test_every_command_of_a_group_refuses_them() -> None:
    """Those that are made outside of their group, too."""
    plain = {" ".join(path) for path, command in ours() if len(path) > 1 and not isinstance(command, StrictCommand)}
    assert plain == set()


def test_a_locale_without_umlauts_hides_nothing(master: PretendMaster) -> None:
    """What a terminal cannot show is written out; an argument is understood as it was typed."""
    master.on("GET", "/api/v1/experiments", {"experiments": [{"id": 7, "name": "größe 日本", "state": "STATE_PAUSED"}]})
    poor = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "tenax.cli.main", "experiment", "list", "--all", "--name", "größe"]
    done = subprocess.run(command, env=poor, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "gr\\xf6\\xdfe" in done.stdout
    assert master.asked[-1].query["name"] == ["größe"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_a_full_disk_is_no_mistake_of_ours(master: PretendMaster) -> None:
    """It is told in a line, and the command has failed."""
    master.on("GET", "/api/v1/experiments", {"experiments": []})
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "tenax.cli.main", "experiment", "list", "--all"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert "No space left" in done.stderr
