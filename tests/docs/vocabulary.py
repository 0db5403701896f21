"""Words that this project does not use (any more), and what stands instead: the one list of them.

A name is taken apart at its underscores and capitals, so that ``set_aside`` and ``SetAside`` hold ``aside``. Prose is
what comments, strings and pages say.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

#: In names, and in prose.
BANNED = {
    "tend": "reconcile",
    "tends": "reconciles",
    "tended": "reconciled",
    "tending": "reconcile",
    "afar": "a removal task",
    "doom": "a removal",
    "doomed": "a removal",
    "clearing": "a removal",
    "desk": "pass context",
    "last words": "exit reason",
    "rescue": "timeouts",
    "rescuing": "timeouts",
    "patience": "how long it is tried again, back-off",
}
#: In names alone: good words in a sentence.
BANNED_IN_NAMES = {
    "telling": "webhook delivery",
    "aside": "quarantine",
    "looks": "single flight",
    "retaining": "retention",
    "collecting": "checkpoint gc",
}
#: In names of constants: a limit is ``MAX_``, whatever it bounds.
BANNED_IN_CONSTANTS = {"most": "max", "longest": "max", "largest": "max", "deepest": "max"}
#: Names that do not say what the value is.
EMPTY = frozenset({"told", "wanted", "asked", "said", "heard", "found", "one", "thing", "things", "words"})

#: Names that stay, each with the reason.
ALLOWED = {
    "orphan_after_s": "a setting of agents",
    "spool_patience_s": "a setting of agents",
    "words": "what a trigger of the SDK looks for in the output",
    "AT_MOST": "an operator of filters",
    "ASKED": "a state of a machine: its provider was asked for it",
    "_LARGEST_FOR_S": "how long the names of the largest are remembered: no limit",
}


def used() -> dict[str, list[str]]:
    """Banned word -> where it stands."""
    places: dict[str, list[str]] = {}
    for place, word in _all_used():
        places.setdefault(word, []).append(place)
    return places


def _all_used() -> Iterator[tuple[str, str]]:
    source = ROOT / "src" / "tenax"
    for path in sorted(source.rglob("*.py")):
        yield from ((f"{path.relative_to(ROOT)}:{line}", word) for line, word in of_python(path.read_text()))
        yield from ((str(path.relative_to(ROOT)), word) for word in _in_name(path.stem))
    for path in [*sorted(source.rglob("queries.sql")), *sorted((ROOT / "docs").glob("*.md"))]:
        if path.name != "glossary.md":
            yield from ((str(path.relative_to(ROOT)), word) for word in _in_prose(path.read_text()))


def of_python(text: str) -> Iterator[tuple[int, str]]:
    """Line and word of whatever is banned in a module."""
    for node in ast.walk(ast.parse(text)):
        for name in _names(node):
            yield from ((getattr(node, "lineno", 0), word) for word in _in_name(name))
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from ((node.lineno, word) for word in _in_prose(node.value))
    # To take a module apart takes long, and few have such a word behind any sign of a comment.
    if _in_prose("\n".join(line.partition("#")[2] for line in text.splitlines())):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                yield from ((token.start[0], word) for word in _in_prose(token.string))


def _names(node: ast.AST) -> list[str]:
    """What a node gives a name to; what it only uses is named elsewhere."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
            return [name]
        case ast.alias(asname=str(name)) | ast.MatchAs(name=str(name)):
            return [name]
    return []


def _in_name(name: str) -> set[str]:
    if name in ALLOWED:
        return set()
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_+", " ", name).lower().strip()
    empty = {spaced} & EMPTY
    constants = tuple(BANNED_IN_CONSTANTS) if name.isupper() else ()
    return empty | _phrases(spaced, (*BANNED, *BANNED_IN_NAMES, *constants))


def _in_prose(text: str) -> set[str]:
    for name in ALLOWED:
        text = text.replace(name, "")
    return _phrases(text.replace("_", " ").lower(), tuple(BANNED))


def _phrases(text: str, phrases: tuple[str, ...]) -> set[str]:
    return {phrase for phrase in phrases if phrase in text and re.search(rf"\b{phrase}\b", text)}
