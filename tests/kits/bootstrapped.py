"""The script of a rented machine, run as the machine would: in a directory, with programs that note their words."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

from tenax.master.provision.bootstrap import bootstrap_script
from tenax.master.provision.wheel import AgentWheel
from tests.kits.machine import wait_for
from tests.kits.rented import provider_settings

NOTES = '#!/bin/sh\necho "$(basename "$0") $*" >> "$TENAX_MACHINE_DIR/notes"\n'


def run(
    place: Path, *programs: str, pool: str = "default", wheel: AgentWheel | None = None, **changes: object
) -> subprocess.CompletedProcess[str]:
    """Run the script on a machine that has these programs beside the system's; they note what they were told."""
    environment, script = prepared(place, *programs, pool=pool, wheel=wheel, **changes)
    return ended(["sh", "-c", script], environment, place)


def put(place: Path, program: str, text: str) -> None:
    """Give a machine a program."""
    file = place / "bin" / program
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)


def prepared(
    place: Path, *programs: str, pool: str = "default", wheel: AgentWheel | None = None, **changes: object
) -> tuple[dict[str, str], str]:
    """A machine, as its environment, and its script."""
    folder = place / "bin"
    for name in programs:
        if not (folder / name).exists():
            put(place, name, NOTES)
    script = bootstrap_script("m-1", pool, "tnxm_secret", provider_settings(**changes), wheel)
    environment = {"PATH": f"{folder}:/usr/bin:/bin", "TENAX_MACHINE_DIR": str(place / "state"), "HOME": str(place)}
    (place / "state" / "agent").mkdir(parents=True)
    (place / "state" / "agent" / "credential").touch()
    return environment, script


def ended(
    command: list[str], environment: dict[str, str], place: Path, until: Callable[[], object] = lambda: True
) -> subprocess.CompletedProcess[str]:
    """Of what has ended, once ``until`` holds; what it has left in the background is killed then."""
    with (place / "out").open("w+") as out, (place / "err").open("w+") as err:
        with subprocess.Popen(
            command, env=environment, cwd=place, stdout=out, stderr=err, start_new_session=True
        ) as it:
            try:
                it.wait(240)
                wait_for(until, "what it is left for")
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(it.pid, signal.SIGKILL)
    texts = (place / "out").read_text(), (place / "err").read_text()
    return subprocess.CompletedProcess(command, it.returncode, *texts)
