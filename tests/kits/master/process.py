"""A master in a process of its own, and what it says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path


class MasterProcess:
    """``python -m tenax.master`` and what it says."""

    def __init__(self, directory: Path, url: str | None, *arguments: str, **settings: str) -> None:
        """``settings``: more of them, by their names in the environment after ``TENAX_MASTER_``."""
        environment = {**os.environ, "TENAX_MASTER_DIR": str(directory / "master")}
        environment.update({f"TENAX_MASTER_{name}": value for name, value in settings.items()})
        environment.pop("TENAX_MASTER_DB__URL", None)
        if url is not None:
            environment["TENAX_MASTER_DB__URL"] = url
        command = [sys.executable, "-m", "tenax.master", "--log-json", *arguments]
        self.popen = subprocess.Popen(
            command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.said: list[str] = []
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_for(self, event: str) -> dict[str, object]:
        """The first line that tells of ``event``."""
        with self._news:
            while True:
                for line in self.said:
                    if line.startswith("{") and json.loads(line).get("event") == event:
                        return dict(json.loads(line))
                assert self._reader.is_alive(), self.said
                self._news.wait(60)

    def lines(self) -> list[dict[str, object]]:
        """What it has said so far."""
        with self._news:
            return [dict(json.loads(line)) for line in self.said if line.startswith("{")]

    def end(self) -> int:
        """Asked to end; its exit status."""
        self.popen.send_signal(signal.SIGTERM)
        return self.result()

    def result(self) -> int:
        status = self.popen.wait()
        self._reader.join(60)
        return status

    def close(self) -> None:
        """Let go of its pipes."""
        for pipe in (self.popen.stdout, self.popen.stderr):
            if pipe is not None:
                pipe.close()

    def _read(self) -> None:
        assert self.popen.stderr is not None
        for line in self.popen.stderr:
            with self._news:
                self.said.append(line)
                self._news.notify_all()
