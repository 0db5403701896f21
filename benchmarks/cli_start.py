"""How long the command line takes to start: ``tenax --help``, the help of a command, ``tenax --version``.

Prints one JSON line. Beside it, in turns in the same run: the bare interpreter, and the command lines of peers that are
installed in the peers' environment (``det``, ``mlflow``, ``optuna``, ``ray``).
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks._measure import PEER_PYTHON, Line, summary

ROUNDS = 20
#: Milliseconds by the clock that ``tenax --help`` may take.
FLOOR_MS = 150.0
PEERS = ("det", "mlflow", "optuna", "ray")
#: A slow peer is started less often.
PEER_ROUNDS = 3


def start_ms(command: list[str]) -> tuple[float, float]:
    """Milliseconds by the clock, and of the processor, that a command takes from start to end."""
    before, used = time.perf_counter(), os.times()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after, now = time.perf_counter(), os.times()
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}")
    spent = now.children_user - used.children_user + now.children_system - used.children_system
    return (after - before) * 1e3, spent * 1e3


def commands() -> dict[str, list[str]]:
    """Ours, and the interpreter that all of them stand on."""
    tenax = str(Path(sys.executable).with_name("tenax"))
    return {
        "interpreter": [sys.executable, "-c", "pass"],
        "tenax_help": [tenax, "--help"],
        "tenax_experiment_create_help": [tenax, "experiment", "create", "--help"],
        "tenax_version": [tenax, "--version"],
    }


def peers() -> dict[str, list[str]]:
    """The peers that are installed."""
    found = {name: PEER_PYTHON.with_name(name) for name in PEERS}
    return {name: [str(path), "--help"] for name, path in found.items() if path.exists()}


def main() -> None:
    """Measure and print the line."""
    line = Line("cli_start")
    wall: dict[str, list[float]] = {}
    cpu: dict[str, list[float]] = {}
    ours, others = commands(), peers()
    for command in [*ours.values(), *others.values()]:
        start_ms(command)  # Byte code and the disk's cache are there from now on.
    for number in range(ROUNDS):
        for name, command in {**ours, **(others if number < PEER_ROUNDS else {})}.items():
            taken, spent = start_ms(command)
            wall.setdefault(name, []).append(taken)
            cpu.setdefault(name, []).append(spent)
    help_ms = statistics.median(wall["tenax_help"])
    line.add(
        wall_ms={name: summary(wall[name], 1) for name in ours},
        cpu_ms={name: round(statistics.fmean(cpu[name]), 1) for name in ours},
        floor_ms=FLOOR_MS,
        meets_floor=help_ms < FLOOR_MS,
        above_interpreter_ms=round(help_ms - statistics.median(wall["interpreter"]), 1),
        peer={name: round(statistics.median(wall[name]), 1) for name in others}
        or {"missing": f"none of {', '.join(PEERS)} is installed beside {PEER_PYTHON}: run `make bench`"},
    )
    if others:
        quickest = min(others, key=lambda name: statistics.median(wall[name]))
        line.add(peer_over_ours=round(statistics.median(wall[quickest]) / help_ms, 1))
    line.emit()


if __name__ == "__main__":
    main()
