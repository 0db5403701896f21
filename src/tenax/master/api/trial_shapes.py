"""Parts of a trial's message that several routes send."""

from __future__ import annotations

from collections.abc import Mapping

from tenax.jsonvalue import JsonObject
from tenax.wire.api.message import Document

#: Under which name the summary of a group stands; any other group keeps its own.
SUMMARY_NAMES = {"training": "avg_metrics", "validation": "validation_metrics"}


def summary_message(summed: Mapping[str, Mapping[str, JsonObject]]) -> Document:
    """group -> metric -> what its values come to."""
    return {SUMMARY_NAMES.get(group, group): dict(metrics) for group, metrics in summed.items()}
