"""The directory of a local cluster, its options and logs, and what is refused before anything is started."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tenax.errors import UserError
from tenax.local.binaries import NoPostgres
from tenax.local.postgres import DatabaseFailed, EmbeddedPostgres
from tenax.local.state_dir import ROOTS_DEFAULT, DirectoryUnusable, StateDir, default_root, read_json, write_json
from tenax.local.supervise.cluster import PortInUse, plan, refuse_taken_port
from tenax.local.supervise.control import NotStarted, occupied, prepare
from tenax.local.supervise.ending import stop
from tenax.local.supervise.glance import AlreadyUp, Occupied, glance
from tenax.local.supervise.logs import open_log, rotate, tail
from tenax.local.supervise.options import Options, load_options, save_options
from tests.kits.ports import free_port


@pytest.fixture
def state(tmp_path: Path) -> StateDir:
    return StateDir(tmp_path / "cluster")


def test_default_root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """TENAX_DIR names the directory; without it, it lies in the home of its user."""
    monkeypatch.setenv("TENAX_DIR", str(tmp_path))
    assert default_root() == tmp_path
    monkeypatch.delenv("TENAX_DIR")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert default_root() == tmp_path / ".tenax"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert default_root() == ROOTS_DEFAULT


def test_prepare(state: StateDir) -> None:
    """A new directory is for its owner alone, but for passing through it where the database has another account."""
    state.prepare()
    assert stat.S_IMODE(state.root.stat().st_mode) == (0o700 if os.geteuid() else 0o711)


def test_a_file(state: StateDir) -> None:
    """A file in the way is named."""
    state.root.write_text("")
    with pytest.raises(DirectoryUnusable, match=r"cluster is a file.*--dir"):
        state.prepare()


def test_foreign_files(state: StateDir) -> None:
    """A directory that holds something else is not taken."""
    state.root.mkdir(mode=0o700)
    (state.root / "thesis.tex").write_text("")
    with pytest.raises(DirectoryUnusable, match=r"thesis\.tex and is not a directory of Tenax"):
        state.prepare()
    assert [entry.name for entry in state.root.iterdir()] == ["thesis.tex"]


def test_what_a_start_left_whose_directory_was_removed(state: StateDir) -> None:
    """A log that was opened while all else was removed is ours: the next start takes the directory."""
    state.root.mkdir(mode=0o700)
    for name in ("master", "agent", "supervisor"):
        os.close(open_log(state.log(name)))
    state.prepare()


def test_open_to_others(state: StateDir) -> None:
    """A directory to which others may write is refused, and its mode is left as it was."""
    state.root.mkdir()
    state.root.chmod(0o777)
    with pytest.raises(DirectoryUnusable, match="chmod go-w"):
        state.prepare()
    assert stat.S_IMODE(state.root.stat().st_mode) == 0o777


def test_no_place(tmp_path: Path) -> None:
    """Where no directory can be made, the reason is told."""
    (tmp_path / "file").write_text("")
    with pytest.raises(DirectoryUnusable, match="Not a directory"):
        StateDir(tmp_path / "file" / "cluster").prepare()


def test_lock(state: StateDir) -> None:
    """The lock is held by one, is seen by others, and is let go with the descriptor."""
    state.prepare()
    assert not state.is_locked()
    held = state.take_lock()
    assert held is not None
    assert state.take_lock() is None
    assert state.is_locked()
    os.close(held)
    assert not state.is_locked()


def test_write_json(state: StateDir) -> None:
    """A file of ours is for its owner alone and is replaced at once; what is no JSON counts as empty."""
    state.prepare()
    write_json(state.options, {"a": 1})
    assert stat.S_IMODE(state.options.stat().st_mode) == 0o600
    assert read_json(state.options) == {"a": 1}
    state.options.write_text("{")
    assert read_json(state.options) == {}
    assert [entry.name for entry in state.root.iterdir()] == ["options.json"]


def test_options_are_remembered(state: StateDir) -> None:
    """What was given once stays until something else is given; nonsense in the file is the default."""
    state.prepare()
    save_options(state, load_options(state).given(port=9000, slots="2"))
    assert load_options(state) == Options(port=9000, slots="2")
    assert load_options(state).given(port=None, host="0.0.0.0") == Options(host="0.0.0.0", port=9000, slots="2")
    write_json(state.options, {"port": "x", "unknown": 1, "agent": False})
    assert load_options(state) == Options(agent=False)


def test_taken_port() -> None:
    """A port that is taken is named with what to do."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(PortInUse, match=rf"{port}.*--port"):
            refuse_taken_port("127.0.0.1", port)
    refuse_taken_port("127.0.0.1", free_port())


def test_foreign_address() -> None:
    """An address of another machine is told apart from a port that is taken."""
    with pytest.raises(PortInUse, match="--host"):
        refuse_taken_port("192.0.2.1", 8080)


@pytest.mark.parametrize(
    ("host", "url"),
    [("127.0.0.1", "http://127.0.0.1:9"), ("0.0.0.0", "http://127.0.0.1:9"), ("::", "http://[::1]:9")],
)
def test_address(state: StateDir, host: str, url: str) -> None:
    """Whatever the master listens on, this machine has an address for it."""
    assert plan(state, Options(host=host, port=9)).url == url


def test_settings_file(state: StateDir, tmp_path: Path) -> None:
    """The settings file counts, a certificate makes the address https, and mistakes are told with their line."""
    file = tmp_path / "master.yaml"
    file.write_text("tls: {cert: /c.pem, key: /k.pem}\nsecurity: {agent_join_token_file: /t}\n")
    cluster = plan(state, Options(config=str(file)))
    assert cluster.url == "https://127.0.0.1:8080"
    assert cluster.about()["certificate"] == "/c.pem"
    file.write_text("name: x\nprt: 1\n")
    with pytest.raises(UserError, match=r"line 2.*did you mean 'port'"):
        plan(state, Options(config=str(file)))


def test_already_up(state: StateDir) -> None:
    """While a cluster holds the directory another is refused, told where the first one is."""
    state.prepare()
    held = state.take_lock()
    assert held is not None
    write_json(state.supervisor, {"url": "http://127.0.0.1:9", "state": "starting"})
    with pytest.raises(AlreadyUp, match=r"http://127\.0\.0\.1:9 \(process not there yet\)"):
        prepare(state, {})
    os.close(held)


def test_while_its_database_is_upgraded(state: StateDir) -> None:
    """Neither a start nor a stop nor a second upgrade gets in between; afterwards all is as it was before."""
    state.prepare()
    write_json(state.supervisor, {"url": "http://127.0.0.1:9", "pid": 77, "state": "down"})
    with occupied(state, "its database is being upgraded by tenax upgrade-database"):
        assert glance(state).phase == "occupied"
        with pytest.raises(Occupied, match=rf"upgrade-database \(process {os.getpid()}\)"):
            prepare(state, {})
        with pytest.raises(Occupied):
            stop(state)
        with pytest.raises(Occupied), occupied(state, "it is being copied"):
            pass
        assert glance(state).phase == "occupied"
    assert read_json(state.supervisor) == {"url": "http://127.0.0.1:9", "pid": 77, "state": "down"}
    assert glance(state).phase == "down"


def test_a_database_that_nothing_here_reads(state: StateDir) -> None:
    """It is refused before anything is started, with the command that moves it on."""
    (state.postgres / "data").mkdir(parents=True)
    state.root.chmod(0o711)
    (state.postgres / "data" / "PG_VERSION").write_text("11\n")
    with pytest.raises(NoPostgres, match=r"made by PostgreSQL 11.*tenax upgrade-database.*Nothing was changed"):
        prepare(state, {"port": 0})
    assert not state.is_locked()
    (state.postgres / "data" / "PG_VERSION").write_text("99\n")
    with pytest.raises(NoPostgres, match="newer release of Tenax"):
        prepare(state, {"port": 0})


def test_a_refused_start_lets_go(state: StateDir) -> None:
    """When the port is taken nothing is held or changed, and another port works at once."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(PortInUse):
            prepare(state, {"port": other.getsockname()[1]})
    assert not state.is_locked()
    assert not state.options.exists()
    cluster, lock = prepare(state, {"port": 0})
    os.close(lock)
    assert cluster.settings.port == load_options(state).port != 0
    assert glance(state).phase == "down"


def test_rotate(tmp_path: Path) -> None:
    """A log that has grown is copied away and cut under the feet of its writer; the oldest part goes."""
    path = tmp_path / "master.log"
    descriptor = open_log(path)
    for number in range(5):
        os.write(descriptor, b"%d" % number * 10)
        assert rotate(path, limit=9, keep=3)
    os.write(descriptor, b"now")
    os.close(descriptor)
    assert not rotate(path, limit=9, keep=3)
    assert path.read_bytes() == b"now"
    parts = [path.with_name(f"master.log.{number}").read_bytes() for number in (1, 2, 3)]
    assert parts == [b"4" * 10, b"3" * 10, b"2" * 10]
    assert not path.with_name("master.log.4").exists()
    assert stat.S_IMODE(path.with_name("master.log.1").stat().st_mode) == 0o600


def test_tail(tmp_path: Path) -> None:
    """The end of a log is its last lines, of what was written since a start if that is asked."""
    path = tmp_path / "master.log"
    assert tail(path) == ""
    path.write_text("old\n" + "".join(f"{number}\n" for number in range(20)))
    assert tail(path, lines=2) == "18\n19"
    assert tail(path, lines=50, since=4).startswith("0\n1\n")


def test_what_a_killed_supervisor_left_is_not_the_next_one(state: StateDir) -> None:
    """Somebody holds the lock and has said nothing yet: it is starting, whatever the one before last said."""
    state.prepare()
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    state.supervisor.write_text(json.dumps({"v": 1, "pid": ended.pid, "state": "up", "url": "http://127.0.0.1:1"}))
    lock = state.take_lock()
    assert lock is not None
    seen = glance(state)
    os.close(lock)
    assert (seen.alive, seen.phase, seen.url) == (True, "starting", "")


def test_a_directory_that_was_moved_while_its_master_started(state: StateDir) -> None:
    """It is not made anew: with passwords in it `tenax up` would take it for somebody else's."""
    command = [sys.executable, "-P", "-m", "tenax.master", "--existing-dir", "--dir", str(state.root)]
    environment = {**os.environ, "TENAX_MASTER_DB__URL": "postgresql://nobody@127.0.0.1:1/none"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
    assert (done.returncode, "is not there any more" in done.stderr) == (2, True)
    assert not state.root.exists()


def test_a_directory_that_was_moved_while_its_agent_started(state: StateDir) -> None:
    """Nor is it made anew for what the agent keeps."""
    command = [sys.executable, "-P", "-m", "tenax.agent", "--existing-parent", "--dir", str(state.agent)]
    environment = {**os.environ, "TENAX_AGENT_SLOTS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
    assert (done.returncode, "No such file or directory" in done.stderr) == (2, True), done.stderr
    assert not state.root.exists()


def test_a_database_of_your_own_is_not_forgotten(state: StateDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """Started without its address, the cluster would go on from what its own database knew before."""
    monkeypatch.setenv("TENAX_MASTER_DB__URL", "postgresql://nobody@127.0.0.1:1/none")
    _, lock = prepare(state, {"port": 0})
    os.close(lock)
    monkeypatch.delenv("TENAX_MASTER_DB__URL")
    # An address under which nothing came up is none that anything was done at.
    _, lock = prepare(state, {})
    os.close(lock)
    monkeypatch.setenv("TENAX_MASTER_DB__URL", "postgresql://nobody@127.0.0.1:1/none")
    with pytest.raises(NotStarted, match="take that out"):
        prepare(state, {"own_database": False})
    monkeypatch.delenv("TENAX_MASTER_DB__URL")
    save_options(state, load_options(state).given(own_database=True))
    with pytest.raises(NotStarted, match=r"TENAX_MASTER_DB__URL.*--embedded-database"):
        prepare(state, {})
    # Once it was left it is not asked for again.
    for given in ({"own_database": False}, {}):
        cluster, lock = prepare(state, given)
        os.close(lock)
        assert cluster.settings.db.url is None


def test_a_directory_that_was_moved_before_its_database_started(state: StateDir) -> None:
    """Nor is it made anew for the database: what had been moved could not be put back."""
    with pytest.raises(DatabaseFailed, match="is not there any more"):
        EmbeddedPostgres(state.postgres, within=state.root).start()
    assert not state.root.exists()
