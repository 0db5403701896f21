"""A configuration of DeepSpeed with values of an experiment's in it. Standard library only."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any, Union

from tenax.errors import InvalidInput


def overwrite_deepspeed_config(
    base_ds_config: Union[str, Mapping[str, Any]], source_ds_dict: Mapping[str, Any]
) -> dict[str, Any]:
    """``base_ds_config``, a dict or the path of a JSON file, with each value of ``source_ds_dict`` in its place, at any
    depth; what only one of them has stays. Neither is changed. Raises InvalidInput."""
    base: object = base_ds_config
    if isinstance(base_ds_config, str):
        try:
            with open(base_ds_config, encoding="utf-8") as file:
                base = json.load(file)
        except (OSError, ValueError) as error:
            raise InvalidInput(f"the configuration of DeepSpeed {base_ds_config} cannot be read: {error}") from error
    for name, given in (("base_ds_config", base), ("source_ds_dict", source_ds_dict)):
        if not isinstance(given, Mapping):
            raise InvalidInput(f"overwrite_deepspeed_config() takes a dict as {name}, not {given!r}")
    assert isinstance(base, Mapping)
    return _merged(base, source_ds_dict)


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    result = copy.deepcopy(dict(base))
    for name, value in over.items():
        own = result.get(name)
        if isinstance(own, Mapping) and isinstance(value, Mapping):
            result[name] = _merged(own, value)
        else:
            result[name] = copy.deepcopy(value)
    return result
