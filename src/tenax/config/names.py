"""Names and patterns in a configuration: what is called how when nobody named it, and which patterns users may write.

A made name is three words that are easy to say and to remember. A pattern is in RE2's syntax, and checked for what
Python's engine cannot take or takes differently.
"""

from __future__ import annotations

import random
import re

_MANNERS = (
    *("amber", "bold", "brisk", "calm", "candid", "clear", "crisp", "curious", "daring", "deft", "eager", "early"),
    *("even", "fair", "fleet", "gentle", "glad", "golden", "grand", "hardy", "honest", "humble", "jolly", "keen"),
    *("kind", "light", "lively", "lucid", "mellow", "merry", "mild", "modest", "neat", "nimble", "noble", "patient"),
    *("plain", "proud", "quick", "quiet", "rapid", "ready", "serene", "silver", "sleek", "smooth", "spry", "steady"),
    *("still", "sunny", "swift", "tidy", "true", "vivid", "warm", "wise", "witty", "young"),
)
_MATERIALS = (
    *("agate", "alder", "ash", "aspen", "basalt", "beech", "birch", "brass", "cedar", "chalk", "clay", "cobalt"),
    *("copper", "coral", "cotton", "flint", "glass", "granite", "hazel", "indigo", "iron", "ivory", "jade", "larch"),
    *("linen", "maple", "marble", "oak", "olive", "onyx", "opal", "paper", "pearl", "pine", "quartz", "rowan"),
    *("ruby", "sand", "satin", "slate", "steel", "stone", "teak", "timber", "velvet", "walnut", "willow", "wool"),
)
_BEINGS = (
    *("badger", "bison", "crane", "cricket", "dolphin", "dove", "eagle", "falcon", "ferret", "finch", "fox", "gecko"),
    *("gull", "hare", "hawk", "heron", "ibis", "jackal", "kestrel", "lark", "lemur", "lynx", "magpie", "marten"),
    *("mole", "newt", "ocelot", "orca", "otter", "owl", "panda", "petrel", "plover", "puffin", "quail", "raven"),
    *("robin", "salmon", "seal", "shrew", "sparrow", "stoat", "swan", "tern", "toad", "trout", "vole", "wren"),
)


def readable_name(rng: random.Random) -> str:
    """A name such as ``calm-cedar-otter``; the same generator state gives the same name."""
    return "-".join(rng.choice(names) for names in (_MANNERS, _MATERIALS, _BEINGS))


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
