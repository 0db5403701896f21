"""The command line run in this process: how a command ended, and the variables of the environment that it reads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class Done:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str


#: What the fixture ``tenax`` is: ``tenax("experiment", "list")``.
Tenax = Callable[..., Done]
#: What would tell it of a master, or of a login.
VARIABLES = ("DET_MASTER", "DET_USER", "DET_PASS", "DET_USER_TOKEN", "DET_MASTER_CERT_FILE")
