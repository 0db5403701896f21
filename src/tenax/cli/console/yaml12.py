"""YAML as the master reads it (1.2): ``1e-3`` is a number, ``yes`` and ``2024-01-01`` are text.

Text is written so that readers of either version take it for text.
"""

from __future__ import annotations

import re

import yaml

from tenax.jsonvalue import Json

_FLOAT = re.compile(r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$")
_FLOAT_TAG = "tag:yaml.org,2002:float"
#: Characters of a line, where one may hold several values; pyyaml's own otherwise.
_WIDTH = 120


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - pyyaml's own shape


class _Dumper(yaml.SafeDumper):
    """Quotes text that either version would take for something else."""


for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    ("float", _FLOAT.pattern, "-+.0123456789"),
    ("float", r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", "-+."),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("merge", r"<<", "<"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_pattern})$"), list(_first))
_Dumper.add_implicit_resolver(_FLOAT_TAG, _FLOAT, list("-+.0123456789"))
_Dumper.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"^0o[0-7]+$"), ["0"])


def _number(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> float:
    return float(str(node.value).lower().replace(".inf", "inf").replace(".nan", "nan"))


def _integer(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    text = str(node.value)
    return int(text, 0) if text.lower().startswith(("0o", "0x")) else int(text)


_Loader.add_constructor(_FLOAT_TAG, _number)
_Loader.add_constructor("tag:yaml.org,2002:int", _integer)


def load(text: str) -> Json:
    """The value of YAML text. Raises yaml.YAMLError."""
    value: Json = yaml.load(text, _Loader)
    return value


def dump(value: Json, *, sort: bool = False, inline: bool = False) -> str:
    """YAML text; keys in their own order, or sorted; with ``inline`` what holds only scalars stands in one line."""
    flow, width = (None, _WIDTH) if inline else (False, None)
    return str(
        yaml.dump(value, Dumper=_Dumper, sort_keys=sort, allow_unicode=True, default_flow_style=flow, width=width)
    )
