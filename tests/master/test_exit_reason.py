"""The exception that a script ended with, found in its output."""

from __future__ import annotations

import pytest

from tenax.lifecycle.container import Ending
from tenax.master.allocations.exit_reason import explained, failure_place, lines_that_explain, with_exit_reason
from tenax.master.telemetry.log_lines import gap_line, is_gap
from tenax.wire.tracebacks import exception_line

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


@pytest.mark.parametrize(
    ("ending", "after", "place", "says"),
    [
        (Ending(code=1, reason="r"), ["bye"], True, "your code raised ModuleNotFoundError"),
        (Ending(code=75, reason="r"), [], True, "your code raised ModuleNotFoundError"),
        # A logged one: the program went on, and left by itself, or was killed.
        (Ending(code=75, reason="r"), ["going on", ""], False, "r; its last line of error output: going on"),
        (
            Ending(code=75, reason="r"),
            [*TRACEBACK, "no more room"],
            False,
            "r; its last line of error output: no more room",
        ),
        (Ending(signal=9, reason="r"), [], False, "r"),
    ],
)
def test_an_exception_that_was_caught_is_no_reason(ending: Ending, after: list[str], place: bool, says: str) -> None:
    """Nor the place of a failure that comes again: an exit without one has all its restarts."""
    lines = [*TRACEBACK, *after]
    assert (failure_place(lines_that_explain(ending, lines)) is not None) is place
    assert with_exit_reason(ending, lines).reason.startswith(says)


@pytest.mark.parametrize("rank", ["", "[rank1]: "])
@pytest.mark.parametrize("shown", [["    def f(:", "          ^"], ["    y = 2"], []])
def test_a_script_that_is_no_python(rank: str, shown: list[str]) -> None:
    """Python prints no traceback then, and it was tried six times."""
    own = ['  File "/run/1/code/train.py", line 7', *shown, "SyntaxError: invalid syntax"]
    lines = [f"{rank}{line}" for line in ["it begins", *own]]
    assert exception_line(lines) == "SyntaxError: invalid syntax"
    assert str(failure_place(lines)).startswith("SyntaxError in code/train.py, line 7")
    imported = [f"{rank}{line}" for line in [*TRACEBACK[:3], *own]]
    assert exception_line(imported) == "SyntaxError: invalid syntax"
    assert str(failure_place(imported)).startswith("SyntaxError in code/train.py, line 7")
    assert exception_line([f"{rank}SyntaxError: a word of its own"]) is None


@pytest.mark.parametrize("rank", ["", "[rank1]: "])
def test_what_python_ignores_while_it_ends_is_no_reason(rank: str) -> None:
    """Python 3.13 prints a traceback of its own about what is left open; it stood for the script's in every failure."""
    ignored = [
        "Exception ignored in: <_io.BufferedReader name=6>",
        "Traceback (most recent call last):",
        '  File "/usr/lib/python3.13/socket.py", line 788, in close',
        "AttributeError: 'NoneType' object has no attribute 'RawIOBase'",
    ]
    lines = [f"{rank}{line}" for line in (*TRACEBACK, *ignored, *ignored)]
    # Another rank may speak in between.
    lines.insert(5, "[rank7]: still here")
    assert exception_line(lines) == TRACEBACK[-1]
    assert str(failure_place(lines)).startswith("ModuleNotFoundError in train.py, line 3")
    assert exception_line([f"{rank}{line}" for line in ignored]) is None


@pytest.mark.parametrize(
    ("lines", "place"),
    [
        (
            ["usage: train.py [-h] [--lr LR]", "train.py: error: unrecognized arguments: --x 1", ""],
            "train.py: error: u",
        ),
        (
            ["Usage: train.py [OPTIONS]", "Try 'train.py --help' for help.", "", "Error: No such option: --x"],
            "Error: No",
        ),
        (
            ["[rank1]: usage: a.py", "[rank1]: a.py: error: no", "tenax: rank 1 failed first, exited with code 2"],
            "a.py: ",
        ),
    ],
)
def test_options_that_a_script_does_not_take_are_a_place(lines: list[str], place: str) -> None:
    """It would refuse them every time."""
    assert str(failure_place(lines)).startswith(f"its command line: {place}")
    assert failure_place([line.replace("sage: ", "se: ") for line in lines]) is None
    assert str(failure_place([*lines[:-1], *TRACEBACK])).startswith("ModuleNotFoundError in train.py")


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
    line = exception_line([*TRACEBACK[:3], "ValueError: " + "x" * 1000])
    assert line is not None
    assert len(line) < 400


def test_colours_are_left_out() -> None:
    """A reason is read where nothing paints."""
    painted = [*TRACEBACK[:3], "\x1b[1;31mValueError: \x1b[0mred"]
    assert explained("exited with code 1", painted) == "your code raised ValueError: red (exited with code 1)"


def test_what_stands_for_lost_output_is_none_of_it() -> None:
    """The line is the platform's."""
    assert is_gap(gap_line(2318))
    assert not is_gap(f"{gap_line(2318)} said my script")


def test_a_reason_is_explained_by_the_last_lines() -> None:
    """Why the script could not be started, what it raised, else what it said last; and silence adds nothing."""
    assert explained("exited with code 1", ["tenax: this trial cannot start: no room.", ""]) == (
        "this trial cannot start: no room (exited with code 1)"
    )
    assert explained("exited with code 1", ["tenax: something", *TRACEBACK]) == (
        f"your code raised {TRACEBACK[-1]} (exited with code 1)"
    )
    assert explained("exited with code 2", ["usage: train.py", "train.py: error: --lr is missing", ""]) == (
        "exited with code 2; its last line of error output: train.py: error: --lr is missing"
    )
    assert explained("exited with code 3", ["", "  "]) == "exited with code 3"


LAUNCHER = [
    "Traceback (most recent call last):",
    '  File "run.py", line 1032, in <module>',
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
    "Failures:",
    "[1]:",
    "  rank      : 0 (local_rank: 0)",
    "  exitcode  : -15 (pid: 4561) ",
    "Root Cause (first observed failure):",
    "[0]:",
    "  rank      : 1 (local_rank: 1)",
]


def test_of_several_ranks_the_first_that_failed_is_meant() -> None:
    """What it raised, though others speak in between and its launcher last; else how it ended."""
    end = [*LAUNCHER, "  exitcode  : 1 (pid: 4562) "]
    ranks = [
        "[rank1]: Traceback (most recent call last):",
        "[rank0]: Traceback (most recent call last):",
        '[rank1]:   File "train.py", line 6, in <module>',
        "[rank0]: RuntimeError: the other is gone",
        "[rank1]: ValueError: bad batch",
    ]
    assert explained("exited with code 1", [*ranks, *end]) == "rank 1 raised ValueError: bad batch (exited with code 1)"
    assert explained("exited with code 1", [*TRACEBACK, *end]) == (
        f"your code raised {TRACEBACK[-1]} (exited with code 1)"
    )
    assert explained("exited with code 1", end) == "rank 1 exited with code 1 (exited with code 1)"
    killed = [*LAUNCHER, "  exitcode  : -11 (pid: 4895)  (SIGSEGV)"]
    assert explained("exited with code 1", killed) == "rank 1 was ended by SIGSEGV (exited with code 1)"
    assert explained("exited with code 1", LAUNCHER[:4]).startswith("your code raised torch.distributed.elastic")


def test_launchers_of_two_machines_hide_no_exception() -> None:
    """Where torchrun speaks on both of them, it is the script's own traceback that counts."""
    both = [*TRACEBACK, *LAUNCHER, "  exitcode  : 1 (pid: 1)", *LAUNCHER, "  exitcode  : 1 (pid: 2)"]
    assert explained("exited with code 1", both) == f"your code raised {TRACEBACK[-1]} (exited with code 1)"
    assert failure_place(both) == "ModuleNotFoundError in train.py, line 3"


def test_our_launcher_names_the_rank_that_failed_first() -> None:
    """Whatever others say before and after it; and where it failed is compared between runs."""
    said = "tenax: rank 3 failed first: data.Bad: row 7 (in workdir/train.py, line 12)"
    lines = [*TRACEBACK, f"{said}, on the machine at 10.0.0.2", said, "W1122 torchrun says more"]
    expected = "rank 3 failed first: data.Bad: row 7 (in workdir/train.py, line 12)"
    assert explained("exited with code 1", lines).startswith(expected)
    assert failure_place(lines) == "data.Bad in workdir/train.py, line 12"
    silent = [*TRACEBACK, "tenax: rank 1 failed first, with exit code 7"]
    assert explained("exited with code 7", silent) == "rank 1 failed first, with exit code 7 (exited with code 7)"
    assert failure_place(silent) is None


def test_where_a_script_failed() -> None:
    """The last frame of its last traceback; folders that differ from run to run are left out."""
    traceback = [
        "Traceback (most recent call last):",
        '  File "/agent/containers/one/run/workdir/train.py", line 3, in <module>',
        "    main()",
        '  File "/agent/containers/one/run/workdir/lib/data.py", line 12, in main',
        "    row['x']",
        "KeyError: 'x'",
    ]
    assert failure_place(["first", *traceback]) == "KeyError in lib/data.py, line 12"
    assert failure_place([line.replace("one", "two") for line in traceback]) == "KeyError in lib/data.py, line 12"
    ranked = [f"[rank1]: {line}" for line in traceback]
    launcher = ["Traceback (most recent call last):", '  File "/x/run.py", line 9, in <module>']
    failed = [*ranked, *launcher, "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: "]
    assert failure_place(failed) == "KeyError in lib/data.py, line 12"
    assert failure_place(["Error: wrong usage"]) is None


def test_a_configuration_that_cannot_start() -> None:
    """It would fail there every time; what the machine did not have for a moment is another thing."""
    refused = "tenax: this trial cannot start as it is configured: torchrun starts ranks on its own machine only"
    assert failure_place(["hooks ran", refused, "a last word of a hook"]) == "before the script, as it is configured"
    assert failure_place(["tenax: this trial cannot start: no room"]) is None


def test_ranks_that_fail_at_once() -> None:
    """Their lines are mixed, each time in another way: it is the same place all the same."""
    first = ["Traceback (most recent call last):", '  File "/a/train.py", line 9, in <module>', "    main()"]
    last = ['  File "/a/lib/data.py", line 12, in main', "    row['x']", "KeyError: 'x'"]
    for mixed in (
        [*first, *last, *first, *last],
        [*first, *first, *last, *last],
        [first[0], *first, *last, *first[1:], *last],
        [*first, last[0], *first, *last[1:], *last],
        [*first, *last[:2], first[0], last[2], *first[1:], *last],
    ):
        assert failure_place([*mixed, "W1122 the launcher says more"]) == "KeyError in lib/data.py, line 12", mixed
