"""Whom `tenax down` finds and ends, whatever is written, and whom it never signals."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenax.local.holders import holders, supervisors
from tenax.local.state_dir import StateDir, read_json, write_json
from tenax.local.supervise.control import NotStarted, StillStarting, wait_until_up
from tenax.local.supervise.ending import StillStopping, end_leftovers, end_removed, stop
from tenax.local.supervise.glance import glance
from tenax.runtime.processes import Identity, identity_of, is_running, send, wait_for_end

SLEEPER = "import signal; print('ready', flush=True); signal.pause()"
#: Holds the lock of the directory in its arguments; with a third one it supervises.
HOLDER = """
import signal, sys
from pathlib import Path
from tenax.local.holders import call_this_process_supervisor
from tenax.local.state_dir import StateDir
lock = StateDir(Path(sys.argv[1])).take_lock()
if len(sys.argv) > 2:
    call_this_process_supervisor()
print("ready", flush=True)
signal.pause()
"""


@pytest.fixture
def state(tmp_path: Path) -> StateDir:
    made = StateDir(tmp_path / "cluster")
    made.prepare()
    return made


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.communicate()


def start(processes: list[subprocess.Popen[str]], script: str, *arguments: str) -> Identity:
    process = subprocess.Popen([sys.executable, "-c", script, *arguments], stdout=subprocess.PIPE, text=True)
    processes.append(process)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    identity = identity_of(process.pid)
    assert identity is not None
    return identity


@pytest.mark.parametrize("pid", [0, -1, -(2**31)])
def test_groups_are_no_processes(pid: int) -> None:
    """0 and negative numbers, which mean groups to the kernel, name nobody."""
    assert identity_of(pid) is None
    assert not is_running(Identity(pid, 1))
    assert not send(Identity(pid, 1), 15)
    assert not send(Identity(pid, 0), 15)


def test_another_process_with_the_same_number(processes: list[subprocess.Popen[str]]) -> None:
    """A number whose process started at another time is somebody else's, and is not signalled."""
    sleeper = start(processes, SLEEPER)
    assert not send(Identity(sleeper.pid, sleeper.start - 1), 9)
    assert is_running(sleeper)
    assert send(sleeper, 9)
    assert wait_for_end([sleeper], 60) == []


def test_a_record_that_lies(state: StateDir, processes: list[subprocess.Popen[str]]) -> None:
    """Whoever is written in the record and does not hold the lock is left alone; this process would be ended by 0."""
    stranger = start(processes, SLEEPER)
    for pid in (0, -1, os.getpid(), stranger.pid):
        write_json(state.supervisor, {"pid": pid, "start": stranger.start, "state": "up"})
        assert not stop(state, timeout_s=5)
    assert is_running(stranger)


def test_a_copied_directory(state: StateDir, processes: list[subprocess.Popen[str]], tmp_path: Path) -> None:
    """The record of another cluster that is up, copied with its directory, ends nothing of that one."""
    supervisor, server = start(processes, HOLDER, str(state.root), "!"), start(processes, SLEEPER)
    services = {"master": {"pid": server.pid, "start": server.start}}
    write_json(state.supervisor, {"pid": supervisor.pid, "start": supervisor.start, "services": services})
    copy = StateDir(tmp_path / "copy")
    shutil.copytree(state.root, copy.root)
    assert not stop(copy, timeout_s=5)
    assert is_running(supervisor)
    assert is_running(server)


def test_leftovers_of_a_killed_supervisor(state: StateDir, processes: list[subprocess.Popen[str]]) -> None:
    """Its servers are ended by number and start time; a later process with the number of one is not."""
    server, later = start(processes, SLEEPER), start(processes, SLEEPER)
    services = {
        "master": {"pid": server.pid, "start": server.start},
        "agent": {"pid": later.pid, "start": later.start - 1},
    }
    end_leftovers({"pid": 2**22 - 1, "start": 1, "services": services})
    assert not is_running(server)
    assert is_running(later)


@pytest.mark.parametrize("damage", ["record", "lock", "directory"])
def test_without_its_files(state: StateDir, processes: list[subprocess.Popen[str]], damage: str) -> None:
    """A supervising process is found and ended by the lock that it holds, whatever of its directory is left."""
    supervisor = start(processes, HOLDER, str(state.root), "!")
    if damage == "lock":
        state.lock.unlink()
    elif damage == "directory":
        shutil.rmtree(state.root)
    assert supervisors(state.lock) == [supervisor]
    assert glance(state).supervisors == [supervisor]
    assert stop(state, timeout_s=60)
    assert not is_running(supervisor)
    assert not glance(state).alive


def test_a_new_directory_in_the_place_of_a_removed_one(state: StateDir, processes: list[subprocess.Popen[str]]) -> None:
    """Whoever starts a cluster there ends the one whose directory it was."""
    supervisor = start(processes, HOLDER, str(state.root), "!")
    shutil.rmtree(state.root)
    state.prepare()
    lock = state.take_lock()
    assert lock is not None
    assert end_removed(state) == [supervisor]
    assert not is_running(supervisor)
    os.close(lock)


def test_whoever_only_prepares_is_not_ended(state: StateDir, processes: list[subprocess.Popen[str]]) -> None:
    """A process that holds the directory and supervises nothing is named, and left alone."""
    holder = start(processes, HOLDER, str(state.root))
    assert holders(state.lock) == [holder]
    with pytest.raises(StillStopping, match=rf"Process {holder.pid} holds .* to start a cluster"):
        stop(state, timeout_s=0.1)
    assert is_running(holder)


@pytest.mark.parametrize("pid", [0, 2**22 - 1])
def test_a_record_that_lies_under_a_lock(state: StateDir, processes: list[subprocess.Popen[str]], pid: int) -> None:
    """Nothing of it is believed, and a process that does not supervise is not waited for as long as servers are."""
    holder = start(processes, HOLDER, str(state.root))
    write_json(state.supervisor, {"pid": pid, "start": 0, "state": "up", "url": "http://127.0.0.1:9"})
    assert (glance(state).phase, glance(state).url) == ("starting", "")
    with pytest.raises(StillStopping, match=rf"Process {holder.pid} holds"):
        stop(state, timeout_s=600, prepared_s=0.1)
    assert is_running(holder)


def test_a_lock_of_nobody_that_can_be_seen(state: StateDir) -> None:
    """It is said that somebody holds it, and what to do."""
    # This process looks at all others alone.
    lock = state.take_lock()
    assert lock is not None
    with pytest.raises(StillStopping, match=r"cannot be seen from here .* nothing was ended: run tenax down where"):
        stop(state, timeout_s=600, prepared_s=0.1)
    os.close(lock)


def test_waiting_for_a_start_has_an_end(state: StateDir, processes: list[subprocess.Popen[str]]) -> None:
    """A supervising process that says nothing is waited for so long and no longer; one that ended is told at once."""
    supervisor = start(processes, HOLDER, str(state.root), "!")
    with pytest.raises(StillStarting, match=rf"\({supervisor.pid}\) runs on: tenax status"):
        wait_until_up(state, print, silence_s=0.1)
    stop(state, timeout_s=60)
    assert read_json(state.supervisor) == {}
    with pytest.raises(NotStarted, match="nothing of it is left running"):
        wait_until_up(state, print)
