"""Which checkpoints of an experiment a policy keeps, and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Optional, Tuple

from tenax.client import reading
from tenax.client.session import Query, Session, at
from tenax.jsonvalue import JsonObject


@dataclass(frozen=True)
class Policy:
    """How many checkpoints are kept: policies are a union."""

    experiment_best: int
    trial_best: int
    trial_latest: int


@dataclass(frozen=True)
class Fate:
    """What becomes of one checkpoint."""

    uuid: str
    trial_id: int
    steps: int
    #: The searcher's metric at its step, where it was reported.
    metric: Optional[float]
    #: Bytes.
    size: int
    keep: bool
    #: Every reason to keep it, or the one why it goes.
    reasons: Tuple[str, ...]

    @staticmethod
    def read(value: JsonObject) -> Fate:
        """From an answer of the master."""
        return Fate(
            uuid=reading.text(value, "uuid"),
            trial_id=reading.integer(value, "trialId"),
            steps=reading.integer(value, "stepsCompleted"),
            metric=reading.real(value.get("searcherMetric")),
            size=reading.integer(value, "size"),
            keep=reading.flag(value, "keep"),
            reasons=tuple(reading.texts(value, "reasons")),
        )


@dataclass(frozen=True)
class Removal:
    """Files that are being deleted."""

    uuid: str
    #: Of an upload that its task began and never reported.
    unreported: bool
    reason: str
    tries: int
    #: Why it did not work the last time; empty: nothing failed.
    failure: str

    @staticmethod
    def read(value: JsonObject) -> Removal:
        """From an answer of the master."""
        return Removal(
            uuid=reading.text(value, "uuid"),
            unreported=reading.flag(value, "unreported"),
            reason=reading.text(value, "reason"),
            tries=reading.integer(value, "tries"),
            failure=reading.text(value, "failure"),
        )


@dataclass(frozen=True)
class Garbage:
    """What a policy makes of an experiment's checkpoints, and what is on its way out already."""

    policy: Policy
    metric: str
    checkpoints: Tuple[Fate, ...]
    removals: Tuple[Removal, ...]
    #: The whole answer.
    raw: JsonObject = field(repr=False, compare=False)

    @property
    def going(self) -> Tuple[Fate, ...]:
        return tuple(one for one in self.checkpoints if not one.keep)

    @property
    def freed(self) -> int:
        """Bytes that the policy frees."""
        return sum(one.size for one in self.going)


def garbage_of(
    session: Session,
    experiment: int,
    *,
    experiment_best: Optional[int] = None,
    trial_best: Optional[int] = None,
    trial_latest: Optional[int] = None,
) -> Garbage:
    """What its policy, with these numbers in place, keeps of an experiment; nothing is changed. Raises NotFound."""
    query: Query = {
        "saveExperimentBest": experiment_best,
        "saveTrialBest": trial_best,
        "saveTrialLatest": trial_latest,
    }
    value = session.get(at("/api/v1/experiments/{}/garbage", experiment), query)
    policy = reading.record(value, "policy")
    return Garbage(
        policy=Policy(
            reading.integer(policy, "saveExperimentBest"),
            reading.integer(policy, "saveTrialBest"),
            reading.integer(policy, "saveTrialLatest"),
        ),
        metric=reading.text(value, "metric"),
        checkpoints=tuple(Fate.read(one) for one in reading.records(value, "checkpoints")),
        removals=tuple(Removal.read(one) for one in reading.records(value, "removals")),
        raw=value,
    )


def set_policy(session: Session, experiment: int, policy: Policy) -> None:
    """Keep so many from now on; what is not kept is deleted at once. Raises NotFound, Forbidden."""
    body: JsonObject = {
        "checkpointStorage": {
            "saveExperimentBest": policy.experiment_best,
            "saveTrialBest": policy.trial_best,
            "saveTrialLatest": policy.trial_latest,
        }
    }
    session.call("PATCH", at("/api/v1/experiments/{}", experiment), body=body)
