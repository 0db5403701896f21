"""Named statements in files."""

from __future__ import annotations

from importlib import resources

import pytest

from tenax.master.store.database.queries import load


def test_a_statement_is_found_by_its_name() -> None:
    """An attribute is the text of the block of that name, without its semicolon."""
    assert load("database").probe == "select 1"


def test_an_unknown_statement_says_where_it_was_sought() -> None:
    """The message names file and statement."""
    with pytest.raises(AttributeError, match=r"database/queries.sql has no statement 'nothing'"):
        _ = load("database").nothing


def test_every_file_of_statements_can_be_loaded() -> None:
    """No file has a name twice or text before its first name."""
    nouns = [
        entry.name for entry in resources.files("tenax.master.store").iterdir() if (entry / "queries.sql").is_file()
    ]
    assert len(nouns) > 10
    for noun in nouns:
        assert dir(load(noun))


def test_a_statement_holds_the_text_of_a_fragment() -> None:
    """Of its own file by name, of another by noun and name."""
    assert load("experiments").shown_state in load("experiments").views
    assert load("trials").shown_state in load("runs").views
    assert "{{" not in load("runs").views
