"""Templates: partial configurations that lie below what a user submits.

They are for experiments, commands and generic tasks alike: one may hold keys that only some of these have, and each
takes what it knows and leaves the rest.
"""

from __future__ import annotations

from collections.abc import Mapping

from tenax.config.display import report_stars
from tenax.config.problems import Path, ProblemReport
from tenax.config.schema.command import COMMAND, GENERIC
from tenax.config.schema.experiment import EXPERIMENT
from tenax.config.structs import Struct
from tenax.config.text import read_object
from tenax.jsonvalue import JsonObject

_ALL: tuple[Struct[object], ...] = (EXPERIMENT, COMMAND, GENERIC)
_NESTED = "resources"


def parse_template(text: str) -> JsonObject:
    """What is written in YAML. Raises `ConfigError` with every problem at its line."""
    document, lines = read_object(text)
    check_template(document, lines)
    return document


def check_template(document: JsonObject, lines: Mapping[Path, int] | None = None) -> None:
    """Raises `ConfigError` with every problem: an unknown key, a value that none of its users could take."""
    report = ProblemReport(lines or {})
    report_stars(document, report)
    seen: set[str] = set()
    for struct in _ALL:
        part = {key: value for key, value in for_struct(document, struct).items() if key not in seen}
        struct.check(part, (), report)
        seen.update(part)
    report.raise_if_any(what="template")


def for_struct(document: JsonObject, struct: Struct[object]) -> JsonObject:
    """``document`` without what only configurations of other kinds have; what none has is left, to be refused."""
    others = {name for schema in _ALL for name in schema.names()} - set(struct.names())
    own = {key: value for key, value in document.items() if key not in others}
    resources = own.get(_NESTED)
    if isinstance(resources, dict):
        others = {name for schema in _ALL for name in _names(schema)} - set(_names(struct))
        own[_NESTED] = {key: value for key, value in resources.items() if key not in others}
    return own


def _names(struct: Struct[object]) -> list[str]:
    nested = struct.shapes.get(_NESTED)
    return nested.names() if isinstance(nested, Struct) else []
