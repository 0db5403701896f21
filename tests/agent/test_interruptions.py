"""Things that break: the connection, the agent, the master. Containers run on, and nothing they said is lost."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

from tenax.wire.agents import Exit
from tests.agent.host import SPOOLING, WAIT, Host, spec
from tests.agent.master_double import CLUSTER, MasterDouble

#: Prints numbers until a file appears, then ends with a code.
COUNT = """
import os, sys, time
n = 0
while not os.path.exists({path!r}):
    print(n, flush=True)
    n += 1
    time.sleep(0.002)
print('end', n, flush=True)
sys.exit(4)
"""


def numbers(text: str) -> bool:
    """Whether the output is complete and in order."""
    *counted, end = text.splitlines()
    return counted == [str(n) for n in range(len(counted))] and end == f"end {len(counted)}"


async def test_a_connection_that_breaks_is_made_again(master: MasterDouble, host: Host) -> None:
    """After each break the full state is said again, and wants go on being obeyed."""
    host.start()
    task_spec = spec(WAIT)
    await master.until(lambda: master.hellos)
    await master.run(task_spec)
    await master.until(lambda: master.text(task_spec.container_id) == "ready\n")
    for count in (2, 3, 4):
        await master.cut()
        await master.until(lambda count=count: len(master.hellos) == count)
        states = {report.container_id: report.state for report in master.hellos[-1].containers}
        assert states == {task_spec.container_id: "running"}
    await master.stop(task_spec.container_id, 60)
    await master.until(lambda: master.exited(task_spec.container_id))


async def test_an_agent_killed_and_restarted(master: MasterDouble, host: Host, tmp_path: Path) -> None:
    """kill -9 of the agent: the container runs on, the next agent finds it, its output is whole, its exit known."""
    end = tmp_path / "end"
    task_spec = spec(COUNT.format(path=str(end)))
    await host.spawn()
    await master.until(lambda: master.hellos)
    await master.run(task_spec)
    name = task_spec.container_id
    await master.until(lambda: "\n3\n" in master.text(name) and master.pid(name))
    pid = master.pid(name)
    await host.kill()
    seen = len(master.text(name))
    await host.spawn()
    await master.until(lambda: len(master.hellos) == 2 and len(master.text(name)) > seen)
    assert [(r.container_id, r.state, r.pid) for r in master.hellos[1].containers] == [(name, "running", pid)]
    end.touch()
    await master.until(lambda: master.exited(name))
    assert master.reports[name].exit == Exit(code=4, reason="exited with code 4")
    assert numbers(master.text(name))


async def test_a_container_that_ends_while_no_agent_runs(master: MasterDouble, host: Host, tmp_path: Path) -> None:
    """Its exit, the rest of its output and its spool are found by the next agent."""
    end = tmp_path / "end"
    task_spec = spec(SPOOLING + COUNT.format(path=str(end)))
    await host.spawn()
    await master.until(lambda: master.hellos)
    await master.run(task_spec)
    name = task_spec.container_id
    await master.until(lambda: "\n3\n" in master.text(name) and master.pid(name))
    pid = master.pid(name)
    assert pid is not None
    waiting = os.pidfd_open(pid)
    await host.kill()
    end.touch()
    await _ended(waiting)
    await host.spawn()
    await master.until(lambda: master.exited(name))
    assert master.reports[name].exit == Exit(code=4, reason="exited with code 4")
    assert numbers(master.text(name))
    assert [record["n"] for record in master.spool[name, "boot-1-2"]] == [1, 2]


async def test_a_master_that_is_away_while_the_container_ends(master: MasterDouble, host: Host, tmp_path: Path) -> None:
    """Nothing is declared lost while the master is away: all of it arrives when it is back."""
    end = tmp_path / "end"
    task_spec = spec(SPOOLING + COUNT.format(path=str(end)))
    host.start(spool_patience_s=0)
    await master.until(lambda: master.hellos)
    await master.run(task_spec)
    name = task_spec.container_id
    await master.until(lambda: "\n3\n" in master.text(name) and master.pid(name))
    pid = master.pid(name)
    assert pid is not None
    waiting = os.pidfd_open(pid)
    await master.away()
    end.touch()
    await _ended(waiting)
    assert not master.exited(name)
    await master.back()
    await master.until(lambda: master.exited(name))
    assert master.reports[name].exit == Exit(code=4, reason="exited with code 4")
    assert numbers(master.text(name))
    assert [record["n"] for record in master.spool[name, "boot-1-2"]] == [1, 2]


async def test_another_cluster_at_the_masters_address(master: MasterDouble, host: Host) -> None:
    """Its master's place is taken by another cluster's: nothing is done for it, and the container runs on."""
    host.start()
    task_spec = spec(WAIT)
    await master.until(lambda: master.hellos)
    await master.run(task_spec)
    await master.until(lambda: master.text(task_spec.container_id) == "ready\n")
    ours = dict(master.wants)
    master.cluster_id = "22222222-2222-2222-2222-222222222222"
    await master.stop(task_spec.container_id, 0)
    await master.cut()
    await master.until(lambda: len(master.hellos) == 3)
    master.cluster_id, master.wants = CLUSTER, ours
    await master.until(lambda: len(master.hellos) == 4)
    assert [report.state for report in master.hellos[-1].containers] == ["running"]


async def test_an_agent_told_to_end_leaves_its_containers(master: MasterDouble, host: Host) -> None:
    """SIGTERM ends the agent with status 0 and nothing else."""
    process = await host.spawn()
    task_spec = spec(WAIT)
    await master.until(lambda: master.hellos)
    await master.run(task_spec)
    name = task_spec.container_id
    await master.until(lambda: master.text(name) == "ready\n" and master.pid(name))
    process.send_signal(signal.SIGTERM)
    assert await process.wait() == 0
    pid = master.pid(name)
    assert pid is not None
    os.kill(pid, 0)
    await host.spawn()
    await master.until(lambda: len(master.hellos) == 2)
    assert [report.pid for report in master.hellos[1].containers] == [pid]


async def test_an_agent_killed_while_a_stop_runs_out(master: MasterDouble, host: Host) -> None:
    """The time of a stop counts from the SIGTERM, also for the agent that comes after."""
    task_spec = spec(
        "import signal; signal.signal(signal.SIGTERM, lambda *_: print('told', flush=True))\n"
        "print('ready', flush=True)\n"
        "while True: signal.pause()"
    )
    await host.spawn()
    await master.until(lambda: master.hellos)
    await master.run(task_spec)
    name = task_spec.container_id
    await master.until(lambda: master.text(name) == "ready\n")
    await master.stop(name, 1.0)
    await master.until(lambda: "told" in master.text(name))
    await host.kill()
    await host.spawn()
    await master.until(lambda: master.exited(name))
    exit = master.reports[name].exit
    assert exit is not None
    assert exit.signal == 9
    assert master.text(name) == "ready\ntold\n"


async def test_no_secret_of_the_agent_reaches_a_task(master: MasterDouble, host: Host) -> None:
    """Neither the agent's environment nor its credential can be read by a task's environment."""
    task_spec = spec("import os; print(os.environ.get('SECRET'), [v for v in os.environ.values() if 'tnxg' in v])")
    await host.spawn()
    await master.until(lambda: master.hellos)
    await master.run(task_spec)
    await master.until(lambda: master.exited(task_spec.container_id))
    assert master.text(task_spec.container_id) == "None []\n"


async def _ended(pidfd: int) -> None:
    done = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(pidfd, done.set)
    try:
        async with asyncio.timeout(240):
            await done.wait()
    finally:
        loop.remove_reader(pidfd)
        os.close(pidfd)


async def test_what_was_given_up_delivers_before_it_is_removed(master: MasterDouble, host: Host) -> None:
    """A master that counted the machine as lost wants the container gone: it is ended, and its reports and its output
    are with the master before nothing is left of it."""
    host.start()
    task_spec = spec(SPOOLING + "\nimport time\nprint('kept', flush=True)\ntime.sleep(600)\n")
    await master.until(lambda: master.hellos)
    await master.run(task_spec)
    name = task_spec.container_id
    await master.until(lambda: "kept" in master.text(name))
    await master.remove(name)
    await master.until(lambda: name in master.gone)
    assert [record["n"] for record in master.spool[name, "boot-1-2"]] == [1, 2]


async def test_a_database_restored_while_the_container_ran_gets_all_again(
    master: MasterDouble, host: Host, tmp_path: Path
) -> None:
    """Output and reports that were acknowledged and are not there any more; the exit waits until they are."""
    end = tmp_path / "end"
    task_spec = spec(SPOOLING + COUNT.format(path=str(end)))
    host.start()
    await master.until(lambda: master.hellos)
    await master.run(task_spec)
    name = task_spec.container_id
    await master.until(lambda: "\n3\n" in master.text(name) and master.pid(name))
    spools = host.directory / "containers" / name / "run" / "spool"
    # As the task itself notes what the master took.
    acked = len(_whole_lines(spools / "boot-1-2.jsonl"))
    (spools / "boot-1-2.ack").write_text(f'{{"n": 2, "offset": {acked}}}')
    pid = master.pid(name)
    assert pid is not None
    waiting = os.pidfd_open(pid)
    await master.away()
    end.touch()
    await _ended(waiting)
    master.output.clear()
    await master.back()
    await master.until(lambda: master.exited(name))
    assert numbers(master.text(name))
    assert [record["n"] for record in master.spool[name, "boot-1-2"]] == [1, 2]
    assert master.reports[name].exit == Exit(code=4, reason="exited with code 4")


async def test_a_database_restored_after_the_end_gets_all_again(master: MasterDouble, host: Host) -> None:
    """An exit that was reported is reported anew, once output and reports are there anew."""
    host.start()
    task_spec = spec(SPOOLING + "print('all of it')")
    await master.until(lambda: master.hellos)
    await master.run(task_spec)
    name = task_spec.container_id
    await master.until(lambda: master.exited(name))
    await master.away()
    master.output.clear()
    master.spool.clear()
    del master.reports[name]
    await master.back()
    await master.until(lambda: master.exited(name))
    assert master.states[name][-2:] == ["running", "exited"]
    assert master.text(name) == "all of it\n"
    assert [record["n"] for record in master.spool[name, "boot-1-2"]] == [1, 2]


def _whole_lines(path: Path) -> bytes:
    content = path.read_bytes()
    return content[: content.rfind(b"\n") + 1]
