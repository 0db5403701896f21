"""Whether the tests here use everything that the client has: its parser and its modules say what that is.

These run where all tests of this folder do, after them.
"""

from __future__ import annotations

from pathlib import Path
from typing import cast

from tests.compat.client import RealClient
from tests.compat.parser import VERBS, Node, verbs

_METHODS = """\
import __main__
result = [told for place, name, told in __main__.public_methods()]
"""


def left_out() -> set[str]:
    """The names in the file."""
    lines = Path(__file__).with_name("left_out.txt").read_text().splitlines()
    return {line.split("  ")[0].strip() for line in lines if line.strip() and not line.startswith("#")}


def test_every_verb_of_the_command_line(admin: RealClient) -> None:
    """Each was run and went well, or is listed as left out; what is listed exists."""
    known = list(verbs(cast("list[Node]", admin.sdk(VERBS))))
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
