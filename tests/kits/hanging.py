"""Training scripts that hang, each at a line that its test knows by the comment ``# here``."""

from __future__ import annotations

import textwrap

#: How ranks hang, in the order in which one run may do it: the last cannot be mended.
KINDS = ("loader", "checkpoint", "lock", "collective")

#: Two ranks of gloo that train, and hang as the words of the command line say: the first at step 10, the next at 20.
#: What is not a collective goes on once somebody writes into the pipe of that name.
TWO_RANKS = """
    import os
    import sys
    import threading
    import time

    import torch
    import torch.distributed as dist
    from torch.utils.data import DataLoader, Dataset

    from tenax import core

    KINDS = {10 * n: kind for n, kind in enumerate(sys.argv[1:], 1)}
    LOCK = threading.Lock()


    class Numbers(Dataset):
        def __init__(self, rank):
            self.rank = rank

        def __len__(self):
            return 100000

        def __getitem__(self, index):
            if KINDS.get(index) == "loader" and self.rank == 1:
                open("loader").read()  # here: loader
            return torch.tensor([float(index)])


    def save(context, step):
        with context.checkpoint.store_path({"steps_completed": step}) as (path, uuid):
            (path / "state").write_text(open("checkpoint").read())  # here: checkpoint


    def hold():
        with LOCK:
            HELD.set()
            open("lock").read()


    def take():
        threading.Thread(target=hold, daemon=True).start()
        HELD.wait()
        LOCK.acquire()  # here: lock


    def train(context, rank, loader):
        for step, batch in enumerate(loader, 1):
            kind = KINDS.get(step)
            if kind == "lock" and rank == 1:
                take()
            if kind == "checkpoint" and rank == 0:
                save(context, step)
            if not (kind == "collective" and rank == 1):
                dist.all_reduce(batch)  # here: collective
            if rank == 0:
                context.train.report_training_metrics(step, {"sum": float(batch.sum())})
            if context.preempt.should_preempt():
                return
            time.sleep(0.01)


    def main():
        with core.init(distributed=core.DistributedContext.from_torch_distributed()) as context:
            dist.init_process_group("gloo")
            rank = context.distributed.rank
            train(context, rank, DataLoader(Numbers(rank), batch_size=1, num_workers=1))


    if __name__ == "__main__":
        HELD = threading.Event()
        main()
"""


def script(text: str) -> str:
    """As it stands in a file."""
    return textwrap.dedent(text).lstrip()


def line_of(text: str, mark: str) -> int:
    """The line that ends in ``# here: <mark>``."""
    return next(n for n, line in enumerate(script(text).splitlines(), 1) if line.endswith(f"# here: {mark}"))
