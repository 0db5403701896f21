"""What the web page takes our API for is what it is."""

from __future__ import annotations

from tests.docs.web_types import TYPES, heading


def test_the_types_of_the_page_are_current() -> None:
    """They were made of the contract as it is now: make web-types."""
    with TYPES.open() as types:
        assert types.readline() == heading()
