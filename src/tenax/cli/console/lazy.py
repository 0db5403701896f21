"""Groups of commands that are imported when one of them is called, and are known under several names."""

from __future__ import annotations

import difflib
import importlib
import os
from dataclasses import dataclass
from typing import Dict, List, Mapping, Optional, Tuple

import click

#: Set by a shell while it completes.
_COMPLETING = "_TENAX_COMPLETE"


@dataclass(frozen=True)
class LazyCommand:
    """A command that is not imported yet."""

    #: ``tenax.cli.experiment.commands:group``.
    home: str
    help: str
    aliases: Tuple[str, ...] = ()

    def load(self) -> click.Command:
        """Import it."""
        module, _, attribute = self.home.partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command


#: Arguments that may be empty, by their names in a usage line: text that is taken as it is.
_MAY_BE_EMPTY = ("TEXT", "[--] PROGRAM [ARGUMENT]...", "[-- PROGRAM [ARGUMENT]...]")


class StrictCommand(click.Command):
    """A command that refuses an empty argument where it takes a name or an id.

    In a script that is a variable which is not set: `tenax command kill "$ID"` must not find what begins with nothing.
    """

    def parse_args(self, ctx: click.Context, args: List[str]) -> List[str]:
        rest = super().parse_args(ctx, args)
        for parameter in self.params:
            named = isinstance(parameter, click.Argument) and parameter.make_metavar(ctx) not in _MAY_BE_EMPTY
            if named and not ctx.resilient_parsing:
                given = ctx.params.get(parameter.name or "")
                if "" in (given if isinstance(given, (tuple, list)) else (given,)):
                    raise click.BadParameter("it is empty.", ctx, parameter)
        return rest


class LazyGroup(click.Group):
    """A click group with aliases, lazy members, and a suggestion where a name is wrong."""

    command_class = StrictCommand

    def __init__(
        self,
        name: Optional[str] = None,
        *,
        entries: Optional[Mapping[str, LazyCommand]] = None,
        **options: object,
    ) -> None:
        super().__init__(name, **options)  # type: ignore[arg-type]
        self._entries = dict(entries or {})
        #: Alias -> the command that it stands for.
        self.aliases: Dict[str, str] = {alias: name for name, entry in self._entries.items() for alias in entry.aliases}

    def alias(self, name: str, *others: str) -> None:
        """Let ``others`` be aliases of the command ``name``."""
        self.aliases.update(dict.fromkeys(others, name))

    def list_commands(self, ctx: click.Context) -> List[str]:
        return [*self._entries, *(name for name in self.commands if name not in self._entries)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> Optional[click.Command]:
        name = self.aliases.get(cmd_name, cmd_name)
        entry = self._entries.get(name)
        command = super().get_command(ctx, name) if entry is None else entry.load()
        if isinstance(command, StrictCommand) and _COMPLETING in os.environ:
            from tenax.cli.console.completion import teach

            teach(self._noun(ctx), name, command)
        return command

    def _noun(self, ctx: click.Context) -> str:
        """The name under which the root knows this group; that of the group it is in, where it is in one."""
        while ctx.parent is not None and ctx.parent.parent is not None:
            ctx = ctx.parent
        root = ctx.parent.command if ctx.parent is not None else None
        called = ctx.info_name or ""
        return root.aliases.get(called, called) if isinstance(root, LazyGroup) else called

    def resolve_command(
        self, ctx: click.Context, args: List[str]
    ) -> Tuple[Optional[str], Optional[click.Command], List[str]]:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            names = [*self.list_commands(ctx), *self.aliases]
            near = [*self._with_command(ctx, args[0]), *difflib.get_close_matches(args[0], names, n=1)]
            hint = f" Did you mean {near[0]!r}?" if near else ""
            ctx.fail(f"No such command {args[0]!r}.{hint}")
        return super().resolve_command(ctx, args)

    def _with_command(self, ctx: click.Context, name: str) -> List[str]:
        """Where a command of this name is, if exactly one group has it: ``user whoami``."""
        groups = [(home, entry.load()) for home, entry in self._entries.items()]
        paths = [f"{home} {name}" for home, group in groups if isinstance(group, LazyGroup) and group.has(ctx, name)]
        return paths if len(paths) == 1 else []

    def has(self, ctx: click.Context, name: str) -> bool:
        """Whether a command is called so, or also so."""
        return name in self.aliases or name in self.list_commands(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows: List[Tuple[str, str]] = []
        for name in self.list_commands(ctx):
            aliases = [alias for alias, meant in self.aliases.items() if meant == name]
            shown = ", ".join([name, *aliases])
            entry = self._entries.get(name)
            if entry is not None:
                rows.append((shown, entry.help))
                continue
            command = self.commands[name]
            if not command.hidden:
                rows.append((shown, command.get_short_help_str(limit=90)))
        with formatter.section("Commands"):
            formatter.write_dl(rows)
