"""Which files go along with an experiment, and how they are packed."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from tenax.client.context import read_context
from tenax.errors import InvalidInput
from tenax.storage.private_directory import mark_private


def fill(root: Path, *names: str, size: int = 3) -> Path:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * size)
    return root


def names(root: Path, *includes: Path) -> list[str]:
    return [str(item["path"]) for item in read_context(root, includes)]


def test_directories_come_before_what_they_hold(tmp_path: Path) -> None:
    """A directory is sent before its files, with paths below the root."""
    fill(tmp_path, "train.py", "lib/a.py", "lib/deep/b.py")
    assert names(tmp_path) == ["lib", "lib/a.py", "lib/deep", "lib/deep/b.py", "train.py"]


def test_shape(tmp_path: Path) -> None:
    """A file is sent with its content, its mode and the letters of a tar archive."""
    fill(tmp_path, "d/run.sh")
    (tmp_path / "d" / "run.sh").chmod(0o755)
    directory, file = read_context(tmp_path)
    assert directory["type"] == 53
    assert directory["content"] == ""
    assert file["type"] == 48
    assert base64.b64decode(str(file["content"])) == b"xxx"
    assert file["mode"] == 0o100755
    assert isinstance(file["mtime"], str)
    assert (file["uid"], file["gid"]) == (0, 0)


def test_never_taken(tmp_path: Path) -> None:
    """Byte code, version control, editors' and tools' files stay behind, even where .detignore wants them."""
    fill(tmp_path, "a.py", "a.pyc", "__pycache__/a.py", ".git/config", ".idea/x", ".vscode/x", "terraform.tfstate")
    (tmp_path / ".detignore").write_text("!.git/\n!*.pyc\n")
    assert names(tmp_path) == [".detignore", "a.py"]


def test_the_state_of_a_cluster_beside_the_code_is_not_sent(tmp_path: Path) -> None:
    """Passwords are in it, and whoever may see an experiment may download its code."""
    fill(tmp_path, "train.py", "cluster/credentials.json", "lib/agent/join-token", "lib/a.py")
    for server in ("cluster", "lib/agent"):
        mark_private(str(tmp_path / server))
    assert names(tmp_path) == ["lib", "lib/a.py", "train.py"]
    for root, includes in ((tmp_path / "cluster", []), (tmp_path / "lib", [tmp_path / "cluster"])):
        with pytest.raises(InvalidInput, match=r"state of a cluster.*name the directory that holds the code"):
            names(root, *includes)


def test_detignore(tmp_path: Path) -> None:
    """.detignore has the syntax of .gitignore: anchors, directories, negation."""
    fill(tmp_path, "a.txt", "keep.txt", "data/big.bin", "src/data/small.bin", "src/a.txt", "top/x", "src/top/x")
    (tmp_path / ".detignore").write_text("# text\n*.txt\n!keep.txt\n/data\n/top/\n")
    assert names(tmp_path) == [
        ".detignore",
        "keep.txt",
        "src",
        "src/data",
        "src/data/small.bin",
        "src/top",
        "src/top/x",
    ]


def test_includes(tmp_path: Path) -> None:
    """What is included from elsewhere goes along under its own name, files and directories."""
    code = fill(tmp_path / "code", "train.py")
    elsewhere = fill(tmp_path / "elsewhere", "one.py", "lib/two.py")
    assert names(code, elsewhere / "one.py", elsewhere / "lib") == ["train.py", "one.py", "lib", "lib/two.py"]


def test_two_of_one_name(tmp_path: Path) -> None:
    """Two files that would have one name are refused, naming both."""
    code = fill(tmp_path / "code", "one.py")
    other = fill(tmp_path / "other", "one.py")
    with pytest.raises(InvalidInput, match=r"other/one\.py would both be one\.py"):
        read_context(code, [other / "one.py"])


def test_links_are_followed(tmp_path: Path) -> None:
    """Links to files and directories are sent as what they point to; a circle is refused by name."""
    code = fill(tmp_path / "code", "a.py")
    fill(tmp_path / "lib", "b.py")
    (code / "lib").symlink_to(tmp_path / "lib")
    (code / "c.py").symlink_to(tmp_path / "lib" / "b.py")
    assert names(code) == ["a.py", "c.py", "lib", "lib/b.py"]
    (code / "lib" / "up").symlink_to(code)
    with pytest.raises(InvalidInput, match="link to a directory that holds it"):
        read_context(code)


def test_too_large(tmp_path: Path) -> None:
    """Too much code is refused with its size, the limit and the biggest parts."""
    fill(tmp_path, "small.py")
    fill(tmp_path, "data/one.bin", "data/two.bin", size=60_000)
    fill(tmp_path, "weights.pt", size=30_000)
    with pytest.raises(InvalidInput) as caught:
        read_context(tmp_path, limit=100_000)
    message = str(caught.value)
    assert message.index("data/") < message.index("weights.pt")
    assert ".detignore" in message


@pytest.mark.parametrize("name", ["nowhere", "file.py"])
def test_no_directory(tmp_path: Path, name: str) -> None:
    """What is no directory is refused by name."""
    fill(tmp_path, "file.py")
    with pytest.raises(InvalidInput, match=name):
        read_context(tmp_path / name)
