"""A Docker engine for tests, and a small image with the Python that runs them.

``TENAX_TEST_DOCKER_HOST`` names an engine to use. Otherwise, as root, a daemon is started by hand (installed by apt
where it is missing), without networks of its own, so that it works inside containers and virtual machines too; it ends
with the last run of tests that uses it. Its images are kept between runs. Where there can be no engine the tests say
so: a failure in CI, else a skip.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import io
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

_STATE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tenax-tests" / "engine"
_ANSWERS_WITHIN_S = 60
_LEFT_OUT = {"site-packages", "test", "idlelib", "tkinter", "turtledemo", "ensurepip", "__pycache__", "lib2to3"}


@pytest.fixture(scope="session")
def docker_host() -> Iterator[str]:
    """Address of an engine that answers."""
    if os.environ.get("TENAX_TEST_DOCKER_HOST"):
        yield os.environ["TENAX_TEST_DOCKER_HOST"]
        return
    reason = _missing()
    if reason:
        _without(reason)
    _STATE.mkdir(parents=True, exist_ok=True)
    with (_STATE / "users").open("w") as users:
        with _alone():
            fcntl.flock(users, fcntl.LOCK_SH)
            reason = "" if _answers() else _start()
        if reason:
            _without(reason)
        try:
            yield f"unix://{_STATE}/docker.sock"
        finally:
            with _alone():
                _stop_unless_used(users)


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """No other worker or run starts or ends the engine, or imports the image, meanwhile."""
    with (_STATE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _without(reason: str) -> None:
    """In CI the docker tests run or fail; elsewhere they say why they do not run."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def docker_image(docker_host: str) -> str:
    """An image with this Python under ``/usr/bin/python3`` and a shell."""
    key = f"{sys.version} {sys.base_prefix} {Path(__file__).read_bytes().hex()}"
    name = f"tenax-test:{hashlib.sha256(key.encode()).hexdigest()[:12]}"
    _STATE.mkdir(parents=True, exist_ok=True)
    with _alone():
        asyncio.run(_ensure_image(docker_host, name))
    return name


def _missing() -> str:
    """Why no engine can be started here; "" if one can."""
    if os.geteuid() != 0:
        return "the docker tests need root to start an engine, or one named by TENAX_TEST_DOCKER_HOST"
    if shutil.which("dockerd") is None and shutil.which("apt-get"):
        subprocess.run(["apt-get", "update"], capture_output=True, check=False)
        install = ["apt-get", "install", "-y", "--no-install-recommends", "docker.io"]
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(install, capture_output=True, check=False, env=environment)
    if shutil.which("dockerd") is None:
        return "the docker tests need dockerd, which is not here and could not be installed"
    return ""


def _answers() -> bool:
    """Whether a daemon listens, perhaps one that a killed run left behind."""
    try:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(str(_STATE / "docker.sock"))
    except OSError:
        return False
    return True


def _start() -> str:
    """Start the daemon and wait until it listens; why it did not, "" if it did."""
    command = ["dockerd", "--host", f"unix://{_STATE}/docker.sock", "--data-root", str(_STATE / "data")]
    command += ["--exec-root", str(_STATE / "exec"), "--pidfile", str(_STATE / "pid")]
    command += ["--iptables=false", "--ip6tables=false", "--bridge=none"]
    (_STATE / "pid").unlink(missing_ok=True)
    with (_STATE / "log").open("wb") as log:
        daemon = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    deadline = time.monotonic() + _ANSWERS_WITHIN_S
    while time.monotonic() < deadline and daemon.poll() is None:
        if _answers():
            return ""
        time.sleep(0.05)
    daemon.kill()
    last = (_STATE / "log").read_text(errors="replace").splitlines()[-3:]
    return "dockerd did not start: " + " | ".join(last)


def _stop_unless_used(users: IO[str]) -> None:
    """End the engine that one of these runs started, unless another run of the tests is still at it."""
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        pid = int((_STATE / "pid").read_text())
        waiting = os.pidfd_open(pid)
    except (OSError, ValueError):
        return
    if b"dockerd" in Path(f"/proc/{pid}/cmdline").read_bytes():
        os.kill(pid, signal.SIGTERM)
        select.select([waiting], [], [], 30)
    os.close(waiting)


async def _ensure_image(host: str, name: str) -> None:
    """Import the image unless the engine has it."""
    # Every run of the tests loads this module; few need an HTTP client.
    from tenax.runtime.docker.engine import Engine

    engine = Engine(host)
    await engine.open()
    try:
        images = await engine.get("/images/json", filters=json.dumps({"reference": [name]}))
        if not images:
            query = {"fromSrc": "-", "repo": name.partition(":")[0], "tag": name.partition(":")[2]}
            async with engine.stream("POST", "/images/create", query=query, data=_root_filesystem()) as reply:
                answer = await reply.text()
                assert "error" not in answer, answer
    finally:
        await engine.close()


def _root_filesystem() -> bytes:
    """A tar of this interpreter, its library, a shell, and the shared objects that they load."""
    buffer = io.BytesIO()
    python = Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    library = Path(sysconfig.get_path("stdlib"))
    shell = Path("/bin/sh").resolve()
    modules = sorted((library / "lib-dynload").glob("*.so"))
    objects = _shared_objects([python, shell, *modules])
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path in sorted({python, *objects}):
            tar.add(path.resolve(), str(path), filter=_readable)
        tar.add(library, str(library), filter=_kept)
        tar.add(shell, "/usr/bin/sh", filter=_readable)
        for link, target in (("/usr/bin/python3", python), ("/bin/sh", Path("/usr/bin/sh"))):
            info = tarfile.TarInfo(link)
            info.type, info.linkname = tarfile.SYMTYPE, str(target)
            tar.addfile(info)
        passwd = tarfile.TarInfo("/etc/passwd")
        content = b"root:x:0:0:root:/tmp:/bin/sh\nnobody:x:65534:65534:nobody:/tmp:/bin/sh\n"
        passwd.size = len(content)
        tar.addfile(passwd, io.BytesIO(content))
        tmp = tarfile.TarInfo("/tmp")
        tmp.type, tmp.mode = tarfile.DIRTYPE, 0o1777
        tar.addfile(tmp)
    return buffer.getvalue()


def _shared_objects(files: list[Path]) -> set[Path]:
    told = subprocess.run(["ldd", *map(str, files)], capture_output=True, text=True, check=False).stdout
    words = (word for line in told.splitlines() for word in line.split())
    return {Path(word) for word in words if word.startswith("/") and not word.endswith(":")}


def _kept(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if _LEFT_OUT & set(Path(info.name).parts) else _readable(info)


def _readable(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.mode |= 0o444 | (0o111 if info.isdir() or info.mode & 0o100 else 0)
    info.uid = info.gid = 0
    return info
