"""What lines of the master's log have in common: the request they belong to, and who made it.

Every request has an id: the caller's own (``X-Request-ID``) where it has the form of one, else a new one. It is in each
line that is logged meanwhile, in the answer's header, and in what is said of an error that nobody foresaw.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from structlog.contextvars import bind_contextvars, bound_contextvars, get_contextvars, unbind_contextvars

HEADER = b"x-request-id"
_FORM = re.compile(rb"[A-Za-z0-9._:-]{1,64}")
#: Set once it is known who is calling.
_CALLER = ("allocation", "agent", "user")


@contextmanager
def request(headers: Iterable[tuple[bytes, bytes]]) -> Iterator[str]:
    """Of one request; yields its id."""
    given = next((value for name, value in headers if name == HEADER), b"")
    request_id = given.decode("ascii") if _FORM.fullmatch(given) else secrets.token_hex(8)
    # Requests of one connection may follow each other in one context.
    unbind_contextvars(*_CALLER)
    with bound_contextvars(request=request_id):
        try:
            yield request_id
        finally:
            unbind_contextvars(*_CALLER)


def called_by(*, allocation: str | None, agent: str | None, user: str | None) -> None:
    """Who makes the request: an attempt, an agent, or a person."""
    if allocation is not None:
        bind_contextvars(allocation=allocation)
    elif agent is not None:
        bind_contextvars(agent=agent)
    elif user is not None:
        bind_contextvars(user=user)


def known() -> dict[str, str]:
    """Names and values that lines of the log have now."""
    return {name: str(value) for name, value in get_contextvars().items()}


def request_id() -> str:
    """Of the request that is being answered; "" outside of one."""
    return str(get_contextvars().get("request", ""))
