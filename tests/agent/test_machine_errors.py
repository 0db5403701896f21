"""Errors of the agent's machine that nobody listed (no descriptor left, a disk that fails) end nothing for good."""

from __future__ import annotations

import asyncio
import errno
import io
import os
from pathlib import Path

import pytest

from tenax.agent import app, output
from tenax.agent import link as links
from tenax.agent.fleet import Fleet
from tenax.agent.output import OutputShipper
from tenax.backoff import Backoff
from tenax.errors import UserError
from tenax.runtime import segments
from tenax.runtime.port import ContainerStatus
from tenax.runtime.process import ProcessRuntime
from tenax.wire.agents import ContainerSpec, Exit
from tests.agent.host import Host, spec
from tests.agent.master_double import MasterDouble
from tests.kits.machine_errors import FailingCall


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "BACKOFF", Backoff(first=0.01, ceiling=0.05))


async def has_printed(master: MasterDouble, host: Host, end: Path) -> ContainerSpec:
    """A container on a new agent that has printed a line, and waits for a file to print another."""
    host.start()
    await master.until(lambda: master.hellos)
    task = spec(
        "import os, time\nprint('first', flush=True)\n"
        f"while not os.path.exists({str(end)!r}):\n    time.sleep(0.01)\nprint('last')"
    )
    await master.run(task)
    await master.until(lambda: master.text(task.container_id) == "first\n")
    return task


@pytest.mark.parametrize(("name", "number"), [("read", errno.EMFILE), ("trim", errno.EROFS)])
async def test_output_goes_on_after_an_error(
    master: MasterDouble, host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, number: int
) -> None:
    """Reading or dropping it fails once: all of it arrives, once."""
    failing = FailingCall(getattr(segments, name), number)
    monkeypatch.setattr(segments, name, failing)
    monkeypatch.setattr(output, "CHUNK_BYTES", 4)
    task = await has_printed(master, host, tmp_path / "end")
    failing.left = 1
    (tmp_path / "end").touch()
    await master.until(lambda: master.exited(task.container_id))
    assert failing.failed == 1
    assert master.text(task.container_id) == "first\nlast\n"
    assert master.reports[task.container_id].exit == Exit(code=0)


async def test_output_that_can_never_be_read_is_said_to_be_lost(
    master: MasterDouble, host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exit waits for it only so long, and says so."""
    failing = FailingCall(segments.read, errno.EIO)
    monkeypatch.setattr(segments, "read", failing)
    monkeypatch.setattr(output, "_REFUSED_S", 0.2)
    task = await has_printed(master, host, tmp_path / "end")
    failing.left = float("inf")
    (tmp_path / "end").touch()
    await master.until(lambda: master.exited(task.container_id))
    exit = master.reports[task.container_id].exit
    assert exit is not None
    assert exit.code == 0
    assert "of output were not stored: OSError: [Errno 5] Input/output error" in exit.spool_lost


async def test_a_shipper_that_breaks_is_said_by_the_exit(
    master: MasterDouble, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever ends its task."""

    async def run(self: OutputShipper) -> None:
        raise RuntimeError("no more")

    monkeypatch.setattr(OutputShipper, "run", run)
    host.start()
    await master.until(lambda: master.hellos)
    task = spec("print('said')")
    await master.run(task)
    await master.until(lambda: master.exited(task.container_id))
    assert master.reports[task.container_id].exit == Exit(
        code=0, spool_lost="output was not stored: RuntimeError: no more"
    )


async def test_a_credential_that_cannot_be_read_is_there(
    master: MasterDouble, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent waits for it, and does not join anew."""
    host.start()
    await master.until(lambda: master.hellos)
    await host.stop()
    failing = FailingCall(io.open, errno.EMFILE, lambda path, *_, **__: str(path).endswith("/credential"))
    failing.left = 2
    monkeypatch.setattr(io, "open", failing)
    host.start()
    await master.until(lambda: len(master.hellos) == 2)
    assert (failing.failed, len(master.joins)) == (2, 1)


async def test_a_credential_that_cannot_be_kept_is_kept_later(
    master: MasterDouble, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent joins again, with the same one."""
    failing = FailingCall(os.fsync, errno.ENOSPC)
    failing.left = 1
    monkeypatch.setattr(os, "fsync", failing)
    host.start()
    await master.until(lambda: master.hellos)
    failing.left = 1
    await host.stop()
    (host.directory / "credential").unlink()
    host.start()
    await master.until(lambda: len(master.hellos) == 2)
    assert failing.failed == 2


async def test_a_credential_of_somebody_else_is_said(
    master: MasterDouble, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who may never read it is not left waiting."""
    host.start()
    await master.until(lambda: master.hellos)
    await host.stop()
    failing = FailingCall(io.open, errno.EACCES, lambda path, *_, **__: str(path).endswith("/credential"))
    failing.left = 1
    monkeypatch.setattr(io, "open", failing)
    with pytest.raises(UserError, match="Permission denied; give the files of"):
        await host.start()
    assert len(master.joins) == 1


@pytest.mark.parametrize("name", ["connecting", "generation", "obey"])
async def test_whatever_breaks_a_connection_the_agent_connects_again(
    master: MasterDouble, host: Host, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """It never ends by an error that nobody listed."""
    failing = FailingCall(getattr(Fleet, name), errno.EMFILE)
    monkeypatch.setattr(Fleet, name, lambda *arguments: failing(*arguments))
    failing.left = 2
    agent = host.start()
    task = spec("print('done')")
    await master.run(task)
    await master.until(lambda: master.exited(task.container_id))
    assert (failing.failed, agent.done()) == (2, False)
    assert master.text(task.container_id) == "done\n"


async def test_a_container_that_cannot_be_looked_at_holds_up_no_other(
    master: MasterDouble, host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent that starts beside one takes it to run, works, and delivers it once it can be read."""
    blind = await has_printed(master, host, tmp_path / "end")
    await host.stop()
    failing = FailingCall(
        io.open, errno.EIO, lambda path, *_, **__: str(path).endswith(f"{blind.container_id}/container.json")
    )
    failing.left = float("inf")
    monkeypatch.setattr(io, "open", failing)
    monkeypatch.setattr(app, "_LOOK_WITHIN_S", 0.1)
    host.start()
    other = spec("print('done')")
    await master.run(other)
    await master.until(lambda: master.exited(other.container_id))
    assert failing.failed > 1
    assert [report.state for report in master.hellos[-1].containers] == ["running"]
    (tmp_path / "end").touch()
    failing.left = 0
    await master.until(lambda: master.exited(blind.container_id))
    assert master.text(blind.container_id) == "first\nlast\n"
    assert master.reports[blind.container_id].exit == Exit(code=0)


class Unlisted(BaseException):
    """No error that a task expects."""


@pytest.mark.parametrize("error", [asyncio.CancelledError, Unlisted])
async def test_a_keeper_that_ends_unasked_begins_again(
    master: MasterDouble, host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    """Whatever ended its task: the container's output and exit arrive, once, and it is removed when it is to be."""
    inspect = ProcessRuntime.inspect
    due = 0

    async def breaking(self: ProcessRuntime, container_id: str) -> ContainerStatus | None:
        nonlocal due
        if due:
            due -= 1
            raise error
        return await inspect(self, container_id)

    monkeypatch.setattr(ProcessRuntime, "inspect", breaking)
    task = await has_printed(master, host, tmp_path / "end")
    due = 2
    (tmp_path / "end").touch()
    await master.until(lambda: master.exited(task.container_id))
    assert due == 0
    assert master.text(task.container_id) == "first\nlast\n"
    assert master.reports[task.container_id].exit == Exit(code=0)
    due = 1
    await master.remove(task.container_id)
    await master.until(lambda: task.container_id in master.gone)
    assert due == 0
