"""Which files a page names, and where each would be: what the tests of the pages share.

A name in backquotes is a file's when it has a folder, and an ending or a slash at its end. ``<noun>`` stands for any
name, and so does ``*``. Names are below ``src/tenax``, ``src/tenax/master``, ``src``, the root of the
project or ``webui/src``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: Where a name may begin, the usual one first.
BASES = (ROOT / "src" / "tenax", ROOT / "src" / "tenax" / "master", ROOT / "src", ROOT, ROOT / "webui" / "src")
#: In a name: as long as it is a path.
_NAMED = re.compile(r"`([\w.*<>{},-]+(?:/[\w.*<>{},-]+)*(?:\.(?:py|sql|md|toml|pem|yaml)|/))(?::\w+)?`")


def named_files(text: str) -> Iterator[str]:
    """Every file or folder that a page names."""
    for name in _NAMED.findall(text):
        if "/" in name:
            yield name


def homes(name: str) -> list[Path]:
    """The files that a name means; none: there is no such file."""
    pattern = re.sub(r"<\w+>", "*", name).rstrip("/")
    return [path for base in BASES for path in base.glob(pattern)]
