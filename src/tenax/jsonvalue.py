"""The type of a JSON value, for signatures that carry documents. Standard library only, Python 3.9."""

from __future__ import annotations

from typing import Dict, List, Union

#: What ``json.loads`` gives back.
Json = Union[None, bool, int, float, str, List["Json"], Dict[str, "Json"]]
JsonObject = Dict[str, Json]
