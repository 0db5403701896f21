"""Which search methods there are.

A method is one file here, a subclass of `tenax.search.config.Method` that says what it can, and one line in the table;
its settings are one more line, in the table of schemas (`tenax.config.schema.searcher`), which stands on this one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tenax.search.config import Method
from tenax.search.methods.adaptive_asha import AdaptiveAsha
from tenax.search.methods.async_halving import AsyncHalving
from tenax.search.methods.grid import Grid
from tenax.search.methods.random import Random
from tenax.search.methods.single import Single

MethodClass = type[Method]

#: By the name that configurations give them; people see them in this order.
METHODS: Mapping[str, MethodClass] = {kind.name: kind for kind in (Single, Random, Grid, AsyncHalving, AdaptiveAsha)}


def names_of(those: Callable[[MethodClass], bool]) -> tuple[str, ...]:
    """The names of the methods of which something holds."""
    return tuple(name for name, kind in METHODS.items() if those(kind))


def is_on_grid(name: object) -> bool:
    """Whether the method of that name walks a grid; no method of that name does not."""
    return isinstance(name, str) and name in METHODS and METHODS[name].on_grid


def is_one_trial(name: object) -> bool:
    """Whether the method of that name makes one trial and no other; no method of that name does not."""
    return isinstance(name, str) and name in METHODS and METHODS[name].one_trial


def is_continuable(name: object) -> bool:
    """Whether a search of the method of that name may go on after its end; no method of that name may not."""
    return isinstance(name, str) and name in METHODS and METHODS[name].continuable
