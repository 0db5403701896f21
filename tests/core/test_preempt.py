"""Whether to stop: who asks, when the answer comes, and what is acknowledged."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tenax import core
from tenax.client.task import TaskClient
from tenax.core import preempt as preempt_module
from tenax.core.distributed import DistributedContext, DummyDistributedContext
from tenax.core.info import run_dir
from tenax.core.modes import PreemptMode
from tenax.core.preempt import PreemptContext, PreemptionWatcher
from tenax.core.spool import ReportRefused, Spool
from tenax.core.spooling.file import SpoolFile
from tenax.errors import NotNow
from tenax.wire.task_names import LEAVE_FILE
from tests.kits.ranks import on_ranks
from tests.kits.task_master import ALLOCATION, TOKEN, TaskMaster


def until(happened: Callable[[], object], seconds: float = 240.0) -> None:
    """Call until true: for answers that come by themselves."""
    event = threading.Event()
    for _ in range(int(seconds / 0.005)):
        if happened():
            return
        event.wait(0.005)
    pytest.fail("it did not happen")


def test_not_asked(trial: Path, master: TaskMaster) -> None:
    """Without a signal the answer is False, for as long as one asks, at the cost of one long poll."""
    with core.init() as context:
        assert not any(context.preempt.should_preempt() for _ in range(1000))
        master.wait_for(lambda: master.polls == 2)
    polls = [query["timeout_seconds"] for _, path, query in master.requests if path.endswith("preemption")]
    assert polls == ["0", "60"]
    assert master.bodies_of("ack_preemption") == []


def test_signal_during_training(trial: Path, master: TaskMaster) -> None:
    """A signal that comes while the script trains is seen at once, and acknowledged once."""
    with core.init() as context:
        assert not context.preempt.should_preempt()
        master.wait_for(lambda: master.polls == 2)
        master.preempt.set()
        until(context.preempt.should_preempt)
        assert context.preempt.should_preempt()
    assert len(master.bodies_of("ack_preemption")) == 1


def test_signal_before_the_start(trial: Path, master: TaskMaster) -> None:
    """A signal that was given before the script began is the first answer."""
    master.preempt.set()
    with core.init() as context:
        assert context.preempt.should_preempt()


def test_acknowledged_with_the_master_before_it_returns(trial: Path, master: TaskMaster) -> None:
    """With the master there, it has the acknowledgement when ``should_preempt`` returns."""
    master.preempt.set()
    with core.init() as context:
        assert context.preempt.should_preempt()
        assert len(master.bodies_of("ack_preemption")) == 1


def test_acknowledging_by_hand(trial: Path, master: TaskMaster) -> None:
    """With ``auto_ack=False`` nothing is acknowledged until the script does."""
    master.preempt.set()
    with core.init() as context:
        assert context.preempt.should_preempt(auto_ack=False)
        assert master.bodies_of("ack_preemption") == []
        context.preempt.acknowledge_preemption_signal()
        context.preempt.acknowledge_preemption_signal()
    assert len(master.bodies_of("ack_preemption")) == 1


def test_master_away(trial: Path, master: TaskMaster) -> None:
    """With the master away the answer is False without waiting, and the signal is seen when it is back."""
    master.down()
    with core.init() as context:
        assert not context.preempt.should_preempt()
        master.preempt.set()
        master.up()
        until(context.preempt.should_preempt)


def test_the_agent_asks_where_no_master_does(trial: Path, master: TaskMaster) -> None:
    """A machine that nobody hears of is going to end: the file of its agent is the signal, and is acknowledged."""
    with core.init() as context:
        assert not context.preempt.should_preempt()
        master.wait_for(lambda: master.polls == 2)
        master.down()
        (Path(run_dir()) / LEAVE_FILE).touch()
        until(context.preempt.should_preempt)
        master.up()
    assert len(master.bodies_of("ack_preemption")) == 1


def test_restart_of_the_master(trial: Path, master: TaskMaster) -> None:
    """A master that is killed during the long poll and comes back is asked again."""
    with core.init() as context:
        assert not context.preempt.should_preempt()
        master.wait_for(lambda: master.polls == 2)
        master.down()
        master.up()
        master.wait_for(lambda: master.polls == 3)
        master.preempt.set()
        until(context.preempt.should_preempt)


def test_hasty_answers_do_not_spin(master: TaskMaster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A master that answers long polls at once is asked again only after a pause."""
    monkeypatch.setattr(preempt_module, "LONG_POLL", 0.01)
    monkeypatch.setattr(preempt_module, "_POLL_GAP", 1000.0)
    pauses: list[float] = []

    class Recording(PreemptionWatcher):
        def _pause(self, seconds: float) -> None:
            pauses.append(seconds)
            self._closing = len(pauses) == 3

    watcher = Recording(TaskClient(master.url, TOKEN), ALLOCATION)
    assert not watcher.signalled()
    watcher._thread.join(60)
    assert [pause > 900 for pause in pauses] == [True] * 3


def test_short_task_asks_nothing(trial: Path, master: TaskMaster) -> None:
    """A script that never asks, and ends soon, makes no request for it."""
    with core.init() as context:
        context.train.report_validation_metrics(1, {"loss": 1})
    assert master.polls == 0


def test_fatal_refusal_stops_the_script(trial: Path, master: TaskMaster) -> None:
    """When the master has ended the trial for a report, asking whether to stop says so."""
    master.judge = lambda record: ("no metric 'loss'", True) if record["kind"] == "metrics" else None

    def train() -> None:
        with core.init() as context:
            context.train.report_validation_metrics(1, {"los": 1})
            until(context.preempt.should_preempt)

    with pytest.raises(ReportRefused, match="no metric 'loss'"):
        train()


def contexts(
    master: TaskMaster, root: Path, mode: PreemptMode, work: Callable[[DistributedContext, PreemptContext], object]
) -> list[object]:
    """Run ``work`` on three ranks, each with the preemption context that it would have."""

    def rank_main(distributed: DistributedContext) -> object:
        client = TaskClient(master.url, TOKEN)
        spool = Spool(SpoolFile(str(root), f"rank-{distributed.rank}"), client.twin(), ALLOCATION, "c")
        asks = distributed.rank == 0 or mode is PreemptMode.WorkersAskMaster
        watcher = PreemptionWatcher(client, ALLOCATION) if asks else None
        context = PreemptContext(spool, distributed, mode, watcher)
        try:
            return work(distributed, context)
        finally:
            context.close()
            spool.close()

    return on_ranks(rank_main, 3)


def test_workers_ask_chief(master: TaskMaster, tmp_path: Path) -> None:
    """All ranks see the signal at the same call, and the chief alone asks and acknowledges."""

    def work(distributed: DistributedContext, context: PreemptContext) -> object:
        calls = 0
        while not context.should_preempt():
            calls += 1
            if calls == 5 and distributed.rank == 0:
                master.preempt.set()
        return calls

    results = contexts(master, tmp_path, PreemptMode.WorkersAskChief, work)
    assert len(set(results)) == 1
    assert isinstance(results[0], int)
    assert results[0] >= 5
    assert len(master.bodies_of("ack_preemption")) == 1
    assert master.polls <= 3


def test_workers_ask_master(master: TaskMaster, tmp_path: Path) -> None:
    """Each rank asks for itself."""
    master.preempt.set()
    results = contexts(master, tmp_path, PreemptMode.WorkersAskMaster, lambda _, context: context.should_preempt())
    assert results == [True, True, True]
    assert master.polls == 3


def test_chief_only(master: TaskMaster, tmp_path: Path) -> None:
    """Only the chief may ask; another rank that does is told so."""
    master.preempt.set()
    results = contexts(master, tmp_path, PreemptMode.ChiefOnly, lambda _, context: context.should_preempt())
    assert results[0] is True
    assert isinstance(results[1], NotNow)
    assert "ChiefOnly and this is rank 1" in str(results[1])


def test_off_cluster(tmp_path: Path) -> None:
    """Off the cluster nobody asks the script to stop, and there is nothing to acknowledge."""
    spool = Spool(SpoolFile(str(tmp_path), "r"), None, "", "")
    context = PreemptContext(spool, DummyDistributedContext(), PreemptMode.WorkersAskChief, None)
    assert not context.should_preempt()
    context.acknowledge_preemption_signal()
    assert list(tmp_path.iterdir()) == []
