"""An agent against a real websocket: what it is told, what it does, what it says."""

from __future__ import annotations

import asyncio
import io
import json
import socket
import stat
import uuid

import pytest

from tenax.agent import keeper
from tenax.agent.fleet import Fleet
from tenax.agent.log_setup import UnfailingStream
from tenax.agent.placing import choose_ports
from tenax.backoff import Backoff, background
from tenax.errors import UserError
from tenax.runtime.processes import belonging_to
from tenax.wire.agents import Exit, SessionRefused
from tests.agent.host import SPOOLING, STUBBORN, WAIT, Host, spec
from tests.agent.master_double import CLUSTER, MasterDouble


async def test_a_container_runs_from_want_to_gone(master: MasterDouble, host: Host) -> None:
    """Wanted, started, its output shipped, its exit reported, and nothing left once it is wanted gone."""
    host.start()
    task_spec = spec("import sys; print('hello'); print('oops', file=sys.stderr, end=''); sys.exit(3)")
    await master.until(lambda: master.hellos)
    await master.run(task_spec)
    name = task_spec.container_id
    await master.until(lambda: master.exited(name))
    report = master.reports[name]
    assert report.exit == Exit(code=3, reason="exited with code 3")
    assert (report.cluster_id, report.generation, report.address) == (CLUSTER, 1, "10.0.0.1")
    assert (master.text(name), master.text(name, "stderr")) == ("hello\n", "oops")
    assert master.finals == {(name, "stderr")}, "only a stream that ends within a line needs its end told"
    await master.remove(name)
    await master.until(lambda: name in master.gone)
    assert not (host.directory / "containers" / name).exists()


async def test_what_is_gone_is_not_started_again(master: MasterDouble, host: Host) -> None:
    """A master whose database was put back to an older copy desires again what ran, ended and was removed."""
    host.start()
    task_spec = spec("print('hello')")
    name = task_spec.container_id
    await master.until(lambda: master.hellos)
    await master.run(task_spec)
    await master.until(lambda: master.exited(name))
    await master.remove(name)
    await master.until(lambda: name in master.gone)
    del master.reports[name]
    await master.run(task_spec)
    await master.until(lambda: master.exited(name))
    assert master.reports[name].exit == Exit(reason="nothing is left of it on the agent's machine", platform=True)
    assert master.text(name) == "hello\n"


async def test_who_deletes_the_containers_directory_ends_it(master: MasterDouble, host: Host) -> None:
    """It ran once, and is not started again; its reports are lost with a word. The platform is not to blame."""
    host.start()
    task_spec = spec(
        "import os, shutil, signal; shutil.rmtree(os.path.dirname(os.environ['DET_RUN_DIR'])); signal.pause()"
    )
    await master.until(lambda: master.hellos)
    await master.run(task_spec)
    await master.until(lambda: master.exited(task_spec.container_id))
    exit = master.reports[task_spec.container_id].exit
    assert exit is not None
    assert exit.reason == "its directory on the agent's machine was deleted while it ran"
    assert "deleted with its directory" in exit.spool_lost
    assert not exit.platform
    assert belonging_to(task_spec.container_id) == []
    await master.remove(task_spec.container_id)
    await master.until(lambda: task_spec.container_id in master.gone)


async def test_reports_that_were_deleted_are_lost_with_a_word(master: MasterDouble, host: Host) -> None:
    """A script that deletes its run directory."""
    host.start()
    task_spec = spec("import os, shutil; os.chdir('/'); shutil.rmtree(os.environ['DET_RUN_DIR'])")
    await master.until(lambda: master.hellos)
    await master.run(task_spec)
    await master.until(lambda: master.exited(task_spec.container_id))
    exit = master.reports[task_spec.container_id].exit
    assert exit is not None
    assert "its run directory was deleted" in exit.spool_lost


async def test_news_of_the_runtime_are_listened_to_again(
    master: MasterDouble, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever ends the listening, it begins again: without it output and exits would be found late."""
    monkeypatch.setattr(background, "PAUSES", Backoff(first=0.001, ceiling=0.001))
    begun, listen = asyncio.Queue[int](), Fleet.listen

    async def break_twice(fleet: Fleet) -> None:
        begun.put_nowait(1)
        if begun.qsize() == 1:
            raise KeyError("nobody thought of this")
        if begun.qsize() > 2:
            await listen(fleet)

    monkeypatch.setattr(Fleet, "listen", break_twice)
    host.start()
    await master.until(lambda: begun.qsize() == 3)
    task_spec = spec("print('hello')")
    await master.run(task_spec)
    await master.until(lambda: master.exited(task_spec.container_id))


async def test_it_joins_once(master: MasterDouble, host: Host) -> None:
    """The token is traded for a credential, which is kept where only its owner reads it and used from then on."""
    for hellos in (1, 2):
        host.start()
        await master.until(lambda count=hellos: len(master.hellos) == count)
        await host.stop()
    assert len(master.joins) == 1
    path = host.directory / "credential"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text())["credential"] == master.credential


async def test_a_join_whose_answer_was_lost_is_the_same_one(master: MasterDouble, host: Host) -> None:
    """The agent asks again with the credential that it drew before, also after it was killed meanwhile."""
    master.lose_answer = True
    host.start()
    await master.until(lambda: master.joins)
    await host.stop()
    host.start()
    await master.until(lambda: master.hellos)
    assert {join.credential for join in master.joins} == {master.credential}
    assert len(master.credential) == len("tnxg_") + 43
    assert not (host.directory / "credential.proposed").exists()


async def test_a_wrong_token_is_told_in_words(master: MasterDouble, host: Host) -> None:
    """An agent that is not let in ends with a message, without the token."""
    with pytest.raises(UserError, match=r"cannot join.*the join token is wrong") as error:
        await host.start(join_token=None, join_token_file=_file(host, "not-the-token"))
    assert "not-the-token" not in str(error.value)


async def test_no_token_says_where_to_get_one(master: MasterDouble, host: Host) -> None:
    """Without credential and token the message names the file to copy."""
    with pytest.raises(UserError, match="join-token"):
        await host.start(join_token=None)


async def test_a_credential_that_is_not_known_any_more_is_traded_anew(master: MasterDouble, host: Host) -> None:
    """A master that refuses the credential is asked to let the agent in again."""
    host.start()
    await master.until(lambda: master.hellos)
    master.fail_session = 401
    await master.cut()
    await master.until(lambda: len(master.joins) == 2)
    master.fail_session = 0
    await master.until(lambda: len(master.hellos) == 2)


async def test_a_refusal_for_good_ends_the_agent(master: MasterDouble, host: Host) -> None:
    """A master that says that trying again will not help is believed, and its words are passed on."""
    master.refuse = SessionRefused("this master speaks protocol 9", retry=False)
    with pytest.raises(UserError, match="protocol 9"):
        await host.start()


async def test_two_agents_do_not_share_a_directory(master: MasterDouble, host: Host) -> None:
    """The second one is refused, naming the directory."""
    host.start()
    await master.until(lambda: master.hellos)
    first = host.task
    with pytest.raises(UserError, match="another agent works in"):
        await host.start()
    host.task = first


async def test_sigterm_then_sigkill(master: MasterDouble, host: Host) -> None:
    """A container that ignores SIGTERM is killed when its time is over."""
    host.start()
    polite, stubborn = spec(WAIT), spec(STUBBORN)
    await master.until(lambda: master.hellos)
    for task_spec in (polite, stubborn):
        await master.run(task_spec)
        await master.until(lambda name=task_spec.container_id: master.text(name) == "ready\n")
    await master.stop(polite.container_id, 60)
    await master.stop(stubborn.container_id, 0.2)
    for task_spec, number in ((polite, 15), (stubborn, 9)):
        await master.until(lambda name=task_spec.container_id: master.exited(name))
        exit = master.reports[task_spec.container_id].exit
        assert exit is not None
        assert exit.signal == number
        assert exit.reason.endswith("as asked")
        assert not exit.platform


async def test_a_start_that_fails_is_told_in_words(master: MasterDouble, host: Host) -> None:
    """A program that is not there is the request's fault; a slot that is not there is the platform's."""
    host.start()
    missing, slotless = spec("", argv=["/no/such/program"]), spec("", slots=[7])
    await master.until(lambda: master.hellos)
    for task_spec in (missing, slotless):
        await master.run(task_spec)
        await master.until(lambda name=task_spec.container_id: master.exited(name))
    program, slot = master.reports[missing.container_id].exit, master.reports[slotless.container_id].exit
    assert program is not None
    assert "/no/such/program" in program.reason
    assert not program.platform
    assert slot is not None
    assert "no slot 7" in slot.reason
    assert slot.platform


async def test_a_gang_whose_ports_are_in_use_is_not_started(master: MasterDouble, host: Host) -> None:
    """The platform's failure, by the agent of its first member: the next run has other ports. Others listen nowhere."""
    host.start()
    # Another run of this test on this machine has other ports.
    run = f"1.{uuid.uuid4()}.1"
    first, other = (spec("", allocation_id=run, members=2, rank=rank) for rank in (0, 1))
    port = choose_ports(first, set())["C10D_PORT"]
    await master.until(lambda: master.hellos)
    with socket.create_server(("127.0.0.1", port)):
        for task_spec in (first, other):
            await master.run(task_spec)
            await master.until(lambda name=task_spec.container_id: master.exited(name))
    occupied, ran = (master.reports[each.container_id].exit for each in (first, other))
    assert occupied is not None
    assert (occupied.platform, f"could not start: port {port}, " in occupied.reason) == (True, True)
    assert ran == Exit(code=0)


async def test_containers_of_another_generation_are_kept_until_they_are_named(master: MasterDouble, host: Host) -> None:
    """What an earlier generation of the cluster started runs on, and says so; it ends by a want that names it."""
    host.start()
    old, barrier = spec(WAIT), spec("")
    await master.until(lambda: master.hellos)
    await master.run(old)
    await master.until(lambda: master.text(old.container_id) == "ready\n")
    await host.stop()
    master.generation = 2
    master.wants.clear()
    host.start()
    await master.until(lambda: len(master.hellos) == 2)
    await master.run(barrier)
    await master.until(lambda: master.exited(barrier.container_id))
    assert (master.reports[old.container_id].generation, master.state(old.container_id)) == (1, "running")
    assert old.container_id not in master.gone
    await master.remove(old.container_id)
    await master.until(lambda: old.container_id in master.gone)


async def test_model_code_lies_in_the_work_directory(master: MasterDouble, host: Host) -> None:
    """Model code is fetched once by its hash and unpacked before the start."""
    digest = master.add_context({"train.py": "print('from', __file__.rsplit('/', 1)[-1])"})
    host.start()
    await master.until(lambda: master.hellos)
    for _ in range(2):
        task_spec = spec("", argv=["{python}", "train.py"], context_hash=digest)
        await master.run(task_spec)
        await master.until(lambda name=task_spec.container_id: master.exited(name))
        assert master.text(task_spec.container_id) == "from train.py\n"
    assert master.context_requests == 1


async def test_model_code_that_cannot_be_stored(master: MasterDouble, host: Host) -> None:
    """That start fails, as it would on a full disk, by the platform's fault: it is not tried here for ever."""
    digest = master.add_context({"train.py": "print('here')"})
    host.start()
    await master.until(lambda: master.hellos)
    cache = host.directory / "contexts"
    cache.rmdir()
    cache.touch()
    task_spec = spec("", context_hash=digest)
    await master.run(task_spec)
    await master.until(lambda: master.exited(task_spec.container_id))
    exit = master.reports[task_spec.container_id].exit
    assert exit is not None
    assert (exit.platform, exit.reason) == (True, "could not start: its model code cannot be stored: Not a directory")


async def test_model_code_that_the_master_does_not_have(master: MasterDouble, host: Host) -> None:
    """That start fails, and not by the script's fault."""
    host.start()
    task_spec = spec("", context_hash="0" * 64)
    await master.until(lambda: master.hellos)
    await master.run(task_spec)
    await master.until(lambda: master.exited(task_spec.container_id))
    exit = master.reports[task_spec.container_id].exit
    assert exit is not None
    assert "model code" in exit.reason
    assert exit.platform


async def test_a_wait_for_model_code_ends_with_the_want(master: MasterDouble, host: Host) -> None:
    """A start that waits for its code is given up when it is stopped."""
    digest = master.add_context({"a": "b"})
    master.fail_context = 503
    host.start()
    task_spec = spec("", context_hash=digest)
    await master.until(lambda: master.hellos)
    await master.run(task_spec)
    await master.until(lambda: master.context_requests)
    await master.until(lambda: master.state(task_spec.container_id) == "pulling")
    await master.stop(task_spec.container_id, 60)
    await master.until(lambda: master.exited(task_spec.container_id))
    exit = master.reports[task_spec.container_id].exit
    assert exit == Exit(reason="stopped before it was started")


async def test_the_exit_does_not_overtake_the_spool(master: MasterDouble, host: Host) -> None:
    """What a script left in its spool is with the master before its exit is; a torn line does not count."""
    host.start()
    task_spec = spec(SPOOLING)
    await master.until(lambda: master.hellos)
    master.fail_spool = 503
    await master.run(task_spec)
    await master.until(lambda: master.spool_refusals)
    assert not master.exited(task_spec.container_id)
    master.fail_spool = 0
    await master.until(lambda: master.exited(task_spec.container_id))
    exit = master.reports[task_spec.container_id].exit
    assert exit == Exit(code=0)
    records = master.spool[task_spec.container_id, "boot-1-2"]
    assert [(record["n"], record["kind"]) for record in records] == [(1, "metrics"), (2, "progress")]


async def test_a_spool_that_is_refused_is_declared_lost_in_words(master: MasterDouble, host: Host) -> None:
    """A master that is there and refuses is given up after the stated time, saying what was lost."""
    master.fail_spool = 400
    host.start(spool_patience_s=0.1)
    task_spec = spec(SPOOLING)
    await master.until(lambda: master.hellos)
    await master.run(task_spec)
    await master.until(lambda: master.exited(task_spec.container_id))
    exit = master.reports[task_spec.container_id].exit
    assert exit is not None
    assert exit.code == 0
    assert "1 metrics, 1 progress" in exit.spool_lost


async def test_what_is_to_end_does_not_wait_for_a_master_that_refuses_its_reports(
    master: MasterDouble, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill frees the slots soon, also where the reports of a task would be tried for many minutes."""
    monkeypatch.setattr(keeper, "_RETRY_BEFORE_END_S", 0.1)
    master.fail_spool = 500
    host.start()
    task_spec = spec(SPOOLING)
    await master.until(lambda: master.hellos)
    await master.run(task_spec)
    await master.until(lambda: master.spool_refusals)
    assert not master.exited(task_spec.container_id)
    await master.stop(task_spec.container_id, 0.0)
    await master.until(lambda: master.exited(task_spec.container_id))
    exit = master.reports[task_spec.container_id].exit
    assert exit is not None
    assert "1 metrics, 1 progress" in exit.spool_lost


async def test_full_logs_do_not_hold_up_anything(master: MasterDouble, host: Host) -> None:
    """Output of an ended container for which there is no room is said to be gone, and the exit is reported."""
    master.fail_logs = 507
    host.start()
    task_spec = spec("print('x' * 3_000_000)")
    await master.until(lambda: master.hellos)
    await master.run(task_spec)
    await master.until(lambda: master.exited(task_spec.container_id))
    assert master.missing == {(task_spec.container_id, "stdout"): 3_000_001}


async def test_what_the_agent_adds(master: MasterDouble, host: Host) -> None:
    """A task finds the master, its agent, its slots and free ports in its environment."""
    host.start()
    code = "import os, json; print(json.dumps({k: v for k, v in os.environ.items()}))"
    task_spec = spec(code, slots=[1], env={"C10D_PORT": "777"})
    await master.until(lambda: master.hellos)
    await master.run(task_spec)
    await master.until(lambda: master.exited(task_spec.container_id))
    env = json.loads(master.text(task_spec.container_id))
    expected = {
        "DET_MASTER": master.url,
        "DET_MASTER_HOST": "127.0.0.1",
        "DET_MASTER_PORT": master.url.rpartition(":")[2],
        "DET_CLUSTER_ID": CLUSTER,
        "DET_AGENT_ID": "box",
        "DET_SLOT_IDS": "[1]",
        "C10D_PORT": "777",
        "CUDA_VISIBLE_DEVICES": "",
    }
    assert {name: env[name] for name in expected} == expected
    assert 12350 <= int(env["DTRAIN_SSH_PORT"]) < 16000


def _file(host: Host, content: str) -> object:
    host.directory.mkdir(parents=True, exist_ok=True)
    path = host.directory / "token"
    path.write_text(content)
    return path


async def test_a_hook_is_run_when_the_connection_is_lost(master: MasterDouble, host: Host) -> None:
    """Once for each that stood; one that does not end, or cannot be run, holds nothing up."""
    mark = host.directory.parent / "lost"
    host.start(hooks={"on_connection_lost": ("sh", "-c", f"echo lost >> {mark}")})
    for times in (1, 2):
        await master.until(lambda: len(master.hellos) == times)  # noqa: B023
        await master.cut()
        await master.until(lambda: len(master.hellos) > times)  # noqa: B023
        await master.until(lambda: mark.exists() and mark.read_text() == "lost\n" * times)  # noqa: B023
    await host.stop()
    endless = host.directory.parent / "endless"
    host.start(hooks={"on_connection_lost": ("sh", "-c", f"touch {endless}; exec sleep 1000")})
    for times in (4, 5):
        await master.until(lambda: len(master.hellos) == times)  # noqa: B023
        await master.cut()
    await master.until(endless.exists)
    await master.until(lambda: len(master.hellos) == 6)
    await host.stop()
    host.start(hooks={"on_connection_lost": ("/not/there",)})
    await master.until(lambda: len(master.hellos) == 7)
    await master.cut()
    await master.until(lambda: len(master.hellos) == 8)


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), BrokenPipeError(), ValueError("closed")])
def test_a_log_that_takes_nothing_stops_no_work(error: Exception) -> None:
    """What an agent says of a failure was a failure itself, and ended what kept a container."""

    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise error

        def flush(self) -> None:
            raise error

    print("a line", file=UnfailingStream(Full()), flush=True)
