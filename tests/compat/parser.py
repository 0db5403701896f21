"""The parser of Determined's command line, read for its verbs."""

from __future__ import annotations

from collections.abc import Iterator

#: Run by the client; its result is a list of `Node`.
VERBS = """\
import argparse
from determined.cli import cli

def nodes(parser):
    found = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            names = {}
            for name, below in action.choices.items():
                names.setdefault(id(below), (below, []))[1].append(name)
            found += [[told, nodes(below)] for below, told in names.values() if told != ["help"]]
    return found

parser = cli.make_parser()
cli.cli.add_args(parser, cli.all_args_description)
result = nodes(parser)
"""
#: A word of the command line with its aliases, and what may follow it.
Node = tuple[list[str], list["Node"]]


def verbs(nodes: list[Node], before: tuple[list[str], ...] = ()) -> Iterator[tuple[list[str], ...]]:
    """The paths to the leaves, each word with its aliases."""
    for names, below in nodes:
        path = (*before, names)
        if below:
            yield from verbs(below, path)
        else:
            yield path
