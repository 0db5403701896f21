"""A newcomer's desk: a shell in a directory of its own, in which the commands of a page are typed one after the other.

What a page cannot know (the port, where the first machine is, a path that only root may write) is put in its place.
"""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tenax.client.connect import Client
from tenax.local.state_dir import StateDir
from tenax.local.supervise.options import Options, save_options
from tests.docs.not_typed import NOT_TYPED
from tests.docs.pages import ROOT, ShownFile, Typed, parts
from tests.kits.machine import home
from tests.kits.ports import free_port

#: For one command: a search to its end on a machine with as much to do as ten of them.
_MAX_WAIT_S = 600.0
_END = "--- typed, and ended with"


@dataclass(frozen=True)
class Hint:
    """What a command needs that its page leaves to the reader."""

    #: Done before it.
    before: Callable[[Desk], object] | None = None
    #: Put into it, by what stands there.
    put: Callable[[Desk], Mapping[str, str]] | None = None
    #: It asks on a terminal, and this is typed each time.
    answer: Callable[[Desk], str] | None = None
    #: It goes on for ever: what it says before it is ended.
    until: str = ""
    code: int = 0


class Desk:
    """One shell, and what it has said so far. ``slots``: what the machine was told to offer, as before today."""

    def __init__(self, directory: Path, *, slots: str = "auto") -> None:
        self.home = directory
        self.port = free_port()
        self.cluster = directory / ".tenax"
        self.said = ""
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("DET_", "TENAX_"))},
            "HOME": str(directory),
            "TENAX_DIR": str(self.cluster),
            "XDG_CONFIG_HOME": str(directory / "config"),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            # Where there are GPUs the pages say less.
            "TENAX_AGENT_SLOT_TYPE": "cpu",
            "NO_COLOR": "1",
            "COLUMNS": "120",
        }
        self._slots = slots
        self._told_before()
        self._shell = self._open()

    def _told_before(self) -> None:
        state = StateDir(self.cluster)
        state.prepare()
        save_options(state, Options(port=self.port, slots=self._slots))

    def renew(self) -> None:
        """A machine where nothing was started yet; the cluster is down."""
        shutil.rmtree(self.cluster)
        self._told_before()
        self.said = ""

    def _open(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ["bash", "--norc", "--noprofile"],
            cwd=self.home,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def forget(self) -> None:
        """Begin with a new shell: what a page exported is that page's."""
        self.close()
        self._shell = self._open()

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._shell.pid, signal.SIGKILL)
        self._shell.wait()
        for stream in (self._shell.stdin, self._shell.stdout):
            assert stream is not None
            stream.close()

    def tenax(self, *arguments: str) -> str:
        """What a command prints that no page has."""
        done = subprocess.run(
            ["tenax", *arguments], cwd=self.home, env=self.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def first(self, column: str, *arguments: str) -> str:
        """A cell of the first row of a list."""
        rows = json.loads(self.tenax(*arguments, "--json"))
        return str(rows[0][column])

    def client(self) -> Client:
        """As the first administrator."""
        told = json.loads((self.cluster / "credentials.json").read_text())
        return Client(f"http://127.0.0.1:{self.port}", user=told["username"], password=told["password"])

    def password(self) -> str:
        """Of the administrator."""
        return str(json.loads((self.cluster / "credentials.json").read_text())["password"])

    def here(self, text: str) -> str:
        """A line or a file of a page as it is on this machine."""
        text = re.sub(r"//(?:FIRST|first|your-master|127\.0\.0\.1):8080", f"//127.0.0.1:{self.port}", text)
        return re.sub(r"(?<![\w.])/(etc/tenax|shared|archive|data|scratch|tmp/cluster)\b", rf"{self.home}/\1", text)

    def type(self, line: str) -> tuple[int, str]:
        """Exit code and output of one line."""
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        # A comment of the line ends with it.
        self._shell.stdin.write(f"{{ {line}\n}} < /dev/null\necho '{_END}' $?\n".encode())
        self._shell.stdin.flush()
        output, until = b"", time.monotonic() + _MAX_WAIT_S
        while not (ended := re.search(rf"^{_END} (\d+)\n".encode(), output, re.MULTILINE)):
            ready, _, _ = select.select([self._shell.stdout], [], [], max(0.0, until - time.monotonic()))
            data = os.read(self._shell.stdout.fileno(), 65536) if ready else b""
            assert data, f"{line!r} does not end:\n{output.decode(errors='replace')}"
            output += data
        text = output[: ended.start()].decode(errors="replace")
        self.said += text
        return int(ended[1]), text

    def type_on_terminal(self, line: str, answer: str) -> tuple[int, str]:
        """The same on a terminal, where the answer is typed as often as something is asked."""
        self.type(f"env -0 > {self.home}/.exported")
        pairs = (self.home / ".exported").read_text().rstrip("\0").split("\0")
        screen, inner = pty.openpty()
        process = subprocess.Popen(
            ["bash", "-c", line],
            cwd=self.home,
            env=dict(pair.split("=", 1) for pair in pairs),
            stdin=inner,
            stdout=inner,
            stderr=inner,
            start_new_session=True,
        )
        os.close(inner)
        said, answered, until = "", 0, time.monotonic() + _MAX_WAIT_S
        with contextlib.suppress(OSError), open(screen, "r+b", buffering=0) as terminal:
            while select.select([terminal], [], [], max(0.0, until - time.monotonic()))[0]:
                said += terminal.read(65536).decode(errors="replace")
                # A line that waits for its end is a question.
                if re.search(r": ?$", said[answered:]):
                    terminal.write(f"{answer}\n".encode())
                    answered = len(said)
            process.kill()
        self.said += said
        return process.wait(_MAX_WAIT_S), said

    @contextlib.contextmanager
    def running(self, line: str, until: str) -> Iterator[None]:
        """A command that goes on until it is ended, once it has said that."""
        said = self.home / ".running"
        said.write_text("")
        with said.open("wb") as output:
            # Of the shell's state it needs what was exported, and nothing that pages set.
            process = subprocess.Popen(
                ["bash", "-c", f"exec {line}"],
                cwd=self.home,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            end = time.monotonic() + _MAX_WAIT_S
            while until not in said.read_text(errors="replace"):
                assert process.poll() is None, f"{line!r} ended:\n{said.read_text()}"
                assert time.monotonic() < end, f"{line!r} did not say {until!r}:\n{said.read_text()}"
                time.sleep(0.05)
            yield
        finally:
            process.terminate()
            process.wait(_MAX_WAIT_S)


def walk(desk: Desk, page: str, hints: Mapping[str, Hint]) -> list[str]:
    """Type what a page says, in its order; what was typed. Raises AssertionError at what is not so."""
    desk.forget()
    typed = []
    for part in parts(page):
        if isinstance(part, ShownFile):
            (desk.home / part.name).write_text(desk.here(part.text))
        elif part.bare not in NOT_TYPED:
            _type(desk, part, hints.get(part.bare, Hint()))
            typed.append(part.bare)
    unknown = [command for command in hints if command not in typed]
    assert not unknown, f"{page} has no such command any more: {unknown}"
    return typed


def _type(desk: Desk, part: Typed, hint: Hint) -> None:
    if hint.before is not None:
        hint.before(desk)
    line = part.text if not hint.until else part.bare
    for name, value in (hint.put(desk) if hint.put is not None else {}).items():
        assert name in line, f"{part.page}:{part.line}: {line!r} has no {name!r}"
        line = line.replace(name, value)
    line = desk.here(line)
    if hint.until:
        with desk.running(line, hint.until):
            return
    code, output = desk.type(line) if hint.answer is None else desk.type_on_terminal(line, hint.answer(desk))
    assert code == hint.code, f"{part.page}:{part.line}: {line!r} ended with {code}:\n{output}"


@contextlib.contextmanager
def desk(*, slots: str = "auto") -> Iterator[Desk]:
    """A desk with the examples on it, cleared in the end."""
    with home() as directory:
        made = Desk(directory, slots=slots)
        shutil.copytree(ROOT / "examples", directory / "examples")
        try:
            yield made
        finally:
            made.close()
            with contextlib.suppress(AssertionError):
                made.tenax("down", "--kill-tasks")
