"""The journal of a search: recorded facts, recorded decisions, and their form as JSON documents.

Rules:
- A fact is what happened to a trial; a decision is what the search made of it. Both are recorded in one gapless order,
  and the state of a search is the fold of both: what was decided is read back, never decided again.
- The caller acts on ``Create``, ``Stop`` and ``Shutdown``; ``Rank`` and ``Unrank`` only move the search's own rungs.
- Documents carry ``"v"``; a reader refuses a version it does not know. Numbers that JSON cannot hold are the
  strings "NaN", "Infinity" and "-Infinity".
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import Enum
from typing import Union, cast

from tenax.errors import InvalidInput
from tenax.ids import RequestId
from tenax.jsonvalue import Json, JsonObject, to_json

#: Version of the documents written here.
VERSION = 1

#: The value that failed and canceled trials are ranked with: the largest float, behind every metric of a sound trial.
FAILED_VALUE = sys.float_info.max


class ExitReason(str, Enum):
    """Why a trial will not run again."""

    #: The script ended by itself without an error, or ended after the search had stopped it.
    FINISHED = "finished"
    #: It failed for good (restarts are used up), or was refused for good.
    ERRORED = "errored"
    USER_CANCELED = "user_canceled"
    #: The script reported that these hyperparameters cannot be trained.
    INVALID_HP = "invalid_hp"


@dataclass(frozen=True, slots=True)
class Started:
    """The search began; the first entry of every journal."""

    #: ``experiment_seed``, 0 <= seed < 2**32.
    seed: int


@dataclass(frozen=True, slots=True)
class Validated:
    """A trial reported a validation that holds the searcher's metric; the first one at (trial, step) counts."""

    request_id: RequestId
    #: ``steps_completed`` of the report: what a duplicate is recognised by.
    step: int
    #: As reported, not turned for ``smaller_is_better``; NaN and infinities are allowed and rank worst.
    metric: float
    #: The value of the time metric; 0 under methods that have none.
    time: float


@dataclass(frozen=True, slots=True)
class Exited:
    """A trial is over for good, with all its runs and restarts. One per trial."""

    request_id: RequestId
    reason: ExitReason = ExitReason.FINISHED


@dataclass(frozen=True, slots=True)
class Reopened:
    """A trial that was over goes on: a user continues the experiment after its end. Its exit counts no more."""

    request_id: RequestId


@dataclass(frozen=True, slots=True)
class Create:
    """Make a trial with these hyperparameters."""

    request_id: RequestId
    #: ``trial_seed``, 0 <= seed < 2**31.
    seed: int
    hparams: JsonObject
    #: 32-bit words drawn from the random stream when these values were complete.
    position: int
    bracket: int = 0
    #: The trial with invalid hyperparameters whose place this one takes; such a trial is beyond ``max_trials``.
    replaces: RequestId | None = None


#: How the reason of a `Stop` begins where the trial had not come to the end of what it may train.
STOPPED_EARLY = "stopped early"


@dataclass(frozen=True, slots=True)
class Stop:
    """Tell this trial to save and end: the search needs nothing more from it."""

    request_id: RequestId
    #: For a person: where it stood, and what would have been needed.
    reason: str


@dataclass(frozen=True, slots=True)
class Shutdown:
    """No trial will be created any more and all are over: the search has ended."""

    #: Every trial was canceled by a user.
    cancel: bool
    #: No trial finished, and at least one failed.
    failure: bool
    #: For a person: how the trials ended.
    reason: str


@dataclass(frozen=True, slots=True)
class Rank:
    """The trial enters ``rung`` of its bracket with ``value`` (smaller is better), before equal values."""

    request_id: RequestId
    rung: int
    value: float


@dataclass(frozen=True, slots=True)
class Unrank:
    """The trial's values leave all rungs: its hyperparameters were invalid."""

    request_id: RequestId


SearchFact = Union[Started, Validated, Exited, Reopened]
Decision = Union[Create, Stop, Shutdown, Rank, Unrank]
SearchEntry = Union[SearchFact, Decision]


def encode(entry: SearchEntry) -> JsonObject:
    """The document of an entry: plain JSON, ``{"v": 1, "type": ..., ...}``."""
    match entry:
        case Started(seed):
            return _document("started", seed=seed)
        case Validated(request_id, step, metric, time):
            return _document("validated", request_id=request_id, step=step, metric=to_json(metric), time=to_json(time))
        case Exited(request_id, reason):
            return _document("exited", request_id=request_id, reason=reason.value)
        case Reopened(request_id):
            return _document("reopened", request_id=request_id)
        case Create(request_id, seed, hparams, position, bracket, replaces):
            values: JsonObject = {"request_id": request_id, "seed": seed, "hparams": hparams, "position": position}
            return _document("create", **values, bracket=bracket, replaces=replaces)
        case Stop(request_id, reason):
            return _document("stop", request_id=request_id, reason=reason)
        case Shutdown(cancel, failure, reason):
            return _document("shutdown", cancel=cancel, failure=failure, reason=reason)
        case Rank(request_id, rung, value):
            return _document("rank", request_id=request_id, rung=rung, value=to_json(value))
        case Unrank(request_id):
            return _document("unrank", request_id=request_id)


def decode(document: JsonObject) -> SearchEntry:
    """The entry that ``encode`` wrote; raises InvalidInput on a version or a type it does not know."""
    if document.get("v") != VERSION:
        raise InvalidInput(
            f"A journal entry has version {document.get('v')!r}, and this release reads version {VERSION}: "
            "run a release that is at least as new as the one that wrote it."
        )
    try:
        return _read(cast("dict[str, object]", document))
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"A journal entry cannot be read ({type(error).__name__}: {error}): {document!r}") from error


def _read(row: dict[str, object]) -> SearchEntry:
    trial = RequestId(str(row.get("request_id", "")))
    match row["type"]:
        case "started":
            return Started(_integer(row["seed"]))
        case "validated":
            return Validated(trial, _integer(row["step"]), _float(row["metric"]), _float(row["time"]))
        case "exited":
            return Exited(trial, ExitReason(row["reason"]))
        case "reopened":
            return Reopened(trial)
        case "create":
            return _read_create(trial, row)
        case "stop":
            return Stop(trial, str(row["reason"]))
        case "shutdown":
            return Shutdown(row["cancel"] is True, row["failure"] is True, str(row["reason"]))
        case "rank":
            return Rank(trial, _integer(row["rung"]), _float(row["value"]))
        case "unrank":
            return Unrank(trial)
        case other:
            raise ValueError(f"unknown type {other!r}")


def _read_create(trial: RequestId, row: dict[str, object]) -> Create:
    replaces = row["replaces"]
    return Create(
        request_id=trial,
        seed=_integer(row["seed"]),
        hparams=cast(JsonObject, row["hparams"]),
        position=_integer(row["position"]),
        bracket=_integer(row["bracket"]),
        replaces=None if replaces is None else RequestId(str(replaces)),
    )


def _document(kind: str, **values: Json) -> JsonObject:
    return {"v": VERSION, "type": kind, **values}


def _float(value: object) -> float:
    if isinstance(value, (int, float, str)) and not isinstance(value, bool):
        return float(value)
    raise TypeError(f"{value!r} is not a number")


def _integer(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise TypeError(f"{value!r} is not an integer")
