"""The master's own tenax as a wheel: the same bytes of the same files, which pip installs."""

from __future__ import annotations

import io
import os
import shutil
import site
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import Distribution
from pathlib import Path

import pytest

import tenax
from tenax.errors import NotNow
from tenax.master.provision.wheel import AgentWheel, own_wheel, packed, wheel_of_this_process


def names(wheel: AgentWheel) -> list[str]:
    """Of its files."""
    with zipfile.ZipFile(io.BytesIO(wheel.content)) as archive:
        return archive.namelist()


def forget() -> None:
    """What was packed."""
    wheel_of_this_process.cache_clear()


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package of two files with what its distribution says of itself."""
    for name, text in {
        "tenax/__init__.py": "", "tenax/part/a.sql": "select 1", "other-1.dist-info/METADATA": "no",
        "tenax-1.dist-info/METADATA": "Metadata-Version: 2.4\nName: tenax\nVersion: 1\n",
        "tenax-1.dist-info/direct_url.json": "{}", "tenax-1.dist-info/RECORD":
            "tenax-1.dist-info/METADATA,,\ntenax-1.dist-info/direct_url.json,,\n../../bin/tenax,,\n",
    }.items():  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path / "tenax"


def held(package: Path) -> Distribution:
    """What its distribution says of itself."""
    return Distribution.at(package.parent / "tenax-1.dist-info")


WHOLE = ["tenax/__init__.py", "tenax/part/a.sql"] + [
    f"tenax-1.dist-info/{name}" for name in ("METADATA", "RECORD", "WHEEL")
]


def test_the_same_files_give_the_same_bytes(package: Path) -> None:
    """Whenever they were written, by whom, and in which order they lie there."""
    first = packed(package, held(package), "1")
    assert names(first) == WHOLE
    for path in package.rglob("*"):
        os.utime(path, (1, 1))
        path.chmod(0o700)
    shutil.copytree(package.parent, package.parent / "b")
    assert packed(package.parent / "b" / "tenax", held(package.parent / "b" / "tenax"), "1") == first
    # Compressed, they would be those of one version of zlib.
    with zipfile.ZipFile(io.BytesIO(first.content)) as archive:
        assert {each.compress_type for each in archive.infolist()} == {zipfile.ZIP_STORED}
    (package / "__init__.py").write_text("# other")
    assert packed(package, held(package), "1").sha256 != first.sha256


def test_what_is_not_of_the_package_stays_out(package: Path, tmp_path: Path) -> None:
    """Caches, hidden files, keys and settings, what a link to a directory leads to, and what has no end."""
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("key")
    (package / "link").symlink_to(secret)
    (package / "gone").symlink_to(tmp_path / "nowhere")
    (package / "endless").symlink_to("/dev/zero")
    os.mkfifo(package / "pipe")
    for name in ("__pycache__/a.pyc", ".env", ".git/config", "old.pyc", "id_rsa", "part/master.yaml", "a.pem"):
        (package / name).parent.mkdir(exist_ok=True)
        (package / name).write_text("x")
    assert names(packed(package, held(package), "1")) == WHOLE


def test_all_of_the_package_is_in_it() -> None:
    """A new kind of file has to be named."""
    package = Path(tenax.__file__).parent
    files = [path.relative_to(package) for path in package.rglob("*") if path.is_file()]
    kept = [path for path in files if "__pycache__" not in path.parts and not path.name.startswith(".")]
    assert {f"tenax/{path.as_posix()}" for path in kept} <= set(names(own_wheel()))


def test_an_installation_that_was_exchanged_is_refused(package: Path) -> None:
    """Under the version of the master that runs it would be another."""
    with pytest.raises(NotNow, match="this master is tenax 2, and what is installed is 1 by now: start the master"):
        packed(package, held(package), "2")
    (package.parent / "tenax-1.dist-info" / "RECORD").write_text("")
    with pytest.raises(NotNow, match="lacks its own description"):
        packed(package, held(package), "1")


def test_many_who_ask_at_once_wait_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Machines start together after a master has: each packing of its own would take all its processors and threads."""
    packings = []

    def counted(package: Path, held: Distribution, version: str) -> AgentWheel:
        packings.append(version)
        return packed(package, held, version)

    monkeypatch.setattr("tenax.master.provision.wheel.packed", counted)
    forget()
    with ThreadPoolExecutor(4) as threads:
        assert len({future.result().sha256 for future in [threads.submit(own_wheel) for _ in range(4)]}) == 1
    assert packings == [tenax.__version__]


def test_an_upgrade_while_it_is_packed_is_refused(monkeypatch: pytest.MonkeyPatch, package: Path) -> None:
    """It would be of both versions, and kept for as long as the master runs."""
    about = package.parent / "tenax-1.dist-info" / "METADATA"

    def upgraded(package: Path, held: Distribution, version: str) -> AgentWheel:
        wheel = packed(package, held, version)
        about.write_text("Metadata-Version: 2.4\nName: tenax\nVersion: 2\n")
        return wheel

    monkeypatch.setattr("tenax.master.provision.wheel.packed", upgraded)
    monkeypatch.setattr("tenax.master.provision.wheel.distribution", lambda _: held(package))
    monkeypatch.setattr(tenax, "__version__", "1")
    monkeypatch.setattr(tenax, "__file__", str(package / "__init__.py"))
    forget()
    with pytest.raises(NotNow, match="this master is tenax 1, and what is installed is 2 by now"):
        own_wheel()


def test_pip_installs_it_and_what_it_installs_packs_the_same(tmp_path: Path) -> None:
    """Of a checkout as of an installation, without an index: the command starts, and is of the master's version."""
    wheel = own_wheel()
    forget()
    assert own_wheel() == wheel
    (tmp_path / wheel.name).write_bytes(wheel.content)
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    clean = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PIP_CONFIG_FILE": os.devnull}
    install = [python, "-m", "pip", "install", "--no-deps", "--no-index", "-q", str(tmp_path / wheel.name)]
    subprocess.run(install, env=clean, check=True)
    [packages] = (tmp_path / "venv").glob("lib/python*/site-packages")
    assert (packages / "tenax-0.1.0.dist-info" / "licenses" / "LICENSE").exists()
    # What it needs is not fetched here.
    (packages / "needs.pth").write_text("\n".join(site.getsitepackages()))
    again = [python, "-c", "from tenax.master.provision.wheel import own_wheel; print(own_wheel().sha256)"]
    assert subprocess.run(again, env=clean, capture_output=True, text=True, check=True).stdout.strip() == wheel.sha256
    command = [tmp_path / "venv" / "bin" / "tenax", "--version"]
    done = subprocess.run(command, env=clean, capture_output=True, text=True, check=True)
    assert tenax.__version__ in done.stdout
