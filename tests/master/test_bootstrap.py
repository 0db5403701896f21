"""The script that makes an agent of a rented machine, run as the machine would; and when a provider is loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tenax.config.provider import MAX_STARTUP_SCRIPT_BYTES
from tenax.master.provision.aws import run_parameters
from tenax.master.provision.bootstrap import MAX_BYTES, bootstrap_script
from tenax.master.provision.port import MachineOrder
from tests.kits.rented import provider_settings

_NOTES = '#!/bin/sh\necho "$(basename "$0") $*" >> "$TENAX_MACHINE_DIR/notes"\n'


def run(place: Path, *programs: str, pool: str = "default", **changes: object) -> subprocess.CompletedProcess[str]:
    """Run the script on a machine that has these programs beside the system's; they note what they were told."""
    folder = place / "bin"
    folder.mkdir()
    for name in programs:
        (folder / name).write_text(_NOTES)
        (folder / name).chmod(0o755)
    script = bootstrap_script("m-1", pool, "tnxm_secret", provider_settings(**changes))
    environment = {"PATH": f"{folder}:/usr/bin:/bin", "TENAX_MACHINE_DIR": str(place / "state"), "HOME": str(place)}
    (place / "state" / "agent").mkdir(parents=True)
    (place / "state" / "agent" / "credential").touch()
    return subprocess.run(
        ["sh", "-c", script], env=environment, cwd=place, capture_output=True, text=True, timeout=60, check=False
    )


def test_its_own_end_comes_first_and_then_the_agent(tmp_path: Path) -> None:
    """With the id, the pool and the token of this machine alone; what is odd in a name stays one word."""
    done = run(tmp_path, "shutdown", "tenax", pool="it's mine", startup_script="echo set up", instance_slots=2)
    assert (done.returncode, done.stderr) == (0, "")
    state = tmp_path / "state"
    first, *_ = (state / "notes").read_text().splitlines()
    assert first == "shutdown -P +20"
    [agent] = [line for line in (state / "notes").read_text().splitlines() if line.startswith("tenax ")]
    assert agent == (
        "tenax agent --master-url http://127.0.0.1:1 --agent-id m-1 --pool it's mine --slots 2 --slot-type cpu "
        f"--dir {state}/agent --join-token-file {state}/join-token"
    )
    assert (state / "join-token").read_text() == "tnxm_secret\n"
    assert (state / "join-token").stat().st_mode & 0o077 == 0
    assert (state / "startup.log").read_text() == "set up\n"


def test_what_fails_is_said_on_the_console(tmp_path: Path) -> None:
    """The last lines of the operator's own script; and what an image lacks."""
    failed = tmp_path / "failed"
    failed.mkdir()
    done = run(failed, "shutdown", "tenax", startup_script="echo no room on /\nfalse\necho never")
    assert (done.returncode, done.stderr) == (1, "tenax: startup_script failed; its last lines:\nno room on /\n")
    bare = tmp_path / "bare"
    bare.mkdir()
    done = run(bare, "shutdown")
    assert done.returncode == 1
    assert "this image has no tenax: install it in the image, or by startup_script" in done.stderr


def test_a_machine_of_gpus_does_not_pass_for_one_of_the_cpu() -> None:
    """And one without slots offers none."""
    assert "--slot-type cuda" in bootstrap_script("m-1", "p", "t", provider_settings(cpu_slots_allowed=False))
    assert "--slot-type none" in bootstrap_script("m-1", "p", "t", provider_settings(instance_slots=0))


def test_the_largest_script_fits_into_user_data() -> None:
    """Whatever else the settings say; and the same order is the same request, which AWS insists on."""
    settings = provider_settings(
        startup_script="#" * MAX_STARTUP_SCRIPT_BYTES, master_url=f"http://127.0.0.1/{'x' * 500}"
    )
    script = bootstrap_script(f"m-{'0' * 20}", "p" * 200, "t" * 64, settings)
    assert len(script.encode()) <= MAX_BYTES
    order = MachineOrder("m-1", "default", settings, script)
    assert run_parameters("c", order) == run_parameters("c", order)
    assert run_parameters("c", order)["ClientToken"] == "m-1"


@pytest.mark.parametrize("module", ["tenax.master.process", "tenax.cli.agents.machine", "tenax.master.loops.scaling"])
def test_a_providers_library_is_loaded_only_when_it_is_used(module: str) -> None:
    """It takes half a second and thirty megabytes."""
    code = f"import sys, {module}; sys.exit('boto3' in sys.modules or 'botocore' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=dict(os.environ), check=False).returncode == 0
