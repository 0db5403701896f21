"""The asynchronous SDK: the twins of the values, and how their calls, waits and streams behave in an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import subprocess
import sys
import threading
import traceback
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

import tenax.client
from tenax.client import AsyncClient, AsyncCommand, AsyncExperiment, AsyncTrial, Checkpoint, Client
from tenax.client.asynchronous import twins
from tenax.client.asynchronous.threads import in_loop
from tenax.client.connection.reading import LiveAnswer
from tenax.client.trials import LogLine
from tenax.errors import NotFound
from tenax.jsonvalue import JsonObject
from tests.docs.async_types import live_values
from tests.kits.pretend_master import Asked, PretendMaster, Reply, refused

RUNNING: JsonObject = {"id": 7, "name": "digits", "state": "STATE_RUNNING"}
COMPLETED: JsonObject = {**RUNNING, "state": "STATE_COMPLETED"}


@pytest.fixture
async def client(master: PretendMaster) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(master.url, token="t") as opened:
        yield opened


def answer(master: PretendMaster, path: str, reply: Callable[[Asked], Reply]) -> None:
    master.answers["GET", path] = reply


def experiments(master: PretendMaster, count: int, **more: object) -> None:
    """Numbered from 1, each with its answer."""
    for number in range(1, count + 1):
        master.on("GET", f"/api/v1/experiments/{number}", {"experiment": {**RUNNING, "id": number, **more}})


async def trial(client: AsyncClient, master: PretendMaster) -> AsyncTrial:
    master.on("GET", "/api/v1/trials/1", {"trial": {"id": 1, "experimentId": 7}})
    return await client.trial(1)


async def until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110 - threads set it
        await asyncio.sleep(0.01)


def kind_of_member(kind: type, name: str) -> str:
    """How a member of a class of the asynchronous SDK is used."""
    member = inspect.getattr_static(kind, name)
    if isinstance(member, property):
        return "read"
    assert inspect.isfunction(member), f"{kind.__name__}.{name} is neither a property nor a method"
    return "awaited" if inspect.iscoroutinefunction(member) else "iterated"


def expected_members(kind: type) -> dict[str, str]:
    """The same by the rule, of the class whose twin it is."""
    fields = dict.fromkeys(getattr(kind, "__dataclass_fields__", {}), "read")
    members = {}
    for name in (name for name in dir(kind) if not name.startswith("_")):
        member = inspect.getattr_static(kind, name)
        if isinstance(member, property):
            members[name] = "read"
        elif inspect.isfunction(member):
            iterates = str(inspect.signature(member).return_annotation).startswith("Iterator[")
            members[name] = "iterated" if iterates else "awaited"
    return {name: how for name, how in {**members, **fields}.items() if name != "session"}


@pytest.mark.parametrize("kind", [Client, *live_values()], ids=lambda kind: kind.__name__)
def test_every_public_name_has_its_twin(kind: type) -> None:
    """Fields and properties are read, methods awaited, iterators iterated; there is nothing else."""
    twin = getattr(tenax.client, f"Async{kind.__name__}")
    assert twin.__name__ == f"Async{kind.__name__}"
    assert {name: kind_of_member(twin, name) for name in dir(twin) if not name.startswith("_")} == expected_members(
        kind
    )
    for name, how in expected_members(kind).items():
        if how != "read":
            assert inspect.signature(getattr(twin, name)) == inspect.signature(getattr(kind, name))


def test_every_value_that_asks_again_is_a_name_of_the_sdk() -> None:
    """So that its twin is one, too: no class of values with a session is left out."""
    every = {kind.__name__ for kind in LiveAnswer.__subclasses__() if kind.__module__.startswith("tenax.client.")}
    assert every == {kind.__name__ for kind in live_values()}
    assert {f"Async{name}" for name in (*every, "Client")} < set(tenax.client.__all__)
    with pytest.raises(AttributeError, match="AsyncRun"):
        twins.twin_named("AsyncRun")


def test_steps_have_the_parameters_of_their_method() -> None:
    """What waits by steps, so that the loop can pause, is called as the method is."""
    pausing = []
    for kind in live_values():
        for name, steps in vars(kind).items():
            if str(getattr(steps, "__annotations__", {}).get("return")).startswith("Steps["):
                method = inspect.signature(getattr(kind, name[1:]))
                ours = inspect.signature(steps)
                assert [*method.parameters] == [*ours.parameters], f"{kind.__name__}.{name}"
                pausing.append(f"{kind.__name__}.{name[1:]}")
    assert sorted(pausing) == ["Command.wait", "Experiment.wait", "Project.delete", "Workspace.delete"]


def test_who_does_without_an_event_loop_pays_for_none() -> None:
    """The synchronous SDK imports neither it nor what is asynchronous here."""
    names = "'asyncio', 'concurrent.futures', 'tenax.client.asynchronous'"
    script = "import sys\nfrom tenax.client import Client, Experiment, Trial, Workspace\nClient('http://127.0.0.1:1')\n"
    script += f"print([name for name in ({names}) if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_values_are_twins(client: AsyncClient, master: PretendMaster) -> None:
    """Attributes and properties are those of the value, which cannot be changed; lists keep their columns."""
    master.on("GET", "/api/v1/experiments/7", {"experiment": RUNNING})
    master.on("GET", "/api/v1/experiments/7/trials", {"trials": [{"id": 1, "hparams": {"lr": 0.1}}, {"id": 2}]})
    experiment = await client.experiment(7)
    assert isinstance(experiment, AsyncExperiment)
    assert (experiment.id, experiment.has_ended, experiment.raw["name"]) == (7, False, "digits")
    assert experiment == await experiment.reload()
    assert repr(experiment).startswith("AsyncExperiment(id=7")
    with pytest.raises(AttributeError, match="name"):
        experiment.name = "other"  # type: ignore[misc]
    trials = await experiment.trials()
    assert all(isinstance(each, AsyncTrial) for each in trials)
    assert trials.columns()["hparams.lr"] == [0.1, None]
    assert list(trials.to_pandas()["id"]) == [1, 2]


async def test_twins_go_in_and_come_out_within_values(client: AsyncClient, master: PretendMaster) -> None:
    """A twin may be given for its value, and what a value holds is a twin as well."""
    version = {"version": 1, "model": {"id": 3}, "checkpoint": {"uuid": "u"}}
    master.on("GET", "/api/v1/models/m", {"model": {"id": 3, "name": "m"}})
    master.on("GET", "/api/v1/checkpoints/u", {"checkpoint": {"uuid": "u"}})
    master.on("POST", "/api/v1/models/3/versions", {"modelVersion": version})
    master.on("POST", "/api/v1/experiments/continue", {"experiment": RUNNING, "notices": ["it waits"]})
    master.on("GET", "/api/v1/experiments/7", {"experiment": COMPLETED})
    registered = await (await client.model("m")).register_version(await client.checkpoint("u"))
    assert master.sent("POST", "/api/v1/models/3/versions")[0].body["checkpointUuid"] == "u"  # type: ignore[index]
    assert (await registered.checkpoint.reload()).uuid == "u"
    experiment, remarks = await (await client.experiment(7)).continued()
    assert isinstance(experiment, AsyncExperiment)
    assert remarks == ["it waits"]


async def test_calls_are_made_at_once(client: AsyncClient, master: PretendMaster) -> None:
    """Of those that are gathered all are at the master before any is answered."""
    experiments(master, 8)
    values = await asyncio.gather(*(client.experiment(number) for number in range(1, 9)))
    all_there = threading.Barrier(8, timeout=60)

    def together(asked: Asked) -> Reply:
        all_there.wait()
        return Reply({"experiment": {**RUNNING, "id": int(asked.path.rpartition("/")[2])}})

    for value in values:
        answer(master, f"/api/v1/experiments/{value.id}", together)
    assert [value.id for value in await asyncio.gather(*(value.reload() for value in values))] == [*range(1, 9)]


async def test_an_error_names_the_line_that_awaits(client: AsyncClient, master: PretendMaster) -> None:
    """It is that of the synchronous SDK, and its traceback begins where the user's code is."""
    master.on("GET", "/api/v1/experiments/7", refused(404, "experiment not found"))
    with pytest.raises(NotFound, match="experiment not found") as caught:
        await client.experiment(7)
    lines = [frame.line or "" for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert lines[0] == "await client.experiment(7)"


def test_a_client_serves_several_loops(master: PretendMaster) -> None:
    """One after the other; a mistake in its arguments is an error at once."""
    experiments(master, 1)
    client = AsyncClient(master.url, token="t")

    async def number() -> int:
        return (await client.experiment(1)).id

    assert [asyncio.run(number()), asyncio.run(number())] == [1, 1]
    with pytest.raises(TypeError, match="tokens"):
        AsyncClient(master.url, tokens="t")  # type: ignore[call-arg]


async def test_who_waits_is_shown_states_in_the_loop(client: AsyncClient, master: PretendMaster) -> None:
    """`seen` gets twins, in the thread of the loop; what it raises ends the wait, and what it returns may."""
    master.on("GET", "/api/v1/experiments/7", {"experiment": RUNNING}, {"experiment": COMPLETED})
    shown: list[tuple[object, str, int]] = []

    def seen(now: AsyncExperiment) -> None:
        shown.append((type(now), now.state, threading.get_ident()))

    experiment = await (await client.experiment(7)).wait(interval=0.01, seen=seen)
    assert experiment.state == "COMPLETED"
    assert shown == [(AsyncExperiment, "COMPLETED", threading.get_ident())]

    def refuse(now: AsyncExperiment) -> None:
        raise KeyError(now.state)

    with pytest.raises(KeyError, match="COMPLETED"):
        await experiment.wait(seen=refuse)
    master.on("GET", "/api/v1/commands/c", {"command": {"id": "c", "state": "STATE_RUNNING"}})

    def enough(now: AsyncCommand) -> bool:
        return now.state == "RUNNING"

    assert not (await (await client.command("c")).wait(seen=enough)).has_ended


@pytest.mark.timeout(30)
@pytest.mark.parametrize("error", [TimeoutError("too long"), asyncio.CancelledError(), ValueError("no")])
async def test_what_a_function_raises_ends_the_call(error: BaseException) -> None:
    """Also where it is an error that waiting for a thread may raise by itself."""

    def callback(state: str) -> None:
        raise error

    ended = threading.Event()
    waits = in_loop(callback, asyncio.get_running_loop(), ended)
    raised: list[BaseException] = []

    def call() -> None:
        try:
            waits("RUNNING")
        except BaseException as caught:
            raised.append(caught)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    await until(lambda: not thread.is_alive())
    assert [type(caught).__name__ for caught in raised] == [type(error).__name__]


async def test_many_wait_and_read_while_others_call(client: AsyncClient, master: PretendMaster) -> None:
    """200 waits and 200 silent streams leave calls their threads, of which there is a bounded number."""
    before = set(threading.enumerate())
    experiments(master, 200)
    silent = threading.Event()
    reader = await trial(client, master)
    answer(master, "/api/v1/trials/1/logs", lambda _: Reply(lines=_line_and_silence(silent)))  # type: ignore[arg-type]
    values = await asyncio.gather(*(client.experiment(number) for number in range(1, 201)))
    waits = [asyncio.create_task(value.wait(interval=0.2)) for value in values]
    streams = [reader.logs(follow=True) for _ in range(200)]
    try:
        assert {line.log for line in await asyncio.gather(*(anext(stream) for stream in streams))} == {"first"}
        reads = [asyncio.create_task(anext(stream)) for stream in streams]  # type: ignore[arg-type]
        assert (await reader.reload()).id == 1
        threads = [thread for thread in threading.enumerate() if thread.name == "tenax-client"]
        assert len(set(threads) - before) <= twins.MAX_CALLS + len(streams)
        experiments(master, 200, state="STATE_COMPLETED")
        assert {value.state for value in await asyncio.gather(*waits)} == {"COMPLETED"}
        silent.set()
        ends = await asyncio.gather(*reads, return_exceptions=True)
        assert {type(end) for end in ends} == {StopAsyncIteration}
    finally:
        silent.set()


def _line_and_silence(silent: threading.Event) -> object:
    yield {"result": {"id": "1", "log": "first"}}
    silent.wait(60)


class Endless:
    """A log that goes on while `gate` is open, and what its master sees of whoever reads it."""

    def __init__(self) -> None:
        self.gate = threading.Semaphore(0)
        self.closed = threading.Event()
        self.made = 0

    def lines(self) -> object:
        """As of a stream; it ends when it cannot be sent any more."""
        try:
            while True:
                assert self.gate.acquire(timeout=60)
                self.made += 1
                yield {"result": {"id": str(self.made), "log": "x" * 1000}}
        finally:
            self.closed.set()

    async def until_closed(self) -> None:
        """Whoever is gone is noticed with the next lines."""
        while not self.closed.is_set():
            self.gate.release()
            await asyncio.sleep(0.01)


@pytest.fixture
def endless(master: PretendMaster) -> Endless:
    log = Endless()
    answer(master, "/api/v1/trials/1/logs", lambda _: Reply(lines=log.lines()))  # type: ignore[arg-type]
    return log


async def test_leaving_a_loop_closes_the_request(client: AsyncClient, master: PretendMaster, endless: Endless) -> None:
    """`break` does, where nothing else refers to the stream; and `aclose`, after which there is no further line."""
    endless.gate.release(3)
    async for line in (await trial(client, master)).logs(follow=True):
        if line.id == "2":
            break
    await endless.until_closed()
    endless.closed.clear()
    endless.gate.release()
    stream = (await trial(client, master)).logs(follow=True)
    await anext(stream)
    await stream.aclose()
    await endless.until_closed()
    assert [line async for line in stream] == []


@pytest.mark.parametrize("package", ["httpx2", "the standard library"])
async def test_cancelling_a_reader_closes_the_request(
    master: PretendMaster, endless: Endless, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while it waits for a line; a stream has one reader, and calls go on."""
    if package != "httpx2":
        from tenax.client.connection import plain_http, transport

        monkeypatch.setattr(transport, "httpx2", plain_http)
    client = AsyncClient(master.url, token="t")
    stream = (await trial(client, master)).logs(follow=True)
    endless.gate.release()
    await anext(stream)
    reading = asyncio.create_task(anext(stream))  # type: ignore[arg-type]
    await asyncio.sleep(0)
    with pytest.raises(RuntimeError, match="one reader"):
        await anext(stream)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    # Its thread does not read on until there is a line.
    await until(lambda: stream._session is None)
    await endless.until_closed()
    assert (await client.trial(1)).id == 1
    await client.close()


async def test_lines_are_fetched_as_they_are_read(
    client: AsyncClient, master: PretendMaster, endless: Endless, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who reads slowly makes the master wait, not this process grow: nothing is read before somebody waits for it."""
    fetched: list[str] = []
    read = LogLine.read

    def counted(value: JsonObject) -> LogLine:
        fetched.append(str(value["id"]))
        return read(value)

    monkeypatch.setattr(LogLine, "read", counted)
    endless.gate.release(1000)
    stream = (await trial(client, master)).logs(follow=True)
    assert fetched == []
    lines = [(await anext(stream)).id for _ in range(50)]
    assert fetched == lines == [str(number) for number in range(1, 51)]


async def test_closing_a_client_ends_its_streams(client: AsyncClient, master: PretendMaster, endless: Endless) -> None:
    """Those that nobody reads at the moment, too."""
    endless.gate.release()
    stream = (await trial(client, master)).logs(follow=True)
    await anext(stream)
    await client.close()
    await endless.until_closed()


async def test_cancelling_a_call_returns_at_once(client: AsyncClient, master: PretendMaster) -> None:
    """The master has not answered yet, and the client goes on; a wait that is cancelled asks nothing more."""
    experiments(master, 2)
    experiment = await client.experiment(2)
    there, go = threading.Event(), threading.Event()

    def slow(_: Asked) -> Reply:
        there.set()
        go.wait(60)
        return Reply({"experiment": RUNNING})

    answer(master, "/api/v1/experiments/1", slow)
    try:
        call = asyncio.create_task(client.experiment(1))
        await until(there.is_set)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert not go.is_set()
        assert (await experiment.reload()).id == 2
    finally:
        go.set()
    seen: list[str] = []
    waiting = asyncio.create_task(experiment.wait(interval=0.01, seen=lambda now: seen.append(now.state)))
    await until(lambda: len(seen) > 2)
    waiting.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await waiting
    count = len(seen)
    experiments(master, 2, state="STATE_COMPLETED")
    assert (await experiment.wait()).has_ended
    assert len(seen) == count


async def test_cancelling_a_download_ends_it(client: AsyncClient, master: PretendMaster, tmp_path: Path) -> None:
    """What was fetched of it goes, and so does its request."""
    master.on("GET", "/api/v1/checkpoints/u", {"checkpoint": {"uuid": "u", "state": "STATE_COMPLETED"}})
    silent = threading.Event()
    answer(master, "/checkpoints/u", lambda _: Reply(lines=_line_and_silence(silent)))  # type: ignore[arg-type]
    checkpoint = await client.checkpoint("u")
    assert isinstance(checkpoint._value, Checkpoint)  # type: ignore[attr-defined]
    download = asyncio.create_task(checkpoint.download(tmp_path / "to", mode="master"))
    await until(lambda: (tmp_path / ".to.part").exists())
    download.cancel()
    with pytest.raises(asyncio.CancelledError):
        await download
    await until(lambda: not (tmp_path / ".to.part").exists())
    silent.set()


def test_what_is_under_way_keeps_no_interpreter(master: PretendMaster) -> None:
    """A script ends though the master still owes answers to what it cancelled."""
    go = threading.Event()
    answer(master, "/api/v1/experiments/1", lambda _: Reply({"experiment": RUNNING}) if go.wait(60) else Reply())
    script = f"""
import asyncio
from tenax.client import AsyncClient

async def main():
    async with AsyncClient({master.url!r}, token="t") as client:
        try:
            await asyncio.wait_for(client.experiment(1), 0.5)
        except asyncio.TimeoutError:
            print("given up")

asyncio.run(main())
"""
    try:
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=50)
        assert not go.is_set()
    finally:
        go.set()
    assert (done.returncode, done.stdout, done.stderr) == (0, "given up\n", "")
