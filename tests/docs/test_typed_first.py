"""The README and the quick start, typed from top to bottom on a machine where nothing was started before."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.docs.desk import Desk, Hint, desk, walk
from tests.docs.not_typed import MAX_NOT_TYPED, NOT_TYPED
from tests.docs.pages import commands
from tests.docs.stand_ins import with_stand_ins
from tests.kits.machine import wait_for

#: A page starts and stops clusters, on a machine that others use as well.
pytestmark = pytest.mark.timeout(900)

SEARCH = "tenax experiment create examples/digits/adaptive.yaml examples/digits -f"


@pytest.fixture(scope="module")
def newcomer() -> Iterator[Desk]:
    """With examples that need no torch; the machine has no GPU."""
    with desk() as made:
        with_stand_ins(made)
        yield made


def until_it_runs(number: int) -> Hint:
    """Once that experiment has a trial that trains."""

    def wait(made: Desk) -> None:
        with made.client() as client:
            wait_for(
                lambda: any(trial.latest_validation for trial in client.experiment(number).trials()) or None,
                f"a validation of experiment {number}",
            )

    return Hint(before=wait)


def until_it_has_ended(number: int) -> Hint:
    def wait(made: Desk) -> None:
        with made.client() as client:
            wait_for(lambda: client.experiment(number).has_ended or None, f"the end of experiment {number}")

    return Hint(before=wait)


def nobody_waited_for_the_fork(made: Desk) -> None:
    """It has a thousand epochs, and what the page starts after it is on the same slot."""
    with made.client() as client:
        assert client.experiment(3).state == "CANCELED"


def stopped(made: Desk) -> None:
    made.tenax("down", "--kill-tasks")


def test_the_readme(newcomer: Desk) -> None:
    """A cluster, the search to its end, what there is to look at, and the second machine, which this one plays."""
    joining = "tenax agent --master-url http://FIRST:8080 --join-token-file token"
    other = f" --agent-id second --dir {newcomer.home}/second"
    walk(
        newcomer,
        "README.md",
        {
            joining: Hint(
                put=lambda _: {"--join-token-file token": f"--join-token-file token{other}"}, until="connected"
            )
        },
    )
    assert "offers 1 cpu slot\n" in newcomer.said
    assert "for four at once: tenax down && tenax up --slots 4\n" in newcomer.said
    assert "offers 4 cpu slots\n" in newcomer.said
    assert "Experiment 1 COMPLETED" in newcomer.said
    assert newcomer.first("id", "experiment", "list") == "1"
    assert "second" in newcomer.tenax("agent", "list")


def test_the_quick_start(newcomer: Desk) -> None:
    """On the same machine on another day, with all that was there gone."""
    stopped(newcomer)
    newcomer.renew()
    walk(
        newcomer,
        "quickstart.md",
        {
            # The README's test has seen all sixteen trials.
            SEARCH: Hint(put=lambda _: {" -f": " -f --config searcher.max_trials=4"}),
            "tenax experiment pause 2": until_it_runs(2),
            "tenax experiment continue 2": until_it_has_ended(2),
            "tenax checkpoint download UUID -o best": Hint(
                put=lambda made: {"UUID": made.first("uuid", "checkpoint", "list", "1")[:8]}
            ),
            "tenax down": Hint(before=nobody_waited_for_the_fork),
        },
    )
    assert "Experiment 1 COMPLETED" in newcomer.said


def test_what_is_not_typed_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """With its reason, and no longer than it stands on a page; the list only becomes shorter."""
    bare = {command.bare for command in commands()}
    with capsys.disabled():
        print(f"\n{len(NOT_TYPED)} of {len(bare)} commands of the pages are not typed:")
        for command, reason in NOT_TYPED.items():
            print(f"  {command[:70]}: {reason}")
    assert set(NOT_TYPED) <= bare
    assert len(NOT_TYPED) <= MAX_NOT_TYPED
