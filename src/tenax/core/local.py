"""Where things go when a script runs off the cluster: files of this user. Standard library only, Python 3.9.

``TENAX_DATA_DIR``, else the place that the system has for such data. Under it: ``checkpoints/<id>/`` and
``runs/<time>-<process>/reports.jsonl``, one line for each report, in the format of the spool.
"""

from __future__ import annotations

import os
import sys
from time import localtime, strftime

from tenax.core.spool_file import SpoolFile


def data_directory() -> str:
    """The directory of this user's data; not made here."""
    chosen = os.environ.get("TENAX_DATA_DIR")
    if chosen:
        return os.path.abspath(chosen)
    home = os.path.expanduser("~")
    if sys.platform == "darwin":
        return os.path.join(home, "Library", "Application Support", "tenax")
    return os.path.join(os.environ.get("XDG_DATA_HOME") or os.path.join(home, ".local", "share"), "tenax")


def checkpoint_directory() -> str:
    return os.path.join(data_directory(), "checkpoints")


def report_file() -> SpoolFile:
    """The file for the reports of this run; made with the first report."""
    run = f"{strftime('%Y%m%d-%H%M%S', localtime())}-{os.getpid()}-{os.urandom(2).hex()}"
    return SpoolFile(os.path.join(data_directory(), "runs", run), "reports")
