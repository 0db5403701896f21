"""The words of the glossary, and those that are not used."""

from __future__ import annotations

import re

import pytest

from tests.docs.vocabulary import BANNED, BANNED_IN_NAMES, EMPTY, ROOT, of_python, used

PAGE = ROOT / "docs" / "glossary.md"


def rows() -> list[list[str]]:
    """Term, meaning and home of each line of the page."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ") and not line.startswith("| term")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_a_term_is_at_home_where_the_page_says(row: list[str]) -> None:
    """The file is there, and speaks of it."""
    term, meaning, home = row
    assert meaning
    text = home + (ROOT / "src" / "tenax" / home.strip("`")).read_text().lower()
    stems = [word[:5] for word in re.split(r"\W+", term.lower()) if len(word) > 2]
    assert any(stem in text for stem in stems), f"{home} does not speak of {term}"


def test_a_term_has_one_meaning() -> None:
    """No word stands in the page twice, and no banned one does."""
    terms = [term for row in rows() for term in row[0].split(", ")]
    assert len(terms) > 50
    assert len(terms) == len(set(terms))
    assert not set(terms) & {*BANNED, *BANNED_IN_NAMES, *EMPTY}


def test_old_words_do_not_come_back() -> None:
    """One thing has one word: what the list of old words names is not said."""
    assert used() == {}


def test_old_words_are_seen_wherever_they_stand() -> None:
    """In names of any spelling, comments, docstrings and messages; not inside of other words."""
    text = (
        '"""The desk."""\n\n\ndef set_aside(wanted):  # it tends\n    class SomeLooks: ...\n    attend = "doomsday"\n'
        "    longest, _MOST_LINES = 1, 2\n"
    )
    assert {word for _, word in of_python(text)} == {"desk", "aside", "wanted", "tends", "looks", "most"}
