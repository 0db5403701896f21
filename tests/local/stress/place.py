"""A cluster of a plain user on a small disk of its own, bystanders that nobody may signal, and all signals noted."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from tenax.local.accounts import Account, unreachable
from tests.kits.ports import free_port

TENAX = Path(sys.executable).with_name("tenax")
_DISK = "400m"
#: Every command has an end; those of a cluster that hangs have theirs after two minutes.
_MAX_WAIT_S = 200
#: Writes down every signal that can be caught, and goes on.
_BYSTANDER = """
import os, signal, sys
def note(number, frame):
    os.write(1, b"%d\\n" % number)
for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD, signal.SIGCONT}:
    signal.signal(number, note)
os.write(1, b"ready\\n")
while True:
    signal.pause()
"""


@dataclass
class Done:
    """A command that has ended."""

    arguments: tuple[str, ...]
    code: int
    output: str


@dataclass
class Place:
    """``root/disk/cluster`` is the directory of the cluster."""

    root: Path
    account: Account | None
    port: int = field(default_factory=free_port)
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    bystanders: list[subprocess.Popen[bytes]] = field(default_factory=list)
    said: list[Done] = field(default_factory=list)

    @property
    def directory(self) -> Path:
        return self.root / "disk" / "cluster"

    @property
    def environment(self) -> dict[str, str]:
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith(("DET_", "TENAX_"))},
            "HOME": str(self.root),
            "TMPDIR": "/tmp",
            "TENAX_DIR": str(self.directory),
            "XDG_CONFIG_HOME": str(self.root / "config"),
            "PYTHONPATH": str(Path(__file__).with_name("recorder")),
            "STRESS_SIGNALS": str(self.root / "signals"),
            "STRESS_MARK": self.mark,
        }

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """A command of somebody's script: whoever signals its group ends the script before it says 'ended'."""
        script = '"$@"; echo "ended $?"'
        return self._popen(["sh", "-c", script, "sh", str(TENAX), *arguments])

    def up(self) -> subprocess.Popen[str]:
        return self.start("up", "--no-agent", "--port", str(self.port))

    def finish(self, process: subprocess.Popen[str], *arguments: str) -> Done:
        """Its end; what it printed is kept for the checks."""
        try:
            output, _ = process.communicate(timeout=_MAX_WAIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise AssertionError(f"{arguments} has no end:\n{process.communicate()[0]}\n{self.story()}") from None
        text, _, code = output.rpartition("ended ")
        assert code.strip().lstrip("-").isdigit(), f"the script around {arguments} was ended: {output!r}"
        done = Done(arguments, int(code), text)
        self.said.append(done)
        return done

    def run(self, *arguments: str) -> Done:
        return self.finish(self.start(*arguments), *arguments)

    def stand_by(self, directory: Path, *name: str) -> int:
        """A process that is not ours, in a directory of ours, perhaps with a name like ours; its number."""
        process = self._popen([sys.executable, "-c", _BYSTANDER, *name], cwd=directory, mark=False)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        self.bystanders.append(process)  # type: ignore[arg-type]
        return process.pid

    def record(self) -> dict[str, Any]:
        with contextlib.suppress(OSError, ValueError):
            found = json.loads((self.directory / "supervisor.json").read_text())
            return found if isinstance(found, dict) else {}
        return {}

    def ours(self) -> list[psutil.Process]:
        """Every living process that a command of this place has started, however indirectly."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.status() == psutil.STATUS_ZOMBIE or process.pid in [other.pid for other in self.bystanders]:
                    continue
                if process.environ().get("STRESS_MARK") == self.mark or str(self.root) in " ".join(process.cmdline()):
                    found.append(process)
        return found

    def signals(self) -> list[dict[str, Any]]:
        with contextlib.suppress(FileNotFoundError):
            return [json.loads(line) for line in (self.root / "signals").read_text().splitlines()]
        return []

    def story(self) -> str:
        """What was said, for a failure's message."""
        lines = [f"$ tenax {' '.join(done.arguments)}\n{done.output}-> {done.code}" for done in self.said]
        lines += [f"{path.name}:\n{path.read_text(errors='replace')[-2000:]}" for path in self.directory.glob("*.log")]
        return "\n".join(lines)

    def _popen(self, command: list[str], *, cwd: Path | None = None, mark: bool = True) -> subprocess.Popen[str]:
        environment = self.environment
        if not mark:
            for name in ("STRESS_MARK", "STRESS_SIGNALS", "PYTHONPATH"):
                del environment[name]
        return subprocess.Popen(
            command,
            env=environment,
            cwd=cwd if cwd is not None else self.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            user=self.account.uid if self.account else None,
            group=self.account.gid if self.account else None,
            extra_groups=[] if self.account else None,
        )


@contextlib.contextmanager
def place() -> Iterator[Place]:
    """As root: a plain account's, on a file system of its own that is small enough to be filled."""
    root = Path(tempfile.mkdtemp(prefix="tenax-stress-", dir="/tmp"))
    root.chmod(0o755)
    account = _plain_account()
    disk = root / "disk"
    disk.mkdir()
    if os.geteuid() == 0:
        owner = f"uid={account.uid},gid={account.gid}," if account else ""
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"{owner}size={_DISK},mode=755", "stress", str(disk)], check=True)
    if account is not None:
        os.chown(root, account.uid, account.gid)
    made = Place(root, account)
    try:
        yield made
    finally:
        for process in made.bystanders:
            if process.poll() is None:
                process.kill()
                process.wait()
        for left in made.ours():
            with contextlib.suppress(psutil.Error):
                left.kill()
        if os.geteuid() == 0:
            subprocess.run(["umount", "--lazy", str(disk)], check=True)
        shutil.rmtree(root, ignore_errors=True)


def _plain_account() -> Account | None:
    """Whose cluster it is when the tests run as root; None: whoever runs them."""
    if os.geteuid() != 0:
        return None
    entry = pwd.getpwnam("nobody")
    account = Account(entry.pw_name, entry.pw_uid, entry.pw_gid)
    return account if unreachable(account, TENAX) is None else None


def was_signalled(process: subprocess.Popen[bytes]) -> str:
    """What a bystander met; empty: nothing."""
    if process.poll() is not None:
        return f"ended with {process.returncode}"
    process.send_signal(signal.SIGKILL)
    noted, _ = process.communicate()
    return str(noted).strip()
