"""``python -m tests.kits.watched_master``: a master that tells how long its event loop was held.

For each line on standard input a line of JSON on standard output: the longest callback since the line before. It runs
under the standard library's event loop: that of uvloop lets nobody look at a callback.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading

import uvloop

from tenax.master.__main__ import main
from tests.kits.watchdog import LONGEST, forget, install, watched


def _answer() -> None:
    for _ in sys.stdin:
        print(json.dumps({"ms": round(LONGEST.seconds * 1e3, 2), "by": LONGEST.told}), flush=True)
        forget()


if __name__ == "__main__":
    install()
    uvloop.new_event_loop = asyncio.new_event_loop  # type: ignore[assignment]
    threading.Thread(target=_answer, daemon=True).start()
    with watched("the master"):
        sys.exit(main())
