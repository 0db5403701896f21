"""A user whose tasks run under a uid of their own attacks the agent of their machine, which is root.

They choose names: of a program, of a folder, of what a link points to, of what an archive holds. Each test lets them,
and then looks whether anything was run, read, written or deleted with more rights than theirs.
"""

from __future__ import annotations

import io
import os
import shutil
import signal
import tarfile
from pathlib import Path

import pytest

from tenax.agent import spool
from tenax.agent.app import directory_lock
from tenax.agent.link import Link
from tenax.config.agent import AgentSettings
from tenax.errors import UserError
from tenax.runtime.port import Runtime, StartFailed
from tenax.runtime.removal import TakesLong
from tenax.wire.agents import ContainerSpec
from tests.agent.master_double import MasterDouble
from tests.kits.process_bench import ProcessBench
from tests.kits.runtime_kit import placement, spec, until_exited, until_printed

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="is about what root does")

MALLORY = 41_234
VICTIM = 41_235
TOKEN = {"DET_SESSION_TOKEN": "task-token"}
LINE = '{"n": 1, "kind": "metrics", "at": 1.0, "body": {"secret": "of root"}}\n'


@pytest.fixture
def mallorys(ground: Path) -> Path:
    """A folder of the attacker's."""
    return folder_of(MALLORY, ground / "mallory")


@pytest.fixture
def roots(ground: Path) -> Path:
    """A folder that nobody but root may enter, with something in it."""
    folder = ground / "root"
    folder.mkdir(mode=0o700)
    (folder / "a.jsonl").write_text(LINE)
    return folder


def folder_of(uid: int, path: Path) -> Path:
    path.mkdir()
    os.chown(path, uid, uid)
    return path


def mallorys_spec(bench: ProcessBench, program: str, **changes: object) -> ContainerSpec:
    return spec(bench, program, **{"uid": MALLORY, "gid": MALLORY, **changes})


def false_python(folder: Path, *lines: str) -> Path:
    """A program of the attacker's that answers as a Python does, and notes as whom it was run."""
    witness = folder / "python3"
    note = f'echo "$(id -u) $(env | tr "\\n" " ")" >> {folder}/ran'
    answer = f"echo 3 11 0 {witness}"
    witness.write_text("\n".join(("#!/bin/sh", note, *lines, answer, "")))
    witness.chmod(0o755)
    os.chown(witness, MALLORY, MALLORY)
    return witness


async def run(runtime: Runtime, task_spec: ContainerSpec, archive: Path | None = None) -> None:
    """To its end; what does not start has ended, too."""
    try:
        await runtime.start(task_spec, placement(archive))
    except StartFailed:
        return
    await until_exited(runtime, task_spec.container_id)


@pytest.mark.parametrize("by", ["path", "search path"])
async def test_a_python_of_ones_own(
    bench: ProcessBench, mallorys: Path, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Named, or found on a PATH of theirs: it never runs as root, and sees no secret of the agent's."""
    monkeypatch.setenv("TENAX_AGENT_JOIN_TOKEN", "let-me-in")
    witness = false_python(mallorys)
    named = {"DET_PYTHON_EXECUTABLE": str(witness)}
    found = {"DET_PYTHON_EXECUTABLE": "python3", "PATH": f"{mallorys}:/usr/bin:/bin"}
    runtime = await bench.runtime()
    await run(runtime, mallorys_spec(bench, "hello", env=named if by == "path" else found))
    ran = (mallorys / "ran").read_text()
    assert {line.split()[0] for line in ran.splitlines()} == {str(MALLORY)}
    assert "let-me-in" not in ran


async def test_a_python_that_stays(bench: ProcessBench, mallorys: Path) -> None:
    """What it leaves running when it was asked for its version is gone before anything else happens."""
    stays = f"setsid sh -c 'echo $$ > {mallorys}/pid; exec sleep 1000' > /dev/null 2>&1 &"
    witness = false_python(mallorys, stays, f"while ! test -s {mallorys}/pid; do :; done")
    runtime = await bench.runtime()
    await run(runtime, mallorys_spec(bench, "hello", env={"DET_PYTHON_EXECUTABLE": str(witness)}))
    with pytest.raises(ProcessLookupError):
        os.kill(int((mallorys / "pid").read_text()), 0)


async def test_a_python_out_of_ones_reach(bench: ProcessBench, roots: Path) -> None:
    """A program that the user may not run is not there for them, whatever it is."""
    shutil.copy("/bin/sh", roots / "python3")
    runtime = await bench.runtime()
    with pytest.raises(StartFailed, match="that this task may run"):
        await runtime.start(
            mallorys_spec(bench, "hello", env={"DET_PYTHON_EXECUTABLE": f"{roots}/python3"}), placement()
        )


async def shipped(directory: str, task_spec: ContainerSpec) -> tuple[str, int]:
    """What the agent says that it lost, and how many lines the master got."""
    async with MasterDouble() as master:
        link = Link(AgentSettings(agent_id="a", master_url=master.url))
        await link.open()
        try:
            lost = await spool.ship(link, Path(directory), task_spec, lambda: 1.0)
        finally:
            await link.close()
        return lost, sum(map(len, master.spool.values()))


@pytest.mark.parametrize(
    "make",
    [
        "rmdir $DET_RUN_DIR/spool && ln -s {roots} $DET_RUN_DIR/spool",
        "ln -s {roots}/a.jsonl $DET_RUN_DIR/spool/a.jsonl",
        "mkfifo $DET_RUN_DIR/spool/a.jsonl",
    ],
)
async def test_reports_that_are_somebody_elses(bench: ProcessBench, roots: Path, make: str) -> None:
    """A spool, or a file in it, that leads elsewhere is not followed: nothing is sent, nothing is written there."""
    runtime = await bench.runtime()
    task_spec = mallorys_spec(bench, "hello", argv=["/bin/sh", "-c", make.format(roots=roots)], env=TOKEN)
    await runtime.start(task_spec, placement())
    status = await until_exited(runtime, task_spec.container_id)
    lost, lines = await shipped(status.spool_directory, task_spec)
    assert lines == 0
    assert "cannot be read" in lost
    assert os.listdir(roots) == ["a.jsonl"]


async def test_a_spool_that_leads_to_a_folder_that_the_user_may_read(bench: ProcessBench, ground: Path) -> None:
    """No link is followed there either: the agent would leave a file of its own."""
    open_folder = ground / "open"
    open_folder.mkdir(mode=0o755)
    (open_folder / "a.jsonl").write_text(LINE)
    runtime = await bench.runtime()
    make = f"rmdir $DET_RUN_DIR/spool && ln -s {open_folder} $DET_RUN_DIR/spool"
    task_spec = mallorys_spec(bench, "hello", argv=["/bin/sh", "-c", make], env=TOKEN)
    await runtime.start(task_spec, placement())
    status = await until_exited(runtime, task_spec.container_id)
    await shipped(status.spool_directory, task_spec)
    assert [path.name for path in open_folder.iterdir()] == ["a.jsonl"]


def archive_that_climbs(target: Path, out_of: Path) -> bytes:
    """Model code that gets past checks of names which give up on paths that are too long (CVE-2025-4517)."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:

        def add(name: str, kind: bytes, linkname: str = "", content: bytes = b"") -> None:
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.size, info.mode = kind, linkname, len(content), 0o755
            tar.addfile(info, io.BytesIO(content))

        long, path = "d" * 247, ""
        for step in "abcdefghijklmnop":
            add(os.path.join(path, long), tarfile.DIRTYPE)
            add(os.path.join(path, step), tarfile.SYMTYPE, long)
            path = os.path.join(path, long)
        link = "/".join("abcdefghijklmnop") + "/" + "l" * 254
        add(link, tarfile.SYMTYPE, "../" * 16)
        add("escape", tarfile.SYMTYPE, f"{link}/{os.path.relpath(target, out_of)}")
        add("escape/planted", tarfile.REGTYPE, content=b"mine")
    return buffer.getvalue()


async def test_model_code_that_leads_out(bench: ProcessBench, roots: Path, tmp_path: Path) -> None:
    """An archive that fools the unpacking still writes nowhere where its user may not."""
    runtime = await bench.runtime()
    task_spec = mallorys_spec(bench, "hello")
    archive = tmp_path / "code.tar.gz"
    archive.write_bytes(archive_that_climbs(roots, bench.run_directory(task_spec.container_id) / "workdir"))
    await run(runtime, task_spec, archive)
    assert os.listdir(roots) == ["a.jsonl"]


async def test_folders_of_others_in_ones_own(bench: ProcessBench, mallorys: Path) -> None:
    """A folder of somebody else that was moved into a container stays when the container goes, and is set aside."""
    (mallorys / "shared").mkdir()
    os.chown(mallorys / "shared", MALLORY, MALLORY)
    theirs = folder_of(VICTIM, mallorys / "shared/theirs")
    theirs.chmod(0o700)
    (theirs / "thesis").write_text("years of work")
    runtime = await bench.runtime()
    task_spec = mallorys_spec(bench, "hello", argv=["/bin/mv", f"{mallorys}/shared", "."])
    await runtime.start(task_spec, placement())
    await until_exited(runtime, task_spec.container_id)
    await runtime.remove(task_spec.container_id)
    assert await runtime.inspect(task_spec.container_id) is None
    assert [path.read_text() for path in (bench.directory / "containers").rglob("thesis")] == ["years of work"]


async def test_folders_of_others_where_a_library_leaves_files(bench: ProcessBench, ground: Path) -> None:
    """What lies in /tmp under the name of a task's files goes with that task's rights alone."""
    runtime = await bench.runtime()
    task_spec = mallorys_spec(bench, "hello")
    bait = Path("/tmp", f"tensorboard-{task_spec.allocation_id}-0")
    try:
        folder_of(MALLORY, bait)
        theirs = folder_of(VICTIM, bait / "theirs")
        theirs.chmod(0o700)
        (theirs / "thesis").write_text("years of work")
        await run(runtime, task_spec)
        await runtime.remove(task_spec.container_id)
        assert (theirs / "thesis").read_text() == "years of work"
    finally:
        shutil.rmtree(bait, ignore_errors=True)


async def test_folders_without_end(bench: ProcessBench, roots: Path) -> None:
    """Folders in folders, thousands deep, unreadable ones and links: all of it goes, and nothing besides."""
    runtime = await bench.runtime()
    code = (
        "import os\n"
        f"os.symlink({str(roots)!r}, 'link')\n"
        "os.makedirs('closed/inner'); open('closed/inner/file', 'w').close(); os.chmod('closed/inner', 0)\n"
        "os.chmod('closed', 0)\n"
        "for _ in range(3000): os.mkdir('deeper'); os.chdir('deeper')\n"
    )
    task_spec = mallorys_spec(bench, "hello", argv=["{python}", "-c", code])
    await runtime.start(task_spec, placement())
    status = await until_exited(runtime, task_spec.container_id)
    assert status.exit is not None
    assert status.exit.code == 0
    await runtime.remove(task_spec.container_id)
    assert list((bench.directory / "containers").iterdir()) == []
    assert (roots / "a.jsonl").exists()


async def test_folders_that_somebody_goes_on_filling(bench: ProcessBench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deleting them is given up after a time and taken up again: the agent's threads are for all."""
    runtime = await bench.runtime()
    task_spec = mallorys_spec(bench, "hello", argv=["/bin/sh", "-c", "touch $(seq 100)"])
    await run(runtime, task_spec)
    monkeypatch.setattr("tenax.runtime.removal.TIMEOUT_S", 0.0)
    with pytest.raises(TakesLong):
        await runtime.remove(task_spec.container_id)
    monkeypatch.setattr("tenax.runtime.removal.TIMEOUT_S", 60.0)
    await runtime.remove(task_spec.container_id)
    assert os.listdir(bench.directory / "containers") == []


async def test_races_with_what_deletes(bench: ProcessBench, mallorys: Path, roots: Path) -> None:
    """Another task of the same user turns folders into links to root's while the first one's container goes."""
    runtime = await bench.runtime()
    first = mallorys_spec(bench, "hello", argv=["/bin/sh", "-c", "mkdir -p $(seq 300); touch $(seq -f %g/f 300)"])
    await run(runtime, first)
    place = bench.run_directory(first.container_id) / "workdir"
    code = (
        "import os, itertools\n"
        "print('ready', flush=True)\n"
        f"places = [{str(place)!r}, {str(place).replace('containers/', 'containers/.gone-')!r}]\n"
        "for n in itertools.cycle(range(1, 301)):\n"
        "    for place in places:\n"
        "        try:\n"
        f"            os.rename(f'{{place}}/{{n}}', f'{mallorys}/{{n}}.was')\n"
        f"            os.symlink({str(roots)!r}, f'{{place}}/{{n}}')\n"
        "        except OSError: pass\n"
    )
    racer = mallorys_spec(bench, "hello", argv=["{python}", "-c", code])
    await runtime.start(racer, placement())
    await until_printed(runtime, racer.container_id, b"ready")
    await runtime.remove(first.container_id)
    await runtime.signal(racer.container_id, signal.SIGKILL)
    await until_exited(runtime, racer.container_id)
    assert (roots / "a.jsonl").read_text() == LINE


def test_a_directory_that_others_may_write(ground: Path) -> None:
    """An agent does not work where somebody else could put its programs."""
    (ground / "loose").mkdir()
    (ground / "loose").chmod(0o777)
    with pytest.raises(UserError, match="chmod go-w"), directory_lock(ground / "loose"):
        pass
    folder_of(MALLORY, ground / "theirs")
    with pytest.raises(UserError, match=f"belongs to user number {MALLORY}"), directory_lock(ground / "theirs"):
        pass
