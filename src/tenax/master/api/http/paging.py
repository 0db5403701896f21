"""Pages of lists, once for all of them: offset and limit come in, a pagination object goes out.

A negative offset counts from the end; limit 0 is all that is left (of a search: `SEARCH_PAGE`). An answer that is the
same for everyone is made once for all who ask at the same time (`tenax.master.concurrency.single_flight`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Annotated

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


async def shared_answer(master: Master, key: Hashable, make: Callable[[], Awaitable[Message]]) -> Response:
    """What ``make`` answers, as JSON. ``key``: the operation and what was asked; nothing may depend on who asks."""

    async def look() -> bytes:
        return (await make()).model_dump_json(by_alias=True).encode()

    return Response(await master.single_flight.share(key, look), media_type=JSON)
