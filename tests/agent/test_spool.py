"""Shipping what an ended container left: whole lines, in order, from where it was acknowledged, and only its own."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tenax.agent import spool
from tenax.agent.link import Link
from tenax.config.agent import AgentSettings
from tenax.config.master import MasterSettings
from tenax.core.spooling import file as spool_file
from tenax.core.values import MetricsPacker
from tenax.local.postgres import EmbeddedPostgres
from tenax.master.access.task_tokens import allocation_token
from tenax.wire import spool_records
from tenax.wire.agents import ContainerSpec
from tenax.wire.spool_records import MAGIC
from tests.agent.master_double import MasterDouble
from tests.kits.machine_errors import FailingCall
from tests.kits.master.served import ServedMaster

REAL_LINE = '{"n":%d,"kind":"metrics","at":1.0,"body":{"group":"training","stepsCompleted":%d,"metrics":{"x":1}}}\n'
SPEC = ContainerSpec("c", "7.x.1", "7.x", 0, 1, [], ["true"], {"DET_SESSION_TOKEN": "task-token"})


@pytest.fixture
async def link(master: MasterDouble) -> AsyncIterator[Link]:
    made = Link(AgentSettings(agent_id="a", master_url=master.url))
    await made.open()
    yield made
    await made.close()


def lines(first: int, last: int, size: int = 0) -> str:
    body = {"x": "x" * size}
    return "".join(
        json.dumps({"n": n, "kind": "metrics", "at": 1.0, "body": body}) + "\n" for n in range(first, last + 1)
    )


def stored(master: MasterDouble, stream: str) -> list[object]:
    return [record["n"] for record in master.spool.get(("c", stream), [])]


async def test_all_streams_to_their_ends(master: MasterDouble, link: Link, tmp_path: Path) -> None:
    """More than one batch, a line longer than a batch, several streams; a torn line does not count."""
    (tmp_path / "a.jsonl").write_text(lines(1, 30, 100_000) + lines(31, 31, 3_000_000) + lines(32, 33) + '{"n": 34')
    (tmp_path / "b.jsonl").write_text(lines(1, 2))
    (tmp_path / "empty.jsonl").write_text("")
    assert await spool.ship(link, tmp_path, SPEC, lambda: 240.0) == ""
    assert stored(master, "a") == list(range(1, 34))
    assert stored(master, "b") == [1, 2]


async def test_a_file_that_grows_meanwhile(master: MasterDouble, link: Link, tmp_path: Path) -> None:
    """Another task of the same user writes on: what was there at the end of this one is shipped, and no more."""
    path = tmp_path / "a.jsonl"
    path.write_text(lines(1, 3))
    post = link.post

    async def growing(*arguments: object, **options: object) -> bytes:
        written = path.read_text().count("\n")
        if written < 30:
            path.write_text(lines(1, written + 1))
        return await post(*arguments, **options)  # type: ignore[arg-type]

    link.post = growing  # type: ignore[method-assign]
    assert await spool.ship(link, tmp_path, SPEC, lambda: 240.0) == ""
    assert stored(master, "a") == [1, 2, 3]


@pytest.mark.parametrize("call", ["open", "listdir", "stat", "dup"])
async def test_what_cannot_be_read_now_is_read_later(
    master: MasterDouble, link: Link, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Two moments without a descriptor, or a disk that fails twice, lose nothing."""
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool" / "a.jsonl").write_text(lines(1, 3))
    failing = FailingCall(getattr(os, call), errno.EIO if call == "stat" else errno.EMFILE)
    failing.left = 2
    monkeypatch.setattr(os, call, failing)
    assert await spool.ship(link, tmp_path / "spool", SPEC, lambda: 240.0) == ""
    assert failing.failed == 2
    assert stored(master, "a") == [1, 2, 3]


async def test_what_can_never_be_read_is_said_to_be_lost(
    master: MasterDouble, link: Link, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not before it was tried for as long as a master may refuse; what can be read is shipped."""
    for name in "ab":
        (tmp_path / f"{name}.jsonl").write_text(lines(1, 1))
    failing = FailingCall(os.open, errno.EIO, lambda path, *_, **__: path == "a.jsonl")
    failing.left = float("inf")
    monkeypatch.setattr(os, "open", failing)
    assert await spool.ship(
        link, tmp_path, SPEC, lambda: 0.5
    ) == "the reports in a.jsonl cannot be read: " + os.strerror(errno.EIO)
    assert failing.failed > 1
    assert stored(master, "b") == [1]


@pytest.mark.parametrize("taken_at_once", [1000, 7])
async def test_what_stands_behind_much_damage(
    master: MasterDouble, link: Link, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, taken_at_once: int
) -> None:
    """More reports are damaged than a batch has lines, or than the master takes at once: it goes on behind them."""
    monkeypatch.setattr(spool_records, "BATCH_BYTES", 1500)
    file = spool_file.SpoolFile(str(tmp_path), "a", segments=True)
    for _ in range(300):
        file.append("progress", '{"progress":0.5}')
    file.close()
    path = tmp_path / "a.records"
    content = path.read_bytes()
    size = (len(content) - len(MAGIC)) // 300
    path.write_bytes(content[: len(MAGIC)] + bytes(200 * size) + content[len(MAGIC) + 200 * size :])
    post = link.post

    async def in_parts(target: str, data: bytes, **options: object) -> bytes:
        return await post(target, b"".join(data.splitlines(keepends=True)[:taken_at_once]), **options)  # type: ignore[arg-type]

    link.post = in_parts  # type: ignore[assignment,method-assign]
    lost = await spool.ship(link, tmp_path, SPEC, lambda: 0.0)
    assert lost == "200 reports of the task were not stored: they are damaged in a.records"
    assert stored(master, "a") == list(range(1, 301))
    assert [record["kind"] for record in master.spool["c", "a"]].count("progress") == 100


async def test_lines_within_a_record(master: MasterDouble, link: Link, tmp_path: Path) -> None:
    """A task that writes them keeps neither its end from being reported, nor its other reports from the master."""
    file = spool_file.SpoolFile(str(tmp_path), "a", segments=True)
    for body in ('{"progress":0.5}', '{"progress":\n0.5}', '{"progress":\r0.5}', '{"progress":0.6}'):
        file.append("progress", body)
    file.close()
    assert (await spool.ship(link, tmp_path, SPEC, lambda: 0.0)).startswith("2 reports of the task were not stored")
    kinds = [record["kind"] for record in master.spool["c", "a"]]
    assert kinds == ["progress", "unreadable", "unreadable", "progress"]


async def test_numbers_that_do_not_follow_are_soon_lost(
    master: MasterDouble, link: Link, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No try takes them: the pauses count in full, and for more than those for a master that refuses."""
    (tmp_path / "a.jsonl").write_text(lines(1, 2) + lines(5, 6))
    paused: list[float] = []

    async def pause(seconds: float) -> None:
        paused.append(seconds)

    monkeypatch.setattr(spool, "pause", pause)
    monkeypatch.setattr(spool, "time", SimpleNamespace(monotonic=lambda: sum(paused)))
    lost = await spool.ship(link, tmp_path, SPEC, lambda: 600.0)
    assert lost == "reports of the task were not stored (2 metrics): the master acknowledges nothing"
    assert stored(master, "a") == [1, 2]
    assert 60.0 <= sum(paused) <= 60.0 + max(paused)


async def test_very_many_files_keep_no_container(
    master: MasterDouble, link: Link, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What each takes counts from the 500th on; a task of fewer has the time that it takes."""
    monkeypatch.setattr(spool, "_FREE_FILES", 5)
    clock = [0.0]
    monkeypatch.setattr(spool, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    post = link.post

    async def slow(*arguments: object, **options: object) -> bytes:
        clock[0] += 10.0
        return await post(*arguments, **options)  # type: ignore[arg-type]

    link.post = slow  # type: ignore[method-assign]
    for number in range(5):
        (tmp_path / f"{number}.jsonl").write_text(lines(1, 1))
    assert await spool.ship(link, tmp_path, SPEC, lambda: 45.0, acks_hold=True) == ""
    for number in range(10, 30):
        (tmp_path / f"a{number}.jsonl").write_text(lines(1, 1))
    lost = await spool.ship(link, tmp_path, SPEC, lambda: 45.0, acks_hold=True)
    assert lost == "15 of 25 files of reports were not sent: so many take too long"
    assert len(master.spool) == 10


async def test_a_name_that_no_stream_can_have(master: MasterDouble, link: Link, tmp_path: Path) -> None:
    """It is lost at once, in words; what else there is is shipped."""
    (tmp_path / "a.jsonl").write_text(lines(1, 1))
    for name in (b"\xff.jsonl", b"n" * 201 + b".jsonl"):
        (tmp_path / os.fsdecode(name)).write_text(lines(1, 2))
    lost = await spool.ship(link, tmp_path, SPEC, lambda: 1e9)
    assert lost.count("cannot hold reports") == 2
    assert stored(master, "a") == [1]


async def test_it_goes_on_where_the_task_was_acknowledged(master: MasterDouble, link: Link, tmp_path: Path) -> None:
    """What the task shipped itself is not sent again; what the agent ships is noted for the next agent."""
    text = lines(1, 5)
    (tmp_path / "a.jsonl").write_text(text)
    (tmp_path / "a.ack").write_text(json.dumps({"n": 3, "offset": len(lines(1, 3))}))
    master.spool["c", "a"] = [{"n": n} for n in (1, 2, 3)]
    assert await spool.ship(link, tmp_path, SPEC, lambda: 240.0) == ""
    assert master.spool["c", "a"][3]["kind"] == "metrics"
    assert json.loads((tmp_path / "a.ack").read_text()) == {"n": 5, "offset": len(text)}


@pytest.mark.parametrize("ack", ["", "nonsense", '{"n": 9, "offset": 99999}', '{"n": 1, "offset": -4}'])
async def test_an_ack_that_cannot_be_is_not_believed(
    master: MasterDouble, link: Link, tmp_path: Path, ack: str
) -> None:
    """Then all is sent: the master knows what it has."""
    (tmp_path / "a.jsonl").write_text(lines(1, 3))
    (tmp_path / "a.ack").write_text(ack)
    assert await spool.ship(link, tmp_path, SPEC, lambda: 240.0) == ""
    assert stored(master, "a") == [1, 2, 3]


async def test_only_plain_files_are_read(master: MasterDouble, link: Link, tmp_path: Path) -> None:
    """A task cannot make the agent read another file, nor wait on a pipe."""
    secret = tmp_path / "secret"
    secret.write_text(lines(1, 1))
    folder = tmp_path / "spool"
    folder.mkdir()
    (folder / "link.jsonl").symlink_to(secret)
    os.mkfifo(folder / "pipe.jsonl")
    (folder / "good.jsonl").write_text(lines(1, 1))
    (folder / "good.ack").symlink_to("/dev/zero")
    lost = await spool.ship(link, folder, SPEC, lambda: 240.0)
    assert "link.jsonl" in lost
    assert "pipe.jsonl" in lost
    assert stored(master, "link") == []
    assert stored(master, "good") == [1]


def segment(directory: Path, name: str, records: int) -> spool_file.SpoolFile:
    """One whose writer has not closed it, as a killed one."""
    file = spool_file.SpoolFile(str(directory), name, segments=True)
    for step in range(1, records + 1):
        body = MetricsPacker().pack("training", step, {"x": step / 7})
        assert body is not None
        file.append("metrics", body)
    return file


async def test_segments_to_their_ends(master: MasterDouble, link: Link, tmp_path: Path) -> None:
    """A task that was killed left room behind its records; beside it lies a file of lines, as of an older task."""
    segment(tmp_path, "a", 3000)
    long = segment(tmp_path, "b", 0)
    for n in range(40):
        long.append("metrics", json.dumps({"x": "x" * 100_000 * (1 + (n == 20) * 15)}))
    (tmp_path / "c.jsonl").write_text(lines(1, 3))
    assert await spool.ship(link, tmp_path, SPEC, lambda: 240.0) == ""
    records = master.spool["c", "a"]
    assert [record["body"] for record in records] == [
        {"group": "training", "stepsCompleted": n, "metrics": {"x": n / 7}, "batchMetrics": None, "reportTime": None}
        for n in range(1, 3001)
    ]
    assert stored(master, "a") == list(range(1, 3001))
    assert stored(master, "b") == list(range(1, 41))
    assert stored(master, "c") == [1, 2, 3]


async def test_a_segment_goes_on_where_its_task_was_acknowledged(
    master: MasterDouble, link: Link, tmp_path: Path
) -> None:
    """What the agent ships is noted for the next agent; a master that has less gets it again."""
    file = segment(tmp_path, "a", 2)
    file.acknowledge(file.next_batch(), 2)
    segments = file.written_offset
    for step in (3, 4):
        file.append("metrics", json.dumps({"stepsCompleted": step}))
    master.spool["c", "a"] = [{"n": n} for n in (1, 2)]
    assert await spool.ship(link, tmp_path, SPEC, lambda: 240.0) == ""
    assert [record.get("body") for record in master.spool["c", "a"]][2:] == [{"stepsCompleted": n} for n in (3, 4)]
    assert json.loads((tmp_path / "a.ack").read_text()) == {"n": 4, "offset": file.written_offset}
    assert file.written_offset > segments
    master.spool["c", "a"] = []
    assert await spool.ship(link, tmp_path, SPEC, lambda: 0.0) == ""
    assert stored(master, "a") == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "ack", ["", '{"n": 9, "offset": 99999999}', '{"n": 2, "offset": 0}', '{"n": 0, "offset": 100}']
)
async def test_an_ack_of_a_segment_that_cannot_be(master: MasterDouble, link: Link, tmp_path: Path, ack: str) -> None:
    """The master's word decides; nothing is sent that does not stand there."""
    segment(tmp_path, "a", 5)
    (tmp_path / "a.ack").write_text(ack)
    assert await spool.ship(link, tmp_path, SPEC, lambda: 240.0) == ""
    assert stored(master, "a") == [1, 2, 3, 4, 5]


async def test_a_damaged_record_is_lost_in_words(master: MasterDouble, link: Link, tmp_path: Path) -> None:
    """The records around it are stored, each under its number."""
    file = segment(tmp_path, "a", 20)
    path = tmp_path / "a.records"
    content = bytearray(path.read_bytes())
    content[file.written_offset // 2] ^= 4
    path.write_bytes(content)
    lost = await spool.ship(link, tmp_path, SPEC, lambda: 240.0)
    assert lost == "1 reports of the task were not stored: they are damaged in a.records"
    assert stored(master, "a") == list(range(1, 21))
    assert sum(record["kind"] == "metrics" for record in master.spool["c", "a"]) == 19


async def test_a_segment_of_another_release(master: MasterDouble, link: Link, tmp_path: Path) -> None:
    """It is said to be lost, at once, and never taken for one of ours."""
    segment(tmp_path, "a", 2)
    (tmp_path / "a.records").write_bytes(b"TNXSPL9\n" + (tmp_path / "a.records").read_bytes()[8:])
    lost = await spool.ship(link, tmp_path, SPEC, lambda: 1e9)
    assert lost == "the reports in a.records cannot be read: it was written by another release of Tenax"
    assert stored(master, "a") == []


async def test_no_spool_at_all(link: Link, tmp_path: Path) -> None:
    """A container that never said anything has nothing to lose."""
    assert await spool.ship(link, tmp_path / "absent", SPEC, lambda: 240.0) == ""


async def test_a_master_that_has_less_than_it_acknowledged_gets_it_again(
    master: MasterDouble, link: Link, tmp_path: Path
) -> None:
    """Its database was restored: from where it is now on, whatever stands beside the file, and at once."""
    text = lines(1, 70)
    (tmp_path / "a.jsonl").write_text(text)
    (tmp_path / "a.ack").write_text(json.dumps({"n": 70, "offset": len(text)}))
    (tmp_path / "b.jsonl").write_text(lines(1, 70))
    (tmp_path / "b.ack").write_text(json.dumps({"n": 60, "offset": len(lines(1, 60))}))
    master.spool["c", "b"] = [{"n": n} for n in range(1, 6)]
    assert await spool.ship(link, tmp_path, SPEC, lambda: 0.0) == ""
    assert stored(master, "a") == stored(master, "b") == list(range(1, 71))


async def test_acknowledgements_that_hold_are_not_asked_about(master: MasterDouble, link: Link, tmp_path: Path) -> None:
    """The usual end of a task costs no request for its spool."""
    (tmp_path / "a.jsonl").write_text(lines(1, 3))
    (tmp_path / "a.ack").write_text(json.dumps({"n": 3, "offset": len(lines(1, 3))}))
    assert await spool.ship(link, tmp_path, SPEC, lambda: 10.0, acks_hold=True) == ""
    assert master.spool_requests == 0


async def test_reports_of_a_removed_file_are_counted(master: MasterDouble, link: Link, tmp_path: Path) -> None:
    """A long task removes files that the master has whole; one that has less of them later lost the rest, in words."""
    (tmp_path / "a.ack").write_text(json.dumps({"n": 70, "offset": 9000}))
    (tmp_path / "b.ack").write_text(json.dumps({"n": 5, "offset": 500}))
    (tmp_path / "c.jsonl").write_text(lines(1, 3))
    master.spool["c", "a"] = [{"n": n} for n in range(1, 61)]
    master.spool["c", "b"] = [{"n": n} for n in range(1, 6)]
    assert (await spool.ship(link, tmp_path, SPEC, lambda: 240.0)).startswith("10 reports of the task are not stored")
    assert stored(master, "c") == [1, 2, 3]
    assert await spool.ship(link, tmp_path, SPEC, lambda: 10.0, acks_hold=True) == ""


async def test_a_task_that_is_not_known_has_nothing_to_go_back_to(
    master: MasterDouble, link: Link, tmp_path: Path
) -> None:
    """Where all was acknowledged, a master that knows nothing of the task is not waited for."""
    (tmp_path / "a.jsonl").write_text(lines(1, 3))
    (tmp_path / "a.ack").write_text(json.dumps({"n": 3, "offset": len(lines(1, 3))}))
    master.fail_spool = 404
    assert await spool.ship(link, tmp_path, SPEC, lambda: 3600.0) == ""
    assert master.spool_refusals == 1


async def test_a_restored_database_gets_the_reports_of_the_file(
    tmp_path: Path, postgres: EmbeddedPostgres, database_url: str, master_settings: MasterSettings
) -> None:
    """The real master: it took 75 reports, the copy in its database's place has five, and all are there at the end."""
    text = "".join(REAL_LINE % (n, n) for n in range(1, 76))
    async with ServedMaster(postgres.dsn, database_url, master_settings) as served:
        trial, task = await served.running_trial()
        token = allocation_token(served.api.master.cluster.secret, task.allocation_id)
        name, env = task.allocation_id, {"DET_SESSION_TOKEN": token}
        task_spec = ContainerSpec(name, name, task.task_id, 0, 1, [], ["true"], env)
        link = Link(AgentSettings(agent_id="a1", master_url=served.url))
        await link.open()
        (tmp_path / "s-1-2.jsonl").write_text("".join(text.splitlines(keepends=True)[:5]))
        assert await spool.ship(link, tmp_path, task_spec, lambda: 240.0) == ""
        await served.copy()
        (tmp_path / "s-1-2.jsonl").write_text(text)
        assert await spool.ship(link, tmp_path, task_spec, lambda: 240.0) == ""
        assert len(await served.book.reports(trial)) == 75
        await served.restore()
        assert len(await served.book.reports(trial)) == 5
        assert await spool.ship(link, tmp_path, task_spec, lambda: 0.0) == ""
        assert [report.step for report in await served.book.reports(trial)] == list(range(1, 76))
        await link.close()


@pytest.mark.parametrize("deep", ["[" * 4000, '{"x":' * 700])
async def test_the_deepest_nesting_is_no_error_of_the_agent(
    tmp_path: Path, postgres: EmbeddedPostgres, database_url: str, master_settings: MasterSettings, deep: str
) -> None:
    """The real master refuses such a line; the one behind it is stored, and so it goes where it is acknowledged."""
    nested = '{"n":2,"kind":"metrics","at":1.0,"body":' + deep * 100 + "\n"
    async with ServedMaster(postgres.dsn, database_url, master_settings) as served:
        trial, task = await served.running_trial()
        token = allocation_token(served.api.master.cluster.secret, task.allocation_id)
        name, env = task.allocation_id, {"DET_SESSION_TOKEN": token}
        task_spec = ContainerSpec(name, name, task.task_id, 0, 1, [], ["true"], env)
        link = Link(AgentSettings(agent_id="a1", master_url=served.url))
        await link.open()
        (tmp_path / "s-1-2.jsonl").write_text(REAL_LINE % (1, 1) + nested + REAL_LINE % (3, 3))
        (tmp_path / "s-1-2.ack").write_text('{"x":' + deep)
        assert await spool.ship(link, tmp_path, task_spec, lambda: 0.0) == ""
        assert [report.step for report in await served.book.reports(trial)] == [1, 3]
        await link.close()


@pytest.mark.parametrize("form", ["lines", "segments"])
async def test_a_restored_database_gets_the_file_before_the_last_one(
    form: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    postgres: EmbeddedPostgres,
    database_url: str,
    master_settings: MasterSettings,
) -> None:
    """A task turned its file over and went on in another; the copy has half of the first, nothing of the second."""
    monkeypatch.setattr(spool_file, "TURN_BYTES", 1500)
    file = spool_file.SpoolFile(str(tmp_path), segments=form == "segments")
    async with ServedMaster(postgres.dsn, database_url, master_settings) as served:
        trial, task = await served.running_trial()
        token = allocation_token(served.api.master.cluster.secret, task.allocation_id)
        name, env = task.allocation_id, {"DET_SESSION_TOKEN": token}
        task_spec = ContainerSpec(name, name, task.task_id, 0, 1, [], ["true"], env)
        link = Link(AgentSettings(agent_id="a1", master_url=served.url))
        await link.open()
        for step in range(1, 31):
            file.append("metrics", json.dumps({"group": "training", "stepsCompleted": step, "metrics": {"x": 1}}))
            if step == 10:
                assert await spool.ship(link, tmp_path, task_spec, lambda: 240.0) == ""
                await served.copy()
            if step in (20, 30):
                assert await spool.ship(link, tmp_path, task_spec, lambda: 240.0) == ""
                batch = file.next_batch()
                file.acknowledge(batch, len(batch.ends))
                assert file.turn() is (step == 20)
        await served.restore()
        assert len(await served.book.reports(trial)) == 10
        assert await spool.ship(link, tmp_path, task_spec, lambda: 0.0) == ""
        assert sorted(report.step for report in await served.book.reports(trial)) == list(range(1, 31))
        await link.close()
