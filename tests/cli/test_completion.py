"""What a shell is told when somebody presses the tabulator key."""

from __future__ import annotations

import pytest
from click.shell_completion import BashComplete

from tenax.cli.completion import VARIABLE
from tenax.cli.main import cli
from tests.cli.conftest import Tenax
from tests.kits.pretend_master import PretendMaster

TWO = {
    "experiments": [
        {"id": 12, "name": "digits", "state": "STATE_RUNNING"},
        {"id": 7, "name": "old", "state": "STATE_COMPLETED"},
    ]
}


def offered(words: str, incomplete: str, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str | None]]:
    monkeypatch.setenv(VARIABLE, "bash_complete")
    found = BashComplete(cli, {}, "tenax", VARIABLE).get_completions(words.split(), incomplete)
    return [(item.value, item.help) for item in found]


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
