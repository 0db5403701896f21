"""What all messages of the API share."""

from __future__ import annotations

import importlib
import json
from datetime import datetime, timezone
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field, ValidationError

from tenax.master.access.passwords import hashed_password
from tenax.wire.message import Document, Int64, Message, Timestamp


class Inner(Message):
    some_name: str = "default"


class Example(Message):
    """One field of each kind."""

    big_number: Int64 = 0
    real: float = 0.0
    at: Timestamp | None = None
    inner: Inner = Inner()
    sizes: dict[str, Int64] = Field(default={})
    document: Document = Field(default={})
    b64_tgz: str = ""


@pytest.mark.parametrize("body", [{"bigNumber": 7}, {"big_number": 7}, {"bigNumber": "7"}, {"big_number": "7"}])
def test_both_spellings_and_both_forms_of_integers_are_read(body: dict[str, object]) -> None:
    """Camel case or snake case, string or number."""
    assert Example.model_validate(body).big_number == 7


def test_fields_are_sent_in_camel_case_with_64_bit_integers_as_strings() -> None:
    """So that readers whose numbers are doubles lose nothing."""
    sent = json.loads(Example(big_number=2**60, sizes={"a/b": 4}, b64_tgz="x").model_dump_json())
    assert (sent["bigNumber"], sent["sizes"], sent["b64Tgz"]) == (str(2**60), {"a/b": "4"}, "x")


def test_null_is_absent_for_a_field_and_kept_inside_a_document() -> None:
    """A message cannot hold null; what is the user's may."""
    read = Example.model_validate({"inner": None, "real": None, "document": {"a": None}})
    assert (read.inner.some_name, read.real, read.document) == ("default", 0.0, {"a": None})


@pytest.mark.parametrize(("text", "value"), [("NaN", "nan"), ("Infinity", "inf"), ("-Infinity", "-inf")])
def test_special_numbers_travel_as_strings(text: str, value: str) -> None:
    """In fields and in documents."""
    read = Example.model_validate({"real": text})
    assert str(read.real) == value
    sent = json.loads(Example(real=float(value), document={"x": float(value)}).model_dump_json())
    assert (sent["real"], sent["document"]) == (text, {"x": text})


def test_what_is_not_known_is_ignored() -> None:
    """An older master understands a newer client."""
    assert Example.model_validate({"fromTheFuture": [1], "real": 2}).real == 2


def test_times_carry_their_zone() -> None:
    """RFC 3339 with Z goes out; a time without a zone is refused."""
    sent = json.loads(Example(at=datetime(2026, 11, 21, 12, tzinfo=timezone.utc)).model_dump_json())
    assert sent["at"] == "2026-11-21T12:00:00Z"
    with pytest.raises(ValidationError):
        Example.model_validate({"at": "2026-11-21T12:00:00"})


@given(st.integers(min_value=-(2**63), max_value=2**63 - 1))
def test_integers_survive_the_way(number: int) -> None:
    """Whatever their size."""
    assert Example.model_validate_json(Example(big_number=number).model_dump_json()).big_number == number


def test_errors_never_repeat_what_was_sent() -> None:
    """It may be a password."""
    with pytest.raises(ValidationError) as refused:
        Example.model_validate({"real": "s3cret"})
    assert "s3cret" not in str(refused.value)


def test_passwords_travel_hashed_as_clients_do_it() -> None:
    """SHA-512 of the salted password in hexadecimal; a blank one stays blank."""
    assert hashed_password("") == ""
    assert hashed_password("x") != hashed_password("y")
    assert len(hashed_password("x")) == 128


def test_what_may_be_null_may_be_left_out() -> None:
    """Null is absence: a field that is required and may be null is refused when it is."""
    importlib.import_module("tenax.master.app")
    every = [Message]
    for message in every:
        every += message.__subclasses__()
    assert len(every) > 200
    for message in every:
        for name, field in message.model_fields.items():
            assert not field.is_required() or type(None) not in get_args(field.annotation), f"{message.__name__}.{name}"
