"""Code on its way in: the body of a request lies in a file, and its files are decoded as they are packed."""

from __future__ import annotations

import base64
import json
import random
import tarfile
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenax.errors import InvalidInput
from tenax.master.api.http.requests import LARGE_BODY_BYTES
from tenax.master.submission import uploads
from tenax.master.submission.code import pack
from tenax.master.submission.messages import File
from tenax.master.submission.uploads import Content, SpooledBody
from tests.kits.api import Api
from tests.kits.master.experiments import CONFIG, file


async def spooled(directory: Path, body: bytes, *, pieces: int = 1000) -> SpooledBody:
    spool = SpooledBody(directory)
    for at in range(0, len(body), pieces):
        await spool.write(body[at : at + pieces])
    await spool.flush()
    return spool


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.mark.parametrize("piece", [4, 7 * 4, 1 << 20])
async def test_what_is_left_out_is_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    """Wherever the pieces end in which it is read; the rest of the document is as it was."""
    monkeypatch.setattr(uploads, "PIECE", piece)
    rng = random.Random(7)
    contents = [rng.randbytes(size) for size in (0, 1, 2, 3, 767, 768, 769, 3001)]
    document = {
        "config": 'name: "content": "x"\\ \n' * 200,
        "content": "c" * 2000 + '"' + "\\",
        "modelDefinition": [{"path": f"{n}", "content": encoded(each)} for n, each in enumerate(contents)],
        "nested": {"content": {"content": [1.5, "content", None]}, "näme": "\u20ac" * 500},
    }
    body = await spooled(tmp_path, json.dumps(document, indent=1).encode())
    rest = msgspec.json.decode(body.condensed())
    listed = rest["modelDefinition"]
    assert [each["content"].startswith("@") for each in listed] == [len(each) >= 768 - 2 for each in contents]
    read = [Content(each["content"], body, "f") for each in listed]
    assert [each.size for each in read] == [len(each) for each in contents]
    assert [b"".join(iter(lambda each=each: each.read(100), b"")) for each in read] == contents  # type: ignore[misc]
    assert {**rest, "modelDefinition": 0} == {**document, "modelDefinition": 0}


async def test_a_document_that_is_none_stays_none(tmp_path: Path) -> None:
    """What was cut off, and what ends in a string, is refused as before; what is escaped is left where it is."""
    for text in ('{"content":"' + "A" * 5000, '{"content":"AAAA\\', "", '"'):
        body = await spooled(tmp_path, text.encode())
        with pytest.raises(msgspec.DecodeError):
            msgspec.json.decode(body.condensed())
    escaped = ('{"content":"' + "A" * 5000 + '\\u0041"}').encode()
    assert (await spooled(tmp_path, escaped)).condensed() == escaped


TEXTS = st.text(st.sampled_from('a"\\\n\u00e4'), max_size=12) | st.sampled_from(
    ["content", "A" * 1100, "A" * 1100 + "\n"]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(document=st.dictionaries(TEXTS, TEXTS, max_size=6), piece=st.integers(1, 40))
def test_documents_in_pieces_of_any_size(
    tmp_path: Path, document: dict[str, str], piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is escaped, and wherever a piece ends: only long content without an escape is left out."""
    with monkeypatch.context() as patched:
        patched.setattr(uploads, "PIECE", piece)
        spool = SpooledBody(tmp_path)
        spool._put(bytearray(json.dumps(document).encode()))
        read = json.loads(spool.condensed())
    if len(document.get("content", "")) == 1100:
        assert read.pop("content")[0] == "@"
        document = {name: text for name, text in document.items() if name != "content"}
    assert read == document


async def test_escapes_cost_no_more_than_their_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Millions of them, of which each went through Python once."""
    calls, inside = 0, uploads._Condenser._inside

    def counted(self: uploads._Condenser, piece: bytes, at: int, offset: int) -> int:
        nonlocal calls
        calls += 1
        return inside(self, piece, at, offset)

    monkeypatch.setattr(uploads._Condenser, "_inside", counted)
    text = b'{"notes":"' + b"\\\\" * 500_000 + b'\\"' * 500_000 + b'"}'
    body = await spooled(tmp_path, text, pieces=1 << 20)
    assert body.condensed() == text
    assert calls < 1000


@pytest.mark.parametrize("text", ["@0:99", "@9:1", "AAA", "AA=A", "AA==AAAA", "\u00e4AAA", "A" * 1023 + "!"])
async def test_what_is_no_base64_is_refused(tmp_path: Path, text: str) -> None:
    """With the file's name; a place in the body that the client wrote itself leads into its own body only."""
    body = await spooled(tmp_path, b"{}")
    for upload in (None, body):
        with pytest.raises(InvalidInput, match="not base64"):
            pack([File(path="f", content=text)], 1 << 20, tmp_path, upload)


async def test_a_large_submission_is_stored_as_it_was_sent(api: Api) -> None:
    """More than one piece: as an archive with each file whole, for experiments, commands and tasks alike."""
    data = random.Random(1).randbytes(5 << 20)
    sent = [{**file("large.bin"), "content": encoded(data)}, file("small.py", "pass\n")]
    body = {"config": CONFIG, "modelDefinition": sent, "activate": False}
    assert len(json.dumps(body)) > LARGE_BODY_BYTES
    for path, more in (
        ("/api/v1/experiments", body),
        ("/api/v1/commands", {"config": {"entrypoint": ["true"]}, "files": sent}),
        ("/api/v1/generic-tasks", {"config": "entrypoint: [x]\n", "contextDirectory": sent}),
    ):
        reply = await api.user.post(path, more)
        assert reply.status_code == 200, reply.text
    async with api.master.db.connection() as conn:
        (row,) = await conn.fetch("select archive, size_bytes from contexts")
        assert await conn.fetchval("select count(*) from pg_largeobject_metadata") == 0
    assert row["size_bytes"] == len(data) + 5
    place = api.master.settings.dir / "a.tar.gz"
    place.write_bytes(row["archive"])
    with tarfile.open(place) as tar:
        assert tar.extractfile("large.bin").read() == data  # type: ignore[union-attr]
    assert list(api.master.settings.uploads.iterdir()) == []
