"""What a task says about removals that it has in hand."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tenax.wire.message import Int64, Message

#: Bytes of a file.
Size = Annotated[Int64, Field(ge=0, lt=2**63)]


class RemovalReport(Message):
    """What a task has done about one removal."""

    uuid: str
    #: What is left: path -> bytes.
    resources: dict[str, Size] = {}
    #: Why it did not work; empty: it did.
    failure: str = ""
