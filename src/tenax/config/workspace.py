"""What a workspace may say about the experiments in it: where their checkpoints go."""

from __future__ import annotations

from tenax.config.problems import ProblemReport
from tenax.config.schema.storage import CHECKPOINT_STORAGE
from tenax.display.secrets import HIDDEN, without_secrets
from tenax.jsonvalue import Json, JsonObject

_SECTION = "checkpoint_storage"


def workspace_storage(given: JsonObject) -> JsonObject | None:
    """The checkpoint storage of a workspace as it is stored, without defaults; ``{}`` is None. Raises `ConfigError`.

    It must be whole: an experiment that says nothing of its own has it, whatever the master's is.
    """
    if not given:
        return None
    report = ProblemReport()
    checked = CHECKPOINT_STORAGE.check(given, (_SECTION,), report)
    for name, value in given.items():
        if value == HIDDEN:
            report.add((_SECTION, name), "is the stars that stand for a secret: give the secret itself")
    if isinstance(checked, dict):
        CHECKPOINT_STORAGE.finish(CHECKPOINT_STORAGE.fill(checked), (_SECTION,), report)
    report.raise_if_any(what="checkpoint storage")
    assert isinstance(checked, dict)
    return checked


def shown_storage(stored: JsonObject | None) -> JsonObject | None:
    """A checkpoint storage as anyone may see it."""
    if stored is None:
        return None
    shown: Json = without_secrets({_SECTION: stored})[_SECTION]
    return shown if isinstance(shown, dict) else None
