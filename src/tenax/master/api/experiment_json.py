"""Experiments of a list as JSON, whose configurations travel as the text that the database has of them.

Rule: only for who may see all of a configuration, or where it has nothing to hide; else as `experiment_message`.
Decoding a configuration and writing it again is most of the work of a page.
"""

from __future__ import annotations

from collections.abc import Sequence

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


def experiments_json(views: Sequence[ExperimentView], caller: Caller, pagination: Pagination) -> bytes:
    """A `GetExperimentsResponse` as ``caller`` may see it."""
    experiments = b",".join(experiment_json(view, caller) for view in views)
    return b'{"experiments":[' + experiments + b'],"pagination":' + _json(pagination) + b"}"


def experiment_json(view: ExperimentView, caller: Caller) -> bytes:
    """An `Experiment` as ``caller`` may see it."""
    if not may_see_secrets(caller, view.owner_id) and may_hold_secrets(view.config_text):
        return _json(experiment_message(view, caller))
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
