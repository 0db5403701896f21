"""How the tests themselves are divided among workers."""

from __future__ import annotations

import fcntl
import itertools
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import cast
from urllib.parse import urlsplit

import pytest

from tenax.config.master import MasterSettings
from tests.agent.master_double import MasterDouble
from tests.kits import ports, temporary
from tests.kits.master.served import ServedMaster
from tests.kits.ports import free_port
from tests.kits.task_master import TaskMaster
from tests.kits.workers import APART, Times, folder_of, guess, next_unit, unit_of

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize(
    ("test", "unit", "folder"),
    [
        ("tests/master/api/test_users.py::test_a[x/y]", "tests/master/api/test_users.py", "tests/master"),
        ("tests/compat/test_jobs.py::test_a", "tests/compat", "tests/compat"),
        ("tests/compat/test_harness_core.py::test_a", "tests/compat/test_harness_", "tests/compat"),
        ("tests/scale/test_lists.py::test_a", "tests/scale", "tests/scale"),
        ("tests/web/test_live.py::test_a", "tests/web/test_live.py", "tests/web"),
        ("tests/test_checks.py::test_a", "tests/test_checks.py", "tests"),
    ],
)
def test_what_runs_on_one_worker(test: str, unit: str, folder: str) -> None:
    """A file; of some folders all that is in them."""
    assert (unit_of(test), folder_of(test)) == (unit, folder)


def test_what_is_apart_of_its_folder_uses_no_client_of_it() -> None:
    """What a client there has used, the last test of the folder would not know: that is on the other worker."""
    (beginning,) = APART
    files = list(ROOT.glob(f"{beginning}*.py"))
    assert len(files) > 1
    for path in files:
        assert not re.search(r"\b(RealClient|Det|Sdk|Story)\b", path.read_text()), path


def test_what_takes_long_is_expected_to() -> None:
    """On a fresh clone the folders that start clusters come before those that only compute."""
    assert guess("tests/compat") > guess("tests/e2e/test_faults.py") > guess("tests/search/test_view.py")


SECONDS = {
    "tests/compat": 50.0,
    "tests/e2e/a.py": 40.0,
    "tests/web/a.py": 30.0,
    "tests/web/b.py": 35.0,
    "tests/z.py": 1.0,
}


@pytest.mark.parametrize(
    ("waiting", "elsewhere", "expected"),
    [
        # All of the page together takes longest, and of it the longest file comes first.
        (SECONDS, (), "tests/web/b.py"),
        (SECONDS, ("tests/web/c.py", "tests/e2e/b.py"), "tests/compat"),
        (("tests/web/a.py", "tests/z.py"), ("tests/web/b.py",), "tests/z.py"),
        (("tests/web/a.py", "tests/z.py"), ("tests/e2e/a.py",), "tests/web/a.py"),
        # Nobody has nothing to do while something is left.
        (("tests/web/a.py",), ("tests/web/b.py",), "tests/web/a.py"),
    ],
)
def test_what_comes_next(waiting: Iterable[str], elsewhere: tuple[str, ...], expected: str) -> None:
    """The longest; but files of the page one after the other, as long as there is something else."""
    assert next_unit(waiting, elsewhere, SECONDS.__getitem__) == expected


class Cache(dict[str, dict[str, float]]):
    """As pytest's own."""

    set = dict.__setitem__


@pytest.mark.parametrize(
    ("status", "expected"), [(0, {"tests/test_a.py": 2.0}), (1, {"tests/test_a.py": 2.0}), (2, {})]
)
def test_what_was_cut_off_is_not_remembered(status: int, expected: dict[str, float]) -> None:
    """A run that was interrupted has seen but the beginning of what takes long."""
    option = SimpleNamespace(keyword="", collectonly=False, markexpr="not long and not gpu", maxfail=0)
    cache = Cache()
    config = SimpleNamespace(args_source=pytest.Config.ArgsSource.TESTPATHS, option=option, cache=cache)
    times = Times(cast("pytest.Config", config))
    times.pytest_runtest_logreport(
        cast("pytest.TestReport", SimpleNamespace(nodeid="tests/test_a.py::x", duration=2.0))
    )
    times.pytest_sessionfinish(status)
    assert cache.get("tenax/seconds", {}) == expected


def test_two_processes_never_have_a_port_in_common() -> None:
    """Each has a block of its own for as long as it lives."""
    here = {free_port() for _ in range(20)}
    code = "from tests.kits.ports import free_port; print(*(free_port() for _ in range(20)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert len(here) == 20
    assert not here & {int(port) for port in done.stdout.split()}


def test_a_port_is_given_again_where_all_were_used_a_moment_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system keeps one for a minute from whoever does not say that it is to be reused: servers do."""
    port = free_port()
    monkeypatch.setattr(ports, "_blocks", [itertools.cycle([port])])
    with socket.create_server(("127.0.0.1", port)) as server:
        with pytest.raises(AssertionError, match="in use"):
            free_port()
        with socket.create_connection(("127.0.0.1", port)) as client:
            server.accept()[0].close()
            assert client.recv(1) == b""
    assert free_port() == port


def test_who_comes_back_at_its_port_has_one_that_nobody_is_given(
    master_settings: MasterSettings,
) -> None:
    """The system gives ports of its own range to whatever connects to something, meanwhile as well."""
    task_master = TaskMaster()
    task_master.close()
    for each in (task_master, MasterDouble(), ServedMaster("", "", master_settings)):
        assert (urlsplit(each.url).port or 0) in range(ports._FIRST, ports._LAST), each


def test_only_what_a_killed_run_left_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory that is old and whose lock nobody holds; not one in use, nor a young one."""
    monkeypatch.setattr(temporary.tempfile, "gettempdir", lambda: str(tmp_path))
    for name in ("left", "used", "young"):
        (tmp_path / f"{temporary.PREFIX}{name}").mkdir()
        (tmp_path / f"{temporary.PREFIX}{name}" / "lock").touch()
    for name in ("left", "used"):
        os.utime(tmp_path / f"{temporary.PREFIX}{name}", (0, 0))
    with (tmp_path / f"{temporary.PREFIX}used" / "lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        temporary.remove_abandoned()
    assert {path.name for path in tmp_path.iterdir()} == {f"{temporary.PREFIX}used", f"{temporary.PREFIX}young"}
