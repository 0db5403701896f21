"""Model code is unpacked under every Python by the same rules, and reaches nothing outside its directory."""

from __future__ import annotations

import io
import os
import stat
import tarfile
from pathlib import Path

import pytest

from tenax.runtime.contents import unpack
from tenax.runtime.port import StartFailed


def entry(name: str, kind: bytes = tarfile.REGTYPE, target: str = "", mode: int = 0o644) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname, made.mode, made.mtime = kind, target, mode, 1_000_000_000
    return made


def link(name: str, target: str) -> tarfile.TarInfo:
    return entry(name, tarfile.SYMTYPE, target)


def directory(name: str) -> tarfile.TarInfo:
    return entry(name, tarfile.DIRTYPE)


def packed(*entries: tarfile.TarInfo, content: bytes = b"text") -> io.BytesIO:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        for made in entries:
            if made.isreg():
                made.size = len(content)
            tar.addfile(made, io.BytesIO(content) if made.isreg() else None)
    archive.seek(0)
    return archive


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """The work directory, beside something that nobody may reach."""
    (tmp_path / "secret").write_text("secret")
    made = tmp_path / "work"
    made.mkdir()
    return made


def test_what_code_is(work: Path) -> None:
    """Files with their times and their owner's bits, folders, links within; a slash in front counts for nothing."""
    unpack(
        packed(
            directory("pkg"),
            entry("pkg/a.py", mode=0o666),
            entry("/run.sh", mode=0o4777),
            entry("./deep/er/b.txt", mode=0o000),
            link("pkg/c.py", "a.py"),
            link("deep/er/up", "../../pkg"),
            entry("hard.py", tarfile.LNKTYPE, "pkg/a.py"),
        ),
        work,
    )
    modes = {name: stat.S_IMODE((work / name).stat().st_mode) for name in ("pkg/a.py", "run.sh", "deep/er/b.txt")}
    assert modes == {"pkg/a.py": 0o644, "run.sh": 0o755, "deep/er/b.txt": 0o600}
    assert (work / "pkg" / "a.py").stat().st_mtime == 1_000_000_000
    assert (work / "deep" / "er" / "up" / "c.py").read_text() == "text"
    assert (work / "hard.py").samefile(work / "pkg" / "a.py")


def test_the_last_one_counts(work: Path) -> None:
    """A file that comes twice is the second; what was a link is replaced, not written through."""
    (work.parent / "outside").write_text("as it was")
    (work / "a").symlink_to(work.parent / "outside")
    unpack(packed(entry("a"), link("b", "a"), entry("b")), work)
    assert not (work / "a").is_symlink()
    assert not (work / "b").is_symlink()
    assert (work.parent / "outside").read_text() == "as it was"


@pytest.mark.parametrize(
    "entries",
    [
        [entry("../escaped")],
        [entry("a/../../escaped")],
        [directory("..")],
        [link("a", "/etc")],
        [link("a", "..")],
        [link("a", "../secret")],
        [link("d/a", "../../secret")],
        # Through a link that leads nowhere bad by itself.
        [directory("p"), directory("p/q"), link("p/q/d", "../.."), link("p/q/a", "d/../../secret")],
        [directory("p"), link("d", "p"), link("a", "d/../../secret")],
        # Below a link, or in its place.
        [link("d", "."), entry("d/escaped")],
        [directory("d"), link("d", "..")],
        [link("d", "."), directory("d")],
        [entry("a"), entry("a/b")],
        [entry("a", tarfile.LNKTYPE, "../secret")],
        [entry("a", tarfile.LNKTYPE, "/etc/passwd")],
        [link("l", "."), entry("a", tarfile.LNKTYPE, "l/../../secret")],
        [entry("a", tarfile.LNKTYPE, "missing")],
        [entry("a", tarfile.FIFOTYPE)],
        [entry("a", tarfile.CHRTYPE)],
    ],
    ids=lambda entries: " ".join(f"{made.name}>{made.linkname}" for made in entries),
)
def test_what_leads_out_is_refused(work: Path, entries: list[tarfile.TarInfo]) -> None:
    """It is named, it is the user's own mistake, and nothing was written beside the directory."""
    with pytest.raises(StartFailed, match=r"cannot be unpacked: .*; leave that entry out") as failed:
        unpack(packed(*entries), work)
    assert not failed.value.platform
    assert sorted(os.listdir(work.parent)) == ["secret", "work"]
    assert (work.parent / "secret").read_text() == "secret"


@pytest.mark.parametrize("cut", [3, 60, 150])
def test_a_damaged_archive_is_no_mistake_of_its_user(work: Path, cut: int) -> None:
    """What breaks off, or is no archive, is told as damaged."""
    whole = packed(entry("a"), content=os.urandom(4096)).getvalue()
    with pytest.raises(StartFailed, match="damaged") as failed:
        unpack(io.BytesIO(whole[:cut]), work)
    assert failed.value.platform


def test_as_tarfile_does(work: Path, tmp_path: Path) -> None:
    """Where `tarfile` has its own filter, what is unpacked is the same."""
    if not hasattr(tarfile, "data_filter"):
        return
    entries = [directory("pkg"), entry("pkg/a.py"), entry("run.sh", mode=0o755), link("l", "pkg/a.py")]
    theirs = tmp_path / "theirs"
    with tarfile.open(fileobj=packed(*entries)) as tar:
        tar.extractall(theirs, filter="data")
    unpack(packed(*entries), work)
    for path in theirs.rglob("*"):
        mine, other = (work / path.relative_to(theirs)).lstat(), path.lstat()
        assert mine.st_mode == other.st_mode, path
