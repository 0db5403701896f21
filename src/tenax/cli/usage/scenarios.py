"""What ``tenax simulate --with`` says, as scenarios: ``reservation=on,agents=+2x8``."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Callable, Dict, List, Optional, Tuple

import click

from tenax.config.problems import nearest
from tenax.config.quotas import NamedIds, by_number, parse_quotas, people_of
from tenax.config.trace import MAX_SLOTS
from tenax.errors import InvalidInput
from tenax.ids import AgentId, PoolName
from tenax.scheduler.registry import POLICIES
from tenax.scheduler.simulation.replay import NamedQuotas, Scenario
from tenax.scheduler.simulation.trace import Trace, TraceAgent
from tenax.scheduler.snapshot import Fitting, PoolRules

MAX_MACHINES = 20_000
_MACHINES = re.compile(r"([+-]?)([0-9]{1,9})x([0-9]{1,9})")
_SWITCHES = {"on": True, "true": True, "yes": True, "off": False, "false": False, "no": False}
_NAMES = ("policy", "preemption", "reservation", "fitting", "uneven_gangs", "agents", "quotas")


def scenario(changes: str, base: Scenario, trace: Trace) -> Scenario:
    """``base`` with changes, which are its name. Raises UsageError."""
    changed = replace(base, name=changes)
    seen: List[str] = []
    for part in changes.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if name not in _NAMES or not equals:
            near = nearest(name, list(_NAMES))
            hint = f" Did you mean {near}?" if near else ""
            raise click.UsageError(
                f"--with {changes!r}: {part.strip()!r} is no change. Write NAME=VALUE, more after a comma. "
                f"The names are {', '.join(_NAMES)}.{hint}"
            )
        if name in seen:
            raise click.UsageError(f"--with {changes!r} gives {name} twice: write --with once for each scenario.")
        seen.append(name)
        if name == "agents":
            changed = replace(changed, agents=with_machines(changed.agents, value, trace))
        elif name == "quotas":
            changed = replace(changed, quotas=None if value == "none" else quotas_from(Path(value), trace))
        else:
            rule = _rule(name, value)
            changed = replace(changed, rules={pool: rule(its) for pool, its in changed.rules.items()})
    return changed


def _rule(name: str, value: str) -> Callable[[PoolRules], PoolRules]:
    """A change of a pool's rules. Raises UsageError."""
    if name == "policy":
        _check(name, value, list(POLICIES))
        return lambda rules: replace(rules, policy=value)
    if name == "fitting":
        _check(name, value, [each.value for each in Fitting])
        return lambda rules: replace(rules, fitting=Fitting(value))
    _check(name, value.lower(), list(_SWITCHES), "on or off")
    switch = _SWITCHES[value.lower()]
    if name == "preemption":
        return lambda rules: replace(rules, preemption=switch)
    if name == "reservation":
        return lambda rules: replace(rules, reservation=switch)
    return lambda rules: replace(rules, uneven_gangs=switch)


def _check(name: str, value: str, legal: List[str], words: str = "") -> None:
    if value not in legal:
        raise click.UsageError(f"{name} is {value!r}: it can be {words or ' or '.join(legal)}.")


def with_machines(agents: Tuple[TraceAgent, ...], text: str, trace: Trace) -> Tuple[TraceAgent, ...]:
    """``16x8``: these and no others, sixteen of eight slots; ``+2x8``: two more; ``-1x8``: one less. Raises
    UsageError."""
    pools = sorted(trace.rules)
    parsed = _MACHINES.fullmatch(text.replace(" ", ""))
    if parsed is None:
        raise click.UsageError(f"agents is {text!r}: write 16x8 (sixteen of eight slots), +2x8 or -1x8.")
    if len(pools) != 1:
        raise click.UsageError(f"agents are of one pool: choose it with --pool ({', '.join(pools)}).")
    sign, count, slots = parsed[1], int(parsed[2]), int(parsed[3])
    if count * slots > MAX_SLOTS or count > MAX_MACHINES:
        raise click.UsageError(f"agents is {text!r}: at most {MAX_MACHINES} agents, and {MAX_SLOTS} slots in all.")
    if sign == "-":
        leaving = [agent.id for agent in agents if agent.slots == slots][-count:] if count else []
        if len(leaving) < count:
            there = sum(agent.slots == slots for agent in agents)
            raise click.UsageError(f"agents is {text!r}: there are {there} of {slots} slots.")
        return tuple(agent for agent in agents if agent.id not in leaving)
    kept = agents if sign else ()
    taken = {agent.id for agent in kept}
    # Of the make of the first that there is.
    like = agents[0] if agents else TraceAgent(AgentId(""), PoolName(pools[0]), slots)
    like = replace(like, pool=PoolName(pools[0]), slots=slots, devices=like.devices[:1] * slots)
    names = (AgentId(f"new-{number}") for number in range(1, count + len(taken) + 1))
    new = [replace(like, id=name) for name in names if name not in taken][:count]
    return (*kept, *new)


def quotas_from(file: Path, trace: Trace) -> NamedQuotas:
    """A quota file. Raises UsageError, InvalidInput."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"quotas={file}: the file cannot be read: {error}") from None
    return quotas_of(text, trace)


def quotas_of(text: str, trace: Trace) -> NamedQuotas:
    """Quotas of those who worked and those whom the text names. Raises InvalidInput."""
    file, lines = parse_quotas(text)
    users = _numbers([attempt.user for attempt in trace.attempts], people_of(file))
    workspaces = _numbers([attempt.workspace for attempt in trace.attempts], list(file.workspaces))
    groups = _numbers([group for names in trace.groups.values() for group in names], list(file.groups))
    ids = NamedIds(_lower(users), _lower(workspaces), _lower(groups))
    spelled = {name.lower(): number for name, number in users.items()}
    members = {user: spelled[user.lower()] for user in trace.groups if user.lower() in spelled}
    return NamedQuotas(by_number(file, lines, ids), {**users, **members}, workspaces, groups)


def unknown(named: NamedQuotas, trace: Trace) -> List[str]:
    """Whom quotas name and the trace has no work of: users, workspaces, groups."""
    people = {attempt.user.lower() for attempt in trace.attempts}
    workspaces = {attempt.workspace.lower() for attempt in trace.attempts}
    groups = {group.lower() for user, names in trace.groups.items() if user.lower() in people for group in names}
    limited = {*named.quotas.users, *(user for user, _ in named.quotas.associations)}
    kinds = (
        (named.users, limited, people),
        (named.workspaces, set(named.quotas.workspaces), workspaces),
        (named.groups, set(named.quotas.groups), groups),
    )
    return sorted(
        name
        for numbers, bound, there in kinds
        for name, number in numbers.items()
        if number in bound and name.lower() not in there
    )


def base(trace: Trace, name: str, quotas: Optional[NamedQuotas], restart_s: float) -> Scenario:
    """The rules and machines of the trace itself."""
    return Scenario(name, trace.rules, trace.agents, quotas, restart_s)


def check_has_machines(scenario: Scenario, trace: Trace) -> None:
    """Raises InvalidInput where no machine is in a pool that work is of."""
    bare = sorted(
        {attempt.pool for attempt in trace.attempts} - {agent.pool for agent in scenario.agents if agent.slots}
    )
    if bare and len(bare) == len({attempt.pool for attempt in trace.attempts}):
        raise InvalidInput(
            f"{scenario.name}: there are no slots in the pool {bare[0]!r}: say which machines there would be, "
            "with --agents 16x8 (sixteen of eight slots)"
        )


def _numbers(there: List[str], named: List[str]) -> Dict[str, int]:
    """A number for each name; upper and lower case are the same."""
    spelled: Dict[str, str] = {}
    for name in (*there, *named):
        spelled.setdefault(name.lower(), name)
    numbers = {lower: number for number, lower in enumerate(sorted(spelled), start=1)}
    return {name: numbers[name.lower()] for name in {*there, *spelled.values()}}


def _lower(numbers: Dict[str, int]) -> Dict[str, int]:
    return {name.lower(): number for name, number in numbers.items()}
