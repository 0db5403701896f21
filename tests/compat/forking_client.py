"""Determined's own client, loaded once: each request is served by a fork, so that none sees what another left.

Runs in the environment of the client, not in ours. A request is a line of JSON on standard input:

    {"argv": ["e", "list"], ...}        its command line with these words
    {"code": "result = ...", ...}       Python, with `client` (determined.experimental.client) and ``values`` at hand

and both name ``environment``, ``directory``, and the files ``out``, ``err`` and ``result``. The answer is a line with
the exit code.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
from pathlib import Path

CLI = "determined.cli.cli"
SDK = "determined.experimental.client"


def serve(request: dict[str, object]) -> int:
    """In the fork: do what is asked for. Returns the exit code."""
    for name in [name for name in os.environ if name.startswith("DET_")]:
        del os.environ[name]
    os.environ.update(dict(request["environment"]))  # type: ignore[call-overload]
    os.chdir(str(request["directory"]))
    for descriptor, name in ((1, "out"), (2, "err")):
        target = os.open(str(request[name]), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(target, descriptor)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    try:
        if "argv" in request:
            importlib.import_module(CLI).main(request["argv"])
        else:
            space: dict[str, object] = {"client": importlib.import_module(SDK), **dict(request["values"])}  # type: ignore[call-overload]
            exec(compile(str(request["code"]), "<sdk>", "exec"), space)
            Path(str(request["result"])).write_text(json.dumps(space.get("result"), default=str))
    except SystemExit as left:
        if isinstance(left.code, str):
            print(left.code, file=sys.stderr)
        return left.code if isinstance(left.code, int) else 0 if left.code is None else 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def main() -> None:
    """Load the client, then serve until standard input ends."""
    for name in (CLI, SDK):
        importlib.import_module(name)
    # A fork writes where its request says, and the answers go where nobody else writes.
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                code = serve(json.loads(line))
                sys.stdout.flush()
                sys.stderr.flush()
            finally:
                os._exit(code & 0xFF)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        print(json.dumps({"code": code}), file=answers, flush=True)


if __name__ == "__main__":
    main()
