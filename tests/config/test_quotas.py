"""The quota file: what may stand in it, and what is said of what may not."""

from __future__ import annotations

import pytest

from tenax.config.problems import ConfigError
from tenax.config.quotas import parse_quotas


def test_all_that_it_may_say() -> None:
    """What is not set is not limited, and weighs 1."""
    file, lines = parse_quotas(
        """\
half_life: 36h
workspaces:
  vision: {weight: 2, max_slots: 32, users: {ana: {weight: 3}}}
users:
  ben: {priority: 40, slot_hours: 12.5}
groups: {students: {max_slots: 8}}
everyone: {max_slots: 4}
"""
    )
    assert file.half_life == 36 * 3600
    assert (file.workspaces["vision"].max_slots, file.workspaces["vision"].users["ana"].weight) == (32, 3)
    assert (file.users["ben"].priority, file.users["ben"].slot_hours, file.users["ben"].max_slots) == (40, 12.5, None)
    assert file.groups["students"].max_slots == 8
    assert file.everyone is not None
    assert file.everyone.max_slots == 4
    assert lines["users", "ben"] == 5
    bare, _ = parse_quotas("users: {}")
    assert (bare.half_life, bare.users, bare.everyone) == (7 * 86400, {}, None)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("half_life: 3", "half_life (line 1): '3' is no duration: write a number and a unit, such as 90m"),
        ("half_life: 1000d", "half_life (line 1): goes from 1h to 365d"),
        ("users: {a: {wieght: 2}}", "users.a.wieght (line 1): unknown key 'wieght'; did you mean 'weight'?"),
        ("groups: {g: {weight: 2}}", "groups.g.weight (line 1): unknown key 'weight'; legal here: max_slots"),
        ("users: {a: {weight: 0}}", "users.a.weight (line 1): 0 is too small: more than 0"),
        ("everyone: {priority: 100}", "everyone.priority (line 1): 100 is too large: at most 99"),
        ("workspaces: {w: {max_slots: -1}}", "workspaces.w.max_slots (line 1): -1 is too small: at least 0"),
        ("users: {a: {slot_hours: .nan}}", "slot_hours"),
        ("users: [a]", "users (line 1): a map is expected, and this is a list"),
        ("- x", "a map is expected, and this is a list"),
        ("users: {a: {}, a: {}}", "line 1"),
        ("# nothing", "quota file: says nothing: to have no quotas, remove them (tenax quota remove)"),
        ("users: {", "The quota file has a problem:"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_quotas(text)
    assert says in str(caught.value)
