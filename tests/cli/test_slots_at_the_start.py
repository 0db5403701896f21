"""What ``tenax up`` says of slots: what one is where there is no GPU, and how to have more of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tenax.cli.local.up import how_to_have_more_slots, what_it_offers
from tenax.client.agents import Agent


def agent(*kinds: str) -> Agent:
    slots = {str(number): {"id": str(number), "device": {"type": kind}} for number, kind in enumerate(kinds)}
    return Agent.read({"id": "box", "enabled": True, "slots": slots})


@pytest.mark.parametrize(
    ("kinds", "offered", "said"),
    [
        (["TYPE_CPU"], "auto", "one slot is one trial at a time, with all cores; for four at once: "),
        ([], "0", "what needs a slot waits; to offer some here: "),
        (["TYPE_CPU", "TYPE_CPU"], "2", ""),
        (["TYPE_CUDA"], "auto", ""),
        (["TYPE_CUDA", "TYPE_CUDA"], "auto", ""),
    ],
)
def test_how_to_have_more(kinds: list[str], offered: str, said: str) -> None:
    """Only where the machine has no GPU and nobody chose a number, or where there is no slot at all."""
    lines = how_to_have_more_slots([agent(*kinds)], offered)
    assert lines == ([f"{said}tenax down && tenax up --slots 4"] if said else [])


def test_nobody_is_asked_about_an_agent_that_is_missing() -> None:
    """That it is missing is said already."""
    assert how_to_have_more_slots([], "auto") == []


def test_an_agent_that_takes_nothing_offers_nothing() -> None:
    """It was turned off before the cluster was stopped, and is off when that comes up again."""
    on = agent("TYPE_CPU", "TYPE_CPU")
    assert what_it_offers(on) == "offers 2 cpu slots"
    off, drains = replace(on, enabled=False), replace(on, enabled=False, draining=True)
    assert what_it_offers(off) == "is disabled and takes nothing new: tenax agent enable box"
    assert what_it_offers(drains) == "drains and takes nothing new: tenax agent enable box"
