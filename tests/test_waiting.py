"""How tests wait for what other processes do: `tests.kits.machine.wait_for`."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import pytest

from tests.kits import machine


def test_a_long_wait_looks_seldom_and_a_short_one_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """No wait is longer for it by more than a twentieth, or a fifth of a second."""
    clock, looks = [0.0], [0.0]

    def sleep(seconds: float) -> None:
        clock[0] += seconds

    def look() -> None:
        looks.append(clock[0])

    monkeypatch.setattr(machine, "time", SimpleNamespace(monotonic=lambda: clock[0], sleep=sleep))
    with pytest.raises(AssertionError, match="waited 60 s in vain for nothing"):
        machine.wait_for(look, "nothing", 60)
    assert len([at for at in looks if at < 0.4]) > 15
    assert len(looks) < 500
    for before, at in pairwise(looks):
        assert at - before <= max(0.021, min(before / 20, 0.2) + 1e-9)
