"""Metrics of the machine, and the searcher of older scripts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tenax import core
from tenax.core.machine import Counters, between
from tenax.core.profiler import mean
from tenax.core.searcher import Unit, length_of
from tenax.errors import InvalidInput, NotNow
from tests.kits.task_master import TaskMaster

FILES = {
    "/proc/stat": "cpu  {busy} 0 0 {idle} 0 0 0 0 5 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n",
    "/proc/diskstats": (
        "   8       0 sda {ops} 0 {read} 0 {ops} 0 {written} 0 0 0 0\n"
        "   8       1 sda1 99 0 99 0 99 0 99 0 0 0 0\n"
        "   7       0 loop0 99 0 99 0 99 0 99 0 0 0 0\n"
    ),
    "/proc/net/dev": (
        "Inter-|   Receive                          |  Transmit\n"
        " face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls carrier\n"
        "    lo: 999 0 0 0 0 0 0 0 999 0 0 0 0 0 0 0\n"
        "  eth0: {received} 0 0 0 0 0 0 0 {sent} 0 0 0 0 0 0 0\n"
    ),
    "/proc/meminfo": "MemTotal:  100 kB\nMemAvailable:   50 kB\n",
    "/sys/block/sda/size": "1000\n",
}


def counters(**values: int) -> Counters:
    return Counters(lambda path: FILES.get(path, "").format(**values))


def test_rates_between_two_moments() -> None:
    """Counters become percentages and rates; partitions, loop devices and the loopback do not count."""
    before = counters(busy=100, idle=100, ops=0, read=0, written=0, received=0, sent=0)
    after = counters(busy=130, idle=110, ops=10, read=4, written=8, received=1000, sent=2000)
    before.at, after.at = 0.0, 2.0
    assert between(before, after) == {
        "cpu": {"cpu_util_simple": 75.0},
        "memory": {"memory_free": 51200.0},
        "disk": {"disk_iops": 10.0, "disk_throughput_read": 1024.0, "disk_throughput_write": 2048.0},
        "network": {"net_throughput_recv": 500.0, "net_throughput_sent": 1000.0},
    }


def test_what_is_not_there_is_left_out() -> None:
    """A system without these files has no such metrics, and no error."""
    assert between(Counters(lambda _: ""), Counters(lambda _: "")) == {}


def test_mean() -> None:
    """A report is the mean over the samples that have the value."""
    assert mean([{"cpu": {"": {"u": 1.0}}}, {"cpu": {"": {"u": 3.0}}, "gpu": {"G": {"x": 5.0}}}]) == {
        "cpu": {"": {"u": 2.0}},
        "gpu": {"G": {"x": 5.0}},
    }


def test_on_the_cluster(trial: Path, master: TaskMaster) -> None:
    """While it is on, the machine's metrics arrive by agent, with a time and without steps."""
    with core.init() as context:
        context.profiler.on(sampling_interval=0.1, samples_per_report=1)
        with pytest.raises(NotNow, match="on already"):
            context.profiler.on()
        master.wait_for(lambda: {body["group"] for body in master.bodies_of("metrics")} >= {"cpu", "memory", "disk"})
        context.profiler.off()
        context.profiler.off()
        context.profiler.on(sampling_interval=0.1, samples_per_report=1000)
    body = next(body for body in master.bodies_of("metrics") if body["group"] == "cpu")
    assert body["stepsCompleted"] is None
    assert str(body["reportTime"]).endswith("Z")
    assert 0 <= body["metrics"]["agent-1"]["cpu_util_simple"] <= 100  # type: ignore[index]


def test_off_the_cluster(off_cluster: Path) -> None:
    """Off the cluster the calls are there and do nothing, but wrong numbers are refused."""
    with core.init() as context:
        context.profiler.on()
        context.profiler.off()
        with pytest.raises(InvalidInput, match=r"at least 0.1 s"):
            context.profiler.on(sampling_interval=0.01)
    assert not off_cluster.exists()


def test_searcher_of_older_scripts(trial: Path, master: TaskMaster) -> None:
    """A script that asks the searcher for operations gets one, of the configured length."""
    path = trial / "info/trial.json"
    document = json.loads(path.read_text())
    document["config"]["searcher"]["max_length"] = {"epochs": 4}
    path.write_text(json.dumps(document))
    with core.init() as context:
        lengths = []
        for operation in context.searcher.operations(core.SearcherMode.ChiefOnly):
            lengths.append(operation.length)
            operation.report_progress(2)
            context.train.report_validation_metrics(4, {"loss": 1})
            operation.report_completed(1)
            with pytest.raises(NotNow, match="completed already"):
                operation.report_completed(1)
        assert context.searcher.get_configured_units() is core.Unit.EPOCHS
    assert lengths == [4]
    assert master.bodies_of("progress") == [{"progress": 0.5}]


def test_searcher_without_a_length(trial: Path, master: TaskMaster) -> None:
    """Without ``max_length`` the error says what a script does instead."""
    with core.init() as context, pytest.raises(InvalidInput, match="should_preempt"):
        _ = context.searcher


@pytest.mark.parametrize(
    ("given", "length"),
    [(5, (5, None)), ({"batches": 7}, (7, Unit.BATCHES)), ({"records": 9}, (9, Unit.RECORDS))],
)
def test_lengths(given: object, length: object) -> None:
    """Both spellings of a length are understood."""
    assert length_of(given) == length  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [None, 0, True, {}, {"hours": 1}, {"epochs": 1, "batches": 2}, "5"])
def test_no_lengths(given: object) -> None:
    """Anything else is refused."""
    with pytest.raises(InvalidInput, match="max_length"):
        length_of(given)  # type: ignore[arg-type]
