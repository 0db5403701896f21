"""Ranks of one job as threads, for tests of what ranks do together."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tenax.core.distributed import DistributedContext
from tests.kits.ports import free_port


def on_ranks(
    work: Callable[[DistributedContext], object], size: int = 3, machines: int = 1, force_tcp: bool = False
) -> list[object]:
    """Run ``work`` on each rank in a thread of its own; results or exceptions by rank."""
    pub_port, pull_port = free_port(), free_port()
    results: list[object] = [None] * size
    local_size = size // machines

    def rank_main(rank: int) -> None:
        context = None
        try:
            context = DistributedContext(
                rank=rank,
                size=size,
                local_rank=rank % local_size,
                local_size=local_size,
                cross_rank=rank // local_size,
                cross_size=machines,
                chief_ip="127.0.0.1" if machines > 1 else None,
                pub_port=pub_port,
                pull_port=pull_port,
                force_tcp=force_tcp,
            )
            results[rank] = work(context)
        except Exception as error:
            results[rank] = error
        finally:
            if context is not None:
                context.close()

    threads = [threading.Thread(target=rank_main, args=(rank,), daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads), "a rank hangs"
    return results
