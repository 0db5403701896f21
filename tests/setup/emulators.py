"""Brings the servers of protocols that come from npm, into ``tests/setup/emulators``. Safe to run again.

Node is found as for the web page (``webui/build.py``).
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

PLACE = Path(__file__).resolve().parent / "emulators"
_BUILD = Path(__file__).resolve().parents[2] / "webui" / "build.py"


def main() -> int:
    """Install what the lock file names. Returns 1 where that fails."""
    spec = importlib.util.spec_from_file_location("tenax_webui_build", _BUILD)
    assert spec is not None
    assert spec.loader is not None
    webui = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(webui)
    try:
        # It may bring node into the same place.
        with webui.alone():
            environment = webui.with_node(bring_node=True)
        webui.install(environment, PLACE)
    except webui.BuildFailed as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
