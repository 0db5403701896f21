"""A configuration as it may be shown: secrets are blanked, everything else is as it is.

Secret are passwords, keys and tokens at their places, and the value of every environment variable. What a user has
written may be shown to that user; what came from a layer below (a template, the defaults of a project, a pool or the
master) never is. ``own`` below is what was written: a secret counts as written there if it stands at the same place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tenax.config.problems import ProblemReport
from tenax.display.secrets import HIDDEN, SECRETS, VARIABLES
from tenax.jsonvalue import Json, JsonObject

#: What a text that holds one of them has in it: the last key of its path that is not a star. No variable is no secret.
_KEYS = re.compile(
    rf'"(?:{"|".join(sorted({[step for step in path if step != "*"][-1] for path in SECRETS}))})"\s*:'
    r'|"environment_variables"\s*:\s*(?!\{(?:\s*"\w+"\s*:\s*\[\],?)*\s*\}|\[\]|null)'
    r'|"pod_spec"\s*:\s*(?!null)'
)
#: Keys of a text as people write it: there what is without effect may be a secret, too.
_NAMES = re.compile(
    r"(?:passw(?:or)?d|secrets?|token|credentials?|access_key|secret_key|api_key|auth|connection_string"
    r"|environment_variables|pod_spec)[\"']?\s*:",
    re.IGNORECASE,
)


def may_hold_secrets(text: str) -> bool:
    """Whether `without_secrets` could change a configuration of this text (as PostgreSQL prints JSON)."""
    return _KEYS.search(text) is not None


def may_name_secrets(text: str) -> bool:
    """Whether a text as its owner wrote it may hold a secret anywhere."""
    return _NAMES.search(text) is not None


def secret_parts(document: JsonObject) -> JsonObject:
    """The sections in which secrets stand: all that `without_secrets` looks at of what somebody has written."""
    sections = {path[0] for path in (*SECRETS, *VARIABLES)}
    return {name: value for name, value in document.items() if name in sections}


def report_stars(document: JsonObject, report: ProblemReport) -> None:
    """Refuse what was shown without its secrets: as it is, it would be used with stars for them."""
    for at in dict.fromkeys(_stars(document)):
        report.add(at, "holds the stars that stand for a secret: give the secret itself, or leave it out")


def _stars(document: JsonObject) -> Iterator[tuple[str, ...]]:
    for path in SECRETS:
        yield from _starred(document, path, ())
    for kind, values in _variables(document):
        yield from (kind for value in values if isinstance(value, str) and value.partition("=")[2] == HIDDEN)


def _starred(value: Json, path: tuple[str, ...], at: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if not path:
        if value == HIDDEN:
            yield at
    elif isinstance(value, dict):
        for name in value if path[0] == "*" else (path[0],):
            yield from _starred(value.get(name), path[1:], (*at, name))


def _variables(document: JsonObject) -> Iterator[tuple[tuple[str, ...], list[Json]]]:
    environment = document.get("environment")
    variables = environment.get("environment_variables") if isinstance(environment, dict) else None
    at = ("environment", "environment_variables")
    if isinstance(variables, list):
        yield at, variables
    elif isinstance(variables, dict):
        yield from (((*at, kind), values) for kind, values in variables.items() if isinstance(values, list))
