"""A page of a list, and safe patterns for ``ilike``."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Page:
    """``limit`` None: all that is left."""

    offset: int = 0
    limit: int | None = None


def like(part: str | None) -> str | None:
    """The pattern for what contains ``part`` literally; None for no part."""
    if not part:
        return None
    return f"%{escaped(part)}%"


def escaped(text: str) -> str:
    """``text`` as it stands in a pattern, where it means itself."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
