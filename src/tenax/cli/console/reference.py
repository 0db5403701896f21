"""The reference page of the command line, made from the commands themselves: ``make docs``.

``docs/cli.md`` is what this prints; a test compares them, so that no option stays undocumented.
"""

from __future__ import annotations

import ast
import inspect
from typing import Iterator, List, Tuple

import click

from tenax.cli.console import exits
from tenax.cli.console.lazy import LazyGroup
from tenax.cli.main import cli

_HEAD = """# Command line

Every command explains itself with `--help`. Data goes to standard output, everything else to standard error; a
command that reads takes `--json`. There is no colour unless a terminal shows it, and none with `NO_COLOR`.

| variable | meaning |
|---|---|
| `DET_MASTER` | address of the master, for commands and for the SDK |
| `TENAX_DIR` | directory of the cluster of this machine (default `~/.tenax`, for root `/var/lib/tenax`) |
| `DET_USER`, `DET_PASS` | login of programs ([what goes before what](access.md#which-cluster-and-as-whom)) |
| `DET_MASTER_CERT_FILE` | certificate of a master with TLS, or `noverify` |
| `DET_MASTER_CERT_NAME` | the name that it is checked for, instead of the one in the address |
| `TENAX_DEBUG` | show where an error came from |

This page is made from the commands: `make docs`.
"""


def page() -> str:
    """The whole page."""
    parts = [_HEAD, "## Exit codes\n", "| code | meaning |\n|---|---|"]
    parts += [f"| {code} | {meaning} |" for code, meaning in codes()]
    for path, command in _commands(cli, "tenax"):
        parts.append(f"\n## {path}\n\n{_described(path, command)}")
    return "\n".join(parts) + "\n"


def codes() -> Iterator[Tuple[int, str]]:
    """Each exit code and the comment that stands over it."""
    source = inspect.getsource(exits)
    lines = source.splitlines()
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            comments: List[str] = []
            row = node.lineno - 2
            while lines[row].startswith("#: "):
                comments.insert(0, lines[row][3:])
                row -= 1
            yield int(str(node.value.value)), " ".join(comments)


def _commands(command: click.Command, path: str) -> Iterator[Tuple[str, click.Command]]:
    yield path, command
    if not isinstance(command, click.Group):
        return
    context = click.Context(command, info_name=path)
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        if inner is not None and not inner.hidden:
            yield from _commands(inner, f"{path} {name}")


def _described(path: str, command: click.Command) -> str:
    context = click.Context(command, info_name=path, max_content_width=96, terminal_width=96)
    parts = [inspect.cleandoc(command.help or "").replace("\f", "")]
    usage = " ".join(command.collect_usage_pieces(context))
    parts.append(f"\n    {path} {usage}\n")
    options = [line for parameter in command.params if (line := _option(parameter, context))]
    if options:
        parts += ["| option | meaning |", "|---|---|", *options]
    if isinstance(command, LazyGroup):
        aliases = {name: [] for name in command.list_commands(context)}  # type: dict[str, List[str]]
        for alias, name in command.aliases.items():
            aliases[name].append(f"`{alias}`")
        short = [f"`{name}` is also {', '.join(names)}" for name, names in aliases.items() if names]
        if short:
            parts.append("\n" + "; ".join(short) + ".")
    return "\n".join(parts).strip()


def _option(parameter: click.Parameter, context: click.Context) -> str:
    record = parameter.get_help_record(context)
    if record is None or "--help" in parameter.opts:
        return ""
    return f"| `{record[0].replace('|', chr(92) + '|')}` | {record[1].strip()} |"


if __name__ == "__main__":
    print(page(), end="")
