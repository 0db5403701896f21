"""The command line run in this process: how a command ended, and the variables of the environment that it reads."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass

import pytest

from tenax.cli.main import run


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


def run_here(environment: Mapping[str, str], *arguments: str) -> Done:
    """``tenax`` with these arguments and this environment alone: a process of its own takes long to import it."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        for name in os.environ.keys() - environment.keys():
            patch.delenv(name)
        for name, value in environment.items():
            patch.setenv(name, value)
        code = run(list(arguments))
    return Done(code, out.getvalue(), err.getvalue())
