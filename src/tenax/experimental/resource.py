"""What all objects of this SDK are: a value of `tenax.client` that is replaced when it is asked for again or changed.

Where Determined has a name, it means here what it means there; every other name is that of the value.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from tenax.client.connection.session import Session
from tenax.errors import InvalidInput
from tenax.jsonvalue import JsonObject

Value = TypeVar("Value")


class WrongUse(InvalidInput, ValueError):
    """What is asked for does not go together; users of Determined catch it as ValueError."""


class Resource(Generic[Value]):
    """``now``: what it was when it was asked last."""

    def __init__(self, now: Value) -> None:
        self.now = now

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "now":
            raise AttributeError(name)
        return getattr(self.now, name)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.now == other.now

    def __hash__(self) -> int:
        return hash((type(self), repr(self)))

    @property
    def _session(self) -> Session:
        session: Session = self.now.session  # type: ignore[attr-defined]
        return session

    @property
    def _raw(self) -> JsonObject:
        raw: JsonObject = self.now.raw  # type: ignore[attr-defined]
        return raw

    def reload(self) -> None:
        """Ask for it again. Raises NotFound."""
        self.now = self.now.reload()  # type: ignore[attr-defined]
