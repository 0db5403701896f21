"""What benchmarks share: the line they print, summaries of samples, and peers in their own process."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

ROOT = Path(__file__).resolve().parent.parent
#: The interpreter that has the peers' packages.
PEER_PYTHON = Path(os.environ.get("TENAX_BENCH_VENV", ROOT / ".venv-bench")) / "bin" / "python"

#: Asked for by `make bench-long`: more rounds and larger cases, for figures that are reported.
LONG = os.environ.get("TENAX_BENCH_LONG", "") == "1"


def summary(samples: Sequence[float], digits: int = 2) -> dict[str, float]:
    """Median, tail and extremes of samples, in their own unit."""
    ordered = sorted(samples)
    last = len(ordered) - 1
    return {
        "p50": round(statistics.median(ordered), digits),
        "p99": round(ordered[round(0.99 * last)], digits),
        "max": round(ordered[-1], digits),
        "mean": round(statistics.fmean(ordered), digits),
        "count": len(ordered),
    }


def extremes(samples: Sequence[float], digits: int = 1) -> dict[str, float]:
    """Median, best and worst of a few rounds, in their own unit."""
    return {
        "p50": round(statistics.median(samples), digits),
        "min": round(min(samples), digits),
        "max": round(max(samples), digits),
        "rounds": len(samples),
    }


def calibration_ms() -> float:
    """Milliseconds of a fixed loop: rises when something else loads the machine."""

    def once() -> float:
        start = time.perf_counter()
        sum(number * number for number in range(200_000))
        return (time.perf_counter() - start) * 1e3

    return round(min(once() for _ in range(5)), 2)


class Line:
    """The one line of a benchmark; says how noisy the machine was before and after."""

    def __init__(self, benchmark: str) -> None:
        self._values: dict[str, object] = {"benchmark": benchmark}
        self._start = time.perf_counter()
        self._noise = {"calibration_ms_before": calibration_ms(), "load_before": round(os.getloadavg()[0], 2)}

    def add(self, **values: object) -> None:
        """Figures, by name with unit."""
        self._values.update(values)

    def emit(self) -> None:
        """Print the line."""
        noise = {**self._noise, "calibration_ms_after": calibration_ms(), "load_after": round(os.getloadavg()[0], 2)}
        took = round(time.perf_counter() - self._start, 1)
        print(json.dumps({**self._values, "took_s": took, "noise": noise}), flush=True)


class PeerMissing(Exception):
    """The peer's environment or package is not there: run `make bench`."""


class Peer:
    """A peer's script in its own process, asked line by line in JSON; ends with the block that made it."""

    def __init__(self, script: str) -> None:
        """Start ``peers/{script}.py``. Raises PeerMissing where it does not say that it is ready."""
        if not PEER_PYTHON.exists():
            raise PeerMissing(f"{PEER_PYTHON} is not there: run `make bench`, which makes it")
        command = [str(PEER_PYTHON), str(ROOT / "benchmarks" / "peers" / f"{script}.py")]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            self.about = self._read()
        except PeerMissing:
            self._end()
            raise

    def ask(self, **question: object) -> dict[str, object]:
        """Send a question and wait for its answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return self._read()

    def __enter__(self) -> Peer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _read(self) -> dict[str, object]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise PeerMissing(f"the peer ended with status {self._process.wait()}: is its package installed?")
        answer = json.loads(line)
        assert isinstance(answer, dict)
        return answer

    def _end(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()
