"""Where this user's own data lies: what runs by hand keep. Standard library only, Python 3.9."""

from __future__ import annotations

import os
import sys

#: Names the directory of this user's data.
VARIABLE = "TENAX_DATA_DIR"


def data_directory() -> str:
    """The directory of this user's data; not made here."""
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return os.path.abspath(chosen)
    home = os.path.expanduser("~")
    if sys.platform == "darwin":
        return os.path.join(home, "Library", "Application Support", "tenax")
    return os.path.join(os.environ.get("XDG_DATA_HOME") or os.path.join(home, ".local", "share"), "tenax")


def checkpoint_directory() -> str:
    """Where runs by hand save."""
    return os.path.join(data_directory(), "checkpoints")
