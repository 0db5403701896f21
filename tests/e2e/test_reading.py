"""The reading commands on a real cluster: what they print, that --json parses; and how those end that wait."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

from tenax.cli.main import run
from tests.e2e.trials import config, ran, script
from tests.kits.machine import ROOT, Machine, wait_for

NOOP = ROOT / "examples" / "noop"
SEARCH = config(
    name="read me",
    hyperparameters={"reports": 4, "checkpoint_every": 2, "quality": {"type": "double", "minval": 0, "maxval": 1}},
    searcher={"name": "random", "metric": "loss", "max_trials": 3},
)


@pytest.fixture(scope="module")
def ended(shared: Machine) -> Ended:
    """An experiment that has ended."""
    experiment, trials = ran(shared, SEARCH, NOOP)
    assert experiment.state == "COMPLETED"
    return Ended(experiment.id, trials[1].id, experiment.best_checkpoint().uuid)


@dataclass(frozen=True, slots=True)
class Ended:
    """What there is to read."""

    experiment: int
    #: One of its trials.
    trial: int
    #: Its best one.
    checkpoint: str


READING = {
    "status": ("status",),
    "version": ("version",),
    "master info": ("master", "info"),
    "agent list": ("agent", "list"),
    "slot list": ("slot", "list"),
    "user whoami": ("user", "whoami"),
    "experiment list": ("experiment", "list"),
    "experiment list --all": ("experiment", "list", "--all"),
    "experiment describe": ("experiment", "describe", "{experiment}"),
    "experiment list-trials": ("experiment", "list-trials", "{experiment}"),
    "experiment list-checkpoints": ("experiment", "list-checkpoints", "{experiment}"),
    "trial describe": ("trial", "describe", "{trial}"),
    "trial metrics": ("trial", "metrics", "{trial}"),
    "checkpoint list": ("checkpoint", "list", "{experiment}"),
    "checkpoint describe": ("checkpoint", "describe", "{checkpoint}"),
    "simulate": ("simulate",),
    "preview-search": ("preview-search", str(NOOP / "adaptive.yaml")),
}


@pytest.fixture
def beside(place: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command line run in this process finds the cluster: to start one takes longer than most of what they do."""
    for name in {name for name in os.environ if name.startswith(("DET_", "TENAX_"))} - place.environment.keys():
        monkeypatch.delenv(name)
    for name in ("TENAX_DIR", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, place.environment[name])


@pytest.mark.usefixtures("beside")
@pytest.mark.parametrize("name", READING)
def test_every_reading_command_has_its_answer_in_both_forms(
    ended: Ended, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A text with something in it on stdout and nothing on stderr; and JSON that parses."""
    arguments = [word.format(**asdict(ended)) for word in READING[name]]
    code = run(arguments)
    text, complaints = capsys.readouterr()
    assert (code, complaints) == (0, "")
    assert text.strip()
    assert run([*arguments, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)


def test_what_ran_replays_under_the_rules_that_it_ran_under(place: Machine, ended: Ended) -> None:
    """Each attempt once, in both rows; with more slots nothing waits longer than with fewer."""
    happened, now, one, many = place.json("simulate", "--with", "agents=1x1", "--with", "agents=1x64")
    assert (happened["name"], now["name"]) == ("as recorded", "rules of now")
    assert happened["attempts"] == now["attempts"] >= 3
    assert (now["unserved"], many["unserved"], many["waited_mean_s"]) == (0, 0, 0.0)
    assert one["waited_mean_s"] >= now["waited_mean_s"]


def test_logs_are_lines_of_json_too(place: Machine, tmp_path: Path) -> None:
    """One object a line, with the line itself, in the order of their printing; --tail, --head and --search choose."""
    code = script(tmp_path, "for number in range(50):\n    print('line', number)\n")
    _, (trial,) = ran(place, config(), code)
    lines = [json.loads(line) for line in place.tenax("trial", "logs", str(trial.id), "--json").stdout.splitlines()]
    printed = [line["log"] for line in lines if line["log"].startswith("line ")]
    assert printed == [f"line {number}" for number in range(50)]
    text = place.tenax("trial", "logs", str(trial.id), "--search", "line 4").stdout
    assert [line.split("line ")[-1] for line in text.splitlines()] == ["4", *map(str, range(40, 50))]
    assert len(place.tenax("trial", "logs", str(trial.id), "--head", "3").stdout.splitlines()) == 3
    last = place.tenax("trial", "logs", str(trial.id), "--tail", "2", "--search", "line").stdout.splitlines()
    assert [line.split("line ")[-1] for line in last] == ["48", "49"]


def test_a_followed_log_ends_with_its_trial(place: Machine, tmp_path: Path) -> None:
    """Every line is there, once, also those printed after the command was started."""
    marker = tmp_path / "go"
    code = script(
        tmp_path / "code",
        f"""
        import pathlib, time
        print("before")
        while not pathlib.Path({str(marker)!r}).exists():
            time.sleep(0.02)
        print("after")
        """,
    )
    with place.client() as client:
        experiment = client.create_experiment(config(), code)
        wait_for(lambda: experiment.trials(), "a trial")
    following = subprocess.Popen(
        [*place.command, "experiment", "logs", "-f", str(experiment.id)],
        env=place.environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert following.stdout is not None
        seen: list[str] = []
        while not any("before" in line for line in seen):
            seen.append(following.stdout.readline())
            assert seen[-1], "it ended too early"
        marker.touch()
        rest, _ = following.communicate(timeout=60)
    finally:
        following.kill()
        following.wait()
    assert following.returncode == 0
    said = [line.split()[-1] for line in ("".join(seen) + rest).splitlines() if line.strip()]
    assert (said.count("before"), said.count("after")) == (1, 1)


def test_waiting_tells_by_its_exit_code_how_it_ended(place: Machine, tmp_path: Path) -> None:
    """0 for COMPLETED; 5 for anything else; 6 when there is no such experiment."""
    good, _ = ran(place, config(), script(tmp_path / "good", "print('done')"))
    bad, _ = ran(place, config(), script(tmp_path / "bad", "raise SystemExit(3)"))
    assert place.tenax("experiment", "wait", str(good.id)).returncode == 0
    waited = place.tenax("experiment", "wait", str(bad.id), check=False)
    assert waited.returncode == 5
    assert "ERROR" in waited.stderr
    assert place.tenax("experiment", "wait", "4711", check=False).returncode == 6


def test_following_a_creation_shows_output_and_end(place: Machine, tmp_path: Path) -> None:
    """`create -f` of one trial prints what it prints, and ends with its state."""
    path = tmp_path / "one.json"
    path.write_text(json.dumps(config()))
    code = script(tmp_path / "code", "print('hello from the task')")
    done = place.tenax("experiment", "create", str(path), str(code), "-f")
    assert "hello from the task" in done.stdout
    assert "COMPLETED" in done.stderr


def test_a_checkpoint_is_downloaded_whole(place: Machine, ended: Ended, tmp_path: Path) -> None:
    """Into a new directory; an existing one is refused and stays as it is."""
    uuid, target = ended.checkpoint, tmp_path / "here"
    printed = place.tenax("checkpoint", "download", uuid, "-o", str(target)).stdout
    assert printed.strip() == str(target)
    assert json.loads((target / "state.json").read_text()) == {"step": 4}
    again = place.tenax("checkpoint", "download", uuid, "-o", str(target), check=False)
    assert again.returncode == 7
    assert str(target) in again.stderr


def test_a_checkpoint_is_downloaded_through_the_master(place: Machine, ended: Ended, tmp_path: Path) -> None:
    """By who does not see the storage: the same files, in an archive made on the way."""
    uuid, target = ended.checkpoint, tmp_path / "archive.tar.gz"
    with place.client() as client:
        with client.session.stream("GET", f"/checkpoints/{uuid}", accept="application/gzip") as response:
            target.write_bytes(b"".join(response.iter_raw()))
    listed = subprocess.run(["tar", "tzf", str(target)], capture_output=True, text=True, check=True).stdout
    assert "state.json" in listed


def test_the_best_and_the_table_agree(place: Machine, ended: Ended) -> None:
    """describe names the best trial, whose value is the least of all."""
    with place.client() as client:
        experiment = client.experiment(ended.experiment)
        losses = {trial.id: trial.searcher_metric for trial in experiment.trials()}
    assert experiment.best_metric == min(value for value in losses.values() if value is not None)
    assert losses[experiment.best_trial_id] == experiment.best_metric
    assert f"(trial {experiment.best_trial_id})" in place.tenax("experiment", "describe", str(ended.experiment)).stdout
