"""A supervising process over small servers of the test's own: ``python little_cluster.py ROOT NAME=SCRIPT...``.

Each SCRIPT is the text of a Python program. A name ending in ``!`` is vital. A server is ready once it has made the
file ``NAME.ready`` in ROOT.
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

from tenax.errors import TenaxError
from tenax.local.holders import call_this_process_supervisor
from tenax.local.state_dir import StateDir
from tenax.local.supervise.options import Options, save_options
from tenax.local.supervise.services import ServerProcess, Service
from tenax.local.supervise.supervisor import ClusterSupervisor


def service(state: StateDir, argument: str) -> Service:
    name, script = argument.split("=", 1)
    ready = state.root / f"{name.rstrip('!')}.ready"
    return ServerProcess(
        name.rstrip("!"),
        [sys.executable, "-c", script],
        log=state.log(name.rstrip("!")),
        directory=state.root,
        environment=lambda: {**os.environ, "READY": str(ready)},
        answers=ready.exists,
        vital=name.endswith("!"),
    )


def main() -> int:
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    state = StateDir(Path(sys.argv[1]))
    call_this_process_supervisor()
    state.prepare()
    save_options(state, Options())
    lock = state.take_lock()
    assert lock is not None
    services = [service(state, argument) for argument in sys.argv[2:]]
    try:
        ClusterSupervisor(state, services, {"url": "http://127.0.0.1:1"}, lock).run()
    except TenaxError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
