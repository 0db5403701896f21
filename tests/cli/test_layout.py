"""Tables in a terminal that is too narrow for them."""

from __future__ import annotations

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenax.cli.console import output
from tenax.cli.console.layout import TableColumn, below, cut, fit, width

UUID = "61bc92fd-bd5f-46ce-b037-e5664957df9d"
WAITS = "waits for 1 free slot in pool default: 2 in use or promised, 0 free on 1 agent"
COLUMNS = (
    TableColumn("JOB"),
    TableColumn("NAME", cuts=True),
    TableColumn("STATE", state=True),
    TableColumn("STARTED", spare=True),
    TableColumn("REASON", wraps=True),
)
ROW = (UUID, "a search with a long name", "QUEUED", "2026-11-21 20:18:43", WAITS)


def test_a_wide_terminal_shows_everything() -> None:
    """On one line, as it is elsewhere."""
    fitted = fit(COLUMNS, [ROW], 300)
    assert fitted.shown == (0, 1, 2, 3, 4)
    assert not fitted.below
    assert not fitted.left_out


def test_a_reason_goes_below_its_row() -> None:
    """Where it has the width of the terminal; no word of it is lost."""
    fitted = fit(COLUMNS, [ROW], 80)
    assert fitted.below == (4,)
    lines = below(ROW, fitted, 80)
    assert " ".join(" ".join(lines).split()) == WAITS
    assert all(len(line) <= 80 for line in lines)


def test_what_can_be_spared_is_told() -> None:
    """It goes before a name is cut, and the reader is told which column went."""
    assert fit(COLUMNS, [ROW], 80).left_out == ("STARTED",)


def test_an_empty_column_goes_without_a_word() -> None:
    """Nothing is missing then."""
    assert fit(COLUMNS, [(*ROW[:3], "", ROW[4])], 70).left_out == ()


@given(st.integers(1, 200), st.lists(st.text("ab é日本", max_size=40), min_size=1, max_size=4))
def test_ids_are_never_cut(room: int, names: list[str]) -> None:
    """However narrow it is: ids and states stay whole; and a table that could be made to fit does."""
    rows = [(UUID, name, "QUEUED", "2026-11-21 20:18:43", WAITS) for name in names]
    fitted = fit(COLUMNS, rows, room)
    widths = dict(zip(fitted.shown, fitted.widths, strict=True))
    assert widths[0] >= len(UUID)
    assert widths[2] >= len("QUEUED")
    least = len(UUID) + 2 + 10 + 2 + len("QUEUED")
    assert room < least or sum(fitted.widths) + 2 * (len(fitted.widths) - 1) <= room


@given(st.text("ab é日本", max_size=40), st.integers(1, 30))
def test_a_cut_name_takes_no_more_than_its_room(text: str, room: int) -> None:
    """Also with characters that are two columns wide."""
    assert width(cut(text, room)) <= room


def test_a_terminal_of_eighty_columns(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """What is printed there has no line that the terminal breaks, and says what is left out."""
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    output.table(COLUMNS, [ROW])
    captured = capsys.readouterr()
    assert UUID in captured.out
    assert all(len(line) <= 80 for line in click.unstyle(captured.out).splitlines())
    assert "STARTED" in captured.err
