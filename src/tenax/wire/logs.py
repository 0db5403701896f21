"""Output of containers, on its way from agent to master.

``POST /agents/logs?container_id=..&stream=stdout|stderr&offset=N&gone_from=G`` with the agent's credential; the body is
raw output bytes, zlib-compressed, that start at raw byte offset ``offset`` of that stream. The agent has nothing (any
more) of the bytes from ``gone_from`` up to ``offset``; without ``gone_from`` nothing of what lies before. With
``age_ms=T`` the chunk was written so many milliseconds ago, not just now, and its lines are of that time. Answer:
``{"next": offset}``, the first byte the master does not have yet, and the agent goes on from there, forwards or back:

- the master has all before ``gone_from``: what it has not of the chunk is stored (a chunk sent twice is stored once),
  after one line that says how many bytes are gone for good, where some are;
- it has less (its database was restored): nothing is stored, and the agent goes back. Asked with what it knows now,
  it says what is gone, so both agree after two requests whatever happened.

507 with a message: the master's log budget or disk is full. The agent keeps what it has, as long as it has room, and
tries again; nothing waits for room once a container has ended: then the rest is said to be gone, by a chunk of no bytes
at its end, which needs no room.

``GET /agents/logs/offsets?container_id=..`` -> ``{"stdout": N, "stderr": M}``: where to go on, asked after each
failure, with each new connection of the agent, and when an agent finds a container that it did not start.

At the end of a stream the agent sends ``final=true``: a last line without newline is a line then.

What runs by hand is shipped with its user's login, in the same way:
``POST /api/v1/trials/{trial_id}/runs/{run_id}/output?stream=..&offset=N&host=..``; no bytes at all are a question.

Parsing (the master, once, on arrival): ``\\r`` progress is collapsed to its last state, a prefix ``[rank=N] `` gives
the rank, ``LEVEL:`` the level; bytes that are not UTF-8 are replaced.
"""

from __future__ import annotations

STREAMS = ("stdout", "stderr")
#: Raw bytes in one POST at most.
CHUNK_BYTES = 1024 * 1024
