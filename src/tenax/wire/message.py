"""What all messages of ``/api/v1`` share: how fields are spelled, which numbers are strings, what null means.

Rules, those of protobuf's JSON form:

- a field is accepted in camel case and in snake case, and sent in camel case;
- null for a field means that it was not given;
- a 64-bit integer is sent as a string, and accepted as a string or a number;
- NaN and the infinities are the strings ``NaN``, ``Infinity``, ``-Infinity``;
- a field that is not known is ignored, so that an older master understands a newer client;
- times are RFC 3339 with ``Z``.
"""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import Annotated, TypeVar

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, PlainSerializer, model_validator
from pydantic.alias_generators import to_camel

from tenax.display.terminal import is_name, visible_line
from tenax.jsonvalue import Document as Document

#: Sent as a string, for readers whose numbers are doubles.
Int64 = Annotated[int, PlainSerializer(str, return_type=str, when_used="json")]
#: Times always carry their zone.
Timestamp = AwareDatetime


def checked_name(text: str) -> str:
    """``text``, if it can name something. Raises ValueError."""
    if not is_name(text):
        raise ValueError(f"a name is one line without control characters, and this is {visible_line(text[:80])!r}")
    return text


#: What somebody calls something; of requests alone: what is stored already is shown as it is.
Name = Annotated[str, AfterValidator(checked_name)]


class Message(BaseModel):
    """One body, or a part of one."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        extra="ignore",
        ser_json_inf_nan="strings",
        hide_input_in_errors=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, given: object) -> object:
        if isinstance(given, dict) and None in given.values():
            return {key: value for key, value in given.items() if value is not None}
        return given


class Empty(Message):
    """No result, or no parameters."""


class Pagination(Message):
    """Which part of a list this is; ``end_index`` is the offset of the next page."""

    offset: int = 0
    limit: int = 0
    start_index: int = 0
    end_index: int = 0
    total: int = 0


class OrderBy(str, Enum):
    """Direction of a list."""

    UNSPECIFIED = "ORDER_BY_UNSPECIFIED"
    ASC = "ORDER_BY_ASC"
    DESC = "ORDER_BY_DESC"


EnumMember = TypeVar("EnumMember", bound=Enum)


def rfc3339(moment: datetime | None) -> str | None:
    """A moment as it travels where no message is built."""
    return None if moment is None else moment.isoformat().replace("+00:00", "Z")
