"""Draws the page of state machines from the machines themselves: ``make docs``.

A machine with a table is read; one that is a function of values is asked about every value that makes a difference, so
that nothing is drawn that the code does not do. The rules beside a diagram are those at the top of its module.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from tenax.errors import NotNow
from tenax.lifecycle import allocation, container, delivery, experiment, garbage, machine, task, trial, unmanaged
from tenax.lifecycle.allocation import AllocationState, Preemption
from tenax.lifecycle.container import Container, ContainerState, Desired, Ending
from tenax.lifecycle.delivery import DeliveryOutcome, DeliveryState
from tenax.lifecycle.experiment import ExperimentState
from tenax.lifecycle.machine import MachineState
from tenax.lifecycle.task import Conclude, LiveTask, TaskAttempt, TaskState, reconcile_task
from tenax.lifecycle.trial import TrialAttempt, TrialState, Wish
from tenax.lifecycle.unmanaged import TrialReport

PAGE = Path(__file__).resolve().parents[2] / "docs" / "state-machines.md"

#: From, to, and what brings it about.
Edge = tuple[str, str, str]
A = TypeVar("A")
V = TypeVar("V")
#: What a rule says, when it holds, what follows.
Rules = Sequence[tuple[str, Callable[[A], bool], Callable[[A], V]]]

_HEAD = """# State machines

Made by `make docs` from `src/tenax/lifecycle`, where each machine is a table or a function of values; do not edit it.
What changes nothing is not drawn.
"""
#: Every kind of ending that a rule tells apart.
_ENDINGS = (
    Ending(code=0),
    Ending(code=1, reason="exited with code 1"),
    Ending(platform=True, reason="its node was lost"),
    Ending(code=1, platform=True, disk_full=True, reason="the disk was full"),
    Ending(code=0, requested=True),
    Ending(signal=15, requested=True),
)


@dataclass(frozen=True)
class Machine:
    """One section of the page."""

    title: str
    module: ModuleType
    edges: tuple[Edge, ...]
    begins: tuple[str, ...] = ()
    #: Ordered rules with what each makes of it, where the machine has such a list.
    rules: tuple[tuple[str, str], ...] = ()
    #: Where it may end although something leaves that state, too.
    ends: tuple[str, ...] = ()
    #: What the diagram leaves out.
    note: str = ""


def page() -> str:
    """The whole page."""
    return _HEAD + "".join(_section(machine) for machine in machines()) + _garbage()


def machines() -> tuple[Machine, ...]:
    """All that have states."""
    trial_edges, trial_rules = _trial()
    task_edges, task_rules = _task()
    return (
        Machine(
            "Experiment", experiment, tuple(_experiment()), (ExperimentState.PAUSED,),
            ends=(ExperimentState.DELETING,),
        ),
        Machine(
            "Trial", trial, trial_edges, (TrialState.ACTIVE,), trial_rules,
            note="An experiment that is continued brings trials of it that have ended back to ACTIVE.",
        ),
        Machine("Allocation", allocation, tuple(_allocation()), (AllocationState.PENDING,)),
        Machine("Container", container, tuple(_container()), (ContainerState.ASSIGNED,)),
        Machine("What is wanted of a container", container, tuple(_wants()), (Desired.RUN,)),
        Machine("Command or generic task", task, task_edges, (TaskState.ACTIVE,), task_rules),
        Machine(
            "Rented machine", machine, tuple(_rented()),
            (MachineState.PLANNED, MachineState.STARTING, MachineState.ENDING),
            note="It begins as STARTING where a machine carries the mark of the cluster and has no row, and as ENDING "
            "where it cannot be asked what it holds.",
        ),
        Machine("Message to a webhook", delivery, tuple(_delivery()), (DeliveryState.WAITING,)),
        Machine("Trial that runs outside of the cluster", unmanaged, tuple(_unmanaged()), (TrialState.ACTIVE,)),
    )  # fmt: skip


def diagram(machine: Machine) -> str:
    """The machine in mermaid's words; a state that nothing leaves is an end."""
    leaving = {source for source, target, _ in machine.edges if source != target}
    states = list(dict.fromkeys(state for edge in machine.edges for state in edge[:2]))
    lines = [f"    [*] --> {_id(state)}" for state in machine.begins]
    # Names with spaces are told apart from their ids.
    lines = [f'    state "{state}" as {_id(state)}' for state in states if _id(state) != state] + lines
    joined: dict[tuple[str, str], list[str]] = {}
    for source, target, label in machine.edges:
        labels = joined.setdefault((source, target), [])
        if label and label not in labels:
            labels.append(label)
    for (source, target), labels in joined.items():
        lines.append(f"    {_id(source)} --> {_id(target)}" + (f": {' / '.join(labels)}" if labels else ""))
    lines += [f"    {_id(state)} --> [*]" for state in states if state not in leaving or state in machine.ends]
    return "\n".join(["```mermaid", "stateDiagram-v2", *lines, "```"])


def _section(machine: Machine) -> str:
    parts = [f"\n## {machine.title}\n", _rules_of(machine.module) + "\n", diagram(machine)]
    if machine.note:
        parts.append(f"\n{machine.note}")
    if machine.rules:
        parts.append("\nWhen an attempt has ended, the first of these that holds decides:\n")
        parts += ["| | what holds | it becomes |", "|---|---|---|"]
        parts += [f"| {number} | {text} | {after} |" for number, (text, after) in enumerate(machine.rules, start=1)]
    return "\n".join(parts) + "\n"


def _garbage() -> str:
    told = "No states: what is kept is decided anew each time from these rules."
    return f"\n## Checkpoints that are kept\n\n{told}\n\n{_rules_of(garbage)}\n"


def _rules_of(module: ModuleType) -> str:
    """The list at the top of a module, and where it stands."""
    text = inspect.getdoc(module) or ""
    begin, end = text.index("\n- "), len(text)
    return f"From `{module.__name__.replace('.', '/')}.py`:\n\n{text[begin:end].strip()}"


def _id(state: str) -> str:
    return str(getattr(state, "value", state)).replace(" ", "_").replace(",", "")


def _experiment() -> Iterator[Edge]:
    # In the order of the states and events, not in that in which the table happens to be filled.
    for state, event in itertools.product(ExperimentState, experiment.ExperimentEvent):
        after = experiment.TRANSITIONS.get((state, event), state)
        if after is not state:
            yield state.value, after.value, event.value


def _trial() -> tuple[tuple[Edge, ...], tuple[tuple[str, str], ...]]:
    options = itertools.product(
        Wish,
        _ENDINGS,
        Preemption,
        (0, 5),
        (False, True),
        (None, "a report"),
        (None, "a policy"),
        (None, "no machine"),
        (None, "a line"),
    )
    attempts = [
        TrialAttempt(
            *(wish, ending, preemption, 0, most, invalid, fatal),
            no_retry=policy,
            nowhere=nowhere,
            repeats=line,
            setbacks=trial.MAX_FULL_DISKS - 1,
        )
        for wish, ending, preemption, most, invalid, fatal, policy, nowhere, line in options
    ]
    rules = _outcomes(trial.RULES, attempts, lambda verdict: verdict.state.value)
    edges = [(TrialState.ACTIVE.value, after, text) for text, found in rules for after in found]
    for wish, invalid, fatal in itertools.product(Wish, (False, True), (None, "a report ended it")):
        verdict = trial.end_without_attempt(wish, invalid, fatal)
        if verdict is not None:
            edges.append((TrialState.ACTIVE.value, verdict.state.value, f"{verdict.reason} (no attempt)"))
    drawn = [edge for edge in edges if edge[0] != edge[1]]
    again = [(text, " or ".join(found)) for text, found in rules]
    return tuple(drawn), tuple(again)


def _task() -> tuple[tuple[Edge, ...], tuple[tuple[str, str], ...]]:
    moves = [(state, event) for state in TaskState for event in task.TaskEvent if (state, event) in task.TRANSITIONS]
    edges = [(state.value, task.TRANSITIONS[state, event].value, event.value) for state, event in moves]
    live = [state for state in TaskState if state not in task.ENDED and state is not TaskState.PAUSED]
    attempts = [
        TaskAttempt(state, ending, preemption, pausable)
        for state, ending, preemption, pausable in itertools.product(live, _ENDINGS, Preemption, (False, True))
    ]
    for attempt in attempts:
        text = next(text for text, holds, _ in task.RULES if holds(attempt))
        edges.append((attempt.state.value, task.decide_exit(attempt).state.value, text))
    for state in live:
        edges += [
            (state.value, action.verdict.state.value, f"{action.verdict.reason} (no attempt)")
            for action in reconcile_task(LiveTask("task", state, None))
            if isinstance(action, Conclude)
        ]
    rules = _outcomes(task.RULES, attempts, lambda verdict: verdict.state.value)
    drawn = [edge for edge in edges if edge[0] != edge[1]]
    return tuple(drawn), tuple((text, " or ".join(found)) for text, found in rules)


def _outcomes(rules: Rules[A, V], attempts: list[A], state: Callable[[V], str]) -> list[tuple[str, list[str]]]:
    """Each rule in order, with the states that it ever leads to."""
    found: dict[str, set[str]] = {text: set() for text, _, _ in rules}
    for attempt in attempts:
        text, _, verdict = next(rule for rule in rules if rule[1](attempt))
        found[text].add(state(verdict(attempt)))
    return [(text, sorted(states)) for text, states in found.items()]


def _allocation() -> Iterator[Edge]:
    """Two members through every order of reports, killed at any point; before there are members it is placed."""
    yield AllocationState.PENDING.value, AllocationState.ASSIGNED.value, "placed"
    yield AllocationState.PENDING.value, AllocationState.TERMINATED.value, "withdrawn"
    first = tuple(Container(str(rank), ContainerState.ASSIGNED, Desired.RUN, None) for rank in range(2))
    seen, waiting = {first}, [first]
    edges: set[Edge] = set()
    while waiting:
        members = waiting.pop()
        before = allocation.after_members(members).state
        for changed, label in _changes(members):
            after = allocation.after_members(changed)
            if after.state is not before:
                edges.add((before.value, after.state.value, label or f"the slowest member is {after.state.value}"))
            if after.containers not in seen:
                seen.add(after.containers)
                waiting.append(after.containers)
    order = [state.value for state in AllocationState]
    yield from sorted(edges, key=lambda edge: (order.index(edge[0]), order.index(edge[1]), edge[2]))


def _changes(members: tuple[Container, ...]) -> Iterator[tuple[tuple[Container, ...], str]]:
    for place, member in enumerate(members):
        for state in ContainerState:
            for ending in _ENDINGS if state is ContainerState.TERMINATED else (None,):
                changed = container.report(member, state, ending)
                if changed is not member:
                    label = "" if ending is None else _how(members, place, changed)
                    yield (*members[:place], changed, *members[place + 1 :]), label
    yield tuple(container.raise_desired(member, Desired.KILL) for member in members), "its members are to end"


def _how(members: tuple[Container, ...], place: int, changed: Container) -> str:
    others = [member for number, member in enumerate(members) if number != place]
    if all(member.state is ContainerState.TERMINATED for member in others):
        return "the last member ended"
    assert changed.ending is not None
    return "" if changed.ending.clean else "a member failed or was ended"


def _container() -> Iterator[Edge]:
    for before, after in itertools.product(ContainerState, ContainerState):
        member = Container("1", before, Desired.RUN, None)
        if container.report(member, after, None) is not member:
            yield before.value, after.value, ""


def _wants() -> Iterator[Edge]:
    for before, after in itertools.product(Desired, Desired):
        member = Container("1", ContainerState.RUNNING, before, None)
        if container.raise_desired(member, after) is not member:
            yield before.value, after.value, ""


def _delivery() -> Iterator[Edge]:
    give_up_s = 100.0
    young: dict[DeliveryState, list[int]] = {}
    for status in range(200, 600):
        young.setdefault(delivery.decide(DeliveryOutcome(status, ""), 1, 0.0, give_up_s).state, []).append(status)
    others = (
        ("no answer", DeliveryOutcome(None, ""), 0.0),
        ("it would end the same way again", DeliveryOutcome(None, "", final=True), 0.0),
        ("no answer, and it is too old", DeliveryOutcome(None, ""), give_up_s),
    )
    for after, statuses in young.items():
        yield DeliveryState.WAITING.value, after.value, f"answered {', '.join(_ranges(statuses))}"
    for label, outcome, age in others:
        yield DeliveryState.WAITING.value, delivery.decide(outcome, 1, age, give_up_s).state.value, label


def _rented() -> Iterator[Edge]:
    for state, event in itertools.product(MachineState, machine.MachineEvent):
        if (state, event) in machine.TRANSITIONS:
            yield state.value, machine.TRANSITIONS[state, event].value, event.value


def _ranges(numbers: list[int]) -> Iterator[str]:
    for _, group in itertools.groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        values = [number for _, number in group]
        yield str(values[0]) if len(values) == 1 else f"{values[0]} to {values[-1]}"


def _unmanaged() -> Iterator[Edge]:
    def name(state: TrialState, lost: bool) -> str:
        return f"{state.value}, fell silent" if lost else str(state.value)

    states = [*((state, False) for state in TrialState), (TrialState.ERROR, True)]
    for (state, lost), word in itertools.product(states, TrialReport):
        try:
            after = unmanaged.step(state, lost, word)
        except NotNow:
            continue
        fell_silent = after is TrialState.ERROR and (
            word is TrialReport.SILENT and (lost or state is TrialState.ACTIVE)
        )
        if (after, fell_silent) != (state, lost):
            yield name(state, lost), name(after, fell_silent), word.value


if __name__ == "__main__":
    print(page(), end="")
