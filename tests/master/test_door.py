"""Passwords, throttled logins, packed code and pages: the parts of the door that need no database."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import tarfile
from pathlib import Path

import pytest

from tenax.config.master import MasterSettings
from tenax.errors import InvalidInput, TooOften
from tenax.master.access.bootstrap import JOIN_FILE, join_token
from tenax.master.access.login_throttle import BACKOFF, FORGET_S, FREE, MOST_KEPT, Throttle
from tenax.master.access.passwords import Passwords, as_sent, hashed_password
from tenax.master.api.http.paging import Window
from tenax.master.submission.code import pack
from tenax.master.submission.messages import File
from tenax.wire.message import OrderBy
from tests.kits.api import CHEAP


def fails(throttle: Throttle, times: int, *, name: str = "eve", address: str = "a", at: float = 0.0) -> None:
    for _ in range(times):
        throttle.failed(name, address, at)


def test_a_few_failures_cost_nothing() -> None:
    """People mistype."""
    throttle = Throttle()
    fails(throttle, FREE - 1)
    throttle.check("eve", "a", 0.0)


def test_each_further_failure_doubles_the_wait_up_to_a_limit() -> None:
    """And the refusal says how long it is."""
    throttle = Throttle()
    fails(throttle, FREE)
    waits = []
    for _ in range(10):
        with pytest.raises(TooOften) as refused:
            throttle.check("EVE", "a", 0.0)
        waits.append(refused.value.retry_after)
        fails(throttle, 1)
    assert waits == [1, 2, 4, 8, 16, 32, *[BACKOFF.ceiling] * 4]
    throttle.check("eve", "a", BACKOFF.ceiling)


def test_others_do_not_wait() -> None:
    """Neither another name at that address nor that name elsewhere, until the address itself was tried often."""
    throttle = Throttle()
    fails(throttle, FREE)
    throttle.check("bob", "a", 0.0)
    throttle.check("eve", "b", 0.0)
    for number in range(FREE * 10):
        fails(throttle, 1, name=f"n{number}")
    with pytest.raises(TooOften):
        throttle.check("bob", "a", 0.0)


def test_failures_are_forgotten() -> None:
    """After a success, and after a while; and no more than so many are kept."""
    throttle = Throttle()
    fails(throttle, FREE)
    throttle.succeeded("eve", "a")
    throttle.check("eve", "a", 0.0)
    fails(throttle, FREE)
    throttle.check("eve", "a", FORGET_S)
    for number in range(MOST_KEPT):
        fails(throttle, 1, name=f"n{number}", address=f"x{number}")
    throttle.check("eve", "a", 0.0)


async def test_passwords_match_only_themselves() -> None:
    """Blank matches blank alone; what is no hash matches nothing."""
    passwords = Passwords(CHEAP)
    stored = await passwords.hash("right")
    assert stored is not None
    assert "right" not in stored
    tries = [(stored, "right"), (stored, "wrong"), (stored, ""), (None, ""), (None, "x"), ("no-login", "x")]
    assert await asyncio.gather(*(passwords.matches(*one) for one in tries)) == [True, False, False, True, False, False]
    assert await passwords.hash("") is None


def test_a_client_that_does_not_hash_gets_in_too() -> None:
    """What counts is what a hashing client would have sent."""
    assert as_sent("pw", False) == as_sent(hashed_password("pw"), True)
    assert as_sent("", False) == ""


def files() -> list[File]:
    content = base64.b64encode(b"x = 1\n").decode()
    return [
        File(path="lib", type=53, mode=0o40755, mtime=1795000000),
        File(path="./lib/a.py", content=content, mode=0o100755, mtime=1795000000),
        File(path="b.py", content=content, mode=0o100644, mtime=1795000000),
    ]


def test_code_keeps_order_modes_and_times(tmp_path: Path) -> None:
    """The archive is named by its hash; the same files give the same bytes."""
    code = pack(files(), 1000, tmp_path)
    assert code is not None
    assert code == pack(files(), 1000, tmp_path)
    assert code.hash == hashlib.sha256(code.archive.read()).hexdigest()
    assert code.size == 12
    code.archive.seek(0)
    with tarfile.open(fileobj=code.archive, mode="r:gz") as tar:
        members = [(one.name, oct(one.mode), one.mtime, one.isdir()) for one in tar.getmembers()]
    assert members == [
        ("lib", "0o755", 1795000000, True),
        ("lib/a.py", "0o755", 1795000000, False),
        ("b.py", "0o644", 1795000000, False),
    ]


def test_no_files_are_no_code(tmp_path: Path) -> None:
    """An experiment may come without any."""
    assert pack([], 0, tmp_path) is None


@pytest.mark.parametrize("path", ["", "/", "..", "a/../../b", "/etc/passwd", "a\0b"])
def test_paths_stay_inside(tmp_path: Path, path: str) -> None:
    """Whatever leads out is refused by name."""
    with pytest.raises(InvalidInput, match="inside"):
        pack([File(path=path)], 1000, tmp_path)


@pytest.mark.parametrize(
    ("offset", "limit", "rows"),
    [(0, 0, (0, 10)), (0, 3, (0, 3)), (8, 5, (8, 10)), (-3, 0, (7, 10)), (-3, 2, (7, 9)), (10, 5, (10, 10))],
)
def test_a_window_names_its_rows_and_the_next_page(offset: int, limit: int, rows: tuple[int, int]) -> None:
    """Of a list of ten."""
    page, told = Window(offset, limit, OrderBy.ASC).of(10)
    assert (page.offset, page.offset + (page.limit or 0)) == rows
    assert (told.start_index, told.end_index, told.total) == (*rows, 10)


@pytest.mark.parametrize(("offset", "limit"), [(11, 0), (-11, 0), (0, -1)])
def test_a_window_outside_the_list_is_refused(offset: int, limit: int) -> None:
    """And says how long the list is."""
    with pytest.raises(InvalidInput):
        Window(offset, limit, OrderBy.ASC).of(10)


def test_a_blank_join_token_opens_nothing(tmp_path: Path) -> None:
    """A file that was emptied is refused; one that is not there is made."""
    settings = MasterSettings(dir=tmp_path)
    assert len(join_token(settings)) > 30
    (tmp_path / JOIN_FILE).write_text(" \n")
    with pytest.raises(InvalidInput, match="blank"):
        join_token(settings)
