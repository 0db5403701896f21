"""What a task reports about the removals that it was given."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tenax.wire.message import Int64, Message

#: Bytes of a file.
Size = Annotated[Int64, Field(ge=0, lt=2**63)]


class RemovalReport(Message):
    """How one removal went."""

    uuid: str
    #: What is left: path -> bytes.
    resources: dict[str, Size] = {}
    #: Why it failed; empty: it did not.
    failure: str = ""
