"""The built web page: what `webui/build.py` left in ``_webui``, held in memory, answered as browsers cache it.

Rules it keeps:

- a name is looked up among the files that were read, so that no request reaches the disk, and none another file;
- what lies in ``assets/`` has its content in its name and is kept by browsers for ever; all else is asked for again,
  and not sent again if it is the same: the tags are strong, and one for each encoding;
- tags and the page's own place are made when it is read: what a browser has already costs no work;
- the page says where it lies (``<base href>``) as seen from the address that was asked for, so that it works behind any
  prefix of a proxy;
- scripts come from here alone; the one that stands in the page itself, for the colours, is named by its hash;
- a page that was built anew is seen at the next request for one.
"""

from __future__ import annotations

import base64
import hashlib
import mimetypes
import re
from dataclasses import dataclass, field
from pathlib import Path

from fastapi import Response

import tenax
from tenax.master.api.http.packing import takes_gzip

DIRECTORY = Path(tenax.__file__).parent / "_webui"
INDEX = "index.html"
#: Where `webui/build.py` says of which sources it is, last of all: whatever was built without it is not complete.
STAMP = ".stamp"
FOR_EVER = "public, max-age=31536000, immutable"
ASK_AGAIN = "no-cache"

_SCRIPT = re.compile(rb"<script>(.*?)</script>", re.DOTALL)
_BASE = re.compile(rb'<base href="\./" ?/?>')
#: Its own types: those of the machine may say text/plain for a script, which browsers then refuse to run.
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class PageFile:
    """One file, and what it is compressed if that was written beside it."""

    name: str
    body: bytes
    compressed: bytes | None
    #: Of the body, and of what it is compressed.
    tag: str = field(init=False)
    compressed_tag: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tag", _tag_of(self.body))
        object.__setattr__(self, "compressed_tag", _tag_of(self.compressed or b""))

    @property
    def media_type(self) -> str:
        """As browsers want it."""
        suffix = Path(self.name).suffix
        return _TYPES.get(suffix) or mimetypes.types_map.get(suffix, "application/octet-stream")

    @property
    def caching(self) -> str:
        """For how long it may be kept unasked."""
        return FOR_EVER if self.name.startswith("assets/") else ASK_AGAIN


@dataclass(frozen=True, slots=True)
class BuiltPage:
    """All files of one build."""

    files: dict[str, PageFile]
    #: The header, with the hash of the script that stands in the page.
    policy: str

    def index(self, depth: int) -> PageFile:
        """The page as it is sent to an address so many folders below its own."""
        index = self.files[INDEX]
        if depth == 0:
            return index
        return PageFile(INDEX, _BASE.sub(b'<base href="%s">' % (b"../" * depth), index.body, count=1), None)


@dataclass(slots=True)
class WebPage:
    """The page of one directory, read again when it has been built again. Owned by the event loop."""

    directory: Path = DIRECTORY
    _built: BuiltPage | None = None
    _stamped_at: int = 0

    def kept_file(self, name: str) -> tuple[BuiltPage, PageFile] | None:
        """What has its content in its name and was read already: it is the same for ever, so no disk is asked."""
        file = self._built.files.get(name) if self._built is not None and name.startswith("assets/") else None
        return (self._built, file) if self._built is not None and file is not None else None

    def read(self) -> BuiltPage | None:
        """What is there now; None where nothing complete was built. Reads files when it is new: call it in a thread."""
        try:
            stamped_at = (self.directory / STAMP).stat().st_mtime_ns
        except OSError:
            return None
        if self._built is None or stamped_at != self._stamped_at:
            self._built, self._stamped_at = _read(self.directory), stamped_at
        return self._built


def policy_of(index: bytes) -> str:
    """The content security policy of a page: whatever is not named here, a browser refuses to load or to run."""
    hashes = (base64.b64encode(hashlib.sha256(script).digest()).decode() for script in _SCRIPT.findall(index))
    scripts = " ".join(["'self'", *(f"'sha256-{each}'" for each in hashes)])
    return "; ".join(
        (
            "default-src 'self'",
            f"script-src {scripts}",
            # Widths and places are set by scripts, and some parts bring a sheet of their own.
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data:",
            "connect-src 'self'",
            "worker-src 'self'",
            # What tasks serve has an origin of its own, or is shown by no frame at all.
            "frame-src 'none'",
            "object-src 'none'",
            "base-uri 'self'",
            "form-action 'self'",
            "frame-ancestors 'none'",
        )
    )


def answer(page: BuiltPage, file: PageFile, accepted: str, known: str) -> Response:
    """A file for whoever accepts these encodings and has what bears these tags already."""
    body, encoding, tag = file.body, "", file.tag
    if file.compressed is not None and takes_gzip(accepted):
        body, encoding, tag = file.compressed, "gzip", file.compressed_tag
    headers = {
        "Cache-Control": file.caching,
        "ETag": tag,
        "Vary": "Accept-Encoding",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Content-Security-Policy": page.policy,
    }
    if tag in (each.strip().removeprefix("W/") for each in known.split(",")):
        return Response(status_code=304, headers=headers)
    if encoding:
        headers["Content-Encoding"] = encoding
    return Response(body, media_type=file.media_type, headers=headers)


def _tag_of(content: bytes) -> str:
    return f'"{hashlib.sha256(content).hexdigest()[:32]}"'


def _read(directory: Path) -> BuiltPage:
    paths = {path.relative_to(directory).as_posix(): path for path in directory.rglob("*") if path.is_file()}
    files = {
        name: PageFile(name, path.read_bytes(), paths[f"{name}.gz"].read_bytes() if f"{name}.gz" in paths else None)
        for name, path in paths.items()
        if not name.endswith(".gz") and name != STAMP
    }
    return BuiltPage(files, policy_of(files[INDEX].body))
