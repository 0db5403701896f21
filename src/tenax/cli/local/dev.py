"""``tenax dev``: the web page from its sources, for whoever works on it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

import tenax
from tenax.cli.console import output
from tenax.cli.console.options import Access, pass_access
from tenax.errors import UserError


@click.command("dev")
@click.option("--port", type=click.IntRange(1, 65535), default=5173, show_default=True, help="Serve it at this port.")
@pass_access
def dev(access: Access, port: int) -> None:
    """Serve the web page from its sources, as they are saved, with the data of a master.

    For those who work on the page, in a checkout that is installed with: pip install -e '.[dev]'. What is saved is
    shown at once. It ends with Ctrl-C.
    """
    program = Path(tenax.__file__).resolve().parents[2] / "webui" / "build.py"
    if not program.is_file():
        raise UserError(
            "The sources of the web page are not beside this installation: in a checkout, pip install -e '.[dev]'"
            " and run tenax dev of that environment."
        )
    master = access.session().url
    output.say(f"The page of {master} from {program.parent}: http://127.0.0.1:{port}/ui/")
    os.execv(sys.executable, [sys.executable, str(program), "--serve", master, "--port", str(port)])
