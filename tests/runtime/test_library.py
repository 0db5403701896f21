"""The copy of the library that tasks get: all that they may import is in it, and no server is."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tenax.runtime import library
from tests.kits.interpreters import interpreters

#: In a Python that holds nothing but its standard library.
IMPORTS = """
import importlib, pkgutil, sys
sys.path.append(sys.argv[1])
import tenax.client, tenax.core, tenax.experimental.client, tenax.storage.registry
for package in (tenax.client, tenax.core):
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(found.name)
for name in tenax.client.__all__:
    getattr(tenax.client, name)
print(sorted({found.name for found in pkgutil.iter_modules(tenax.__path__)} & {"master", "agent", "scheduler", "core"}))
"""


@pytest.mark.parametrize("python", interpreters())
def test_tasks_can_import_what_is_theirs(python: str, tmp_path: Path) -> None:
    """Every module of core and SDK loads without any other package, also in the oldest Python."""
    copy = library.install(tmp_path)
    done = subprocess.run([python, "-I", "-S", "-c", IMPORTS, str(copy)], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("['core']\n", "")
