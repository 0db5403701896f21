"""Determined's own client, loaded once: each request is served by a fork, so that none sees what another left.

Runs in the environment of the client, not in ours. A request is a line of JSON on standard input:

    {"argv": ["e", "list"], ...}        its command line with these words
    {"code": "result = ...", ...}       Python, with `client` (determined.experimental.client) and ``values`` at hand

and both name ``environment``, ``directory``, and the files ``out``, ``err``, ``result`` and ``calls`` (the names of the
SDK's methods that were called). The answer is a line with the exit code.
"""

from __future__ import annotations

import functools
import gc
import importlib
import inspect
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

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
            called = recorded()
            space: dict[str, object] = {"client": importlib.import_module(SDK), **dict(request["values"])}  # type: ignore[call-overload]
            try:
                exec(compile(str(request["code"]), "<sdk>", "exec"), space)
            finally:
                Path(str(request["calls"])).write_text(json.dumps(sorted(called)))
            Path(str(request["result"])).write_text(json.dumps(space.get("result"), default=str))
    except SystemExit as left:
        if isinstance(left.code, str):
            print(left.code, file=sys.stderr)
        return left.code if isinstance(left.code, int) else 0 if left.code is None else 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def public_methods() -> list[tuple[object, str, str]]:
    """Each public method of the SDK: where it is, its name there, and its name for people."""
    sdk = importlib.import_module(SDK)
    found: list[tuple[object, str, str]] = []
    for name, thing in vars(sdk).items():
        if name.startswith("_"):
            continue
        if inspect.isfunction(thing) and thing.__module__ == SDK:
            found.append((sdk, name, name))
        elif inspect.isclass(thing) and thing.__module__.startswith("determined"):
            methods = [one for one, value in vars(thing).items() if inspect.isfunction(value) and one[0] != "_"]
            found += [(thing, one, f"{name}.{one}") for one in methods]
    return found


def recorded() -> set[str]:
    """From now on the names of the public methods that are called from outside of the SDK."""
    called: set[str] = set()
    depth = [0]

    def noting(function: Any, told: str) -> Any:
        @functools.wraps(function)
        def noted(*arguments: Any, **more: Any) -> Any:
            if depth[0] == 0:
                called.add(told)
            depth[0] += 1
            try:
                return function(*arguments, **more)
            finally:
                depth[0] -= 1

        return noted

    for place, name, told in public_methods():
        setattr(place, name, noting(getattr(place, name), told))
    return called


def main() -> None:
    """Load the client, then serve until standard input ends. With the argument ``sdk``: without its command line."""
    for name in (SDK,) if sys.argv[1:] == ["sdk"] else (CLI, SDK):
        importlib.import_module(name)
    # Forks share what is loaded: a collector that looks through it would copy all of it into each.
    gc.freeze()
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
