"""The SDK for event loops: `AsyncClient`, and the twins of the values that it gives. See `twins` beside this.

The stub beside this has their types; ``make docs`` writes it from the classes whose twins they are.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Type


def __getattr__(name: str) -> Type[object]:
    from tenax.client.asynchronous.twins import twin_named

    return twin_named(name)
