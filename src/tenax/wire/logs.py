"""Output of containers, on its way from agent to master.

``POST /agents/logs?container_id=..&stream=stdout|stderr&offset=N`` with the agent's credential; the body is raw output
bytes, zlib-compressed, that start at raw byte offset ``offset`` of that stream. A chunk's key is (container, stream,
offset): sent twice it is stored once. Answer: ``{"next": offset}``, the first byte the master does not have yet; the
agent goes on from there (also back, if the master asks for it, as long as it still has the bytes). 507 with a message:
the master's log budget or disk is full; the agent drops the chunk, counts what it dropped, and goes on, so that
training is never held up by logs.

``GET /agents/logs/offsets?container_id=..`` -> ``{"stdout": N, "stderr": M}``.

At the end of a stream the agent sends ``final=true``: a last line without newline is a line then.

Parsing (the master, once, on arrival): ``\\r`` progress is collapsed to its last state, a prefix ``[rank=N] `` gives
the rank, ``LEVEL:`` the level; bytes that are not UTF-8 are replaced.
"""

from __future__ import annotations

STREAMS = ("stdout", "stderr")
#: Raw bytes in one POST at most.
CHUNK_BYTES = 1024 * 1024
