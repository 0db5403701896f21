"""Regular expressions from users: RE2's syntax, checked for what Python's engine cannot take or takes differently."""

from __future__ import annotations

import re


def check_pattern(pattern: str) -> str | None:
    """What is wrong with ``pattern``, or None. Look-around and back-references are refused: RE2 has none."""
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return str(error)
    if re.search(r"(?<!\\)(?:\\\\)*\(\?(?:=|!|<=|<!|\()", pattern):
        return "look-around and conditions are not supported"
    if re.search(r"(?<!\\)(?:\\\\)*(?:\\[1-9]|\(\?P=)", pattern):
        return "references to earlier groups are not supported"
    return None
