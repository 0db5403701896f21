"""Quotas as values: what everybody may have, has used, and whose turn it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Optional

from tenax.client.connection import reading
from tenax.client.connection.reading import Answer, made, part
from tenax.client.connection.session import Session
from tenax.jsonvalue import JsonObject

_PATH = "/api/v1/quotas"


@dataclass(frozen=True)
class QuotaRow(Answer):
    """Of one workspace, user, group, of a user in a workspace (an association), or of everyone else, each of them."""

    #: ``workspace``, ``user``, ``group``, ``association``, ``everyone``.
    kind: str = part(reading.text, "kind")
    name: str = part(reading.text, "name")
    weight: float = made(lambda value: reading.measure(value, "weight") or 0.0)
    #: None: not limited.
    max_slots: Optional[int] = made(lambda value: _optional(value, "maxSlots"))
    priority: Optional[int] = made(lambda value: _optional(value, "priority"))
    slot_hours: Optional[float] = part(reading.measure, "slotHours")
    held_slots: int = part(reading.integer, "heldSlots")
    used_slot_hours: float = made(lambda value: reading.measure(value, "usedSlotHours") or 0.0)
    recent_slot_hours: float = made(lambda value: reading.measure(value, "recentSlotHours") or 0.0)
    #: Of those that it shares with; None: it shares with nobody.
    share: Optional[float] = part(reading.measure, "share")
    used_share: Optional[float] = part(reading.measure, "usedShare")
    turn: Optional[int] = made(lambda value: _optional(value, "turn"))


@dataclass(frozen=True)
class QuotasInForce(Answer):
    """Those that hold; without any ``applied`` is False."""

    applied: bool = part(reading.flag, "applied")
    source: str = part(reading.text, "source")
    applied_by: str = part(reading.text, "appliedBy")
    half_life_hours: Optional[float] = part(reading.measure, "halfLifeHours")
    #: What the file names, and was renamed or deleted since it was applied.
    not_there: List[str] = part(reading.texts, "notThere")
    lines: List[QuotaRow] = made(lambda value: [QuotaRow.read(line) for line in reading.records(value, "lines")])


def get_quotas(session: Session) -> QuotasInForce:
    """What holds."""
    return QuotasInForce.read(session.get(_PATH))


def apply_quotas(session: Session, source: str, *, dry_run: bool = False) -> List[str]:
    """Apply a quota file (YAML); who gains and who loses, in sentences. Raises InvalidInput with every problem."""
    answer = session.call("PUT", _PATH, body={"source": source, "dryRun": dry_run})
    changes = answer.get("changes")
    return [str(line) for line in changes] if isinstance(changes, list) else []


def remove_quotas(session: Session) -> None:
    """From now on none holds. Raises NotFound where there are none."""
    session.call("DELETE", _PATH)


def _optional(value: JsonObject, name: str) -> Optional[int]:
    number = value.get(name)
    return int(number) if isinstance(number, (int, float, str)) and not isinstance(number, bool) else None
