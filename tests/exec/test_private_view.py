"""What a task finds whose Python has the ``determined`` package: a private view of the file system, or a refusal."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenax.exec import needs
from tests.exec.place import Place
from tests.kits import task_master

#: Enough of that package: it reads the same path, whatever the environment says.
PACKAGE = """
import json, os
INFO = "/run/determined/info/trial.json"
hparams = json.load(open(INFO))["hparams"] if os.path.exists(INFO) else None
"""
SCRIPT = """
import determined, os
print(determined.__file__, determined.hparams, os.getcwd())
print(sorted(os.listdir("/run/determined")) == sorted(os.listdir(os.environ["DET_RUN_DIR"])))
print(os.environ["DET_PRIVATE_VIEW"], os.path.exists("/determined_shared_fs/mark"))
print(os.listdir("/data/set/inner/place"))
for refused in ("/made-in-the-root", "/data/set/made"):
    try:
        os.mkdir(refused)
    except OSError as error:
        print(error.strerror)
os.mkdir("/determined_shared_fs/made")
"""
#: Takes from root, and from the user namespace that it is put into, what a view takes.
FORBIDDEN = [
    *("unshare", "--user", "--map-root-user", "sh", "-c"),
    'echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-sys_admin --inh-caps=-all "$@"',
    "forbidden",
]
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="namespaces are Linux's")


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with task_master.running() as master:
        yield Place(tmp_path, master)


def python_with(root: Path, packages: dict[str, str]) -> str:
    """An environment of its own for this interpreter, with these packages."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    home = root / "env"
    for name, text in packages.items():
        package = home / "lib" / version / "site-packages" / name
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(text)
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "python3").symlink_to(os.path.realpath(sys.executable))
    (home / "pyvenv.cfg").write_text(f"home = {os.path.dirname(os.path.realpath(sys.executable))}\n")
    return str(home / "bin" / "python3")


@linux
def test_it_finds_what_it_looks_for(place: Place, tmp_path: Path) -> None:
    """The fixed paths are the task's own run directory and storage; the script is where it was; the machine has
    nothing of it, and what would be lost in the private root cannot be written."""
    python = python_with(tmp_path, {"determined": PACKAGE})
    storage = tmp_path / "storage"
    storage.mkdir()
    (storage / "mark").touch()
    (place.work / "train.py").write_text(SCRIPT)
    (tmp_path / "other").mkdir()
    mounts = {
        "/determined_shared_fs": str(storage),
        "/data/set": str(tmp_path / "other"),
        "/data/set/inner/place": str(storage),
    }
    code, out, err = place.run(python, DET_HOST_PATHS=json.dumps(mounts), DET_READ_ONLY_PATHS=json.dumps(["/data/set"]))
    assert (code, err) == (0, "")
    first, *rest = out.splitlines()
    assert "/env/lib/" in first
    assert first.endswith(f"{{'lr': 0.1, 'nested': {{'units': 3}}}} {place.work}")
    assert rest == ["True", "here True", "['mark']", "Read-only file system", "Read-only file system"]
    assert (storage / "made").is_dir()
    assert not os.path.exists("/run/determined")
    assert not os.path.exists("/determined_shared_fs")


@linux
def test_a_hook_that_brings_the_package(place: Place, tmp_path: Path) -> None:
    """A startup hook that activates an environment with it is enough."""
    python = python_with(tmp_path, {"determined": PACKAGE})
    (place.work / "startup-hook.sh").write_text(f"export VIRTUAL_ENV={Path(python).parents[1]}\n")
    place.configure(entrypoint=f"{python} train.py")
    (place.work / "train.py").write_text("import determined\nprint(determined.hparams['lr'])\n")
    assert place.run() == (0, "0.1\n", "")


@linux
def test_bind_mounts_are_where_they_are_wanted(place: Place, tmp_path: Path) -> None:
    """Also for a task without that package: at their paths, and read-only where that was said; what has the same path
    on this machine and may be written costs no view."""
    data, open_to_all, wanted = tmp_path / "data", tmp_path / "open", str(tmp_path / "wanted")
    data.mkdir()
    open_to_all.mkdir()
    (place.work / "train.py").write_text(
        "import os\nprint(os.environ.get('DET_PRIVATE_VIEW'), os.path.isdir('WANTED'))\n".replace("WANTED", wanted)
        + f"print([os.access(path, os.W_OK) for path in ({wanted!r}, {str(data)!r}, {str(open_to_all)!r})])\n"
    )
    same = {str(open_to_all): str(open_to_all), "/determined_shared_fs": str(tmp_path)}
    assert place.run(DET_HOST_PATHS=json.dumps(same)) == (0, "None False\n[False, True, True]\n", "")
    mounts = {**same, wanted: str(data), str(data): str(data)}
    guarded = json.dumps([str(data)])
    result = place.run(DET_HOST_PATHS=json.dumps(mounts), DET_READ_ONLY_PATHS=guarded)
    assert result == (0, "here True\n[True, False, True]\n", "")


@linux
@pytest.mark.parametrize(
    ("entrypoint", "script"),
    [
        ("cd /run/determined/workdir && python3 train.py", "print(open('here').read())"),
        (["python3", "/run/determined/workdir/train.py"], "print(open('here').read())"),
        ("python3 train.py", "print(open('/run/determined/workdir/here').read())"),
        ("python3 -m train", "print(open('/run/determined/workdir/here').read())"),
    ],
)
def test_paths_of_the_work_directory(place: Place, entrypoint: object, script: str) -> None:
    """Whoever names it as it is in a container finds it, on the command line and in the script."""
    (place.work / "train.py").write_text(script)
    (place.work / "here").write_text("found")
    (place.run_dir / "workdir").symlink_to(place.work)
    place.configure(entrypoint=entrypoint)
    assert place.run() == (0, "found\n", "")


@linux
@pytest.mark.skipif(not (shutil.which("setpriv") and shutil.which("unshare")), reason="util-linux is not installed")
def test_a_machine_that_forbids_it(place: Place, tmp_path: Path) -> None:
    """Importing the package fails with words that say what to do; a script that does not need it runs; one that asked
    for a view is not started."""
    python = python_with(tmp_path, {"determined": PACKAGE})
    (place.work / "train.py").write_text("print('ran')\n")
    may = subprocess.run([*FORBIDDEN, "true"], capture_output=True, check=False)
    if may.returncode:
        pytest.skip("this machine does not even let one take such rights away")
    assert place.run(python, before=FORBIDDEN) == (0, "ran\n", "")
    code, out, err = place.run(python, before=FORBIDDEN, DET_PRIVATE_VIEW="1")
    assert (code, out) == (1, "")
    assert "takes a private view" in err
    mounts = json.dumps({"/mnt/data": str(tmp_path)})
    code, out, err = place.run(before=FORBIDDEN, DET_HOST_PATHS=mounts)
    assert (code, out) == (0, "ran\n")
    assert "this task does not have /mnt/data as in a container; this machine forbids private views" in err
    (place.work / "train.py").write_text("import determined\nprint('ran')\n")
    code, out, err = place.run(python, before=FORBIDDEN)
    assert (code, out) == (1, "")
    last = err.splitlines()[-1]
    assert last.startswith("ImportError: the installed package 'determined' reads /run/determined")
    assert "start the agent as root" in last


def test_who_needs_one(tmp_path: Path) -> None:
    """Whose Python, or the Python of whose entrypoint, has the package; or who asks for it; nobody else."""
    with_it = python_with(tmp_path / "a", {"determined": PACKAGE})
    without = python_with(tmp_path / "b", {"other": ""})
    env = {"HOME": str(tmp_path)}
    assert needs.has_package(env, f"{with_it} train.py")
    assert needs.has_package(env, ["/bin/sh", "-c", f"exec '{with_it}' train.py"])
    assert needs.has_package(env, [with_it, "-m", "x"])
    assert needs.has_package({**env, "VIRTUAL_ENV": str(Path(with_it).parents[1])}, "train.sh")
    assert needs.has_package({**env, "PYTHONPATH": str(next(Path(with_it).parents[1].glob("lib/*/site-packages")))}, "")
    assert not needs.has_package(env, f"{without} train.py")
    assert not needs.has_package({**env, "PYTHONPATH": needs.imports()}, "python3 train.py")
    assert not needs.has_package(env, None)


def test_environments_of_conda(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that a command line or its shell script may choose by name are looked into."""
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "conda"
    (root / "bin").mkdir(parents=True)
    (root / "bin" / "conda").touch()
    package = root / "envs" / "deep" / "lib" / "python3.11" / "site-packages" / "determined"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    env = {"HOME": str(tmp_path), "PATH": str(root / "bin")}
    assert needs.has_package(env, "conda run --no-capture-output -n deep python train.py")
    (tmp_path / "run.sh").write_text("source activate.sh\nconda activate deep\nexec python train.py\n")
    assert needs.has_package(env, "bash run.sh")
    assert not needs.has_package(env, "python3 train.py")
    (tmp_path / ".conda").mkdir()
    (tmp_path / ".conda" / "environments.txt").write_text(f"{root / 'envs' / 'deep'}\n")
    assert needs.has_package({"HOME": str(tmp_path)}, "conda run -n deep python train.py")
    assert not needs.has_package({"HOME": str(tmp_path / "other")}, "conda run -n deep python train.py")


@linux
def test_a_mount_below_a_directory_leaves_it_as_it_was(place: Place, tmp_path: Path) -> None:
    """A place that is not there is made in a directory that the task writes to, which goes on being written; where
    it is made stays, empty."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "mark").touch()
    below = tmp_path / "shared" / "work" / "deep"
    (tmp_path / "shared").mkdir()
    place.configure(entrypoint=["sh", "-c", f"ls {below} && echo kept > {tmp_path}/shared/file"])
    mounts = {str(below): str(tmp_path / "data")}
    assert place.run(DET_HOST_PATHS=json.dumps(mounts)) == (0, "mark\n", "")
    assert (tmp_path / "shared" / "file").read_text() == "kept\n"
    assert list(below.iterdir()) == []


@linux
def test_shared_memory_of_the_size_that_was_asked_for() -> None:
    """Its own, and gone with it; a task that asks for none has the machine's."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, task_master.running() as master:
        place = Place(Path(folder), master)
        place.configure(entrypoint="df --output=size -B1 /dev/shm | tail -n 1 && touch /dev/shm/of-this-task")
        code, out, err = place.run(DET_SHM_BYTES=str(64 * 1024 * 1024))
        assert (code, int(out), err) == (0, 64 * 1024 * 1024, "")
    assert not os.path.exists("/dev/shm/of-this-task")
