"""What the comments above the fields of a class say (``#: ...``), for whoever writes a configuration.

They stand once, in the sources; where an installation has none, nothing is said.
"""

from __future__ import annotations

import inspect
import re

_FIELD = re.compile(r"\s{4}(\w+): ")
_COMMENT = re.compile(r"\s{4}#: ?(.*)")


def comments_of(cls: type[object]) -> dict[str, str]:
    """Field -> the comment right above it, of a class and those that it is made of."""
    comments: dict[str, str] = {}
    for each in reversed(cls.__mro__):
        comments |= _own_comments(each)
    return comments


def _own_comments(cls: type[object]) -> dict[str, str]:
    try:
        lines = inspect.getsource(cls).splitlines()
    except (OSError, TypeError):
        return {}
    comments: dict[str, str] = {}
    above: list[str] = []
    for line in lines:
        comment, field = _COMMENT.fullmatch(line), _FIELD.match(line)
        if comment:
            above.append(comment[1])
        else:
            if field and above:
                comments[field[1]] = " ".join(above)
            above = []
    return comments
