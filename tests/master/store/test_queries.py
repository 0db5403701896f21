"""Named statements in files."""

from __future__ import annotations

from importlib import resources

import pytest

from tenax.master.store.queries import load


def test_a_statement_is_found_by_its_name() -> None:
    """An attribute is the text of the block of that name, without its semicolon."""
    assert load("wakeups").probe == "select 1"


def test_an_unknown_statement_says_where_it_was_sought() -> None:
    """The message names file and statement."""
    with pytest.raises(AttributeError, match=r"sql/wakeups.sql has no statement 'nothing'"):
        _ = load("wakeups").nothing


def test_every_file_of_statements_can_be_loaded() -> None:
    """No file has a name twice or text before its first name."""
    folder = resources.files("tenax.master.store").joinpath("sql")
    for entry in folder.iterdir():
        assert dir(load(entry.name.removesuffix(".sql")))
