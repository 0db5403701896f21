"""``tenax up``, ``down`` and ``status``: the cluster of this machine."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Callable, Dict, List, Optional, Sequence, TypeVar
from urllib.parse import urlsplit

import click

from tenax.cli.console import exits, output
from tenax.cli.console.options import json_option
from tenax.host.runtimes import CHOICES, RUNTIMES
from tenax.local.requirements import missing_modules, refuse_without_servers
from tenax.local.supervise.python import refuse_old_python

if TYPE_CHECKING:
    from tenax.client.agents import Agent
    from tenax.client.connection.session import Session
    from tenax.client.users import User
    from tenax.local.state_dir import StateDir
    from tenax.local.supervise.cluster import LocalCluster

Function = TypeVar("Function", bound=Callable[..., object])

#: How long ``up`` waits for the agent to be seen by the master.
_AGENT_S = 20.0
#: How long a master beside us may take for an answer; one that hangs is stopped all the same.
_ANSWER_S = 15.0
_POLL_S = 0.1
#: How long it asks the scheduler why jobs wait.
_EXPLAINED_S = 3.0
#: Of users, in one sentence.
_NAMES = 5
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def directory_option(function: Function) -> Function:
    """``--dir``: where the cluster is kept."""
    return click.option(
        "--dir",
        "directory",
        type=click.Path(path_type=Path),
        help="Directory of the cluster (default: TENAX_DIR, or ~/.tenax; for root /var/lib/tenax).",
    )(function)


def state_of(directory: Optional[Path]) -> StateDir:
    """The state directory that is meant."""
    from tenax.local.state_dir import StateDir, default_root

    return StateDir(directory.expanduser().absolute() if directory is not None else default_root())


@click.command()
@directory_option
@click.option("--host", metavar="ADDRESS", help="Address to listen on (127.0.0.1: this machine alone).")
@click.option(
    "--port", type=click.IntRange(0, 65535), metavar="PORT", help="Port to listen on (8080; 0: any free one)."
)
@click.option(
    "--slots", metavar="N|auto", callback=lambda *given: _slots(given[2]), help="Slots that the agent offers."
)
@click.option("--agent/--no-agent", default=None, help="Whether to run an agent here as well.")
@click.option(
    "--runtime",
    type=click.Choice(CHOICES),
    help="What tasks run in: plain processes (the default) or containers.",
)
@click.option(
    "--config", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Settings file of the master (YAML)."
)
@click.option(
    "--embedded-database",
    is_flag=True,
    help="Go back to the database that Tenax brings along, after one of your own (db.url).",
)
@click.option("--foreground", is_flag=True, help="Stay in the foreground until Ctrl-C, for service managers.")
def up(
    directory: Optional[Path],
    host: Optional[str],
    port: Optional[int],
    slots: Optional[str],
    agent: Optional[bool],
    runtime: Optional[str],
    config: Optional[Path],
    embedded_database: bool,
    foreground: bool,
) -> int:
    """Start a cluster on this machine: database, master and an agent, supervised by one process in the background.

    Everything is kept in one directory. Options given here are remembered there, so that a later `tenax up` uses the
    same address; tasks that were left running are picked up again.
    """
    refuse_old_python()
    refuse_without_servers()
    from tenax.local.supervise.control import prepare

    given: dict[str, object] = {"host": host, "port": port, "slots": slots, "agent": agent, "runtime": runtime}
    given["config"] = str(config.absolute()) if config is not None else None
    given["own_database"] = False if embedded_database else None
    state = state_of(directory)
    cluster, lock = prepare(state, given)
    return _run_here(cluster, lock) if foreground else start(cluster, lock)


def start(cluster: LocalCluster, lock: int, *, hints: bool = True) -> int:
    """Start a prepared cluster in the background, and tell how to use it; an exit code."""
    from tenax.local.supervise.cluster import notices
    from tenax.local.supervise.control import launch, wait_until_up

    state = cluster.state
    copies = set(state.copies())
    launch(cluster, lock)
    try:
        wait_until_up(state, lambda message: output.say(f"  {message}"))
    except KeyboardInterrupt:
        output.say(f"It keeps starting in the background: tenax status{_dir_flag(state)}")
        raise
    agents = _agents_of(cluster) if cluster.options.agent else []
    output.say(f"The cluster is up: {cluster.url}")
    for copy in sorted(set(state.copies()) - copies):
        output.say(f"  its database was upgraded; a copy from before: {copy}")
    if cluster.options.agent and not agents:
        _warn_of_missing_agent(state)
    for agent in agents:
        output.say(f"  agent {agent.id} {what_it_offers(agent)}")
    for line in how_to_have_more_slots(agents, cluster.options.slots):
        output.say(f"  {line}")
    for notice in notices(cluster):
        output.warn(notice)
    for line in _what_cannot_start(cluster, joined=bool(agents) or not cluster.options.agent):
        output.warn(line)
    if hints:
        _show_next_steps(cluster)
    return exits.FAILED if cluster.options.agent and not agents else exits.OK


def _shares_account(runtime: str) -> bool:
    return runtime in RUNTIMES and RUNTIMES[runtime].shares_account


def _say_who_shares_a_uid(cluster: LocalCluster) -> None:
    """Once, where somebody looks who can change it: they can do to one another's tasks what they like."""
    from tenax.client.users import list_users
    from tenax.errors import TenaxError

    users: List[User] = []
    if os.geteuid() == 0:
        # Nobody else's agent runs tasks as others.
        with contextlib.suppress(TenaxError), session_of(cluster.state, cluster.url) as session:
            users = [user for user in list_users(session) if user.active]
    for line in who_shares_a_uid(users, of_agent=_shares_account(cluster.options.runtime)):
        output.say(f"  {line}")


def who_shares_a_uid(users: Sequence[User], *, of_agent: bool) -> List[str]:
    """Sentences about users whose tasks are not kept apart.

    ``of_agent``: tasks of users without a uid are processes of this account.
    """
    import getpass

    by_uid: Dict[int, List[str]] = {}
    for user in users:
        if user.agent_identity is not None:
            by_uid.setdefault(user.agent_identity.uid, []).append(user.username)
    unmapped = [user.username for user in users if user.agent_identity is None]
    lines = []
    if of_agent and (unmapped or not by_uid):
        account = getpass.getuser()
        whose = f"tasks of {_and(unmapped)}" if by_uid else "tasks"
        lines.append(f"{whose} are processes of {account}: whoever may submit can do what {account} can")
    for uid, names in sorted(by_uid.items()):
        if len(names) > 1:
            lines.append(f"tasks of {_and(names)} all run as uid {uid}: each of them can read and end the others'")
    return lines


def _and(names: Sequence[str]) -> str:
    shown = [*names[:_NAMES], f"{len(names) - _NAMES} more"] if len(names) > _NAMES else list(names)
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def _show_next_steps(cluster: LocalCluster) -> None:
    from tenax.client.connection.address import remember

    state = cluster.state
    remember(cluster.url, state.root)
    if cluster.options.agent:
        _say_who_shares_a_uid(cluster)
    output.say(f"  user and password are in {state.credentials}; commands on this machine find them there")
    is_default = state.root == state_of(None).root
    meant = os.environ.get("TENAX_DIR")
    if not is_default and meant:
        output.warn(
            f"TENAX_DIR is {meant}, so commands mean the cluster there and not this one: export TENAX_DIR={state.root}"
        )
    elif not is_default:
        output.say(
            "  commands mean this cluster until another one is started or logged in at; to make sure: "
            f"export TENAX_DIR={state.root}"
        )
    if cluster.certificate is None and cluster.settings.host not in _LOOPBACK:
        output.warn(
            "Other machines reach it without TLS: passwords and tokens can be read on the way (docs: operations)."
        )
    elsewhere = os.environ.get("DET_MASTER")
    if elsewhere and not _is_here(elsewhere, cluster):
        output.warn(
            f"DET_MASTER is {elsewhere}, so commands go there and not here: unset DET_MASTER to use this cluster."
        )
    output.say(f"The web page: tenax open, or {cluster.url}/ui/")
    down = "tenax down" if is_default else f"tenax down --dir {state.root}"
    output.say(f"Next: tenax experiment create CONFIG DIRECTORY -f. To stop it: {down}.")


def _is_here(address: str, cluster: LocalCluster) -> bool:
    """Whether an address is that of this cluster, by whatever name of this machine."""
    from tenax.client.connection.address import canonical
    from tenax.errors import InvalidInput

    try:
        named, ours = urlsplit(canonical(address)), urlsplit(canonical(cluster.url))
    except InvalidInput:
        return False
    return named.port == ours.port and (named.hostname == ours.hostname or named.hostname in _LOOPBACK)


def _run_here(cluster: LocalCluster, lock: int) -> int:
    from tenax.local.supervise.control import supervise

    output.say(f"Starting in the foreground at {cluster.url}; Ctrl-C stops it.")
    return supervise(cluster.state, lock, to_terminal=sys.stderr.isatty())


def _agents_of(cluster: LocalCluster) -> List[Agent]:
    """The agents that the master sees, once it sees one that it can use."""
    from tenax.client.agents import list_agents
    from tenax.errors import TenaxError

    until = time.monotonic() + _AGENT_S
    with session_of(cluster.state, cluster.url) as session:
        while time.monotonic() < until:
            try:
                agents = list_agents(session)
            except TenaxError as error:
                output.warn(str(error))
                return []
            joined = [agent for agent in agents if agent.connected]
            if joined or _agent_keeps_ending(cluster.state):
                return joined
            time.sleep(_POLL_S)
    return []


def _what_cannot_start(cluster: LocalCluster, *, joined: bool) -> List[str]:
    """Jobs that wait although everything is up and can never start with what the cluster has, each with its reason.

    ``joined``: the agent of this machine has.
    """
    from tenax.client.agents import list_agents
    from tenax.errors import TenaxError

    with contextlib.suppress(TenaxError), session_of(cluster.state, cluster.url) as session:
        # Whoever is away may come back, and what waits for somebody to act may wait for that alone.
        whole = joined and all(agent.connected for agent in list_agents(session))
        waiting = _stuck(session, ("change", "ask") if whole else ("change",))
        more = [f"and {len(waiting) - _NAMES} more: tenax queue list"] if len(waiting) > _NAMES else []
        return waiting[:_NAMES] + more
    return []


def _stuck(session: Session, classes: Sequence[str]) -> List[str]:
    """Jobs that are of these classes by what the scheduler makes of the agents of now: reasons in the queue may be
    those from before the cluster came up, and what begins anew has none for a moment."""
    from tenax.client.jobs import explain_job, list_jobs
    from tenax.errors import TenaxError

    until = time.monotonic() + _EXPLAINED_S
    while True:
        stuck, silent = [], False
        for job in list_jobs(session):
            if job.state != "QUEUED" or job.wait_class == "wait" or time.monotonic() > until:
                continue
            with contextlib.suppress(TenaxError):
                explained = explain_job(session, job.id)
                silent |= not explained.reason
                if explained.wait_class in classes:
                    stuck.append(f"{job.kind} {job.entity_id} ({job.name}): {explained.reason}")
        if not silent or time.monotonic() > until:
            return stuck
        time.sleep(_POLL_S)


def session_of(state: StateDir, url: str) -> Session:
    """A session with the cluster of that directory, whatever the environment says."""
    from tenax.client.connection.session import Session

    return Session(url, local=state, read_s=_ANSWER_S)


def _agent_keeps_ending(state: StateDir) -> bool:
    from tenax.local.state_dir import number_of
    from tenax.local.supervise.glance import glance

    return number_of(glance(state).services().get("agent", {}), "restarts") >= 2


def _warn_of_missing_agent(state: StateDir) -> None:
    from tenax.local.supervise.logs import tail

    output.warn(f"The agent has not joined yet, so nothing can run. The end of {state.log('agent')}:")
    output.say(tail(state.log("agent"), 8))


def what_it_offers(agent: Agent) -> str:
    """The end of a sentence about it: its slots, or that nothing starts there for now."""
    if agent.draining or not agent.enabled:
        state = "drains" if agent.draining else "is disabled"
        return f"{state} and takes nothing new: tenax agent enable {agent.id}"
    kinds = sorted({slot.kind for slot in agent.slots})
    count = len(agent.slots)
    return f"offers {count} {'/'.join(kinds)} slot{'' if count == 1 else 's'}" if count else "offers no slots"


def how_to_have_more_slots(agents: Sequence[Agent], offered: str) -> List[str]:
    """A sentence where a machine without GPUs offers what nobody chose, or nothing. ``offered``: of ``tenax up``."""
    kinds = {slot.kind for agent in agents for slot in agent.slots}
    again = "tenax down && tenax up --slots 4"
    if agents and not kinds:
        return [f"what needs a slot waits; to offer some here: {again}"]
    if kinds == {"cpu"} and offered == "auto":
        return [f"one slot is one trial at a time, with all cores; for four at once: {again}"]
    return []


@click.command()
@directory_option
@click.option("--kill-tasks", is_flag=True, help="End running tasks as well; they resume from their checkpoints.")
def down(directory: Optional[Path], kill_tasks: bool) -> int:
    """Stop the servers of the cluster on this machine.

    Running tasks keep running, and the next `tenax up` picks them up again. --kill-tasks ends them, as if the machine
    had been switched off.
    """
    refuse_old_python()
    if kill_tasks:
        refuse_without_servers()
    from tenax.local.supervise.beginning import wait_for_beginning
    from tenax.local.supervise.ending import stop
    from tenax.local.supervise.glance import glance

    state = state_of(directory)
    seen = glance(state)
    if not seen.alive:
        for identity in wait_for_beginning(state):
            output.warn(f"Process {identity.pid} is tenax up for {state.root}, and does not go on: end it.")
        seen = glance(state)
    if state.owner_elsewhere() is not None:
        output.fail(_of_another(state))
        return exits.FAILED
    if not seen.alive:
        output.say(f"No cluster is up in {state.root}.{_one_elsewhere(state)}")
    else:
        if seen.phase == "up":
            _say_what_goes_on(state, seen.url, kill_tasks)
        stop(state)
        output.say(f"The cluster in {state.root} is stopped.")
    if kill_tasks:
        ended = end_tasks(state)
        output.say(f"{ended} task{'' if ended == 1 else 's'} ended." if ended else "No task was left running.")
    return exits.OK


def _of_another(state: StateDir) -> str:
    from tenax.client.connection.listener import name_of

    owner = state.owner_elsewhere()
    whose = name_of(owner) if owner is not None else "another user"
    return f"The cluster in {state.root} is that of {whose}, who alone may see how it is and stop it."


def _one_elsewhere(state: StateDir) -> str:
    from tenax.client.connection.address import started_elsewhere

    directory = started_elsewhere(state.root)
    return f" The one that you started last is in {directory}: add --dir {directory}." if directory is not None else ""


def _say_what_goes_on(state: StateDir, url: str, kill_tasks: bool) -> None:
    from tenax.cli.local.left_running import rented_machines, running_tasks
    from tenax.errors import TenaxError

    with contextlib.suppress(TenaxError), session_of(state, url) as session:
        for line in rented_machines(session):
            output.warn(line)
        for line in [] if kill_tasks else running_tasks(session):
            output.say(line)


def end_tasks(state: StateDir) -> int:
    """End what the agent of this directory left running; how many there were."""
    from tenax.local.running_tasks import end_all

    return end_all(state.agent)


@click.command()
@directory_option
@json_option
def status(directory: Optional[Path], as_json: bool) -> int:
    """Show the cluster on this machine: its address and its servers.

    The exit code is 0 while it is up and 3 otherwise.
    """
    refuse_old_python()
    from tenax.local.supervise.glance import glance

    state = state_of(directory)
    seen = glance(state)
    if as_json:
        output.document({**seen.document, "state": seen.phase, "dir": str(state.root)})
        return exits.OK if seen.phase == "up" else exits.UNREACHABLE
    rows = [("cluster", output.state(seen.phase)), ("directory", str(state.root))]
    if seen.alive:
        rows += [("address", seen.url or "not known yet"), ("process", seen.process)]
    if seen.message:
        rows.append(("message", seen.message))
    output.pairs(rows)
    if seen.alive:
        click.echo()
        _show_services(state)
        _warn_of_what_waits(state)
    elif state.owner_elsewhere() is not None:
        output.say(_of_another(state))
    elif not seen.document:
        output.say(f"No cluster was ever started here. Start one with: tenax up.{_one_elsewhere(state)}")
    return exits.OK if seen.phase == "up" else exits.UNREACHABLE


def _warn_of_what_waits(state: StateDir) -> None:
    if missing_modules():
        return
    from tenax.errors import TenaxError
    from tenax.local.supervise.cluster import notices, plan
    from tenax.local.supervise.options import load_options

    # Settings that cannot be read any more are the next start's concern.
    with contextlib.suppress(TenaxError):
        for notice in notices(plan(state, load_options(state))):
            output.warn(notice)


def _show_services(state: StateDir) -> None:
    from tenax.local.state_dir import number_of, text_of
    from tenax.local.supervise.glance import glance

    columns = [
        output.TableColumn("SERVER"),
        output.TableColumn("STATE", state=True),
        output.TableColumn("PROCESS", right=True),
        output.TableColumn("RESTARTS", right=True),
        output.TableColumn("LOG"),
    ]
    rows = []
    for name, service in glance(state).services().items():
        log = state.postgres / "postgres.log" if name == "postgres" else state.log(name)
        pid = number_of(service, "pid")
        rows.append(
            [name, text_of(service, "state"), str(pid) if pid else "", str(number_of(service, "restarts")), str(log)]
        )
    output.table(columns, rows)


def _slots(given: Optional[str]) -> Optional[str]:
    if given is None or given == "auto" or given.isdigit():
        return given
    raise click.BadParameter("write 'auto' or how many slots to offer: 0, 1, 2, ...")


def _dir_flag(state: StateDir) -> str:
    return "" if state.root == state_of(None).root else f" --dir {state.root}"
