"""``python -m tenax.master``: one master process.

Settings come from a file (``--config``), the environment (``TENAX_MASTER_...``) and flags. Exit status: 0 after it was
asked to end, 2 when it cannot start as it was told to (settings, a port in use), 1 for anything else.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
from functools import partial
from pathlib import Path

from tenax.errors import InvalidInput, TenaxError, UserError
from tenax.jsonvalue import Json


def main() -> int:
    """Run; the exit status."""
    given = _arguments().parse_args()
    # Hardly anything of what is loaded until it serves is ever garbage: to look for it would take a tenth of the start.
    gc.disable()
    # structlog loads it for tracebacks that show the values of variables, which ours never do.
    sys.modules["rich"] = None  # type: ignore[assignment]
    import uvloop

    from tenax.config.master import load_master_settings
    from tenax.master.context import SettingsFile
    from tenax.master.observability.log import set_up
    from tenax.master.process import serve

    flags: dict[str, Json] = {
        "host": given.host,
        "port": given.port,
        "dir": given.dir,
        "cluster_name": given.cluster_name,
        "log.level": given.log_level,
        "log.json_lines": True if given.log_json else None,
    }
    try:
        read = partial(load_master_settings, given.config, flags=flags)
        settings = read()
        set_up(settings.log)
        if given.existing_dir and not settings.dir.is_dir():
            # Made anew it would hold the passwords of a cluster that is kept elsewhere by now.
            raise InvalidInput(f"{settings.dir} is not there any more")
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve(SettingsFile(read, settings), make_dir=not given.existing_dir))
    except UserError as error:
        sys.stderr.write(f"tenax master: {error}\n")
        return 2
    except TenaxError as error:
        sys.stderr.write(f"tenax master: {error}\n")
        return 1
    return 0


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m tenax.master", description="The master of a Tenax cluster.")
    parser.add_argument("--config", type=Path, help="YAML file with settings")
    parser.add_argument("--host", help="address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=int, help="port to listen on (8080)")
    parser.add_argument("--dir", help="directory for what this master keeps on disk")
    parser.add_argument("--existing-dir", action="store_true", help="start only where that directory is there already")
    parser.add_argument("--cluster-name", help="name that people are shown")
    parser.add_argument("--log-level", choices=("debug", "info", "warning", "error"))
    parser.add_argument("--log-json", action="store_true", help="one JSON object per line")
    return parser


if __name__ == "__main__":
    sys.exit(main())
