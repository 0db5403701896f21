"""How a machine that lacks tenax gets it: the wheel comes from the master, and this says with what it is installed.

What is named here goes into a script that runs on the machine, as one word each, and is refused where it holds a
password (everyone at the cluster sees how a start went; pip's own configuration on the machine may have one), is no
address or path, or is longer than a line.
"""

from __future__ import annotations

import re
from typing import Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from tenax.config.settings import Settings

#: Characters of an address or a path.
_LINE = 500


class AgentInstallSettings(Settings):
    """Where what tenax needs comes from, and which Python runs it. All empty: as pip is configured on the machine."""

    #: A program or its path: Python 3.11 or newer with venv. What is installed there the agent and its tasks have, too.
    python: str = Field(default="python3", max_length=_LINE)
    #: The package index that is asked: ``https://pypi.example.org/simple``.
    index_url: str = ""
    #: A directory of the machine, or a page, with the wheels of all that tenax needs: no index is asked then.
    wheelhouse: str = ""

    @property
    def size(self) -> int:
        """Bytes that it takes of a script, at most."""
        return len(self.python) + len(self.index_url) + len(self.wheelhouse)

    @property
    def pip_options(self) -> tuple[str, ...]:
        """What pip is told of it."""
        if self.wheelhouse:
            return "--no-index", "--find-links", self.wheelhouse
        return ("--index-url", self.index_url) if self.index_url else ()

    @field_validator("python")
    @classmethod
    def _is_a_program(cls, given: str) -> str:
        if not re.fullmatch(r"[A-Za-z0-9_/][A-Za-z0-9._/+-]*", given):
            raise ValueError("write the name of a program, or its path, as in python3.12 or /opt/python/bin/python3")
        return given

    @field_validator("index_url", "wheelhouse")
    @classmethod
    def _is_a_line(cls, given: str) -> str:
        if len(given) > _LINE or not re.fullmatch(r"[!-&(-~]*", given):
            raise ValueError(f"write at most {_LINE} plain characters without blanks and quotes")
        return given

    @field_validator("index_url")
    @classmethod
    def _is_an_address(cls, given: str) -> str:
        if given and not _is_address(given):
            raise ValueError("write a whole address without a password: https://pypi.example.org/simple")
        return given

    @field_validator("wheelhouse")
    @classmethod
    def _is_a_place(cls, given: str) -> str:
        if given and not given.startswith("/") and not _is_address(given):
            raise ValueError(
                "write an absolute path of the machine, as in /opt/wheels, or a whole address without a password"
            )
        return given

    @model_validator(mode="after")
    def _is_one_source(self) -> Self:
        if self.index_url and self.wheelhouse:
            raise ValueError("with a wheelhouse no index is asked: leave index_url out, or wheelhouse")
        return self


def _is_address(given: str) -> bool:
    parts = urlsplit(given)
    return parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
