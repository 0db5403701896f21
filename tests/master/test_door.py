"""Passwords, throttled logins, packed code and pages: the parts of the door that need no database."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import tarfile
from pathlib import Path

import pytest
from starlette.requests import HTTPConnection

from tenax.config.master import MasterSettings
from tenax.errors import InvalidInput, TooOften
from tenax.master.access.bootstrap import JOIN_FILE, join_token
from tenax.master.access.client_address import client_address, counted_as
from tenax.master.access.login_throttle import (
    BACKOFF,
    FORGET_S,
    FREE,
    MAX_KEPT,
    SUSPECT_FACTOR,
    LoginSource,
    Throttle,
)
from tenax.master.access.passwords import Passwords, as_sent, hashed_password
from tenax.master.api.http.paging import Window
from tenax.master.submission.code import pack
from tenax.master.submission.messages import File
from tenax.wire.message import OrderBy
from tests.kits.api import CHEAP


def eve(address: str = "a") -> LoginSource:
    return LoginSource("eve", address)


def fails(throttle: Throttle, times: int, source: LoginSource | None = None, *, at: float = 0.0) -> None:
    for _ in range(times):
        throttle.arrived(source or eve(), at)
        throttle.admitted(source or eve(), at)


def test_a_few_failures_cost_nothing() -> None:
    """People mistype."""
    throttle = Throttle()
    fails(throttle, FREE - 1)
    throttle.check(eve(), 0.0)


def test_each_further_failure_doubles_the_wait_up_to_a_limit() -> None:
    """And the refusal says how long it is."""
    throttle = Throttle()
    fails(throttle, FREE)
    waits = []
    for _ in range(10):
        with pytest.raises(TooOften) as refused:
            throttle.check(eve(), 0.0)
        waits.append(refused.value.retry_after)
        fails(throttle, 1)
    assert waits == [1, 2, 4, 8, 16, 32, *[BACKOFF.ceiling] * 4]
    throttle.check(eve(), BACKOFF.ceiling)


@pytest.mark.parametrize(("at", "wait"), [(0.0, "1 second"), (0.9, "1 second"), (-0.5, "2 seconds")])
def test_a_wait_is_told_in_whole_seconds_that_suffice(at: float, wait: str) -> None:
    """Never 0 of them: whoever tried again after that was refused again."""
    throttle = Throttle()
    fails(throttle, FREE)
    with pytest.raises(TooOften, match=f"wait {wait} and try again"):
        throttle.check(eve(), at)


def test_others_do_not_wait() -> None:
    """Neither another name at that address nor that name elsewhere, however often either was tried: it is suspect."""
    throttle = Throttle()
    bob = LoginSource("bob", "a")
    fails(throttle, FREE)
    throttle.check(bob, 0.0)
    throttle.check(eve("b"), 0.0)
    assert not throttle.is_suspect(bob, 0.0)
    for number in range(FREE * SUSPECT_FACTOR):
        fails(throttle, 1, LoginSource(f"n{number}", "a"))
        fails(throttle, 1, eve(f"x{number}"))
    for source in (bob, eve("b")):
        throttle.check(source, 0.0)
        assert throttle.is_suspect(source, 0.0)
        throttle.succeeded(source)
        assert not throttle.is_suspect(source, 0.0)
    assert not throttle.is_suspect(LoginSource("ann", "b"), 0.0)
    assert not throttle.is_suspect(LoginSource("ann", "a"), FORGET_S)


def test_failures_are_forgotten() -> None:
    """After a success, and after a while; and no more than so many are kept."""
    throttle = Throttle()
    fails(throttle, FREE)
    throttle.succeeded(eve())
    throttle.check(eve(), 0.0)
    fails(throttle, FREE)
    throttle.check(eve(), FORGET_S)
    for number in range(MAX_KEPT):
        fails(throttle, 1, LoginSource(f"n{number}", f"x{number}"))
    throttle.check(eve(), 0.0)


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        ("192.0.2.1", [], "192.0.2.1"),
        ("192.0.2.1", ["198.51.100.1"], "192.0.2.1"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["1.2.3.4, 198.51.100.1, 10.0.0.2"], "198.51.100.1"),
        ("10.0.0.1", ["1.2.3.4", "198.51.100.1"], "198.51.100.1"),
        ("10.0.0.1", ["rubbish, 10.0.0.3"], "10.0.0.3"),
        ("10.0.0.1", ["rubbish"], "10.0.0.1"),
        ("::ffff:10.0.0.1", ["2001:db8::1"], "2001:db8::1"),
    ],
)
def test_an_address_is_what_trusted_proxies_say(peer: str, forwarded: list[str], address: str) -> None:
    """From the nearest one on, and nothing that stands before the first other address."""
    headers = [(b"x-forwarded-for", value.encode()) for value in forwarded]
    scope = {"type": "http", "client": (peer, 1), "headers": headers}
    assert client_address(HTTPConnection(scope), ["10.0.0.0/8"]) == address


def test_addresses_are_counted_by_machine() -> None:
    """64 bits of IPv6 are one; IPv4 in the clothes of IPv6 is IPv4."""
    assert counted_as("2001:db8::1") == counted_as("2001:db8::ffff") != counted_as("2001:db8:0:1::1")
    assert counted_as("::ffff:192.0.2.1") == counted_as("192.0.2.1")
    assert counted_as("no address") == "no address"


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
