"""``hang``: when a trial whose ranks stand still is said to hang, and what is done then."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Annotated

from tenax.config.schema.durations import duration
from tenax.config.shapes import Number, OneOf, Respelled
from tenax.config.structs import Struct


class HangPolicy(str, Enum):
    """What follows when a trial hangs."""

    #: It is said, in the log and wherever the trial is shown.
    WARN = "warn"
    #: Its ranks are ended as well, and begin again from the latest checkpoint; that counts as a failure.
    RESTART = "restart"
    #: Nobody watches.
    OFF = "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class HangConfig:
    """When a trial whose ranks stand still hangs, and what is done then."""

    #: Seconds, or as in '5m', for which a rank may do nothing; ten times its own usual step, if that is more.
    after: Annotated[float, Respelled(Number(minimum=1), duration)] = 60
    policy: Annotated[HangPolicy, OneOf(HangPolicy)] = HangPolicy.WARN


HANG = Struct(HangConfig)
