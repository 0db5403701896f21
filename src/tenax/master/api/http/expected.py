"""What a change expects to find, once for all routes: of two people who edit the same thing, the second is told.

A body may bring ``expected``: fields of the thing as they were shown to the sender, each as a whole, or parts of them
by their path (``config.resources.priority``). Where one is otherwise by now, nothing is changed, and the answer is 412
(`Overtaken`). Only what is named is compared: whoever changes a name is not held up by a progress, nor by who changes
the notes. Rules it keeps:

- it is checked in the transaction that writes, once the row is locked: nobody else writes between the two;
- it is compared with what the sender is shown, so that it tells nobody what they may not see;
- without it a change is made whatever is there, as clients of Determined expect.
"""

from __future__ import annotations

from pydantic.alias_generators import to_camel

from tenax.errors import InvalidInput, Overtaken
from tenax.jsonvalue import Json, JsonObject
from tenax.wire.message import Message


def check_expected(expected: JsonObject | None, present: Message, called: str) -> None:
    """Raises Overtaken, naming what is otherwise, and InvalidInput for a field that ``present`` does not have.

    ``present``: the thing as the sender is shown it now. Null is what is absent.
    """
    if not expected:
        return
    shown = present.model_dump(mode="json")
    others = [path for path, value in expected.items() if _at(shown, path, called) != value]
    if others:
        raise Overtaken(f"{called} was changed meanwhile ({', '.join(others)}): read it again, then save")


def _at(shown: JsonObject, path: str, called: str) -> Json:
    first, *steps = path.split(".")
    field = first if first in shown else to_camel(first)
    if field not in shown:
        raise InvalidInput(f"expected.{first}: {called} has no such field")
    there: Json = shown[field]
    for step in steps:
        there = there.get(step) if isinstance(there, dict) else None
    return there
