"""Values say at each field where it stands in the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, cast

from tenax.client.connection.reading import Answer, LiveAnswer, integer, made, made_live, measure, part, text
from tenax.client.connection.session import Session


@dataclass(frozen=True)
class Box(Answer):
    name: str = part(text, "name")
    depth: int = part(integer, "inside", "size", "depth")
    weight: Optional[float] = part(measure, "weight")
    secret: str = part(text, "secret", shown=False)
    label: str = made(lambda value: f"<{text(value, 'name')}>")


@dataclass(frozen=True)
class Ticket(LiveAnswer):
    number: int = part(integer, "number")
    asked_by: str = made_live(lambda value, session: f"{session} {integer(value, 'number')}")


def test_a_field_is_read_from_its_place_in_the_answer() -> None:
    """Also from inside of other objects, and made from several places."""
    box = Box.read({"name": "crate", "inside": {"size": {"depth": "7"}}, "weight": "NaN", "secret": "s"})
    assert (box.name, box.depth, box.secret, box.label) == ("crate", 7, "s", "<crate>")
    assert box.weight is not None
    assert box.weight != box.weight
    assert box.raw["name"] == "crate"


def test_what_an_answer_lacks_is_the_empty_value() -> None:
    """A master that does not say something is no error."""
    box = Box.read({"inside": None})
    assert (box.name, box.depth, box.weight, box.secret) == ("", 0, None, "")


def test_hidden_fields_are_neither_printed_nor_compared() -> None:
    """Two values are equal by what is shown of them."""
    one, other = Box.read({"secret": "one"}), Box.read({"secret": "other"})
    assert one == other
    assert "secret" not in repr(one)
    assert "raw" not in repr(one)


def test_a_live_value_knows_the_session_that_it_came_by() -> None:
    """It is handed on to values inside it."""
    session = cast(Session, "session")
    ticket = Ticket.read({"number": 3}, session)
    assert (ticket.number, ticket.asked_by, ticket.session) == (3, "session 3", session)
