"""Exit codes, for scripts; the documentation lists them from here."""

from __future__ import annotations

from tenax.errors import AlreadyExists, Forbidden, NotAuthenticated, NotFound, TenaxError

#: Done.
OK = 0
#: The command was refused, or it failed.
FAILED = 1
#: The command line is wrong: an unknown command or option, or a bad value.
USAGE = 2
#: Nothing answers at the master's address, or no cluster is up.
UNREACHABLE = 3
#: Not logged in, a wrong password, or not allowed.
NOT_ALLOWED = 4
#: What the command waited for ended without completing.
NOT_COMPLETED = 5
#: There is no such experiment, trial, checkpoint...
NOT_FOUND = 6
#: It exists already, or a cluster is already up.
EXISTS = 7
#: A bug in Tenax.
BUG = 70
#: Interrupted with Ctrl-C; what was being followed keeps running.
INTERRUPTED = 130


def code_of(error: TenaxError) -> int:
    """The exit code for an error that ends a command."""
    from tenax.client.connection.address import Unreachable

    for kind, code in (
        (Unreachable, UNREACHABLE),
        (NotAuthenticated, NOT_ALLOWED),
        (Forbidden, NOT_ALLOWED),
        (NotFound, NOT_FOUND),
        (AlreadyExists, EXISTS),
    ):
        if isinstance(error, kind):
            return code
    return FAILED
