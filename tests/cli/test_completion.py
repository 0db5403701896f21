"""What a shell is told when somebody presses the tabulator key."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.shell_completion import BashComplete

from tenax.cli.console.completion import LISTERS, VARIABLE, kind_of
from tenax.cli.main import cli
from tests.kits.cli.command_line import Tenax
from tests.kits.cli.verbs import ours
from tests.kits.pretend_master import PretendMaster

TWO = {
    "experiments": [
        {"id": 12, "name": "digits", "state": "STATE_RUNNING"},
        {"id": 7, "name": "old", "state": "STATE_COMPLETED"},
    ]
}


def offered(line: str, incomplete: str, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str | None]]:
    monkeypatch.setenv(VARIABLE, "bash_complete")
    items = BashComplete(cli, {}, "tenax", VARIABLE).get_completions(line.split(), incomplete)
    return [(item.value, item.help) for item in items]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_what_a_shell_reads(tenax: Tenax, shell: str) -> None:
    """It asks this program with the variable that the program looks at."""
    done = tenax("completion", shell)
    assert done.code == 0
    assert VARIABLE in done.out


def test_the_shell_of_the_environment(tenax: Tenax, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a name it is the one in SHELL; one that is not known is told."""
    monkeypatch.setenv("SHELL", "/usr/bin/zsh")
    assert "compdef" in tenax("completion").out
    monkeypatch.setenv("SHELL", "/usr/bin/ksh")
    done = tenax("completion")
    assert done.code != 0
    assert "bash, zsh and fish" in done.err


def test_commands_and_options(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also under a short name."""
    assert ("experiment" in dict(offered("", "exp", monkeypatch))) is True
    assert dict(offered("e", "desc", monkeypatch)).keys() == {"describe"}
    assert "--json" in dict(offered("e list", "--j", monkeypatch))


def test_ids_with_what_they_are(master: PretendMaster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest first, with name and state; what was typed so far decides."""
    master.on("GET", "/api/v1/experiments", TWO)
    assert offered("experiment describe", "", monkeypatch) == [("12", "digits running"), ("7", "old completed")]
    assert [value for value, _ in offered("e describe", "1", monkeypatch)] == ["12"]


def test_a_master_that_is_away_completes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a word, and soon."""
    monkeypatch.setenv("DET_MASTER", "http://127.0.0.1:9")
    assert offered("experiment describe", "", monkeypatch) == []


def names_of(command: click.Command) -> list[click.Parameter]:
    """The arguments of a command that are no files, choices or numbers within bounds."""
    return [
        parameter
        for parameter in command.params
        if isinstance(parameter, click.Argument)
        and type(parameter.type) in (click.types.StringParamType, click.types.IntParamType)
    ]


#: Arguments that name nothing that is at the master, by command.
FREE = {
    ("experiment", "set", "name"): {"name"},
    ("experiment", "set", "description"): {"text"},
    ("experiment", "set", "notes"): {"text"},
    ("experiment", "set", "max-slots"): {"slots"},
    ("experiment", "set", "time-limit"): {"limit"},
    ("experiment", "label", "add"): {"labels"},
    ("experiment", "label", "remove"): {"labels"},
    ("workspace", "create"): {"name"},
    ("project", "create"): {"name"},
    ("model", "create"): {"name"},
    ("model", "edit-version"): {"number"},
    ("model", "delete-version"): {"number"},
    ("agent", "join-token", "revoke"): {"numbers"},
    ("user", "create"): {"name"},
    ("user", "login"): {"name"},
    ("user", "rename"): {"new_name"},
    ("group", "create"): {"name"},
    ("group", "change-name"): {"new_name"},
    ("template", "create"): {"name"},
    ("webhook", "create"): {"name", "url"},
    ("webhook", "set-url"): {"url"},
    ("queue", "update-batch"): {"operations"},
    ("usage", "aggregated"): {"start_date", "end_date"},
    # Runs by hand are on this machine.
    ("local", "metrics"): {"names"},
    ("local", "resume"): {"name"},
    ("local", "rm"): {"names"},
    ("sync",): {"names"},
    ("usage", "raw"): {"after", "before"},
    ("master", "message", "set"): {"text"},
}


def test_every_argument_is_completed() -> None:
    """Whatever names something at the master is completed; what does not stands in a list here."""
    unknown = {
        path: names
        for path, command in ours()
        if (
            names := {
                str(parameter.name) for parameter in names_of(command) if kind_of(path[0], path[-1], parameter) is None
            }
        )
    }
    assert unknown == FREE
    kinds = {kind_of(path[0], path[-1], parameter) for path, command in ours() for parameter in command.params}
    assert kinds - {None} == LISTERS.keys()


LISTS = {
    "/api/v1/agents": {"agents": [{"id": "box", "slots": {"0": {"id": "0"}, "1": {"id": "1"}}}]},
    "/api/v1/machines": {"machines": [{"id": "m-1", "resourcePool": "gpus"}]},
    "/api/v1/machines/plan": {"plans": [{"resourcePool": "gpus", "offers": [{"offer": "p4d in us-west-2"}]}]},
    "/api/v1/job-queues": {"jobs": [{"jobId": "j-1", "name": "digits"}]},
    "/api/v1/resource-pools": {"resourcePools": [{"name": "gpus"}]},
    "/api/v1/users": {"users": [{"username": "eve", "displayName": "Eve"}]},
    "/api/v1/webhooks": {"webhooks": [{"id": 3, "name": "the team"}, {"id": 4, "name": "ops"}]},
    "/api/v1/tokens": {"tokenInfo": [{"id": 9, "description": "nightly"}]},
    "/api/v1/models": {"models": [{"id": 1, "name": "net"}]},
    "/api/v1/workspaces/0/projects": {"projects": [{"id": 5, "key": "CAT", "name": "cats"}]},
    "/api/v1/workspaces": {"workspaces": [{"id": 2, "name": "vision"}, {"id": 6, "name": "two words"}]},
    "/api/v1/templates": {"templates": [{"name": "box"}]},
    "/api/v1/commands": {"commands": [{"id": "c-1", "description": "df"}]},
    "/api/v1/tasks": {"allocationIdToSummary": {"t-1.1": {"taskId": "t-1", "name": "Task"}}},
    "/api/v1/experiments": {"experiments": [{"id": 12, "name": "digits", "checkpointCount": 1}]},
    "/api/v1/experiments/12": {"experiment": {"id": 12}},
    "/api/v1/experiments/12/checkpoints": {"checkpoints": [{"uuid": "u-1", "state": "STATE_COMPLETED"}]},
}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("experiment kill", ["12"]),
        ("experiment kill 12", []),
        ("experiment move 12", ["vision", "6"]),
        ("experiment move 12 vision", ["CAT"]),
        ("trial describe", ["31"]),
        ("trial list", ["12"]),
        ("checkpoint describe", ["u-1"]),
        ("checkpoint list", ["12"]),
        ("model describe", ["net"]),
        ("model register-version net", ["u-1"]),
        ("workspace describe", ["vision", "6"]),
        ("project describe", ["CAT"]),
        ("user describe", ["eve"]),
        ("agent disable", ["box"]),
        ("slot disable box", ["0", "1"]),
        ("machine describe", ["m-1"]),
        ("machine end", ["m-1"]),
        ("machine launch --pool gpus --offer", ["p4d in us-west-2"]),
        ("machine end m-1", []),
        ("task kill", ["t-1"]),
        ("command kill", ["c-1"]),
        ("template describe", ["box"]),
        ("webhook test", ["3", "ops"]),
        ("token revoke", ["9"]),
        ("group describe", ["crew"]),
        ("group add-user crew", ["eve"]),
        ("pool bindings add", ["gpus"]),
        ("queue update", ["j-1"]),
        ("experiment list --user", ["eve"]),
        ("queue list --pool", ["gpus"]),
        ("experiment set name 12", []),
    ],
)
def test_everything_is_completed(
    line: str, expected: list[str], master: PretendMaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its name, or with its number where the name has blanks, which a shell takes for several words."""
    for path, answer in LISTS.items():
        master.on("GET", path, answer)
    master.on("POST", "/api/v1/runs", {"runs": [{"id": 31}]})
    master.on("POST", "/api/v1/groups/search", {"groups": [{"group": {"groupId": 8, "name": "crew"}}]})
    assert [value for value, _ in offered(line, "", monkeypatch)] == expected


#: What a shell reads first, and how it is asked without a terminal.
SHELLS = {
    "bash": (
        'eval "$(tenax completion bash)"',
        "COMP_WORDS=(tenax e describe 1); COMP_CWORD=3; _tenax_completion tenax; echo ${COMPREPLY[@]}",
    ),
    "fish": ("tenax completion fish | source", "complete --do-complete 'tenax e describe 1'"),
}


@pytest.mark.parametrize("shell", [shell for shell in SHELLS if shutil.which(shell)])
def test_a_real_shell(shell: str, master: PretendMaster, tmp_path: Path) -> None:
    """It reads what we print, asks us, and offers what there is."""
    master.on("GET", "/api/v1/experiments", TWO)
    program = tmp_path / "tenax"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m tenax.cli.main "$@"\n')
    program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    done = subprocess.run([shell, "-c", "\n".join(SHELLS[shell])], env=environment, capture_output=True, text=True)
    assert done.stdout.split()[0] == "12", done.stderr
