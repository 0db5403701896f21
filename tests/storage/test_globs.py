"""Which files a pattern means."""

from __future__ import annotations

import pytest

from tenax.errors import InvalidInput
from tenax.storage.globs import check_globs, matching

PATHS = ("a", "b.txt", "d/", "d/b.txt", "d/e/", "d/e/b.txt", "d/e/c.pt", "d*", "x!y", "new\nline")


@pytest.mark.parametrize(
    ("glob", "meant"),
    [
        ("**", set(PATHS)),
        ("*", set(PATHS)),
        ("*.txt", {"b.txt"}),
        ("**/b.txt", {"b.txt", "d/b.txt", "d/e/b.txt"}),
        ("**/**/b.txt", {"b.txt", "d/b.txt", "d/e/b.txt"}),
        ("d/**/b.txt", {"d/b.txt", "d/e/b.txt"}),
        ("d/*/b.txt", {"d/e/b.txt"}),
        ("**.pt", {"d/e/c.pt"}),
        ("d/e", {"d/e/", "d/e/b.txt", "d/e/c.pt"}),
        ("d/?.txt", {"d/b.txt"}),
        ("[a-c]*", {"a", "b.txt"}),
        ("[!a-d]*", {"x!y", "new\nline"}),
        ("[z-a]", set()),
        ("d[!x]b.txt", set()),
        ("x[!]y", {"x!y"}),
        ("d[*]", {"d*"}),
        ("new*line", {"new\nline"}),
        ("[", set()),
        ("", set()),
    ],
)
def test_what_a_pattern_means(glob: str, meant: set[str]) -> None:
    """As in Determined, where ``**`` alone crosses directories; what lies under a directory goes with it."""
    assert matching(PATHS, [glob]) == meant


@pytest.mark.parametrize("globs", [[" "], ["a", ""], ["a" * 1001], ["a" * 1000] * 11])
def test_what_is_no_pattern(globs: list[str]) -> None:
    """Blank, or longer than anybody means."""
    with pytest.raises(InvalidInput):
        check_globs(globs)
