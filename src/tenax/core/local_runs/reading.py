"""What a run by hand said, read from its files. Standard library only, Python 3.9.

A last line without its end was torn by a crash and does not count; one that cannot be read is passed over.
"""

from __future__ import annotations

import os

from tenax.client.connection import fast_json
from tenax.core.local_runs.files import OUTPUTS
from tenax.wire.spool_names import CHECKPOINT, CHECKPOINT_FILES, METRICS, RUN_START

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Dict, List, Optional

    from tenax.core.local_runs.files import LocalRun
    from tenax.jsonvalue import Json, JsonObject

#: Parts of the names of metrics that are better when they are greater.
_GREATER = ("acc", "auc", "f1", "precision", "recall", "bleu", "rouge", "map", "iou", "dice", "score", "reward", "r2")
#: Words in the names of those that are better when they are smaller, and say so.
_SMALLER = ("err", "error", "mae", "mape", "mse", "rmse", "nll", "ppl", "perplexity", "wer", "cer", "fid")


class LocalReport:
    """Metrics of one group at one step."""

    __slots__ = ("at", "group", "metrics", "step")

    def __init__(self, group: str, step: int, at: float, metrics: JsonObject) -> None:
        self.group = group
        self.step = step
        #: Seconds since 1970.
        self.at = at
        self.metrics = metrics


class LocalCheckpoint:
    """A checkpoint as it was reported, and what is left of it."""

    __slots__ = ("files", "step", "storage", "uuid")

    def __init__(self, uuid: str, step: int, files: JsonObject, storage: JsonObject) -> None:
        self.uuid = uuid
        self.step = step
        self.files = files
        self.storage = storage

    @property
    def is_there(self) -> bool:
        """Whether it has files, as far as can be seen from here: whoever deletes the trial may have deleted them."""
        root = self.storage.get("container_path")
        gone = isinstance(root, str) and os.path.isdir(root) and not os.path.isdir(os.path.join(root, self.uuid))
        return bool(self.files) and not gone


class RunStory:
    """Everything that a run said; without a run what its lines say that are read into it."""

    def __init__(self, run: Optional[LocalRun] = None) -> None:
        self.reports: List[LocalReport] = []
        self.checkpoints: Dict[str, LocalCheckpoint] = {}
        self.hparams: JsonObject = {}
        #: When it said something last; seconds since 1970.
        self.last_at: Optional[float] = None
        if run is not None:
            for name in run.streams():
                self.read(_lines(run.stream_path(name)))

    @property
    def step(self) -> int:
        """The greatest step that anything was said of."""
        steps = [report.step for report in self.reports] + [saved.step for saved in self.checkpoints.values()]
        return max(steps, default=0)

    @property
    def kept(self) -> List[LocalCheckpoint]:
        """Checkpoints that have files, by step."""
        return sorted((saved for saved in self.checkpoints.values() if saved.is_there), key=lambda saved: saved.step)

    def names(self) -> Dict[str, List[str]]:
        """group -> the names of its metrics, sorted."""
        names: Dict[str, set[str]] = {}
        for report in self.reports:
            names.setdefault(report.group, set()).update(report.metrics)
        return {group: sorted(of) for group, of in names.items()}

    def read(self, lines: Iterable[bytes]) -> None:
        """Add what lines of a spool say."""
        for line in lines:
            if not line.endswith(b"\n"):
                return
            try:
                record = fast_json.loads(line.decode("utf-8", "replace"))
            except ValueError:
                continue
            if isinstance(record, dict):
                self._add(record)

    def _add(self, record: JsonObject) -> None:
        body, at = record.get("body"), record.get("at")
        if not isinstance(body, dict):
            return
        if isinstance(at, (int, float)):
            self.last_at = max(self.last_at or 0.0, float(at))
        kind = record.get("kind")
        if kind == METRICS:
            group, step, metrics = body.get("group"), body.get("stepsCompleted"), body.get("metrics")
            if isinstance(group, str) and isinstance(metrics, dict):
                self.reports.append(LocalReport(group, _whole(step), _number(at), metrics))
        elif kind == RUN_START:
            self.hparams = _object(body.get("hparams")) or self.hparams
        elif kind == CHECKPOINT:
            uuid, files = str(body.get("uuid", "")), _object(body.get("resources"))
            self.checkpoints[uuid] = LocalCheckpoint(
                uuid, _whole(body.get("stepsCompleted")), files, _object(body.get("storage"))
            )
        elif kind == CHECKPOINT_FILES and str(body.get("uuid", "")) in self.checkpoints:
            self.checkpoints[str(body["uuid"])].files = _object(body.get("resources"))


def _lines(path: str) -> Iterator[bytes]:
    """The lines of a spool, as far as it can be read."""
    try:
        with open(path, "rb") as file:
            yield from file
    except OSError:
        return


def main_of(names: Sequence[str]) -> str:
    """Of the names of validation metrics the one that tells most; the usual one where there is none."""
    return next((name for name in names if "loss" in name.lower()), names[0] if names else "validation_loss")


def suggests_smaller(metric: str) -> Optional[bool]:
    """Whether the name of a metric says that smaller values are better; None: it says neither."""
    name = metric.lower()
    parts = "".join(character if character.isalnum() else " " for character in name).split()
    if "loss" in name or not set(_SMALLER).isdisjoint(parts):
        return True
    return False if any(part in name for part in _GREATER) else None


def is_better_when_smaller(metric: str) -> bool:
    """What the name of a metric lets guess."""
    return suggests_smaller(metric) is not False


def trial_of(card: JsonObject) -> Optional[tuple[str, str]]:
    """What tells the trial of a run from all others: the keys of its experiment and its own; None: it has none."""
    key = card.get("trialKey")
    return (str(card.get("experimentKey") or key), str(key)) if key else None


def state_of(run: LocalRun) -> tuple[str, str]:
    """RUNNING, COMPLETED, CANCELED or ERROR, and why; of one that an older release wrote, nothing is known."""
    card = run.card
    state = card.get("state")
    if isinstance(state, str) and state:
        return state, str(card.get("reason") or "")
    if run.is_alive():
        return "RUNNING", ""
    return ("ERROR", "it ended without a word: it was killed, or its machine stopped") if card else ("", "")


def times_of(run: LocalRun) -> tuple[float, float]:
    """When it began and ended, in seconds since 1970; its last word where it said no end. 0, 0: not known."""
    card = run.card
    began, ended = _number(card.get("started")), _number(card.get("ended"))
    if began and not ended:
        paths = [run.stream_path(name) for name in run.streams()] + [run.output_path(name) for name in OUTPUTS]
        ended = max([began, *(os.path.getmtime(path) for path in paths if os.path.exists(path))])
    return began, max(began, ended)


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _whole(value: Json) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _number(value: Json) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0


def why_not_again(card: JsonObject) -> str:
    """Why the arguments of a run start no such run again; empty where they do."""
    why, argv = card.get("notAgain"), card.get("argv")
    if isinstance(why, str) and why:
        return why
    spawned = isinstance(argv, list) and "--multiprocessing-fork" in argv
    return "another process of its program started it" if spawned else ""


def startable(card: JsonObject) -> List[str]:
    """What starts a run again: its arguments, or those of whoever started it; empty where neither is known."""
    argv = card.get("startedBy" if why_not_again(card) else "argv")
    return [str(part) for part in argv] if isinstance(argv, list) else []
