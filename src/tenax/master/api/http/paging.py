"""Pages of lists, once for all of them: offset and limit come in, a pagination object goes out.

A negative offset counts from the end; limit 0 is all that is left (of a search: `SEARCH_PAGE`). An answer that is the
same for everyone is made once for all who ask at the same time (`tenax.master.concurrency.single_flight`).

A list of large documents is read and rendered a few entries at a time, in a thread (`listed`). Its page ends before it
has more than `MAX_ANSWER_BYTES`, whatever the limit was: ``end_index`` says where, and clients go on from there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Generic, TypeVar

from fastapi import Depends, Query, Response

from tenax.errors import InvalidInput
from tenax.master.context import Master
from tenax.master.store.database.paging import Page
from tenax.wire.message import Message, OrderBy, Pagination


@dataclass(frozen=True, slots=True)
class Window:
    """What a request asked for."""

    offset: int
    limit: int
    order_by: OrderBy

    @property
    def descending(self) -> bool:
        """Whether the list is wanted from its end."""
        return self.order_by is OrderBy.DESC

    def of(self, total: int) -> tuple[Page, Pagination]:
        """The rows to read of a list of ``total``, and what to tell about them. Raises InvalidInput."""
        if self.limit < 0:
            raise InvalidInput(f"limit is {self.limit}: it must not be negative (0 is all)")
        start = self.offset + total if self.offset < 0 else self.offset
        if not 0 <= start <= total:
            raise InvalidInput(f"offset is {self.offset}, and the list has {total} entries: choose one inside it")
        end = total if self.limit == 0 else min(total, start + self.limit)
        pagination = Pagination(offset=self.offset, limit=self.limit, start_index=start, end_index=end, total=total)
        return Page(start, end - start), pagination


#: Entries of a search's page when none are asked for; what asks for all, and for none.
SEARCH_PAGE, ALL, NONE = 100, -1, -2


def search_page(total: int, offset: int, limit: int) -> tuple[Page, Pagination]:
    """The rows to read of a search that finds ``total``, and what to tell about them. Raises InvalidInput.

    Limit 0 is `SEARCH_PAGE`. An offset outside the list is its end: what a search finds changes while one pages.
    """
    if limit < NONE:
        raise InvalidInput(f"limit is {limit}: it must be at least 0, or {ALL} for all, or {NONE} for the count alone")
    start = offset + total if offset < 0 else offset
    end = start
    if not 0 <= start <= total:
        start = end = total
    if limit != NONE:
        end = total if limit == ALL else min(total, start + (limit or SEARCH_PAGE))
    pagination = Pagination(offset=offset, limit=limit, start_index=start, end_index=end, total=total)
    return Page(start, end - start), pagination


async def _window(
    offset: Annotated[int, Query()] = 0,
    limit: Annotated[int, Query()] = 0,
    order_by: Annotated[OrderBy, Query()] = OrderBy.UNSPECIFIED,
) -> Window:
    return Window(offset, limit, order_by)


WindowDep = Annotated[Window, Depends(_window)]


JSON = "application/json"
#: Of what a page of large documents holds; one entry has a place whatever it has.
MAX_ANSWER_BYTES = 16 << 20
#: Entries that are read at once: few, and twice as many each time while they have few bytes.
_FIRST, _MAX_AT_ONCE, _FEW_BYTES = 8, 64, 1 << 20

K = TypeVar("K")
V = TypeVar("V")
E = TypeVar("E")


@dataclass(frozen=True, slots=True)
class Rendering(Generic[K, V]):
    """How the entries of a list of large documents are made."""

    #: The name of the list in the answer.
    name: str
    #: Reads the entries of some keys, in their order.
    load: Callable[[Sequence[K]], Awaitable[Sequence[V]]]
    #: One entry as JSON; in a thread.
    render: Callable[[V], bytes]


async def listed(
    master: Master,
    keys: Sequence[K],
    rendering: Rendering[K, V],
    pagination: Pagination,
    beside: Mapping[str, Message] | None = None,
) -> Response:
    """A page of large documents, by their ``keys``; ``beside``: what else the answer has."""
    entries, read = await in_parts(master, keys, rendering.load, rendering.render, len)
    pagination.end_index = pagination.start_index + read
    fields = [f'"{name}":'.encode() + as_json(message) for name, message in (beside or {}).items()]
    fields += [f'"{rendering.name}":['.encode() + b",".join(entries) + b"]", b'"pagination":' + as_json(pagination)]
    return Response(b"{" + b",".join(fields) + b"}", media_type=JSON)


async def in_parts(
    master: Master,
    keys: Sequence[K],
    load: Callable[[Sequence[K]], Awaitable[Sequence[V]]],
    make: Callable[[V], E],
    size_of: Callable[[E], int],
) -> tuple[list[E], int]:
    """The first entries of ``keys``, up to `MAX_ANSWER_BYTES`, and of how many keys they are; ``make`` in a thread."""
    entries: list[E] = []
    size, at_once, read = 0, _FIRST, 0
    while read < len(keys) and size < MAX_ANSWER_BYTES:
        part = keys[read : read + at_once]
        loaded = await load(part)
        made = await master.readers.run(lambda views: [make(view) for view in views], loaded)
        sizes = [size_of(entry) for entry in made]
        fitting = _fitting(sizes, size)
        entries += made[:fitting]
        if fitting < len(made):
            return entries, read + fitting
        read += len(part)
        size += sum(sizes)
        at_once = min(_MAX_AT_ONCE, at_once * 2) if sum(sizes) < _FEW_BYTES else max(_FIRST, at_once // 2)
    return entries, read


def _fitting(sizes: Sequence[int], before: int) -> int:
    """How many of these have a place beside others of ``before`` bytes; the first of all has."""
    total = before
    for place, size in enumerate(sizes):
        if total and total + size > MAX_ANSWER_BYTES:
            return place
        total += size
    return len(sizes)


def as_json(message: Message) -> bytes:
    """A message as it is sent."""
    return message.__pydantic_serializer__.to_json(message, by_alias=True)


async def shared_answer(master: Master, key: Hashable, make: Callable[[], Awaitable[Message]]) -> Response:
    """What ``make`` answers, as JSON. ``key``: the operation and what was asked; nothing may depend on who asks."""

    async def look() -> bytes:
        return (await make()).model_dump_json(by_alias=True).encode()

    return Response(await master.single_flight.share(key, look), media_type=JSON)
