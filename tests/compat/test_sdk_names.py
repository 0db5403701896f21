"""The SDK that Tenax serves under Determined's name has every name of it, and takes every argument."""

from __future__ import annotations

from typing import cast

from tests.compat.client import RealClient

#: By module: each function, and each method and value of an enumeration, with the names of its arguments.
NAMES = """
import enum, inspect
import determined.experimental as experimental

def arguments(function):
    names = list(inspect.signature(function).parameters.values())
    return None if any(one.kind is one.VAR_KEYWORD for one in names) else [one.name for one in names]

def public(thing):
    for name in dir(thing):
        if not name.startswith("_"):
            yield name, inspect.getattr_static(thing, name)

result = {}
for place in (client, experimental):
    for name in names or [name for name in dir(place) if not name.startswith("_")]:
        thing = getattr(place, name, None)
        if thing is None or not str(getattr(thing, "__module__", "")).startswith(("determined", "tenax")):
            continue
        if inspect.isfunction(thing):
            result[name] = arguments(thing)
        elif inspect.isclass(thing) and issubclass(thing, enum.Enum):
            members = {f"{name}.{one}": member.value for one, member in thing.__members__.items()}
            result.update({one: getattr(value, "value", value) for one, value in members.items()})
        elif inspect.isclass(thing):
            result.update({f"{name}.{one}": arguments(what) for one, what in public(thing) if inspect.isfunction(what)})
"""
#: Not of a cluster: other companies' logins, and what was gone before 0.38.
LEFT_OUT = ("Oauth2ScimClient", "test_one_batch", "ExperimentReference", "TrialReference")


def test_every_name_and_every_argument(real: RealClient, ours: RealClient) -> None:
    """Values of enumerations are the same, too."""
    theirs = cast("dict[str, object]", real.sdk(NAMES, names=None))
    assert len(theirs) > 200
    top = sorted({name.split(".")[0] for name in theirs})
    served = cast("dict[str, object]", ours.sdk(NAMES, names=cast("list[object]", top)))  # type: ignore[arg-type]
    wanted = {name: value for name, value in theirs.items() if not name.startswith(LEFT_OUT)}
    missing = [name for name in wanted if name not in served]
    assert missing == []
    differing = {
        name: (value, served[name])
        for name, value in wanted.items()
        if served[name] is not None
        and (value != served[name] if isinstance(value, str) else not set(value or ()) <= set(served[name]))  # type: ignore[call-overload]
    }
    assert differing == {}
