"""A machine behind a cable: a network of its own on this one, whose only way out can be pulled.

    with cable() as line:
        subprocess.Popen([*line.inside, "python3", "-m", "tenax.agent", "--master-url", f"http://{line.here}:8080"])
        line.pull()

While it is pulled, packets of both sides go nowhere and nobody is told: connections stand, as where a switch loses its
power. Needs root, and `ip` and `nsenter`; in CI their absence is a failure.
"""

from __future__ import annotations

import ipaddress
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from tests.kits.ports import free_port

#: For tests of networks: more blocks of four addresses than there are ports of tests.
_ADDRESSES = ipaddress.ip_address("198.18.0.0")


@dataclass(frozen=True)
class Cable:
    """Between a bridge here and the namespace ``name``."""

    name: str
    #: The addresses of its ends.
    here: str
    there: str

    @property
    def inside(self) -> list[str]:
        """What a command line begins with that runs at the far end."""
        return ["nsenter", f"--net=/run/netns/{self.name}"]

    def way_out(self) -> None:
        """To every other address of this machine."""
        _ip("-n", self.name, "route", "add", "default", "via", self.here)

    def pull(self) -> None:
        _ip("link", "set", f"{self.name}h", "nomaster")

    def plug(self) -> None:
        _ip("link", "set", f"{self.name}h", "master", f"{self.name}b")

    @contextmanager
    def pulled(self, seconds: float) -> Iterator[None]:
        """It is plugged in again so long after the block begins, or when the block ends, whichever is later."""
        began = time.monotonic()
        self.pull()
        try:
            yield
            time.sleep(max(0.0, began + seconds - time.monotonic()))
        finally:
            self.plug()


@contextmanager
def cable() -> Iterator[Cable]:
    """One that is plugged in."""
    if os.geteuid() != 0 or not (shutil.which("ip") and shutil.which("nsenter")):
        reason = "only root, with the packages iproute2 and util-linux, can pull a cable"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    # A number that is nobody else's while this process lives.
    number = free_port()
    line = Cable(f"tnx{number}", str(_ADDRESSES + 4 * number + 1), str(_ADDRESSES + 4 * number + 2))
    _remove(line)
    try:
        _ip("netns", "add", line.name)
        _ip("link", "add", f"{line.name}b", "type", "bridge")
        _ip("link", "add", f"{line.name}h", "type", "veth", "peer", "name", "eth0", "netns", line.name)
        _ip("address", "add", f"{line.here}/30", "dev", f"{line.name}b")
        line.plug()
        for device in ("b", "h"):
            _ip("link", "set", line.name + device, "up")
        _ip("-n", line.name, "address", "add", f"{line.there}/30", "dev", "eth0")
        for device in ("lo", "eth0"):
            _ip("-n", line.name, "link", "set", device, "up")
        yield line
    finally:
        _remove(line)


def _remove(line: Cable) -> None:
    """What a run before, which was killed, may have left, too."""
    for command in (
        ("link", "delete", f"{line.name}h"),
        ("link", "delete", f"{line.name}b"),
        ("netns", "delete", line.name),
    ):
        subprocess.run(["ip", *command], capture_output=True, check=False)


def _ip(*command: str) -> None:
    done = subprocess.run(["ip", *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ip {' '.join(command)}: {done.stderr}"
