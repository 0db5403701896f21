"""The page that puts `det` and `tenax` side by side. That it has every verb of `det`: `tests/compat`."""

from __future__ import annotations

from tests.docs.side_by_side import PAGE, counterpart, left_out, page
from tests.kits.cli.verbs import det_verbs, ours


def test_the_page_is_what_both_command_lines_are() -> None:
    """Made by ``make docs``."""
    assert PAGE.read_text() == page()


def test_what_is_left_out_has_no_command_of_ours() -> None:
    """A verb is either there, or listed as left out with a reason; `deploy` makes clusters in another way."""
    known, out = dict(ours()), left_out()
    both = [
        verb
        for verb in det_verbs()
        if any(verb[: len(name)] == name for name in out) and counterpart(verb, known) not in (None, ("up",))
    ]
    assert both == []
    assert all(why for why in out.values())
