"""Model code: fetched once, checked by its hash, kept within a budget."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tenax.agent.contexts import Contexts, Damaged
from tenax.agent.link import Link, MasterRefused
from tenax.config.agent import AgentSettings
from tests.agent.master_double import MasterDouble


@pytest.fixture
async def link(master: MasterDouble) -> AsyncIterator[Link]:
    made = Link(AgentSettings(agent_id="a", master_url=master.url))
    await made.open()
    yield made
    await made.close()


async def test_many_starts_fetch_once(master: MasterDouble, link: Link, tmp_path: Path) -> None:
    """At the same time or later, also by the next agent."""
    digest = master.add_context({"a": "b"})
    contexts = Contexts(link, tmp_path, 1 << 30)
    paths = await asyncio.gather(*(contexts.get(digest) for _ in range(5)))
    assert {path.read_bytes() for path in paths} == {master.contexts[digest]}
    await Contexts(link, tmp_path, 1 << 30).get(digest)
    assert master.context_requests == 1


async def test_what_is_damaged_is_not_kept(master: MasterDouble, link: Link, tmp_path: Path) -> None:
    """Content with another hash is refused, and fetched again the next time."""
    digest = master.add_context({"a": "b"})
    good = master.contexts[digest]
    master.contexts[digest] = good[:-1]
    contexts = Contexts(link, tmp_path, 1 << 30)
    with pytest.raises(Damaged):
        await contexts.get(digest)
    assert os.listdir(tmp_path) == []
    master.contexts[digest] = good
    assert (await contexts.get(digest)).read_bytes() == good


async def test_a_name_that_is_no_hash_is_not_asked_for(master: MasterDouble, link: Link, tmp_path: Path) -> None:
    """Nothing leaves the cache's directory."""
    for name in ("../../etc/passwd", "", "A" * 64):
        with pytest.raises(Damaged):
            await Contexts(link, tmp_path, 0).get(name)
    assert master.context_requests == 0


async def test_a_refusal_is_passed_on(link: Link, tmp_path: Path) -> None:
    """The caller decides what it means."""
    with pytest.raises(MasterRefused) as refused:
        await Contexts(link, tmp_path, 0).get("0" * 64)
    assert refused.value.status == 404


async def test_the_least_lately_used_go_first(master: MasterDouble, link: Link, tmp_path: Path) -> None:
    """Beyond the budget, but never the one just fetched."""
    digests = [master.add_context({"a": str(number)}) for number in range(3)]
    size = max(len(content) for content in master.contexts.values())
    contexts = Contexts(link, tmp_path, 2 * size)
    for number, digest in enumerate(digests[:2]):
        path = await contexts.get(digest)
        os.utime(path, (number, number))
    os.utime(await contexts.get(digests[0]), (10, 10))
    await contexts.get(digests[2])
    assert sorted(os.listdir(tmp_path)) == sorted(f"{digest}.tar.gz" for digest in (digests[0], digests[2]))
    await Contexts(link, tmp_path, 0).get(digests[1])
    assert os.listdir(tmp_path) == [f"{digests[1]}.tar.gz"]
