"""Pages of lists, said once: offset and limit come in, a pagination object goes out.

A negative offset counts from the end; limit 0 is all that is left. (Lists of experiments differ: see there.)
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query

from tenax.errors import InvalidInput
from tenax.master.store.paging import Page
from tenax.wire.api.message import OrderBy, Pagination


class Window:
    """What a request asked for."""

    def __init__(self, offset: int, limit: int, order_by: OrderBy) -> None:
        self.offset, self.limit, self.order_by = offset, limit, order_by

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
        told = Pagination(offset=self.offset, limit=self.limit, start_index=start, end_index=end, total=total)
        return Page(start, end - start), told


async def _window(
    offset: Annotated[int, Query()] = 0,
    limit: Annotated[int, Query()] = 0,
    order_by: Annotated[OrderBy, Query()] = OrderBy.UNSPECIFIED,
) -> Window:
    return Window(offset, limit, order_by)


WindowDep = Annotated[Window, Depends(_window)]
