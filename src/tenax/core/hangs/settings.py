"""``hang`` of a configuration. Standard library only, Python 3.9."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenax.jsonvalue import Json

WARN, RESTART, OFF = "warn", "restart", "off"
#: As the schema has it; for configurations from before there was one.
_AFTER_S = 60.0


class HangSettings:
    """``after``: seconds without a beat, at least. ``policy``: warn, restart or off."""

    def __init__(self, after: float = _AFTER_S, policy: str = WARN) -> None:
        self.after = after
        self.policy = policy

    @classmethod
    def of(cls, config: Mapping[str, Json]) -> HangSettings:
        """Of an experiment."""
        section = config.get("hang")
        given = section if isinstance(section, dict) else {}
        after, policy = given.get("after"), given.get("policy")
        seconds = float(after) if isinstance(after, (int, float)) and not isinstance(after, bool) else _AFTER_S
        return cls(seconds, policy if isinstance(policy, str) else WARN)

    @property
    def tick(self) -> float:
        """Seconds between two observations."""
        return min(1.0, self.after / 20)
