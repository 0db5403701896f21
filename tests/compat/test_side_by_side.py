"""That the page of verbs knows Determined's whole command line."""

from __future__ import annotations

from typing import cast

from tests.compat.client import RealClient
from tests.compat.parser import VERBS, Node, verbs
from tests.kits.cli.verbs import det_verbs


def test_the_page_has_every_verb(admin: RealClient) -> None:
    """Each leaf of its parser, by its first name, and no other."""
    known = {tuple(names[0] for names in path) for path in verbs(cast("list[Node]", admin.sdk(VERBS)))}
    # One command with verbs of its own, which are read by hand.
    known = {("deploy",) if path[0] == "deploy" else path for path in known}
    assert set(det_verbs()) == known
