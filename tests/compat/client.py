"""What a test does with Determined's client: run its command line, or Python with its SDK, against a cluster."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest

from tenax.jsonvalue import Json

ROOT = Path(__file__).resolve().parents[2]
#: A test of the SDK, with Determined's own and with the one that Tenax serves under its name.
BOTH = pytest.mark.parametrize("library", ["determined", "tenax"])
#: The environment that holds ``determined==0.38.1`` and torch.
ENVIRONMENT = ROOT / ".venv-compat"
PYTHON = ENVIRONMENT / "bin" / "python"
_SERVER = Path(__file__).with_name("forking_client.py")


class ClientFailed(AssertionError):
    """The client ended badly; the message is all that it said."""

    def __init__(self, what: str, done: Done) -> None:
        super().__init__(f"{what}: exit code {done.code}\n{done.out}\n{done.err}")
        self.done = done


@dataclass(frozen=True)
class Done:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Json:
        """What it printed, as JSON."""
        return cast(Json, json.loads(self.out))


#: What the fixture ``det`` is: ``det("e", "list")``.
Det = Callable[..., Done]
#: What the fixture ``sdk`` is: ``sdk("result = client.get_experiment(number).id", number=1)``.
Sdk = Callable[..., Json]


@dataclass
class Called:
    """What was used of the client and went well: words of its command line, names of its SDK's methods."""

    words: set[tuple[str, ...]] = field(default_factory=set)
    methods: set[str] = field(default_factory=set)


@dataclass
class RealClient:
    """One user of one cluster. ``det("e", "list")`` runs the command line, ``sdk("result = ...")`` runs Python."""

    url: str
    username: str
    password: str
    directory: Path
    server: subprocess.Popen[str]
    called: Called
    more: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """What the client finds in its environment."""
        return {
            "DET_MASTER": self.url,
            "DET_USER": self.username,
            "DET_PASS": self.password,
            "HOME": str(self.directory),
            "XDG_CONFIG_HOME": str(self.directory / "config"),
            "COLUMNS": "200",
            **self.more,
        }

    def as_user(self, username: str, password: str, **more: str) -> RealClient:
        """The same client as somebody else; ``more`` goes to its environment."""
        return RealClient(self.url, username, password, self.directory, self.server, self.called, {**self.more, **more})

    def det(self, *argv: object, check: bool = True) -> Done:
        """Determined's command line with these words. Raises ClientFailed where ``check`` and it fails."""
        words = [str(word) for word in argv]
        # The parser has read its default from the environment when it was loaded.
        done, _ = self._ask({"argv": ["-m", self.url, *words]})
        if check and done.code:
            raise ClientFailed(f"det {' '.join(words)}", done)
        if done.code == 0:
            self.called.words.add(tuple(words))
        return done

    def json(self, *argv: object) -> Json:
        """What a command prints as JSON; the words name the format (``--json``, ``-f json``...)."""
        return self.det(*argv).json

    def sdk(self, code: str, **values: Json) -> Json:
        """Run Python with ``client`` and ``values`` in it. Returns what it left in ``result``. Raises ClientFailed."""
        done, result = self._ask({"code": code, "values": values})
        if done.code:
            raise ClientFailed("sdk", done)
        return result

    def _ask(self, request: dict[str, object]) -> tuple[Done, Json]:
        with tempfile.TemporaryDirectory(dir=self.directory) as kept:
            place = Path(kept)
            out, err, result = place / "out", place / "err", place / "result"
            calls = place / "calls"
            files = {"out": str(out), "err": str(err), "result": str(result), "calls": str(calls)}
            whole = {**request, **files, "environment": self.environment, "directory": str(self.directory)}
            assert self.server.stdin is not None
            assert self.server.stdout is not None
            print(json.dumps(whole), file=self.server.stdin, flush=True)
            answer = self.server.stdout.readline()
            assert answer, "the client's process has ended"
            told = Done(int(json.loads(answer)["code"]), _text(out), _text(err))
            if told.code == 0:
                self.called.methods.update(json.loads(_text(calls) or "[]"))
            return told, json.loads(_text(result) or "null")

    @contextlib.contextmanager
    def running(self, *argv: object) -> Iterator[subprocess.Popen[str]]:
        """The command line as a process of its own, for what follows; killed in the end."""
        self.called.words.add(tuple(str(word) for word in argv))
        process = subprocess.Popen(
            [str(ENVIRONMENT / "bin" / "det"), *(str(word) for word in argv)],
            env={**os.environ, **self.environment},
            cwd=self.directory,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
        )
        try:
            yield process
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
            if process.stdout:
                process.stdout.close()


@contextlib.contextmanager
def client_process(*, ours: bool = False) -> Iterator[subprocess.Popen[str]]:
    """The process that has the client loaded; ``ours``: what tasks get under its name that have no such package.

    Raises AssertionError where its environment is missing.
    """
    assert PYTHON.exists(), f"{ENVIRONMENT.name} is missing: run 'make compat-env'"
    plain = {
        name: value for name, value in os.environ.items() if not name.startswith(("DET_", "TENAX_", "VIRTUAL_ENV"))
    }
    command = [str(PYTHON), str(_SERVER)]
    if ours:
        command = [sys.executable, str(_SERVER), "sdk"]
        plain["PYTHONPATH"] = str(ROOT / "src" / "tenax" / "exec" / "imports")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=plain, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""
