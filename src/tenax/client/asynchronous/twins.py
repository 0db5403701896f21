"""The asynchronous twins of the SDK's values and of its client: made of the same classes, so that there is no second
spelling of any request.

The rule: a class of values that keep their session (`LiveAnswer`) has a twin, with ``Async`` before its name. Its
fields and properties are those of the value. Its public methods are awaited, and run in a thread that is lent a
session; those that return an iterator give an `AsyncStream` for ``async for``. What comes back is a twin where it
would be such a value, also in lists and tuples, and may be given for it. Functions that are given, as ``seen``, are
called in the event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import threading
import weakref
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple, Type, TypeVar, cast

import tenax.client
from tenax.client.asynchronous.sessions import CURRENT, Loan, Sessions
from tenax.client.asynchronous.stream import AsyncStream
from tenax.client.asynchronous.threads import CallThreads, in_loop
from tenax.client.connect import Client
from tenax.client.connection.polling import Steps
from tenax.client.connection.reading import LiveAnswer
from tenax.client.connection.session import Session

Result = TypeVar("Result")
PREFIX = "Async"
#: Requests of one client at once; what comes when all are under way waits for its turn.
MAX_CALLS = 32
#: Streams of one client for which somebody waits at once.
MAX_STREAMS = 512
#: Of a class of values: not for whoever shares a client between tasks; and how values are made.
_INNER = frozenset({"session", "read"})


class AsyncChannel:
    """How the twins of one client reach its master."""

    def __init__(self, open_first: Callable[[], Session]) -> None:
        self._sessions = Sessions(open_first)
        self._calls = CallThreads(MAX_CALLS)
        self._readers = CallThreads(MAX_STREAMS)
        self._streams: weakref.WeakSet[AsyncStream[object]] = weakref.WeakSet()

    async def result(self, function: Callable[[], Result]) -> Result:
        """What ``function`` returns, in a thread; cancelled, it ends what the master streams for it."""
        loan = Loan()

        def call() -> Result:
            with self._sessions.lent() as session, loan.of(session):
                return function()

        try:
            return await self._calls.result(call)
        except asyncio.CancelledError:
            loan.end()
            raise

    def stream(self, begin: Callable[[], Iterator[object]]) -> AsyncStream[object]:
        """The items of what ``begin`` returns."""
        stream = AsyncStream(begin, self._sessions, self._readers)
        self._streams.add(stream)
        return stream

    def close(self) -> None:
        """Let go of the connections, and end the streams."""
        for stream in list(self._streams):
            stream.close()
        self._sessions.close()
        self._calls.close()
        self._readers.close()


class Twin:
    """Of a value or a client."""

    __slots__ = ("__weakref__", "_channel", "_value")
    _value: Any
    _channel: AsyncChannel

    def __init__(self, value: object, channel: AsyncChannel) -> None:
        object.__setattr__(self, "_value", value)
        object.__setattr__(self, "_channel", channel)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is a value: {name} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is a value: {name} cannot be deleted")

    def __eq__(self, other: object) -> bool:
        return bool(self._value == other._value) if isinstance(other, type(self)) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return f"{PREFIX}{self._value!r}"


def twin_named(name: str) -> Type[Any]:
    """The twin of that name of a class of `tenax.client`. Raises AttributeError."""
    if name == AsyncStream.__name__:
        return AsyncStream
    if name == AsyncClient.__name__:
        return AsyncClient
    kind = getattr(tenax.client, name[len(PREFIX) :], None) if name.startswith(PREFIX) else None
    if not isinstance(kind, type) or not issubclass(kind, LiveAnswer):
        raise AttributeError(f"module 'tenax.client.asynchronous' has no attribute {name!r}")
    return twin_of(kind)


#: Those that were made, by the class of the values.
_twins: Dict[type, Type[Twin]] = {}


def twin_of(kind: Type[LiveAnswer]) -> Type[Twin]:
    """The class of the twins of ``kind``."""
    # CallThreads that make it at once all take what was kept first.
    return _twins.get(kind) or _twins.setdefault(kind, _made(kind))


def _made(kind: Type[LiveAnswer]) -> Type[Twin]:
    shown = {name: field for name, field in kind.__dataclass_fields__.items() if name not in _INNER}
    members: Dict[str, object] = {name: property(functools.partial(_attribute, name)) for name in shown}
    members.update(_members(kind))
    # As a data frame of the values has them.
    members["__dataclass_fields__"] = shown
    return type(PREFIX + kind.__name__, (Twin,), _named(kind.__doc__, members))


def _named(docstring: Optional[str], members: Dict[str, object]) -> Dict[str, object]:
    return {"__slots__": (), "__doc__": docstring, "__module__": "tenax.client.asynchronous", **members}


def _members(kind: type) -> Dict[str, object]:
    """By name: its properties, and its methods as those of a twin."""
    members: Dict[str, object] = {}
    for name in dir(kind):
        member = inspect.getattr_static(kind, name)
        if name.startswith("_") or name in _INNER:
            continue
        if isinstance(member, property):
            members[name] = property(functools.partial(_attribute, name), doc=member.__doc__)
        elif inspect.isfunction(member):
            members[name] = _method(kind, name, member)
    return members


def _attribute(name: str, twin: Twin) -> object:
    return _with_twins(getattr(twin._value, name), twin._channel)


def _method(kind: type, name: str, method: Callable[..., object]) -> Callable[..., object]:
    """The asynchronous form of a method; of what waits, its steps (see `tenax.client.connection.polling`)."""
    if str(method.__annotations__.get("return")).startswith("Iterator["):
        return _streaming(method)
    steps = getattr(kind, f"_{name}", None)
    paused = str(getattr(steps, "__annotations__", {}).get("return")).startswith("Steps[")
    return _pausing(method, cast(Callable[..., "Steps[object]"], steps)) if paused else _calling(method)


def _streaming(method: Callable[..., object]) -> Callable[..., object]:
    @functools.wraps(method)
    def stream(self: Twin, *given: object, **named: object) -> AsyncStream[object]:
        with _given(self._channel, given, named) as (arguments, options):
            return self._channel.stream(lambda: cast(Iterator[object], method(self._value, *arguments, **options)))

    return stream


def _calling(method: Callable[..., object]) -> Callable[..., object]:
    @functools.wraps(method)
    async def call(self: Twin, *given: object, **named: object) -> object:
        with _given(self._channel, given, named) as (arguments, options):
            return await self._channel.result(
                lambda: _with_twins(method(self._value, *arguments, **options), self._channel)
            )

    return call


def _pausing(method: Callable[..., object], steps: Callable[..., Steps[object]]) -> Callable[..., object]:
    signature = inspect.signature(method)

    @functools.wraps(method)
    async def wait(self: Twin, *given: object, **named: object) -> object:
        with _given(self._channel, given, named) as (arguments, options):
            bound = signature.bind(self._value, *arguments, **options)
            bound.apply_defaults()
            running = steps(*bound.args, **bound.kwargs)

            def step() -> Tuple[Optional[float], object]:
                try:
                    return next(running), None
                except StopIteration as end:
                    return None, _with_twins(end.value, self._channel)

            while True:
                pause, result = await self._channel.result(step)
                if pause is None:
                    return result
                await asyncio.sleep(pause)

    return wait


def _with_twins(result: object, channel: AsyncChannel) -> object:
    if isinstance(result, LiveAnswer):
        return twin_of(type(result))(result, channel)
    if isinstance(result, (list, tuple)) and any(isinstance(item, (LiveAnswer, list, tuple)) for item in result):
        return type(result)(_with_twins(item, channel) for item in result)
    return result


def _shown(callback: Callable[..., object], channel: AsyncChannel, *values: object) -> object:
    return callback(*(_with_twins(value, channel) for value in values))


@contextlib.contextmanager
def _given(
    channel: AsyncChannel, given: Tuple[object, ...], named: Dict[str, object]
) -> Iterator[Tuple[List[object], Dict[str, object]]]:
    """Arguments as the method takes them: values for their twins; functions are called in the loop, until the end."""
    ended = threading.Event()

    def taken(argument: object) -> object:
        if isinstance(argument, Twin):
            return argument._value
        if callable(argument):
            return in_loop(functools.partial(_shown, argument, channel), asyncio.get_running_loop(), ended)
        return argument

    try:
        yield [taken(argument) for argument in given], {name: taken(argument) for name, argument in named.items()}
    finally:
        ended.set()


class ClientTwin(Twin):
    """A master, as one user, for event loops: any number of its calls may be awaited at once.

    Methods raise the errors of `tenax.errors`, and `tenax.client.Unreachable` when nothing answers.
    """

    __slots__ = ()
    __signature__ = inspect.signature(Client)

    def __init__(self, *given: Any, **named: Any) -> None:
        # What it does not take is refused here, and not in a thread later.
        self.__signature__.bind(*given, **named)
        client = Client.__new__(Client)
        client.session = CURRENT
        super().__init__(client, AsyncChannel(lambda: Client(*given, **named).session))

    async def __aenter__(self) -> ClientTwin:
        """Log in."""
        await self._channel.result(lambda: None)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of the connections, and end the streams."""
        self._channel.close()

    def __repr__(self) -> str:
        return object.__repr__(self)


_of_client = {name: member for name, member in _members(Client).items() if name != "close"}
AsyncClient: Type[ClientTwin] = type("AsyncClient", (ClientTwin,), _named(ClientTwin.__doc__, _of_client))
