"""What befalls a process from within: loaded by every Python program that has this folder on its PYTHONPATH.

`TENAX_FAULTS` names a directory (`tests/kits/inside_faults.py` writes to it):

- ``clock-<role>``: what the clock of a role's process is off by, as ``clock.c`` reads it;
- ``hang-<loop>``: the next pass of this loop of the master hangs, in the way that the file says; the file is renamed to
  ``hung-<loop>`` when it does.

Roles: ``master``, ``agent``, ``task``. It imports nothing of tenax: it runs before anything else.
"""

from __future__ import annotations

import os
import sys

_FAULTS = os.environ.get("TENAX_FAULTS", "")
_LOOPS = "tenax.master.loops.loop"
#: A hung pass is given up after so many seconds.
_STEP_S = 3.0


def _role() -> str:
    words = " ".join(sys.orig_argv)
    for role, program in (("master", "-m tenax.master"), ("agent", "-m tenax.agent")):
        if program in words:
            return role
    return "task" if "DET_CONTAINER_ID" in os.environ else ""


def _own_clock(role: str) -> None:
    import ctypes

    assert ctypes.CDLL(None).follow(os.path.join(_FAULTS, f"clock-{role}").encode()) == 0
    # What this process starts has the machine's clock.
    del os.environ["LD_PRELOAD"]


class _Finder:
    """Changes the module of the loops once it is loaded."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> object:
        if name != _LOOPS:
            return None
        import importlib.util

        sys.meta_path.remove(self)  # type: ignore[arg-type]
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.loader is not None
        load = spec.loader.exec_module

        def exec_module(module: object) -> None:
            load(module)  # type: ignore[arg-type]
            _let_passes_hang(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _let_passes_hang(module: object) -> None:
    make_pass = module._make_pass  # type: ignore[attr-defined]

    async def may_hang(loop: object, context: object, woken: object, tenure: object) -> float | None:
        name: str = loop.name  # type: ignore[attr-defined]
        if how := _due(name):
            tenure.step_s = _STEP_S  # type: ignore[attr-defined]
            loop = _Hung(how)
        found: float | None = await make_pass(loop, context, woken, tenure)
        return found

    module._make_pass = may_hang  # type: ignore[attr-defined]


def _due(loop: str) -> str:
    """How it is to hang now; "" for not at all."""
    file, done = (os.path.join(_FAULTS, f"{state}-{loop}") for state in ("hang", "hung"))
    if not os.path.exists(file):
        return ""
    os.rename(file, done)
    with open(done) as opened:
        return opened.read()


class _Hung:
    """A loop whose pass does not come back."""

    def __init__(self, how: str) -> None:
        self._how = how

    async def make_pass(self, context: object, woken: object) -> float | None:
        import asyncio
        import select

        if self._how == "blocks":
            select.select([], [], [], 3600.0)
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if self._how != "stubborn":
                    raise


if _FAULTS:
    if "LD_PRELOAD" in os.environ and _role():
        _own_clock(_role())
    if _role() == "master":
        sys.meta_path.insert(0, _Finder())  # type: ignore[arg-type]
