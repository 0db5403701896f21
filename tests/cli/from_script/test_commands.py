"""``tenax submit`` and ``tenax search``: what is sent, shown and kept, and what is refused."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tenax.cli.console import exits
from tests.kits.cli.command_line import Done, Tenax
from tests.kits.cli.experiments import experiment
from tests.kits.pretend_master import PretendMaster, refused

PATH = "/api/v1/experiments"
TRAIN = """
from tenax import core
with core.init() as context:
    context.train.report_validation_metrics(1, {"accuracy": 1.0, "epochs": 1})
"""
SEARCH = "search code/train.py --lr 1e-4..1e-1:log --time 16 --trials 20"


@pytest.fixture(autouse=True)
def code(home: Path, master: PretendMaster) -> Path:
    """A directory with a script, in a home of one's own; the master takes what it gets."""
    directory = home / "code"
    directory.mkdir()
    (directory / "train.py").write_text(TRAIN)
    (directory / "model.py").write_text("")
    (directory / "big.bin").write_text("")
    (directory / ".detignore").write_text("*.bin\n")
    master.on("POST", PATH, {"experiment": experiment(), "config": {}})
    return directory


def sent(master: PretendMaster) -> tuple[dict[str, object], set[str]]:
    """The configuration and the files of the last submission."""
    body = master.sent("POST", PATH)[-1].body
    assert isinstance(body, dict)
    return yaml.safe_load(body["config"]), {file["path"] for file in body["modelDefinition"]}


def run(tenax: Tenax, line: str) -> Done:
    return tenax(*shlex.split(line))


def test_a_search(tenax: Tenax, master: PretendMaster) -> None:
    """What was made is shown, and is what is sent, with the script's directory."""
    done = run(tenax, f"{SEARCH} --batch-size 32,64 -- --data x")
    assert (done.code, done.out) == (exits.OK, "Created experiment 7\n")
    config, files = sent(master)
    assert config == {
        "name": "train",
        "entrypoint": [
            *("python3", "-m", "tenax.launch.with_hparams", "train.py"),
            *("--lr", "{lr}", "--batch-size", "{batch_size}", "--data", "x"),
        ],
        "hyperparameters": {
            "lr": {"type": "log", "base": 10, "minval": -4, "maxval": -1},
            "batch_size": {"type": "categorical", "vals": [32, 64]},
        },
        "searcher": {
            "name": "adaptive_asha",
            "metric": "accuracy",
            "smaller_is_better": False,
            "time_metric": "epochs",
            "max_time": 16,
            "max_trials": 20,
        },
        "resources": {"slots_per_trial": 1},
    }
    assert files == {".detignore", "train.py", "model.py"}
    assert "entrypoint: [python3, -m, tenax.launch.with_hparams, train.py," in done.err
    assert "adaptive_asha: 20 trials" in done.err


def test_one_trial(tenax: Tenax, master: PretendMaster) -> None:
    """Options of ours stand anywhere before the dashes; those of the same name are given as --hparam."""
    done = run(
        tenax,
        "submit --slots 2 code/train.py --lr 0.1 --name digits --amp --goal min --hparam name=resnet "
        "--config max_restarts=0 --json -- --name x",
    )
    assert done.code == exits.OK, done.err
    assert json.loads(done.out)["id"] == 7
    config, _ = sent(master)
    assert config["name"] == "digits"
    assert config["hyperparameters"] == {"lr": 0.1, "amp": True, "name": "resnet"}
    assert config["searcher"] == {"name": "single", "metric": "accuracy", "smaller_is_better": True}
    assert (config["resources"], config["max_restarts"]) == ({"slots_per_trial": 2}, 0)
    assert config["entrypoint"] == [
        *("python3", "-m", "tenax.launch.with_hparams", "-m", "tenax.launch.torch_distributed", "train.py"),
        *("--lr", "{lr}", "{amp:+--amp}", "--name", "{name}", "--name", "x"),
    ]


def test_a_script_without_flags(tenax: Tenax, master: PretendMaster) -> None:
    """Is started as it is."""
    assert run(tenax, "submit code/train.py").code == exits.OK
    config, _ = sent(master)
    assert config["entrypoint"] == ["python3", "train.py"]
    assert "hyperparameters" not in config


def test_another_directory(tenax: Tenax, master: PretendMaster, home: Path) -> None:
    """Sent instead of the script's, which has to be in it; files that lie elsewhere come along."""
    (home / "data.csv").write_text("1\n")
    (home / "code" / "model.yaml").write_text("")
    assert run(tenax, "submit code/train.py --directory . -i data.csv --lr 1").code == exits.FAILED  # twice data.csv
    (home / "other").mkdir()
    (home / "data.csv").rename(home / "other" / "data.csv")
    (home / ".detignore").write_text("other\nconfig\n")
    done = run(tenax, "submit code/train.py --directory . -i other/data.csv --lr 1")
    assert done.code == exits.OK, done.err
    config, files = sent(master)
    assert config["entrypoint"] == ["python3", "-m", "tenax.launch.with_hparams", "code/train.py", "--lr", "{lr}"]
    assert {"code/train.py", "data.csv"} <= files
    assert "other" not in files


def test_nothing_is_sent_with_dry_run(tenax: Tenax, master: PretendMaster) -> None:
    """The configuration is on standard output, for a file; the master checks it and makes nothing."""
    done = run(tenax, f"{SEARCH} --dry-run")
    assert done.code == exits.OK
    assert yaml.safe_load(done.out) == sent(master)[0]
    body = master.sent("POST", PATH)[-1].body
    assert isinstance(body, dict)
    assert body["validateOnly"] is True
    assert "nothing was created" in done.err
    assert "If it was created now" not in done.err, "the master did not say"
    assert json.loads(run(tenax, f"{SEARCH} --dry-run --json").out) == sent(master)[0]


def test_what_is_kept_is_what_was_sent(tenax: Tenax, master: PretendMaster, home: Path) -> None:
    """With the command that takes it, which sends the same; a file that is there stays as it is."""
    assert run(tenax, f"{SEARCH} --save config.yaml").code == exits.OK
    config, files = sent(master)
    first, _, text = (home / "config.yaml").read_text().partition("\n")
    assert first == "# tenax experiment create config.yaml code"
    assert yaml.safe_load(text) == config
    assert run(tenax, first.removeprefix("# tenax ")).code == exits.OK
    assert sent(master) == (config, files)
    count = len(master.sent("POST", PATH))
    done = run(tenax, f"{SEARCH} --save config.yaml")
    assert (done.code, len(master.sent("POST", PATH))) == (exits.FAILED, count)
    assert "config.yaml is there already" in done.err


def test_a_refused_configuration_is_not_kept(tenax: Tenax, master: PretendMaster, home: Path) -> None:
    master.on("POST", PATH, refused(400, "it has a problem"))
    done = run(tenax, f"{SEARCH} --save config.yaml")
    assert done.code == exits.FAILED
    assert "it has a problem" in done.err
    assert not (home / "config.yaml").exists()


@pytest.mark.parametrize(
    ("line", "exit_code", "message"),
    [
        ("search code/train.py --lr 1e-4.. --time 16 --trials 20", exits.FAILED, "without two numbers"),
        ("search code/train.py --lr 0.1 --trials 20", exits.FAILED, "nothing to search"),
        ("search code/train.py --lr 0.1..0.2", exits.FAILED, "--trials 20"),
        ("search code/train.py --lr 1,2 --time 0 --trials 2", exits.USAGE, "--time"),
        ("search code/train.py --lr 1,2 --trials", exits.USAGE, "--trials"),
        ("submit code/train.py --lr 0.1..0.2", exits.FAILED, "tenax search"),
        ("submit code/train.py --lr 1 --lr 2", exits.FAILED, "twice"),
        ("submit code/train.py --goal up", exits.USAGE, "min"),
        ("submit code/train.py --config lr", exits.FAILED, "KEY=VALUE"),
        ("submit --lr 1 code/train.py", exits.USAGE, "No such option '--lr' here: a flag of the script stands behind"),
        ("submit", exits.USAGE, "SCRIPT"),
        ("submit -- code/train.py", exits.USAGE, "SCRIPT"),
        ("submit code/no.py", exits.USAGE, "does not exist"),
        ("submit code", exits.USAGE, "is a directory"),
        ("submit code/big.bin", exits.FAILED, "is no Python script"),
        ("submit code/train.py --directory other", exits.FAILED, "other is no directory"),
        ("submit code/train.py --directory cluster", exits.FAILED, "is not in cluster"),
    ],
)
def test_bad_input_is_told_and_nothing_is_sent(
    tenax: Tenax, master: PretendMaster, home: Path, line: str, exit_code: int, message: str
) -> None:
    (home / "cluster").mkdir()
    done = run(tenax, line)
    assert (done.code, done.out) == (exit_code, "")
    assert message in done.err
    assert master.sent("POST", PATH) == []


def test_a_script_that_stays_behind(tenax: Tenax, master: PretendMaster, code: Path) -> None:
    """Is said before anything is sent."""
    (code / ".detignore").write_text("train.py\n")
    done = run(tenax, "submit code/train.py")
    assert done.code == exits.FAILED
    assert "train.py is not sent: take it out of code/.detignore" in done.err
    assert master.sent("POST", PATH) == []


def test_a_home_is_not_sent_by_mistake(
    tenax: Tenax, master: PretendMaster, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With all that is in it; who means it says so."""
    monkeypatch.setenv("HOME", str(home / "code"))
    done = run(tenax, "submit code/train.py")
    assert done.code == exits.FAILED
    assert "everything there would be sent along" in done.err
    assert master.sent("POST", PATH) == []
    assert run(tenax, "submit code/train.py --directory code").code == exits.OK


def test_a_mistyped_option_is_pointed_out(tenax: Tenax, code: Path) -> None:
    """Where the text of the script has no such flag; so is a metric that it does not report."""
    done = run(tenax, f"{SEARCH} --trails 20")
    assert "--trails goes to the script, whose text does not have it: was tenax's --trials meant?" in done.err
    assert "was tenax's --master meant?" in run(tenax, f"{SEARCH} --master http://x").err
    (code / "train.py").write_text(TRAIN + "# --trails\n")
    done = run(tenax, f"{SEARCH} --trails 20 --metric acuracy")
    assert "tenax's" not in done.err
    assert "reports accuracy, epochs, and no acuracy" in done.err


def test_without_a_master_the_configuration_is_there(
    tenax: Tenax, monkeypatch: pytest.MonkeyPatch, master: PretendMaster
) -> None:
    """It is shown before anybody is asked."""
    monkeypatch.setenv("DET_MASTER", "http://127.0.0.1:1")
    done = run(tenax, f"{SEARCH} --dry-run")
    assert done.code == exits.UNREACHABLE
    assert yaml.safe_load(done.out)["name"] == "train"


def test_the_start_stays_quick() -> None:
    """Asking for help imports neither the SDK nor YAML."""
    script = (
        "import sys; from tenax.cli.main import run; run(['search', '--help']); "
        "print([name for name in ('yaml', 'tenax.client.experiments', 'tenax.client.connection.session') "
        "if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
