"""The supervising process of a local cluster: ``python -m tenax.local DIRECTORY [LOCK]``; ``tenax up`` starts it.

LOCK is the inherited descriptor that holds the directory's lock. Exit code 0 after a stop that was asked for, 1 when
the cluster did not start: ``supervisor.json`` then says why.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tenax.local.state_dir import StateDir
from tenax.local.supervise.control import supervise

if __name__ == "__main__":
    lock = int(sys.argv[2]) if len(sys.argv) > 2 else None
    sys.exit(supervise(StateDir(Path(sys.argv[1])), lock))
