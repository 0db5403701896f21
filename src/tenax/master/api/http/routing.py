"""How a route is declared, once for all of them.

    routes = Routes("experiments")

    @routes.post("/api/v1/experiments/{experiment_id}/pause", "PauseExperiment", allow=Allow.USER)
    async def pause(master: MasterDep, caller: CallerDep, experiment_id: int) -> Empty: ...

A declaration is data: `tenax.master.app` puts all of them into the application, the tests walk them, and OpenAPI is
written from them. Rules it keeps:

- every route says who may call it (`allow`); one that does not is refused to everyone, at run time and by a test;
- every route has an operation id that never changes, and a return annotation (or ``response_model``);
- a body is JSON whatever its Content-Type says, and none at all is the empty message;
- a POST that makes something new says so (``creates=True``): sent twice, it would make two;
- parameters are named in snake case here; on the wire either spelling is accepted and camel case is documented.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import TypeVar

from fastapi.responses import StreamingResponse

from tenax.errors import Impossible
from tenax.master.access.authorization import Allow

Handler = TypeVar("Handler", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class Declared:
    """One route as declared."""

    method: str
    path: str
    operation: str
    allow: Allow
    handler: Callable[..., object]
    tag: str
    #: Asked for all the time.
    often: bool = False
    options: dict[str, object] = field(default_factory=dict)


#: Who may call a handler. Written by declarations only, at import.
_allowed: dict[object, Allow] = {}


#: Handlers that make something new each time they are called, with whether their answers hold a secret. Written by
#: declarations only, at import.
_creating: dict[object, bool] = {}


def creates(handler: object) -> bool:
    """Whether ``handler`` makes something new each time it is called."""
    return handler in _creating


def answers_secret(handler: object) -> bool:
    """Whether what ``handler`` answers is for the caller alone, and kept nowhere."""
    return _creating.get(handler, False)


def allowed(handler: object) -> Allow | None:
    """Who may call ``handler``; None for one that was never declared."""
    return _allowed.get(handler)


class Routes:
    """The routes of one noun. ``often=True``: tasks or agents ask for it all the time, so it is tried first."""

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self.declared: list[Declared] = []

    def get(self, path: str, operation: str, *, allow: Allow, **options: object) -> Callable[[Handler], Handler]:
        """Declare a GET; ``options`` go to FastAPI (``response_model``, ``response_class``, ``responses``...)."""
        return self._declare("GET", path, operation, allow, options)

    def stream(self, path: str, operation: str, *, allow: Allow, **options: object) -> Callable[[Handler], Handler]:
        """Declare a GET that is answered with a stream."""
        return self._declare("GET", path, operation, allow, {"response_class": StreamingResponse, **options})

    def post(self, path: str, operation: str, *, allow: Allow, **options: object) -> Callable[[Handler], Handler]:
        """Declare a POST; ``creates``: it makes something new; ``secret``: and answers with a secret."""
        return self._declare("POST", path, operation, allow, options)

    def put(self, path: str, operation: str, *, allow: Allow, **options: object) -> Callable[[Handler], Handler]:
        """Declare a PUT."""
        return self._declare("PUT", path, operation, allow, options)

    def patch(self, path: str, operation: str, *, allow: Allow, **options: object) -> Callable[[Handler], Handler]:
        """Declare a PATCH."""
        return self._declare("PATCH", path, operation, allow, options)

    def delete(self, path: str, operation: str, *, allow: Allow, **options: object) -> Callable[[Handler], Handler]:
        """Declare a DELETE."""
        return self._declare("DELETE", path, operation, allow, options)

    def websocket(self, path: str, operation: str, *, allow: Allow) -> Callable[[Handler], Handler]:
        """Declare a websocket; the caller is known before the handler accepts the connection."""
        return self._declare("WEBSOCKET", path, operation, allow, {})

    def _declare(
        self, method: str, path: str, operation: str, allow: Allow, options: dict[str, object]
    ) -> Callable[[Handler], Handler]:
        often = bool(options.pop("often", False))
        creating, secret = bool(options.pop("creates", False)), bool(options.pop("secret", False))

        def declare(handler: Handler) -> Handler:
            _allowed[handler] = allow
            if creating:
                _creating[handler] = secret
            self.declared.append(Declared(method, path, operation, allow, handler, self.tag, often, options))
            return handler

        return declare


def in_order(nouns: Iterable[Routes]) -> list[Declared]:
    """All routes in the order in which they are to be tried; that of ``nouns`` and of declarations decides nothing.

    Where two could match one path, the one with the literal part further left goes first: ``/users/setting`` before
    ``/users/{user_id}``. Raises Impossible where two match the same paths, or where one that is asked for often would
    hide another.
    """
    declared = [route for noun in nouns for route in noun.declared]
    declared.sort(key=lambda route: (not route.often, _generality(route.path), route.path, route.method))
    for place, route in enumerate(declared):
        for later in declared[place + 1 :]:
            as_general = route.method == later.method and _generality(route.path) >= _generality(later.path)
            if as_general and _meet(route.path, later.path):
                raise Impossible(f"{route.method} {route.path} hides {later.path} ({later.operation})")
    return declared


@cache
def _generality(path: str) -> tuple[int, ...]:
    """Part by part: 0 a literal, 1 a literal with a parameter in it, 2 a parameter, 3 all that follows."""
    return tuple(_openness(part) for part in path.split("/"))


def _openness(part: str) -> int:
    if "{" not in part:
        return 0
    if not (part.startswith("{") and part.endswith("}") and part.count("{") == 1):
        return 1
    return 3 if part.endswith(":path}") else 2


def _meet(first: str, second: str) -> bool:
    """Whether some path matches both."""
    left, right = first.split("/"), second.split("/")
    for a, b in zip(left, right):
        if 3 in (_openness(a), _openness(b)):
            return True
        if a != b and "{" not in a and "{" not in b:
            return False
    return len(left) == len(right)
