"""Groups with commands about a server, which run the server itself when they are called with its options."""

from __future__ import annotations

import os
import sys
from typing import List, NoReturn, Optional

import click

from tenax.cli.console.lazy import LazyGroup


class ServerGroup(LazyGroup):
    """``tenax NAME COMMAND`` as ever; ``tenax NAME [OPTIONS]`` becomes ``python -m MODULE [OPTIONS]``."""

    def __init__(self, name: Optional[str] = None, *, module: str, **options: object) -> None:
        super().__init__(name, **{"invoke_without_command": True, **options})  # type: ignore[arg-type]
        self._module = module

    def parse_args(self, ctx: click.Context, args: List[str]) -> List[str]:
        if args and (args[0] in ("-h", "--help") or self.get_command(ctx, args[0]) is not None):
            return super().parse_args(ctx, args)
        if args and not args[0].startswith("-"):
            return super().parse_args(ctx, args)
        return become(self._module, args)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Options of the server"):
            formatter.write_text(f"python -m {self._module} --help lists them.")


def become(module: str, arguments: List[str]) -> NoReturn:
    """Replace this process with a server: signals and exit status are its own."""
    from tenax.local.requirements import refuse_without_servers
    from tenax.local.supervise.python import refuse_old_python

    refuse_old_python()
    refuse_without_servers()
    os.execv(sys.executable, [sys.executable, "-P", "-m", module, *arguments])
