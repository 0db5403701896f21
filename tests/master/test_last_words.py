"""The exception that a script ended with, found in its output."""

from __future__ import annotations

from tenax.master.last_words import exception_line, explained

TRACEBACK = [
    "Traceback (most recent call last):",
    '  File "train.py", line 3, in <module>',
    "    import nothing_like_it",
    "ModuleNotFoundError: No module named 'nothing_like_it'",
]


def test_the_last_traceback_names_the_exception() -> None:
    """Also where others came before it, and lines after it."""
    earlier = ["Traceback (most recent call last):", "  File ...", "KeyError: 'x'", "going on"]
    assert exception_line([*earlier, *TRACEBACK, "bye"]) == TRACEBACK[-1]


def test_an_exception_without_words_counts() -> None:
    """``KeyboardInterrupt`` has no text."""
    assert (
        exception_line(["Traceback (most recent call last):", "  File ...", "KeyboardInterrupt"]) == "KeyboardInterrupt"
    )


def test_output_without_a_traceback_tells_nothing() -> None:
    """A program that just returns 1 has not raised."""
    assert exception_line(["Error: wrong usage"]) is None
    assert exception_line([]) is None


def test_a_long_text_is_cut() -> None:
    """A reason is a line, not a page."""
    found = exception_line([*TRACEBACK[:3], "ValueError: " + "x" * 1000])
    assert found is not None
    assert len(found) < 400


def test_a_reason_is_explained_by_the_last_lines() -> None:
    """Why the script could not be started, what it raised, else what it said last; and silence adds nothing."""
    assert explained("exited with code 1", ["tenax: this trial cannot start: no room.", ""]) == (
        "this trial cannot start: no room (exited with code 1)"
    )
    assert explained("exited with code 1", ["tenax: something", *TRACEBACK]) == (
        f"your code raised {TRACEBACK[-1]} (exited with code 1)"
    )
    assert explained("exited with code 2", ["usage: train.py", "train.py: error: --lr is missing", ""]) == (
        "exited with code 2; its last words: train.py: error: --lr is missing"
    )
    assert explained("exited with code 3", ["", "  "]) == "exited with code 3"
