"""What a source distribution holds, and the environment that a checkout makes for itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_a_source_distribution_holds_the_project_alone(tmp_path: Path) -> None:
    """The environment that README has made in the checkout stays out of it, and so does what its user has put there."""
    checkout = tmp_path / "tenax"
    left_out = shutil.ignore_patterns(".*", "node_modules", "__pycache__")
    for name in ("src", "webui", "docs", "examples"):
        shutil.copytree(ROOT / name, checkout / name, ignore=left_out)
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "CHANGELOG.md", "LICENSE", ".gitignore"):
        shutil.copy(ROOT / name, checkout / name)
    for stray in ("env/lib/torch.so", "data/images.bin", "notes.txt", "src/tenax/_webui/index.html"):
        (checkout / stray).parent.mkdir(parents=True, exist_ok=True)
        (checkout / stray).write_text("x")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", str(tmp_path / "dist")]
    environment = os.environ | {"TENAX_SKIP_WEB": "1"}
    done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (archive,) = (tmp_path / "dist").glob("*.tar.gz")
    with tarfile.open(archive) as held:
        names = {name.split("/", 1)[1] for name in held.getnames()}
    assert {name for name in names if name.startswith(("env", "data/", "notes"))} == set()
    carried = {"src/tenax/cli/__init__.py", "src/tenax/_webui/index.html", "webui/package-lock.json", "hatch_build.py"}
    assert carried | {"pyproject.toml", "README.md", "LICENSE", "docs/quickstart.md"} <= names


def test_an_environment_without_pip_is_made_again(tmp_path: Path) -> None:
    """On Debian without python3-venv the first make leaves one; with that package the next make goes on."""
    directory = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", "--copies", "--without-pip", str(directory)], check=True)
    command = [sys.executable, str(ROOT / "tests" / "setup" / "environment.py"), "--venv", str(directory)]
    # Nothing is installed here: there is neither an index nor a directory to take packages from.
    environment = os.environ | {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "PIP_CONFIG_FILE": os.devnull}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert "No module named pip" not in done.stderr
    assert (directory / "bin" / "pip").exists(), done.stderr
