"""Experiments of a list as JSON, whose configurations travel as the text that the database has of them.

Rule: only for who may see all of a configuration, or where it has nothing to hide; else as `experiment_message`.
Decoding a configuration and writing it again is most of the work of a page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from tenax.config import may_hold_secrets
from tenax.jsonvalue import Json, JsonObject
from tenax.master.api.shapes import experiment_message, may_see_secrets, outlined
from tenax.master.auth import Caller
from tenax.master.store.listings_experiments import ExperimentView
from tenax.wire.api.message import Message, Pagination

_NOTHING = msgspec.Raw(b"{}")


class _Sections(msgspec.Struct):
    """What a list looks at in a configuration; the rest is stepped over."""

    searcher: msgspec.Raw = _NOTHING
    integrations: msgspec.Raw = _NOTHING
    hyperparameters: msgspec.Raw = _NOTHING


_sections = msgspec.json.Decoder(_Sections)


@dataclass(frozen=True, slots=True)
class Rendered:
    """An experiment with all of its configuration, and what says to whom it may be shown so."""

    view: ExperimentView
    whole: bytes
    may_hold_secrets: bool


def rendered(view: ExperimentView) -> Rendered:
    """An experiment that is about to be shown, to whomever."""
    return Rendered(view, _whole(view), may_hold_secrets(view.config_text))


def experiments_json(page: Sequence[Rendered], caller: Caller, pagination: Pagination) -> bytes:
    """A `GetExperimentsResponse` as ``caller`` may see it."""
    experiments = b",".join(_for(caller, one) for one in page)
    return b'{"experiments":[' + experiments + b'],"pagination":' + _json(pagination) + b"}"


def _for(caller: Caller, one: Rendered) -> bytes:
    if one.may_hold_secrets and not may_see_secrets(caller, one.view.owner_id):
        return _json(experiment_message(one.view, caller))
    return one.whole


def _whole(view: ExperimentView) -> bytes:
    config = view.config_text.encode()
    sections = _sections.decode(config)
    message = outlined(view, _object(sections.searcher), _object(sections.integrations))
    message.original_config = view.original_config
    hyperparameters = bytes(sections.hyperparameters)
    if not hyperparameters.startswith(b"{"):
        hyperparameters = b"{}"
    told = _json(message, leaving_out={"config", "hyperparameters"})
    return told[:-1] + b',"config":' + config + b',"hyperparameters":' + hyperparameters + b"}"


def _json(message: Message, leaving_out: set[str] | None = None) -> bytes:
    return message.__pydantic_serializer__.to_json(message, by_alias=True, exclude=leaving_out)


def _object(raw: msgspec.Raw) -> JsonObject:
    value: Json = msgspec.json.decode(raw)
    return value if isinstance(value, dict) else {}
