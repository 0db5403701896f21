"""The first program of a trial's container, as a process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenax.core.info import read_cluster_info
from tenax.jsonvalue import Json
from tenax.wire.task_names import CANNOT_START
from tests.exec.place import BEGINNING, SOURCE, Place, without_beginning
from tests.kits import task_master
from tests.kits.interpreters import interpreters
from tests.kits.task_master import ALLOCATION, TOKEN, TaskMaster

RENDEZVOUS = f"/api/v1/allocations/{ALLOCATION}/resources/container-1/rendezvous"
RESUME_POINT = f"/api/v1/allocations/{ALLOCATION}/resume_point"


@pytest.fixture
def master() -> Iterator[TaskMaster]:
    with task_master.running() as master:
        yield master


@pytest.fixture
def place(tmp_path: Path, master: TaskMaster) -> Place:
    return Place(tmp_path, master)


@pytest.mark.parametrize("python", interpreters())
def test_start(place: Place, master: TaskMaster, python: str) -> None:
    """The script runs in the given interpreter, with info files, without a request to the master, and nothing is left
    of the attempt to write a checkpoint."""
    (place.work / "train.py").write_text(
        "import sys, tenax\ninfo = tenax.get_cluster_info()\n"
        "print(sys.version_info[:2], info.trial.hparams, info.slot_ids, info.user_data)\n"
    )
    code, out, err = place.run(python)
    version = subprocess.run([python, "-c", "import sys; print(sys.version_info[:2])"], capture_output=True, text=True)
    assert (code, err) == (0, "")
    assert out == version.stdout.strip() + " {'lr': 0.1, 'nested': {'units': 3}} [0] {'where': 'here'}\n"
    assert master.requests == []
    assert list((place.run_dir / "checkpoints").iterdir()) == []


def test_info_files(place: Place) -> None:
    """The info files have Determined's names and shapes, and are for the owner's eyes."""
    place.configure(entrypoint=["true"])
    assert place.run(DET_LATEST_CHECKPOINT="c0ffee", CUDA_VISIBLE_DEVICES="GPU-1,MIG-2")[0] == 0
    documents = {path.stem: json.loads(path.read_text()) for path in (place.run_dir / "info").iterdir()}
    assert documents["cluster"] == {
        "master_url": place.env["DET_MASTER"],
        "cluster_id": "cluster",
        "agent_id": "agent-1",
        "slot_ids": [0],
        "task_id": "3.5e1f",
        "allocation_id": "3.5e1f.1",
        "session_token": TOKEN,
        "task_type": "TRIAL",
        "master_cert_name": None,
        "master_cert_file": None,
        "latest_checkpoint": "c0ffee",
    }
    assert documents["trial"] == {
        "trial_id": 7,
        "experiment_id": 3,
        "trial_seed": 1234,
        "hparams": {"lr": 0.1, "nested": {"units": 3}},
        "config": json.loads(place.env["DET_EXPERIMENT_CONFIG"]) | {"entrypoint": ["true"]},
        "steps_completed": 0,
        "trial_run_id": 1,
        "debug": False,
        "inter_node_network_interface": None,
    }
    assert documents["rendezvous"] == {
        "container_addrs": ["127.0.0.1"],
        "container_rank": 0,
        "container_slot_counts": [1],
    }
    assert documents["resources"] == {"gpu_uuids": ["GPU-1", "MIG-2"]}
    assert (place.run_dir / "info/cluster.json").stat().st_mode & 0o777 == 0o600
    info = read_cluster_info(str(place.run_dir))
    assert info is not None
    assert (info.latest_checkpoint, info.gpu_uuids) == ("c0ffee", ["GPU-1", "MIG-2"])


def test_signals_reach_the_script(place: Place) -> None:
    """The script is the process that the agent started: no shell or parent stands in between."""
    (place.work / "train.py").write_text(
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (print('asked', flush=True), os._exit(7)))\n"
        "print(os.getpid(), flush=True)\n"
        "while True:\n    time.sleep(60)\n"
    )
    process = place.start()
    assert process.stdout is not None
    assert process.stdout.readline().startswith(BEGINNING)
    assert int(process.stdout.readline()) == process.pid
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=240)
    assert (out, process.returncode) == ("asked\n", 7)


def test_shell_commands(place: Place) -> None:
    """A string with shell syntax is a shell command; its exit code is the trial's."""
    place.configure(entrypoint="X=5; echo $X | tr 5 6 && exit 3")
    assert place.run()[:2] == (3, "6\n")


@pytest.mark.parametrize(
    ("entrypoint", "code", "message"),
    [
        ("model_def:Trial", 1, "names a class of model_def.py, and the code has no such file"),
        (None, 1, "entrypoint is missing"),
        (["no-such-program"], 127, "'no-such-program' cannot be started: No such file"),
        (["./plain.txt"], 126, "Permission denied"),
        ("no-such-program --x", 127, "not found"),
    ],
)
def test_bad_entrypoints(place: Place, entrypoint: object, code: int, message: str) -> None:
    """An entrypoint that cannot be started says so on standard error, with a shell's exit codes."""
    (place.work / "plain.txt").write_text("not a program")
    place.configure(entrypoint=entrypoint)
    exit_code, _, err = place.run()
    assert message in err
    assert exit_code == code
    assert "Traceback" not in err


def test_script_that_raises_at_import(place: Place) -> None:
    """The script's own traceback is what the log shows, and its exit code is the trial's."""
    (place.work / "train.py").write_text("import does_not_exist\n")
    code, _, err = place.run()
    assert code == 1
    assert err.splitlines()[-1] == "ModuleNotFoundError: No module named 'does_not_exist'"
    assert "tenax" not in err


def test_unwritable_storage(place: Place, tmp_path: Path) -> None:
    """A checkpoint storage that cannot be written fails the trial before its script starts, in words."""
    (tmp_path / "file").write_text("")
    place.configure(
        entrypoint="echo started",
        checkpoint_storage={"type": "shared_fs", "host_path": str(tmp_path), "storage_path": "file/ckpt"},
    )
    code, out, err = place.run()
    assert (code, out) == (1, "")
    assert "this trial cannot start: checkpoint storage" in err
    assert f"{tmp_path}/file/ckpt cannot be written" in err


def test_a_storage_that_only_a_setting_mends(place: Place) -> None:
    """The next runs would end alike: they are told so, in words that the master knows (`exit_reason.failure_place`)."""
    place.configure(entrypoint="echo started", checkpoint_storage={"type": "s3", "bucket": "nobody"})
    home = str(place.work)
    code, out, err = place.run(HOME=home, AWS_EC2_METADATA_DISABLED="true", AWS_CONFIG_FILE=f"{home}/none")
    assert (code, out) == (1, "")
    assert err.startswith(f"{CANNOT_START}checkpoint storage s3://nobody cannot be written from ")
    assert "there are no credentials. Set AWS_ACCESS_KEY_ID" in err


def test_missing_variables(place: Place) -> None:
    """Started by hand, it says what is missing instead of a traceback."""
    del place.env["DET_TRIAL_ID"], place.env["DET_HPARAMS"]
    code, _, err = place.run()
    assert code == 1
    assert "the environment lacks DET_TRIAL_ID, DET_HPARAMS" in err


def test_broken_configuration(place: Place) -> None:
    """A variable that is not JSON is named."""
    place.env["DET_HPARAMS"] = "{lr: 1"
    code, _, err = place.run()
    assert code == 1
    assert "DET_HPARAMS is not JSON" in err


def test_startup_hooks(place: Place) -> None:
    """Hooks are sourced, the cluster's first, and what they export reaches the script."""
    (place.run_dir / "dynamic-tcd-startup-hook.sh").write_text("export ORDER=cluster\n")
    (place.work / "startup-hook.sh").write_text("export ORDER=$ORDER,code\necho in hook\n")
    place.configure(entrypoint="echo $ORDER; cat $DET_RUN_DIR/info/rendezvous.json > /dev/null")
    assert place.run() == (0, "in hook\ncluster,code\n", "")


def test_failing_hook(place: Place) -> None:
    """A hook that fails ends the trial with its code, before the script."""
    (place.work / "startup-hook.sh").write_text("sh -c 'exit 5'\n")
    place.configure(entrypoint="echo started")
    assert place.run()[:2] == (5, "")


def test_users_modules_do_not_shadow(place: Place) -> None:
    """Files in the model code named like modules of Python do not break the start."""
    for name in ("errno", "shutil", "socket", "json"):
        (place.work / f"{name}.py").write_text("raise RuntimeError('shadowed')\n")
    place.configure(entrypoint="echo started")
    assert place.run() == (0, "started\n", "")


def test_interpreter_of_the_task(place: Place, tmp_path: Path) -> None:
    """``python`` in an entrypoint is the interpreter that the task was given, wherever PATH leads."""
    bin_dir = tmp_path / "bin"
    bin_dir.mkdir()
    (bin_dir / "python3").write_text("#!/bin/sh\necho wrong one\n")
    (bin_dir / "python3").chmod(0o755)
    (place.work / "train.py").write_text("import sys; print(sys.executable)\n")
    code, out, _ = place.run(PATH=f"{bin_dir}:{os.environ['PATH']}")
    assert code == 0
    assert os.path.dirname(out) == os.path.dirname(sys.executable)


def two_containers(place: Place) -> None:
    place.configure(resources={"slots_per_trial": 2}, entrypoint="echo chief $DET_CHIEF_IP")


def test_rendezvous(place: Place, master: TaskMaster) -> None:
    """With more slots than its own a container meets the others first."""
    two_containers(place)
    met = {"addresses": ["10.0.0.1", "10.0.0.2"], "rank": 1, "slots": [1, 1]}
    master.answers[RENDEZVOUS] = (200, {"rendezvousInfo": met}, {})
    assert place.run()[:2] == (0, "chief 10.0.0.1\n")
    assert json.loads((place.run_dir / "info/rendezvous.json").read_text()) == {
        "container_addrs": ["10.0.0.1", "10.0.0.2"],
        "container_rank": 1,
        "container_slot_counts": [1, 1],
    }


GONE, OLDER = "0d3c2b1a-0000-4000-8000-00000000000a", "0d3c2b1a-0000-4000-8000-00000000000b"


def in_doubt(place: Place, base: Path, *there: str) -> None:
    """The trial is to go on from a checkpoint that is not there; ``there`` are others."""
    storage = {"type": "shared_fs", "host_path": str(base)}
    place.configure(
        checkpoint_storage=storage, entrypoint="echo from $DET_LATEST_CHECKPOINT after $DET_STEPS_COMPLETED"
    )
    place.env |= {"DET_LATEST_CHECKPOINT": GONE, "DET_STEPS_COMPLETED": "9", "TENAX_CHECKPOINT_IN_DOUBT": "look"}
    for name in there:
        (base / name).mkdir(parents=True)


@pytest.mark.parametrize(("next_one", "expected"), [(OLDER, f"from {OLDER} after 3"), (None, "from after 0")])
def test_a_checkpoint_that_went_after_the_database_was_copied(
    place: Place, master: TaskMaster, tmp_path: Path, next_one: str | None, expected: str
) -> None:
    """The trial goes on from the next that is there, or from the beginning, and says so."""
    in_doubt(place, tmp_path / "storage", OLDER)
    answer = {"checkpoint": next_one, "stepsCompleted": 3 if next_one else 0, "inDoubt": True}
    master.answers[RESUME_POINT] = (200, answer, {})
    code, out, _ = place.run()
    said, printed = out.splitlines()
    assert (code, printed) == (0, expected)
    assert f"checkpoint {GONE} was deleted after the database was copied" in said
    assert master.bodies[RESUME_POINT] == {"missing": GONE}
    assert json.loads((place.run_dir / "info/cluster.json").read_text())["latest_checkpoint"] == next_one


def test_a_checkpoint_that_is_there_after_all(place: Place, master: TaskMaster, tmp_path: Path) -> None:
    """Nobody is asked."""
    in_doubt(place, tmp_path / "storage", GONE)
    assert place.run()[:2] == (0, f"from {GONE} after 9\n")
    assert master.requests == []


def test_a_storage_that_is_not_mounted_is_not_taken_for_an_empty_one(
    place: Place, master: TaskMaster, tmp_path: Path
) -> None:
    """The trial does not start, and no checkpoint is called gone."""
    in_doubt(place, tmp_path / "storage")
    (tmp_path / "storage").mkdir()
    code, out, err = place.run()
    assert (code, out, master.requests) == (1, "", [])
    assert "is it mounted there?" in err


def test_members_go_on_from_what_one_of_them_has_found(place: Place, master: TaskMaster, tmp_path: Path) -> None:
    """They ask once they have met, and do not look for themselves."""
    in_doubt(place, tmp_path / "storage", OLDER)
    place.configure(resources={"slots_per_trial": 2})
    met = {"addresses": ["10.0.0.1", "10.0.0.2"], "rank": 1, "slots": [1, 1]}
    master.answers[RENDEZVOUS] = (200, {"rendezvousInfo": met}, {})
    master.answers[RESUME_POINT] = (200, {"checkpoint": OLDER, "stepsCompleted": 3, "inDoubt": True}, {})
    code, out, _ = place.run(TENAX_CHECKPOINT_IN_DOUBT="ask")
    assert (code, out.splitlines()[-1]) == (0, f"from {OLDER} after 3")
    assert [path for _, path, _ in master.requests] == [RENDEZVOUS, RESUME_POINT]


def test_a_launcher_that_cannot_reach_the_others(place: Place, master: TaskMaster) -> None:
    """It is refused in words before anybody waits."""
    place.configure(resources={"slots_per_trial": 2}, entrypoint="horovodrun -np 2 python3 train.py")
    code, out, err = place.run()
    assert (code, out, master.requests) == (1, "", [])
    assert "over ssh" in err


@pytest.mark.parametrize(
    ("entrypoint", "second", "started"),
    [
        (
            "echo -m determined.launch.torch_distributed train.py",
            "10.0.0.1",
            "-m tenax.launch.torch_distributed train.py",
        ),
        ("echo -m determined.launch.torch_distributed x.py", "10.0.0.2", "-m determined.launch.torch_distributed x.py"),
        (
            "A=1 && echo -m determined.launch.torch_distributed -- --trial model:T",
            "10.0.0.1",
            "-m tenax.launch.torch_distributed -- python3 -m determined.exec.harness model:T",
        ),
        (
            ["echo", "determined.launch.torch_distributed", "--trial", "model:T"],
            "10.0.0.1",
            "tenax.launch.torch_distributed python3 -m determined.exec.harness model:T",
        ),
    ],
)
def test_members_on_one_machine_do_not_meet_in_a_file(
    place: Place, master: TaskMaster, tmp_path: Path, entrypoint: Json, second: str, started: str
) -> None:
    """Determined's own launcher names one by the allocation alone: ours takes its place, where machines are shared."""
    (tmp_path / "packages" / "determined").mkdir(parents=True)
    (tmp_path / "packages" / "determined" / "__init__.py").touch()
    place.configure(resources={"slots_per_trial": 2}, entrypoint=entrypoint)
    met = {"addresses": ["10.0.0.1", second], "rank": 1, "slots": [1, 1]}
    master.answers[RENDEZVOUS] = (200, {"rendezvousInfo": met}, {})
    code, out, err = place.run(PYTHONPATH=f"{SOURCE}:{tmp_path / 'packages'}", DET_PRIVATE_VIEW="0")
    assert (code, out.splitlines()[-1]) == (0, started), err


def test_rendezvous_that_fails(place: Place, master: TaskMaster) -> None:
    """The master's words about who is missing are the trial's error."""
    two_containers(place)
    error = {"error": {"code": 9, "reason": "FailedPrecondition", "error": "rank 1 on agent-2 did not come in 600 s"}}
    master.answers[RENDEZVOUS] = (400, error, {})
    code, out, err = place.run(DET_RENDEZVOUS_TIMEOUT="77")
    assert (code, out) == (1, "")
    assert "did not meet: rank 1 on agent-2 did not come in 600 s" in err
    assert master.requests[0][2] == {"timeout_seconds": "77"}


@pytest.mark.parametrize(("first", "heads"), [("yes", 1), ("no", 0)])
def test_the_head_of_a_run_whose_members_never_meet(place: Place, master: TaskMaster, first: str, heads: int) -> None:
    """The first member has said what begins by then, and no other does."""
    two_containers(place)
    error = {"error": {"code": 9, "reason": "FailedPrecondition", "error": "rank 1 did not come"}}
    master.answers[RENDEZVOUS] = (400, error, {})
    out, err = place.start(TENAX_FIRST_MEMBER=first).communicate(timeout=240)
    assert ("did not meet" in err, out.count(BEGINNING), len(out.splitlines())) == (True, heads, heads)


@pytest.mark.parametrize("given", [{"TENAX_FIRST_MEMBER": "yes"}, {}])
def test_the_head_of_a_run_on_several_machines_is_said_once(
    place: Place, master: TaskMaster, given: dict[str, str]
) -> None:
    """Also where the master is too old to say who is the first."""
    two_containers(place)
    met = {"addresses": ["10.0.0.1", "10.0.0.2"], "rank": 0, "slots": [1, 1]}
    master.answers[RENDEZVOUS] = (200, {"rendezvousInfo": met}, {})
    out, _ = place.start(**given).communicate(timeout=240)
    assert (out.count(BEGINNING), out.splitlines()[-1]) == (1, "chief 10.0.0.1")


def test_rendezvous_over_a_restart(place: Place, master: TaskMaster) -> None:
    """A master that is away while members wait is asked again."""
    two_containers(place)
    met = {"addresses": ["10.0.0.1", "10.0.0.2"], "rank": 0, "slots": [1, 1]}
    master.answers[RENDEZVOUS] = (503, {"message": "starting"}, {})
    process = place.start()
    master.wait_for(lambda: master.requests)
    master.down()
    master.answers[RENDEZVOUS] = (200, {"rendezvousInfo": met}, {})
    threading.Timer(0.1, master.up).start()
    out, _ = process.communicate(timeout=240)
    assert (process.returncode, without_beginning(out)) == (0, "chief 10.0.0.1\n")


def test_rendezvous_without_a_master(place: Place, master: TaskMaster) -> None:
    """After the time-out the error says what was waited for."""
    two_containers(place)
    master.down()
    code, _, err = place.run(DET_RENDEZVOUS_TIMEOUT="0.1")
    assert code == 1
    assert "did not meet within 0 s: the master at" in err
    master.up()


SECRETS = {"environment": {"environment_variables": ["TOKEN=t0p"]}, "data": {"secrets": {"key": "t0p"}}}


def test_the_output_of_a_run_begins_with_a_line_that_readers_count(place: Place) -> None:
    """Once, before all else, hooks included, with the configuration without its secrets; not where Determined's own
    launcher says it."""
    (place.work / "startup-hook.sh").write_text("echo hook\n")
    place.configure(entrypoint="echo script", **SECRETS)
    process = place.start(DET_CONTAINER_ID="c1")
    out, _ = process.communicate(timeout=240)
    first, *rest = out.splitlines()
    assert first.startswith(BEGINNING + f"c1) on agent {place.env['DET_AGENT_ID']}: {{")
    assert ("t0p" in out, "TOKEN=********" in first, rest) == (False, True, ["hook", "script"])
    place.configure(entrypoint="echo determined.exec.launch", **SECRETS)
    assert place.start().communicate(timeout=240)[0].splitlines() == ["hook", "determined.exec.launch"]
