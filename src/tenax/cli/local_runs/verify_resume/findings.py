"""What the traces of four runs of a script say: two that were not paused, one that was, and the one that went on.

Pure. Rules it keeps:

- What differs between the two runs that were not paused is the script's own: it is not compared, and said.
- A state is compared before the first step of an optimizer after the checkpoint, where both have such a moment, and at
  each report after it.
- Random states that differ are a fault only if something else differs too: a script may use none of them. So are
  batches where parameters are compared: frameworks load batches that are not trained on (ahead, or to try the loop).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from tenax.jsonvalue import Json, JsonObject

#: What decides; batches do only where no parameters are compared.
DECISIVE = ("parameters", "optimizer", "learning rate", "batches")
RANDOM = ("python random", "numpy random", "torch random", "cuda random")
ADVICE: Mapping[str, str] = {
    "parameters": "store model.state_dict() and load it before the first step",
    "optimizer": "store optimizer.state_dict() and load it after the model's parameters",
    "learning rate": "store scheduler.state_dict() and load it",
    "batches": (
        "store where in the epoch the run stands and what the order comes from, and leave out what was trained "
        "(tenax.pytorch.DataLoader does), or store checkpoints at the ends of epochs"
    ),
    "python random": "store random.getstate() and give it to random.setstate()",
    "numpy random": "store numpy.random.get_state() and give it to numpy.random.set_state()",
    "torch random": (
        "store torch.get_rng_state() and give it to torch.set_rng_state() after data loaders were iterated, which "
        "draws a number"
    ),
    "cuda random": "store torch.cuda.get_rng_state_all() and give it to torch.cuda.set_rng_state_all()",
}
_LATER = "the same at first, and another"
_FOLLOWS = "it follows from the above"
_SHOWN = 8

#: A step, and the group that was reported at it.
Key = Tuple[int, str]


@dataclass(frozen=True)
class TracedMoment:
    """What a run was at a report, or before a step of an optimizer."""

    state: Mapping[str, str]
    metrics: Mapping[str, Json]
    #: Numbers of the samples that were loaded since the last moment, the first of them.
    samples: Sequence[int]


@dataclass
class RunTrace:
    """The lines of one run."""

    reports: Dict[Key, TracedMoment] = field(default_factory=dict)
    #: Before the first step of an optimizer after a report; None: after the start.
    before: Dict[Optional[int], TracedMoment] = field(default_factory=dict)
    #: The step at which it saw that it is asked to stop.
    signalled_at: Optional[int] = None
    #: What it was given and did not read.
    unread: Sequence[str] = ()

    @property
    def steps(self) -> List[int]:
        """Those that were reported, in order, each once."""
        return list(dict.fromkeys(step for step, _ in self.reports))

    def add(self, line: JsonObject) -> None:
        """A line of the file."""
        step = line.get("step")
        step = step if isinstance(step, int) else None
        state, metrics, samples = line.get("state"), line.get("metrics"), line.get("samples")
        moment = TracedMoment(
            {name: str(value) for name, value in state.items()} if isinstance(state, dict) else {},
            metrics if isinstance(metrics, dict) else {},
            [number for number in samples if isinstance(number, int)] if isinstance(samples, list) else [],
        )
        if line.get("kind") == "report":
            self.reports.setdefault((step or 0, str(line.get("group"))), moment)
        elif line.get("kind") == "before":
            self.before.setdefault(step, moment)
        elif line.get("kind") == "signalled":
            self.signalled_at = step
        elif line.get("kind") == "end":
            unread = line.get("unread")
            self.unread = [str(each) for each in unread] if isinstance(unread, list) else []


@dataclass(frozen=True)
class Difference:
    """Something that is not as it was."""

    what: str
    #: How it differs, and from where on.
    how: str
    #: What to do.
    advice: str
    #: Whether it was as it should be at first.
    later: bool = False


@dataclass(frozen=True)
class Verdict:
    """``exact``: it goes on as if it had not been paused; None: that cannot be judged."""

    exact: Optional[bool]
    findings: Sequence[Difference]
    #: What was the same, of what was compared.
    same: Sequence[str]
    #: What differs although nothing shows that it matters.
    harmless: Sequence[Difference]
    #: What two runs from the start have each their own way.
    uncompared: Sequence[str]


def judge(straight: RunTrace, again: RunTrace, resumed: RunTrace, checkpoint_step: int) -> Verdict:
    """``checkpoint_step``: of the checkpoint that ``resumed`` went on from."""
    own = varying(straight, again)
    trained = {name for moment in straight.reports.values() for name in moment.state} & {"parameters"}
    if "parameters" in own or ("batches" in own and not trained):
        what = "parameters" if "parameters" in own else "batches"
        finding = Difference(
            f"{what} of two runs from the start",
            f"differ from step {first_difference(straight, again, what)} on, without any pause",
            "fix what they come from: all runs have one seed from core.init on, so draw nothing before it (a model "
            "that is built above it), or set a seed there; or algorithms (torch.use_deterministic_algorithms(True))",
        )
        return Verdict(None, [finding], [], [], own)
    if resumed.unread:
        return Verdict(False, [_unread(resumed.unread)], [], [], own)
    findings = _positions(straight, resumed, checkpoint_step)
    later = [key for key in straight.reports if key[0] > checkpoint_step and key in resumed.reports]
    differing = _state_findings(straight, resumed, checkpoint_step, later, own)
    metrics = _metric_findings(straight, resumed, later, own)
    decisive = set(DECISIVE) - ({"batches"} if trained else set())
    matters = bool(metrics or [finding for finding in differing if finding.what in decisive])
    causes = [finding for finding in differing if not finding.later]
    followers = [finding for finding in [*differing, *metrics] if finding.later]
    if matters:
        findings += causes
        findings += [replace(each, advice=_FOLLOWS if findings else each.advice) for each in followers]
    compared = {name for key in later for name in straight.reports[key].state}
    differs = {finding.what for finding in [*differing, *metrics]} | set(own)
    same = [name for name in (*DECISIVE, *RANDOM) if name in compared and name not in differs]
    names = dict.fromkeys(name for key in later for name in _metrics_of(key, straight))
    same += [name for name in names if name not in differs]
    chance = [] if matters else [_harmless(finding) for finding in differing]
    exact = not findings if later else None
    if not later and not findings:
        findings = [
            Difference(
                "what came after", f"no report of a step above {checkpoint_step} is in both runs", "report more often"
            )
        ]
    return Verdict(exact, findings, same, chance, own)


def _harmless(finding: Difference) -> Difference:
    if finding.what == "batches":
        why = "the parameters are the same, so what was loaded besides, ahead or to try the loop, was not trained on"
        return replace(finding, advice=why)
    return replace(finding, advice=f"nothing shows that this script uses it. {finding.advice}")


def varying(straight: RunTrace, again: RunTrace) -> List[str]:
    """What two runs that began alike have each their own way: names of states and of metrics."""
    names: Dict[str, None] = {}
    for key in straight.reports:
        if key in again.reports:
            for name, value in straight.reports[key].state.items():
                if again.reports[key].state.get(name) != value:
                    names[name] = None
            its = _metrics_of(key, again)
            for name, number in _metrics_of(key, straight).items():
                if name not in its or its[name] != number:
                    names[name] = None
    return list(names)


def first_difference(first: RunTrace, second: RunTrace, name: str) -> int:
    """The first step with a report at which a state is not the same; 0: none."""
    for key, moment in first.reports.items():
        if key in second.reports and second.reports[key].state.get(name) != moment.state.get(name):
            return key[0]
    return 0


def _unread(what: Sequence[str]) -> Difference:
    return Difference(
        "the checkpoint",
        f"the script did not read {' and '.join(what)}, and began anew",
        "give context.latest_checkpoint to context.checkpoint.restore_path() where it is not None",
    )


def _positions(straight: RunTrace, resumed: RunTrace, checkpoint_step: int) -> List[Difference]:
    """Steps that were made twice, or left out."""
    again = [step for step in resumed.steps if step <= checkpoint_step]
    left_out = [step for step in straight.steps if step > checkpoint_step and step not in resumed.steps]
    findings = []
    if again:
        findings.append(
            Difference(
                "steps",
                f"{_some(again)} were made a second time: the checkpoint is of step {checkpoint_step}",
                "store the number of steps in the checkpoint, and count on from it",
            )
        )
    if left_out and resumed.steps:
        findings.append(
            Difference(
                "steps", f"{_some(left_out)} were not reported after the resume", "count on from the checkpoint's step"
            )
        )
    return findings


def _state_findings(
    straight: RunTrace, resumed: RunTrace, checkpoint_step: int, later: Sequence[Key], own: Sequence[str]
) -> List[Difference]:
    findings = []
    expected, there = straight.before.get(checkpoint_step), resumed.before.get(None)
    for name in ("parameters", "optimizer", "learning rate", *RANDOM, "batches"):
        if name in own:
            continue
        how = ""
        if expected is not None and there is not None:
            how = _at_first(name, expected, there)
        key = next((key for key in later if _differs(straight, resumed, key, name)), None)
        if not how and key is not None:
            how = f"{_LATER if expected is not None and there is not None else 'another'} from step {key[0]} on"
            if name == "batches":
                mine, due = resumed.reports[key].samples, straight.reports[key].samples
                how = f"others up to step {key[0]}: {_some(mine)}, where {_some(due)} are due"
        if how:
            findings.append(Difference(name, how, ADVICE[name], later=how.startswith(_LATER)))
    return findings


def _at_first(name: str, due: TracedMoment, there: TracedMoment) -> str:
    """How a state differs before the first step; empty where it does not."""
    if name not in due.state or there.state.get(name) == due.state[name]:
        return ""
    if name == "learning rate":
        return f"{there.state.get(name)} at the first step, where {due.state[name]} is due"
    if name == "batches":
        return f"the first samples are {_some(there.samples)}, where {_some(due.samples)} are due"
    return "not restored: before the first step it is not what it was"


def _differs(straight: RunTrace, resumed: RunTrace, key: Key, name: str) -> bool:
    state = straight.reports[key].state
    return name in state and resumed.reports[key].state.get(name) != state[name]


def _metric_findings(
    straight: RunTrace, resumed: RunTrace, later: Sequence[Key], own: Sequence[str]
) -> List[Difference]:
    findings: Dict[str, Difference] = {}
    for key in later:
        mine = _metrics_of(key, resumed)
        for name, due in _metrics_of(key, straight).items():
            if name not in own and name not in findings and mine.get(name) != due:
                how = f"{mine.get(name)} at step {key[0]}, where {due} is due"
                findings[name] = Difference(name, how, "what the script keeps by itself is not restored", later=True)
    return list(findings.values())


def _metrics_of(key: Key, trace: RunTrace) -> Dict[str, Json]:
    return {f"{key[1]} {name}": value for name, value in trace.reports[key].metrics.items()}


def _some(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:_SHOWN])) or "none"
    return shown + (", ..." if len(numbers) > _SHOWN else "")
