"""The one tree of errors. Standard library only, Python 3.9: tasks import it too.

    TenaxError                 everything we raise on purpose
    ├── UserError              the caller's: what was asked for cannot be; the message says what to do
    │   ├── InvalidInput       malformed or out of range (400)
    │   ├── NotFound           no such thing, or not for you to see (404)
    │   ├── AlreadyExists      (409)
    │   ├── NotAuthenticated   no credential, or one that is wrong or ended (401)
    │   ├── Forbidden          known, and not allowed (403)
    │   ├── NotNow             legal, but not in the state that the thing is in (400)
    │   ├── Overtaken          somebody else changed it since the sender read it (412)
    │   ├── TooLarge           more bytes than are taken (413)
    │   ├── TooOften           asked again too soon (429 with Retry-After)
    │   └── Unsupported        known, and not offered here (501)
    ├── TryAgain               ours and passing: no database, shutting down, queue full (503 with Retry-After)
    ├── Stale                  a guarded write met a newer version: reload and decide again
    └── Impossible             our bug: an event that no state allows; nothing was changed; carries the story

The docstring of a class is its default message.
"""

from __future__ import annotations

#: True for type checkers only: at run time `typing` costs a task 7 ms of its start.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional


class TenaxError(Exception):
    """Something went wrong in Tenax."""

    def __init__(self, message: Optional[str] = None) -> None:
        self.message = message if message is not None else (type(self).__doc__ or "").strip()
        super().__init__(self.message)


class UserError(TenaxError):
    """The request cannot be fulfilled."""


class InvalidInput(UserError):
    """The input is not valid."""


class NotFound(UserError):
    """Not found."""


class AlreadyExists(UserError):
    """It exists already."""


class NotAuthenticated(UserError):
    """You are not logged in, or the session has ended: log in and try again."""


class Forbidden(UserError):
    """You are not allowed to do this."""


class NotNow(UserError):
    """This cannot be done in the present state."""


class Overtaken(UserError):
    """Somebody else has changed it meanwhile: read it again, then save."""


class TooLarge(UserError):
    """This is more than is taken at once."""


class TooOften(UserError):
    """Too many attempts: wait a while and try again."""

    def __init__(self, message: Optional[str] = None, *, retry_after: float = 1.0) -> None:
        super().__init__(message)
        #: Seconds after which it may be tried again.
        self.retry_after = retry_after


class Unsupported(UserError):
    """This is not offered here."""


class TryAgain(TenaxError):
    """The service is not ready for this request: try again in a moment."""

    def __init__(self, message: Optional[str] = None, *, retry_after: float = 1.0) -> None:
        super().__init__(message)
        #: Seconds after which a retry makes sense.
        self.retry_after = retry_after


class Stale(TenaxError):
    """The row changed meanwhile: load it again and decide anew."""


class Impossible(TenaxError):
    """An event met a state that does not allow it."""
