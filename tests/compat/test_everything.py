"""Whether the tests here use everything that the client has: its parser and its modules say what that is.

These run where all tests of this folder do, after them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

from tests.compat.client import RealClient

_VERBS = """\
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
_METHODS = """\
import __main__
result = [told for place, name, told in __main__.public_methods()]
"""
Node = tuple[list[str], list["Node"]]


def left_out() -> set[str]:
    """The names in the file."""
    lines = Path(__file__).with_name("left_out.txt").read_text().splitlines()
    return {line.split("  ")[0].strip() for line in lines if line.strip() and not line.startswith("#")}


def verbs(nodes: list[Node], before: tuple[list[str], ...] = ()) -> Iterator[tuple[list[str], ...]]:
    """The paths to the leaves, each word with its aliases."""
    for names, below in nodes:
        path = (*before, names)
        if below:
            yield from verbs(below, path)
        else:
            yield path


def test_every_verb_of_the_command_line(admin: RealClient) -> None:
    """Each was run and went well, or is listed as left out; what is listed exists."""
    known = list(verbs(cast("list[Node]", admin.sdk(_VERBS))))
    out = left_out()
    missing, needless = [], {name for name in out if "." not in name and "_" not in name}
    for path in known:
        name = " ".join(names[0] for names in path)
        covering = {one for one in out if name == one or name.startswith(one + " ")}
        needless -= covering
        used = any(
            len(words) >= len(path) and all(word in names for word, names in zip(words, path))
            for words in admin.called.words
        )
        if not used and not covering:
            missing.append(name)
    assert not missing, f"never run, or never with success: {missing}"
    assert not needless, f"left out, but not there: {sorted(needless)}"


def test_every_method_of_the_sdk(admin: RealClient) -> None:
    """Each public one was called and went well, or is listed as left out."""
    known = set(cast("list[str]", admin.sdk(_METHODS)))
    # What is said of the module is said of the object behind it: one of both is enough.
    used = {name.removeprefix("Determined.") for name in admin.called.methods}
    missing = sorted(name for name in known if name.removeprefix("Determined.") not in used and name not in left_out())
    assert not missing, f"never called, or never with success: {missing}"
