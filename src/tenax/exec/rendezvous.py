"""Meeting the other containers of an allocation. Standard library only, Python 3.9.

The master answers when all members have asked and run: addresses in the order of rank, the chief's first. It knows who
is missing, so we send how long we wait, and it answers then with an error that names them; a master that is away
meanwhile is asked again (asking is idempotent) until the same time has passed here.
"""

from __future__ import annotations

import time

from tenax.client.task import MasterAway, TaskClient, retry
from tenax.errors import TenaxError
from tenax.wire.task_names import masters_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenax.jsonvalue import Json

#: What the master may take longer than the members wait before we stop listening.
_GRACE = 15.0


class RendezvousFailed(TenaxError):
    """The containers of this task did not meet."""


class Met:
    """All members: address and number of slots of each, by rank; and which of them we are."""

    def __init__(self, addresses: list[str], rank: int, slots: list[int]) -> None:
        self.addresses = addresses
        self.rank = rank
        self.slots = slots


def rendezvous(env: Mapping[str, str], seconds: float) -> Met:
    """Wait up to ``seconds`` for the other members. Raises RendezvousFailed naming who is missing."""
    client = TaskClient(
        masters_of(env),
        env["DET_SESSION_TOKEN"],
        cert_file=env.get("DET_MASTER_CERT_FILE", ""),
        cert_name=env.get("DET_MASTER_CERT_NAME", ""),
    )
    member = env.get("DET_RESOURCES_ID") or env.get("DET_CONTAINER_ID", "")
    path = f"/api/v1/allocations/{env['DET_ALLOCATION_ID']}/resources/{member}/rendezvous"
    deadline = time.monotonic() + seconds
    attempts = retry()
    try:
        while True:
            left = max(0.0, deadline - time.monotonic())
            try:
                query = {"timeout_seconds": f"{left:.0f}"}
                return _read(client.attempt("GET", path, query=query, timeout=left + _GRACE))
            except MasterAway as away:
                pause = attempts.pause(away.retry_after)
                if time.monotonic() + pause > deadline:
                    raise RendezvousFailed(
                        f"the containers of this task did not meet within {seconds:.0f} s: {away}"
                    ) from away
                time.sleep(pause)
            except TenaxError as error:
                raise RendezvousFailed(f"the containers of this task did not meet: {error}") from error
    finally:
        client.close()


def _read(answer: Json) -> Met:
    info = answer.get("rendezvousInfo") if isinstance(answer, dict) else None
    if isinstance(info, dict):
        addresses, rank, slots = info.get("addresses"), info.get("rank"), info.get("slots")
        if isinstance(addresses, list) and isinstance(rank, int) and isinstance(slots, list):
            return Met([str(address) for address in addresses], rank, [int(str(count)) for count in slots])
    raise RendezvousFailed("the master's answer about the members of this task is not understood")
