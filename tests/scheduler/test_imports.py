"""Each module of the scheduler can be imported by itself."""

from __future__ import annotations

import subprocess
import sys

#: In one interpreter, which forgets all of them between two: a cycle shows only in the module that is first.
_EACH_FIRST = """
import importlib, pkgutil, sys
import tenax.scheduler
names = [each.name for each in pkgutil.walk_packages(tenax.scheduler.__path__, "tenax.scheduler.")]
assert "tenax.scheduler.demand" in names
for name in names:
    for loaded in [each for each in sys.modules if each.startswith("tenax.scheduler")]:
        del sys.modules[loaded]
    try:
        importlib.import_module(name)
    except ImportError as error:
        print(f"{name}: {error}")
"""


def test_each_module_can_be_the_first() -> None:
    """Whatever was imported before it: there is no cycle among them."""
    ran = subprocess.run([sys.executable, "-c", _EACH_FIRST], capture_output=True, text=True, timeout=240, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
