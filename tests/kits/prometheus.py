"""Debian's Prometheus, scraping what a configuration names."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from tenax.jsonvalue import JsonObject
from tests.kits.machine import wait_for
from tests.kits.ports import free_port


class Prometheus:
    """A server that answers queries."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"

    def is_ready(self) -> bool:
        """Whether it answers."""
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{self._url}/-/ready", timeout=10) as reply:
            return bool(reply.status == 200)
        return False

    def get(self, path: str, **parameters: str) -> JsonObject:
        """What its API answers under ``data``; fails with its error."""
        query = urllib.parse.urlencode(parameters)
        try:
            with urllib.request.urlopen(f"{self._url}/api/v1/{path}?{query}", timeout=30) as reply:
                document = json.load(reply)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from None
        assert document["status"] == "success", document
        return cast(JsonObject, document["data"])

    def values(self, expr: str) -> list[tuple[dict[str, str], float]]:
        """What an expression is now: labels and number of each series."""
        result = cast("list[dict[str, object]]", self.get("query", query=expr)["result"])
        return [
            (cast("dict[str, str]", series["metric"]), float(cast("list[str]", series["value"])[1]))
            for series in result
        ]


@contextlib.contextmanager
def prometheus(configuration: Path, directory: Path) -> Iterator[Prometheus]:
    """One that runs with this configuration, and keeps what it has in ``directory``."""
    program = shutil.which("prometheus")
    assert program, "install prometheus (tests/setup/system.py)"
    port = free_port()
    command = [program, "--config.file", str(configuration), "--storage.tsdb.path", str(directory)]
    with (directory.parent / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--web.listen-address", f"127.0.0.1:{port}"], stdout=log, stderr=log, start_new_session=True
        )
    try:
        server = Prometheus(port)
        wait_for(server.is_ready, "an answer of Prometheus")
        yield server
    finally:
        process.terminate()
        process.wait(30)
