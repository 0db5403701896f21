"""The spool of a process: what is written, what is shipped, and what happens when something breaks."""

from __future__ import annotations

import errno
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenax.client.task import TaskClient
from tenax.core.spool import ReportRefused, Spool
from tenax.core.spooling import file as spool_file
from tenax.core.spooling.file import SpoolFile, SpoolWriteFailed
from tenax.errors import InvalidInput, NotNow
from tenax.wire import spool_records
from tests.kits import task_master
from tests.kits.spools import records_of
from tests.kits.task_master import ALLOCATION, RESET_THEN_STORE, STORE_THEN_RESET, TOKEN, TaskMaster


@pytest.fixture
def master() -> Iterator[TaskMaster]:
    with task_master.running() as master:
        yield master


@pytest.fixture(params=["lines", "segments"])
def directory(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """The folder of a spool, in either form."""
    return str(tmp_path / str(request.param))


def file_in(directory: str) -> SpoolFile:
    return SpoolFile(directory, segments=directory.endswith("segments"))


def spool_to(master: TaskMaster, directory: str, token: str = TOKEN) -> Spool:
    return Spool(file_in(directory), TaskClient(master.url, token), ALLOCATION, "container-1")


def alone_in(directory: str) -> Spool:
    return Spool(file_in(directory), None, "", "")


def lines_of(spool: Spool) -> list[dict[str, object]]:
    return records_of(spool.path)


def ack_of(spool: Spool) -> dict[str, int]:
    content: dict[str, int] = json.loads(Path(spool.path).with_suffix(".ack").read_text())
    return content


def report_values(spool: Spool, values: range) -> None:
    for value in values:
        spool.report("metrics", json.dumps({"value": value}))


def values_at(master: TaskMaster) -> list[object]:
    return [body["value"] for body in master.bodies_of("metrics")]


def test_everything_arrives_once_and_in_order(master: TaskMaster, directory: str) -> None:
    """Reports are numbered from 1 without gaps, arrive in order, and the acknowledgement covers the whole file."""
    spool = spool_to(master, directory)
    report_values(spool, range(500))
    spool.close()
    assert values_at(master) == list(range(500))
    assert [record["n"] for record in master.records()] == list(range(1, 501))
    assert ack_of(spool) == {"n": 500, "offset": os.path.getsize(spool.path)}
    assert master.requests[0][2] == {"container_id": "container-1", "stream": Path(spool.path).stem}


def test_reports_are_sent_in_groups(master: TaskMaster, directory: str) -> None:
    """A fast loop does not make a request for each report."""
    spool = spool_to(master, directory)
    report_values(spool, range(2000))
    spool.close()
    assert len(values_at(master)) == 2000
    assert len(master.requests) < 200


def test_batches_keep_to_their_size(master: TaskMaster, directory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backlog is sent in batches; one line that is longer than a batch is sent whole."""
    for module in (spool_file, spool_records):
        monkeypatch.setattr(module, "BATCH_BYTES", 1000)
    master.down()
    spool = spool_to(master, directory)
    for size in (10, 5000, 10, 900, 900, 10):
        spool.report("metrics", json.dumps({"value": "x" * size}))
    master.up()
    spool.close()
    assert [len(str(value)) for value in values_at(master)] == [10, 5000, 10, 900, 900, 10]
    assert len(master.requests) >= 4


def test_written_before_the_call_returns(directory: str) -> None:
    """A report is in the file when ``report`` returns, so a kill right after it loses nothing."""
    spool = alone_in(directory)
    spool.report("metrics", '{"value":1}')
    (line,) = lines_of(spool)
    assert (line["n"], line["kind"], line["body"]) == (1, "metrics", {"value": 1})
    assert isinstance(line["at"], float)


@pytest.mark.parametrize("at_end", [False, True])
def test_a_handler_reports_while_it_interrupts_a_report(
    master: TaskMaster, directory: str, monkeypatch: pytest.MonkeyPatch, at_end: bool
) -> None:
    """What the handler of a signal reports comes behind what it interrupts; it does not wait for it."""
    spool = spool_to(master, directory)
    waited: list[bool] = []

    def handle(*_: object) -> None:
        waited.append(spool.wait(spool.report("metrics", '{"value":"handler"}', urgent=True), 3600.0))

    append = SpoolFile.append

    def interrupted(self: SpoolFile, kind: str, body: str, durable: bool = False) -> int:
        monkeypatch.setattr(SpoolFile, "append", append)
        if not at_end:
            signal.raise_signal(signal.SIGUSR1)
        n = append(self, kind, body, durable)
        if at_end:
            signal.raise_signal(signal.SIGUSR1)
        return n

    monkeypatch.setattr(SpoolFile, "append", interrupted)
    before = signal.signal(signal.SIGUSR1, handle)
    try:
        report_values(spool, range(3))
    finally:
        signal.signal(signal.SIGUSR1, before)
    spool.close()
    assert values_at(master) == [0, "handler", 1, 2]
    assert waited == [False]
    assert [line["n"] for line in lines_of(spool)] == [1, 2, 3, 4]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.EIO, "bad disk")])
def test_what_is_interrupted_is_not_there(
    directory: str, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    """Ctrl-C, or a failing disk, once the bytes are written: the number is that of the next report, which is whole."""
    spool = alone_in(directory)
    report_values(spool, range(2))

    def interrupted(*_: object) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", interrupted)
        with pytest.raises((KeyboardInterrupt, SpoolWriteFailed)):
            spool.report("metrics", '{"value":"interrupted"}', durable=True)
    report_values(spool, range(2, 4))
    spool.close()
    assert [(line["n"], line["body"]["value"]) for line in lines_of(spool)] == [(1, 0), (2, 1), (3, 2), (4, 3)]  # type: ignore[index]


@pytest.mark.parametrize("again", [False, True])
def test_ctrl_c_behind_the_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: bool) -> None:
    """The handler runs when the system call has returned: the line is taken back, at the latest before the next."""
    spool = alone_in(str(tmp_path / "lines"))
    report_values(spool, range(2))
    write = os.write

    def interrupted(fd: int, data: bytes) -> int:
        write(fd, data)
        raise KeyboardInterrupt

    def interrupted_again(fd: int, size: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", interrupted)
        if again:
            patched.setattr(os, "ftruncate", interrupted_again)
        with pytest.raises(KeyboardInterrupt):
            spool.report("metrics", '{"value":"interrupted"}')
    report_values(spool, range(2, 4))
    spool.close()
    assert [line["n"] for line in lines_of(spool)] == [1, 2, 3, 4]


def test_master_down_neither_loses_nor_stops(master: TaskMaster, directory: str) -> None:
    """With the master away reports are written down as ever, and sent when it is back."""
    spool = spool_to(master, directory)
    report_values(spool, range(10))
    assert spool.flush(120)
    master.down()
    report_values(spool, range(10, 300))
    assert len(values_at(master)) == 10
    master.up()
    assert spool.flush(120)
    assert values_at(master) == list(range(300))
    spool.close()


@pytest.mark.parametrize("fault", [503, 502, 500, 429, RESET_THEN_STORE, STORE_THEN_RESET])
def test_faults_of_the_master_are_outlived(master: TaskMaster, directory: str, fault: object) -> None:
    """A refusal for now, or a connection cut before or after the master stored, costs nothing and doubles nothing."""
    master.faults = [fault, None, fault, fault]
    spool = spool_to(master, directory)
    report_values(spool, range(50))
    assert spool.flush(120)
    report_values(spool, range(50, 100))
    spool.close()
    assert values_at(master) == list(range(100))
    assert (master.duplicates > 0) == (fault == STORE_THEN_RESET)


def test_master_takes_a_part(master: TaskMaster, directory: str) -> None:
    """Lines that the master did not take are sent again, from the first that it lacks."""
    master.most_lines = 7
    spool = spool_to(master, directory)
    report_values(spool, range(40))
    spool.close()
    assert values_at(master) == list(range(40))


def test_master_that_forgot_is_told_again(master: TaskMaster, directory: str) -> None:
    """A master that was restored from a backup gets what it lost."""
    spool = spool_to(master, directory)
    report_values(spool, range(5))
    assert spool.flush(120)
    master.streams.clear()
    report_values(spool, range(5, 8))
    spool.close()
    assert values_at(master) == list(range(8))


def test_refused_report_is_raised_by_the_next_one(master: TaskMaster, directory: str) -> None:
    """The next report raises the master's words, once, and is itself recorded."""
    master.judge = lambda record: ("step 3 has another loss already", False) if record["n"] == 1 else None
    spool = spool_to(master, directory)
    spool.report("metrics", '{"value":0}')
    assert spool.flush(120)
    with pytest.raises(ReportRefused, match="step 3 has another loss already") as refusal:
        spool.report("metrics", '{"value":1}')
    assert not refusal.value.fatal
    spool.report("metrics", '{"value":2}')
    spool.close()
    assert values_at(master) == [1, 2]


def test_refused_report_is_raised_by_close(master: TaskMaster, directory: str) -> None:
    """A script that reports nothing more learns of a refusal at its end."""
    master.judge = lambda record: ("no", False)
    spool = spool_to(master, directory)
    spool.report("metrics", "{}")
    with pytest.raises(ReportRefused, match="no"):
        spool.close()


def test_fatal_refusal_stays(master: TaskMaster, directory: str) -> None:
    """A fatal refusal is raised by every call, also by what only checks."""
    master.judge = lambda record: ("expected the metric 'loss', found 'los'", True) if record["n"] == 1 else None
    spool = spool_to(master, directory)
    spool.report("metrics", "{}")
    assert spool.flush(120)
    for _ in range(2):
        with pytest.raises(ReportRefused, match="found 'los'"):
            spool.report("metrics", "{}")
        with pytest.raises(ReportRefused):
            spool.check(fatal_only=True)
    with pytest.raises(ReportRefused):
        spool.close()


def test_failing_script_is_not_covered_by_a_refusal(master: TaskMaster, directory: str) -> None:
    """While the script's own error is on its way, a refusal does not take its place."""
    master.judge = lambda record: ("no", False)
    spool = spool_to(master, directory)
    spool.report("metrics", "{}")
    spool.close(failing=True)


def test_ended_token_is_fatal(master: TaskMaster, directory: str) -> None:
    """A master that no longer knows this task is not asked for ever: the script ends with its words."""
    spool = spool_to(master, directory, "another token")
    spool.report("metrics", "{}")
    assert not spool.flush(120)
    with pytest.raises(ReportRefused, match="takes no more reports of this task: invalid credentials") as refusal:
        spool.report("metrics", "{}")
    assert refusal.value.fatal
    spool.close(failing=True)


def test_end_without_a_master(
    master: TaskMaster, directory: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """After DET_REPORT_WAIT the rest is left to the agent, and one line says where it is."""
    monkeypatch.setenv("DET_REPORT_WAIT", "0.05")
    master.down()
    spool = spool_to(master, directory)
    report_values(spool, range(3))
    spool.close()
    errors = capfd.readouterr().err
    assert errors.count("\n") == 1
    assert "3 reports are not with the master" in errors
    assert spool.path in errors
    assert [line["n"] for line in lines_of(spool)] == [1, 2, 3]
    master.up()


def test_end_waits_for_the_master(master: TaskMaster, directory: str) -> None:
    """A master that comes back while the script waits at its end still gets everything from the script itself."""
    master.faults = [503] * 4
    spool = spool_to(master, directory)
    report_values(spool, range(3))
    spool.close()
    assert values_at(master) == [0, 1, 2]
    assert ack_of(spool)["n"] == 3


def test_closed(directory: str) -> None:
    """A report after the end says so instead of being lost."""
    spool = alone_in(directory)
    spool.report("metrics", "{}")
    spool.close()
    with pytest.raises(NotNow, match="inside its with-block"):
        spool.report("metrics", "{}")


def test_nothing_reported_leaves_nothing(master: TaskMaster, directory: str) -> None:
    """A process that reports nothing makes no file and no request."""
    spool_to(master, directory).close()
    assert not os.path.exists(directory)
    assert master.requests == []


def test_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that does not fit is taken back and raised; later ones stand whole, numbered without a gap."""
    spool = alone_in(str(tmp_path))
    spool.report("metrics", '{"value":1}')
    real = os.write

    def half(fd: int, data: bytes) -> int:
        return real(fd, data[: len(data) // 2])

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(SpoolWriteFailed, match="the disk is full"):
        spool.report("metrics", '{"value":2}')
    monkeypatch.setattr(os, "write", real)
    spool.report("metrics", '{"value":3}')
    assert [(line["n"], line["body"]) for line in lines_of(spool)] == [(1, {"value": 1}), (2, {"value": 3})]


def test_write_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of the disk names the file."""
    spool = alone_in(str(tmp_path))
    spool.report("metrics", "{}")

    def broken(fd: int, data: bytes) -> int:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "write", broken)
    with pytest.raises(SpoolWriteFailed, match="Input/output error"):
        spool.report("metrics", "{}")


def test_too_long_a_line(directory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A report over the limit is refused when it is made, with both sizes."""
    monkeypatch.setattr(spool_file, "MAX_LINE_BYTES", 1000)
    spool = alone_in(directory)
    with pytest.raises(InvalidInput, match="the most is 1000"):
        spool.report("metrics", json.dumps("x" * 2000))


def test_streams_of_one_process_differ(directory: str) -> None:
    """A second context in one process does not write into the file of the first."""
    first, second = (alone_in(directory) for _ in range(2))
    first.report("metrics", "{}")
    second.report("metrics", "{}")
    assert first.path != second.path
    assert len(os.listdir(directory)) == 2


def test_broken_shipper_does_not_stop_training(
    master: TaskMaster, directory: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """If this process cannot send any more, reports are written on, and the agent has them at the end."""
    spool = spool_to(master, directory)

    def unreadable(*_: object) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "pread", unreadable)
    spool.report("metrics", "{}", urgent=True)
    assert not spool.flush(120)
    spool.report("metrics", "{}")
    spool.close()
    errors = capfd.readouterr().err
    assert "no longer sent by this process: OSError" in errors
    assert "2 reports are not with the master" in errors
    assert len(lines_of(spool)) == 2


def test_long_file_is_turned_over(master: TaskMaster, directory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is long and stored gives way to a new one; the one before stays for a master that is restored, and of
    older ones how much the master had of them."""
    monkeypatch.setattr(spool_file, "TURN_BYTES", 3000)
    spool = spool_to(master, directory)
    for start in range(0, 400, 40):
        report_values(spool, range(start, start + 40))
        assert spool.flush(120)
    spool.report("metrics", '{"value":400}')
    spool.close()
    assert values_at(master) == list(range(401))
    streams = len(master.streams)
    assert streams > 3
    suffixes = [path.suffix for path in Path(directory).iterdir()]
    assert (suffixes.count(".ack"), len(suffixes) - suffixes.count(".ack")) == (streams, 2)
    assert len(lines_of(spool)) < 41


def test_file_that_is_not_stored_stays(master: TaskMaster, directory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a file is, it stays until the master has all of it."""
    monkeypatch.setattr(spool_file, "TURN_BYTES", 100)
    monkeypatch.setenv("DET_REPORT_WAIT", "0")
    master.down()
    spool = spool_to(master, directory)
    report_values(spool, range(50))
    spool.close()
    assert len(lines_of(spool)) == 50
    master.up()
