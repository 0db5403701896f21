"""Messages about quotas."""

from __future__ import annotations

from enum import Enum

from tenax.wire.message import Message, Timestamp


class QuotaKind(str, Enum):
    """Whose it is."""

    WORKSPACE = "workspace"
    USER = "user"
    GROUP = "group"
    #: A user in a workspace.
    ASSOCIATION = "association"
    #: Each user that is not named: it holds and has used nothing itself.
    EVERYONE = "everyone"


class QuotaLine(Message):
    """What one of them may have, and what it has; what is not there is not limited."""

    kind: QuotaKind
    #: In words, for people.
    name: str
    #: Of the workspace, user or group, or of the user in a workspace; 0: of all workspaces that no quota names, and of
    #: everyone.
    id: int
    #: Of a user in a workspace; 0: in all that no quota names.
    workspace_id: int | None = None
    weight: float
    max_slots: int | None = None
    #: The most urgent priority that its jobs may have.
    priority: int | None = None
    #: In a calendar month (UTC).
    slot_hours: float | None = None
    #: Slots in use now, in all pools.
    held_slots: int
    #: Slot hours of this month.
    used_slot_hours: float
    #: Slot hours, each of which counts half after a half-life.
    recent_slot_hours: float
    #: Its part of the weights of those that it shares with, and of what they have used lately.
    share: float | None = None
    used_share: float | None = None
    #: Of a user in a workspace: 1 comes first at the same priority, the same turn is settled by the queue.
    turn: int | None = None


class GetQuotasResponse(Message):
    """Those that hold; without them ``applied`` is false, and all else empty."""

    applied: bool = False
    #: The file as it was applied.
    source: str = ""
    applied_by: str = ""
    applied_at: Timestamp | None = None
    half_life_hours: float | None = None
    #: What the file names, and was renamed or deleted since it was applied: no quota is of it.
    not_there: list[str] = []
    lines: list[QuotaLine] = []


class PutQuotasRequest(Message):
    """``source``: a quota file, YAML. With ``dry_run`` nothing is changed."""

    source: str
    dry_run: bool = False


class PutQuotasResponse(Message):
    """Who gains and who loses, in sentences; and all lines as they are then."""

    changes: list[str]
    lines: list[QuotaLine]
