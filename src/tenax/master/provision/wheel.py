"""The wheel of this master's own version, for machines that become agents: packed of the files that it runs from.

Rules: the same files give the same bytes, whoever packs them, when, and with which zlib: nothing is compressed. It
holds the package and what its distribution says of itself, nothing of other kinds, hidden or of Python's caches, and no
directory that is a link. It is packed once per process and kept in memory (about 6 MB). Another version that was
installed under a master that runs is refused, not served under its own. (Other files of the same version are not
noticed, as in a checkout.)
"""

from __future__ import annotations

import asyncio
import base64
import csv
import hashlib
import io
import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from threading import Lock

import structlog

import tenax
from tenax.errors import NotNow

log = structlog.get_logger("tenax.scaling")

#: The earliest that an archive can say.
_TIME = (1980, 1, 1, 0, 0, 0)
#: Of a plain file that everyone may read, as an archive keeps it.
_MODE = 0o100644 << 16
#: What the package consists of. Anything else that lies in a checkout, such as a key, is somebody's own.
_KINDS = frozenset({".py", ".pyi", ".typed", ".sql", ".txt", ".html", ".js", ".css", ".svg", ".gz"})
_ABOUT = b"Wheel-Version: 1.0\nGenerator: tenax\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
#: Held while it is packed: machines that start together ask together.
_packing = Lock()


@dataclass(frozen=True, slots=True)
class AgentWheel:
    """A wheel, whole."""

    #: Of its file, by which pip knows what it is.
    name: str
    content: bytes
    #: SHA-256 of the content, in hexadecimal digits.
    sha256: str


def own_wheel() -> AgentWheel:
    """Packed at the first call, which takes about a second, and whoever calls meanwhile waits for it: for a thread.

    Raises NotNow where tenax is not installed, or is another version on the disk by now.
    """
    with _packing:
        return wheel_of_this_process()


@cache
def wheel_of_this_process() -> AgentWheel:
    """The same, for one thread at a time."""
    try:
        wheel = packed(Path(tenax.__file__).parent, distribution("tenax"), tenax.__version__)
        # An upgrade meanwhile would have made it one of both versions.
        _refuse_another(distribution("tenax"), tenax.__version__)
    except PackageNotFoundError:
        raise NotNow(
            "this master runs from files that were not installed: machines need tenax in their image"
        ) from None
    return wheel


def packed(package: Path, held: Distribution, version: str) -> AgentWheel:
    """The wheel of a package and of what its distribution says of itself. Raises NotNow, OSError."""
    _refuse_another(held, version)
    about = f"tenax-{version}.dist-info"
    files = dict(_sources(package))
    files.update({f"{about}/{name}": content for name, content in _metadata(held)})
    files[f"{about}/WHEEL"] = _ABOUT
    files[f"{about}/RECORD"] = _record(files, f"{about}/RECORD")
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        # What an installer reads first stands last, as in every wheel.
        for name in sorted(files, key=lambda name: (name.startswith(about), name)):
            entry = zipfile.ZipInfo(name, _TIME)
            entry.create_system, entry.external_attr = 3, _MODE
            archive.writestr(entry, files[name], zipfile.ZIP_STORED)
    whole = content.getvalue()
    return AgentWheel(f"tenax-{version}-py3-none-any.whl", whole, hashlib.sha256(whole).hexdigest())


async def wheel_if_any() -> AgentWheel | None:
    """What machines install whose image has no tenax; None: they need one that has it."""
    try:
        return await asyncio.to_thread(own_wheel)
    except (NotNow, OSError) as error:
        log.warning("there is no wheel for machines", reason=str(error))
        return None


def _refuse_another(held: Distribution, version: str) -> None:
    if held.version != version:
        raise NotNow(
            f"this master is tenax {version}, and what is installed is {held.version} by now: start the master again"
        )


def _sources(package: Path) -> Iterator[tuple[str, bytes]]:
    for folder, folders, names in os.walk(package):
        folders[:] = [name for name in folders if name != "__pycache__" and not name.startswith(".")]
        for name in names:
            path = Path(folder, name)
            # A file may be a link into an installer's store; what is no file would be waited for.
            if not name.startswith(".") and path.suffix in _KINDS and path.is_file():
                yield (Path("tenax") / path.relative_to(package)).as_posix(), path.read_bytes()


def _metadata(held: Distribution) -> Iterator[tuple[str, bytes]]:
    """What goes along of a distribution's own folder: not how and whence it was installed here."""
    files = {"/".join(path.parts[1:]): path for path in held.files or () if path.parts[0].endswith(".dist-info")}
    if "METADATA" not in files:
        raise NotNow(f"the installation of tenax {held.version} lacks its own description: install it anew")
    for name, path in files.items():
        if name in ("METADATA", "entry_points.txt") or (name.startswith("licenses/") and ".." not in path.parts):
            yield name, path.read_binary()


def _record(files: dict[str, bytes], own_name: str) -> bytes:
    """Each file with its hash and its size, as the specification of wheels has it."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    for name in sorted(files):
        digest = base64.urlsafe_b64encode(hashlib.sha256(files[name]).digest()).decode().rstrip("=")
        lines.writerow((name, f"sha256={digest}", len(files[name])))
    lines.writerow((own_name, "", ""))
    return text.getvalue().encode()
