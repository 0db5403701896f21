"""What cannot be done is refused, in words that say what is wrong, why, and what to do; and nothing has changed.

Configurations, code and names that are wrong; a cluster that cannot be, a login that is none, an agent that nobody
knows, a disk that is full.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import yaml

from tests.e2e.trials import config, output, ran, script, traces
from tests.kits.cli.command_line import run_here
from tests.kits.machine import Machine, home, machine

GOOD = """\
name: good
entrypoint: python3 train.py
hyperparameters:
  lr: {type: double, minval: 0, maxval: 1}
searcher: {name: random, metric: loss, max_trials: 2}
resources:
  slots_per_trial: 1
"""

#: what is wrong: (a part of the good configuration, what stands there instead, what the refusal says)
UNFIT: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "broken YAML": ("max_trials: 2}", "max_trials: 2", ("line 6", "not YAML", "brackets")),
    "an unknown key": ("resources:", "resorces:", ("resorces", "line 6", "unknown key", "did you mean 'resources'")),
    "an unknown key further in": (
        "  slots_per_trial: 1",
        "  slot_per_trial: 1",
        ("resources.slot_per_trial", "line 7", "did you mean 'slots_per_trial'"),
    ),
    "a wrong type": (
        "slots_per_trial: 1",
        "slots_per_trial: many",
        ("resources.slots_per_trial", "line 7", "whole number", "'many'"),
    ),
    "no entrypoint": ("entrypoint: python3 train.py\n", "", ("'entrypoint' must be set", "python3 train.py")),
    "hyperparameters that are no grid": (
        "name: random, metric: loss, max_trials: 2",
        "name: grid, metric: loss",
        ("hyperparameters.lr", "line 4", "grid", "set count"),
    ),
    "more slots than there are": ("slots_per_trial: 1", "slots_per_trial: 5", ("slots_per_trial", "5", "2 slots")),
    "an unknown pool": ("slots_per_trial: 1", "resource_pool: gpus", ("resource_pool", "'gpus'", "default")),
    "not a map": (GOOD, "- entrypoint: python3 train.py\n", ("line 1", "a map of keys and values", "a list")),
    "nothing": (GOOD, "", ("bad.yaml is empty",)),
}

LIMIT = 200_000


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """A cluster that takes little code, and whose disk counts as full for logs: more is to stay free than is free, but
    less than twice of it."""
    free = shutil.disk_usage(tempfile.gettempdir()).free
    settings = tmp_path_factory.mktemp("settings") / "master.yaml"
    settings.write_text(yaml.safe_dump({"context_limit_bytes": LIMIT, "budgets": {"min_free_bytes": free + free // 2}}))
    with machine(options=("--config", str(settings))) as up:
        yield up


@pytest.fixture
def code(tmp_path: Path) -> Path:
    return script(tmp_path / "code", "print('never started')")


def refused(place: Machine, *arguments: str, code: int = 1) -> str:
    """What is said when a command is refused, which has to change nothing."""
    before = traces(place)
    done = run_here(place.environment, *arguments)
    assert done.code == code, f"exit code {done.code}: {done.out}{done.err}"
    assert "Traceback" not in done.err
    assert not traces(place).beyond(before)
    return done.err


def test_the_configuration_that_is_spoiled_below_is_good(place: Machine, tmp_path: Path, code: Path) -> None:
    """Otherwise its spoiled forms might be refused for another reason; and a dry run creates nothing."""
    path = tmp_path / "good.yaml"
    path.write_text(GOOD)
    before = traces(place)
    done = place.tenax("experiment", "create", str(path), str(code), "--dry-run")
    assert "valid" in done.stderr
    assert not traces(place).beyond(before)


@pytest.mark.parametrize("fault", UNFIT)
def test_an_unfit_configuration_is_refused(place: Machine, tmp_path: Path, code: Path, fault: str) -> None:
    """By its path and line, with what is expected there; no experiment is made."""
    part, instead, words = UNFIT[fault]
    assert GOOD.count(part) == 1
    path = tmp_path / "bad.yaml"
    path.write_text(GOOD.replace(part, instead))
    told = refused(place, "experiment", "create", str(path), str(code))
    for word in words:
        assert word in told


def test_all_problems_of_a_configuration_are_told_at_once(place: Machine, tmp_path: Path, code: Path) -> None:
    """Nobody has to submit as often as there are mistakes."""
    path = tmp_path / "bad.yaml"
    path.write_text(GOOD.replace("resources:", "resorces:").replace("entrypoint: python3 train.py\n", ""))
    told = refused(place, "experiment", "create", str(path), str(code))
    assert "entrypoint" in told
    assert "resorces" in told


def test_code_over_the_masters_limit_is_refused(place: Machine, tmp_path: Path, code: Path) -> None:
    """With both sizes, the largest file, and the way out."""
    (code / "weights.bin").write_bytes(bytes(2 * LIMIT))
    path = tmp_path / "good.yaml"
    path.write_text(GOOD)
    told = refused(place, "experiment", "create", str(path), str(code))
    for word in ("0.4 MiB", "0.2 MiB", "weights.bin", ".detignore"):
        assert word in told


def test_code_that_is_far_too_large_is_never_sent(place: Machine, tmp_path: Path, code: Path) -> None:
    """The client knows the usual limit, and says the same before it reads the files."""
    with (code / "data.bin").open("wb") as sparse:
        sparse.truncate(200 << 20)
    path = tmp_path / "good.yaml"
    path.write_text(GOOD)
    told = refused(place, "experiment", "create", str(path), str(code))
    for word in ("200.0 MiB", "95.0 MiB", "data.bin", ".detignore"):
        assert word in told
    (code / ".detignore").write_text("data.bin\n")
    assert place.tenax("experiment", "create", str(path), str(code), "--dry-run").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("experiment", "describe", "4711"), 6, ("4711",)),
        (("experiment", "kill", "4711"), 6, ("4711",)),
        (("trial", "describe", "4711"), 6, ("4711",)),
        (("trial", "logs", "4711"), 6, ("4711",)),
        (("checkpoint", "describe", "00000000-0000-4000-8000-000000000000"), 6, ("00000000-0000-4000",)),
        (("checkpoint", "describe", "nonsense"), 6, ("nonsense",)),
        (("experiment", "create", "/nowhere.yaml", "/nowhere"), 2, ("/nowhere.yaml", "does not exist")),
        (("experiment", "describe", "one"), 6, ("'one'", "experiment list")),
        (("experiment", "lst"), 2, ("lst", "list")),
    ],
)
def test_what_is_not_there_is_named(
    place: Machine, arguments: tuple[str, ...], code: int, words: tuple[str, ...]
) -> None:
    """An exit code that tells 'not found' from 'written wrongly'."""
    told = refused(place, *arguments, code=code)
    for word in words:
        assert word in told


def below(directory: Path) -> list[str]:
    """Command lines of processes that have to do with this directory."""
    found = []
    for process in psutil.process_iter(["cmdline", "cwd"]):
        line = " ".join(process.info["cmdline"] or ())
        if str(directory) in line or str(directory) in (process.info["cwd"] or ""):
            found.append(line)
    return found


def test_a_second_cluster_in_one_directory_is_refused(place: Machine) -> None:
    """It says where the first is and what to do, and leaves it alone."""
    before = {name: place.pid(name) for name in ("supervisor", "postgres", "master", "agent")}
    done = place.tenax("up", "--dir", str(place.directory), "--port", "0", check=False)
    assert done.returncode == 7
    for word in ("already up", str(place.directory), str(place.port), "tenax status", "tenax down"):
        assert word in done.stderr
    assert {name: place.pid(name) for name in before} == before
    assert place.tenax("status").returncode == 0


def test_a_port_in_use_leaves_nothing_running() -> None:
    """The port and the way out are named; no server of the refused cluster is left, and another port serves it."""
    with socket.socket() as taken, home() as directory:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        one = Machine(directory / "cluster")
        one.port = taken.getsockname()[1]
        done = one.tenax("up", "--dir", str(one.directory), "--port", str(one.port), check=False)
        assert done.returncode == 1
        for word in (str(one.port), "in use", "--port"):
            assert word in done.stderr
        assert not below(one.directory)
        assert one.tenax("status", check=False).returncode == 3


def test_a_wrong_password_is_refused(place: Machine) -> None:
    """By name and address, without the password; whoever was logged in stays so."""
    who = place.json("user", "whoami")
    done = subprocess.run(
        [*place.command, "user", "login", "admin", "--password-stdin"],
        env=place.environment,
        input="swordfish\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 4
    for word in ("Wrong name or password", "'admin'", str(place.port)):
        assert word in done.stderr
    assert "swordfish" not in done.stdout + done.stderr
    assert place.json("user", "whoami") == who


def test_an_agent_with_a_wrong_token_stays_outside(place: Machine, tmp_path: Path) -> None:
    """It ends, says which token it needs, and the cluster does not know it."""
    token = tmp_path / "join-token"
    token.write_text("not-the-token-of-this-cluster\n")
    token.chmod(0o600)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tenax.agent", "--master-url", f"http://127.0.0.1:{place.port}"),
            *("--agent-id", "stranger", "--dir", str(tmp_path / "agent"), "--join-token-file", str(token)),
        ],
        env=place.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 2
    assert "join token" in done.stderr
    assert "not-the-token" not in done.stdout + done.stderr
    agents = place.json("agent", "list")
    assert isinstance(agents, list)
    assert "stranger" not in str(agents)


def test_a_full_disk_costs_logs_and_nothing_else(place: Machine, tmp_path: Path) -> None:
    """Training goes on, metrics and state are written; what was refused, why and what to do is said."""
    code = script(
        tmp_path,
        """
        from tenax import core
        with core.init() as context:
            for step in range(1, 4):
                print("a line that finds no room")
                context.train.report_validation_metrics(step, {"loss": 1.0 / step})
        """,
    )
    experiment, (trial,) = ran(place, config(), code)
    assert experiment.state == "COMPLETED"
    assert trial.state == "COMPLETED"
    assert trial.latest_validation is not None
    assert trial.latest_validation.steps == 3
    log = output(place, trial)
    assert "a line that finds no room" not in log
    assert log.count("output waits where it was made") == 1
    for told in (log, (place.directory / "agent.log").read_text()):
        for word in ("the disk of the database has", "logs are refused below", "make room"):
            assert word in told
    told = place.tenax("status").stderr
    for word in (str(place.directory), "GiB left", "logs are refused", "Make room"):
        assert word in told
