"""Who may follow a topic: asked when a stream begins, and again whenever something changed that it depends on.

A topic is refused unless it is said here that it may be followed. Everyone who is logged in sees what everybody does,
as in the lists that a topic is named after; what concerns a person is theirs alone.
"""

from __future__ import annotations

from collections.abc import Collection

from asyncpg import Connection

from tenax.master.access.authorization import Caller
from tenax.master.context import Master
from tenax.master.reading.events.topics import Noun, Topic
from tenax.master.store.events import rows

#: There is one of each, which everybody sees.
_OPEN = frozenset(
    {
        *(Noun.EXPERIMENTS, Noun.TASKS, Noun.AGENTS, Noun.WORKSPACES, Noun.MODELS, Noun.MASTER),
        *(Noun.USERS, Noun.GROUPS, Noun.TOKENS, Noun.TEMPLATES, Noun.WEBHOOKS),
    }
)
_OF_EXPERIMENTS = frozenset({Noun.EXPERIMENT, Noun.EXPERIMENT_TRIALS})


async def refusals(master: Master, caller: Caller, topics: Collection[Topic]) -> dict[str, str]:
    """The topics that ``caller`` may not follow, and why. Raises TryAgain."""
    pools = {pool.name for pool in master.settings.pools}
    asks = [topic for topic in topics if topic.noun not in _OPEN | {Noun.QUEUE, Noun.USER, Noun.JOIN_TOKENS}]
    there: set[str] = set()
    if asks:
        async with master.db.connection() as conn:
            there = await _there(conn, asks)
    refused = {}
    for topic in topics:
        if topic.noun is Noun.USER:
            allowed = topic.number == caller.person.id
            reason = "this is for that user alone: follow users/ and your own number"
        elif topic.noun is Noun.JOIN_TOKENS:
            allowed, reason = caller.is_admin, "this is for administrators"
        elif topic.noun is Noun.QUEUE:
            allowed, reason = topic.id in pools, f"there is no resource pool {topic.id!r}"
        else:
            allowed, reason = topic.noun in _OPEN or topic.name in there, f"{topic.name} not found"
        if not allowed:
            refused[topic.name] = reason
    return refused


async def _there(conn: Connection, topics: Collection[Topic]) -> set[str]:
    """Names of those that are about something that is there."""
    known: dict[Noun, set[str]] = {}
    experiments = {topic.number for topic in topics if topic.noun in _OF_EXPERIMENTS}
    if experiments:
        known |= dict.fromkeys(_OF_EXPERIMENTS, await rows.known_experiments(conn, experiments))
    projects = {topic.number for topic in topics if topic.noun is Noun.PROJECT_EXPERIMENTS}
    if projects:
        known[Noun.PROJECT_EXPERIMENTS] = await rows.known_projects(conn, projects)
    trials = {topic.number for topic in topics if topic.noun is Noun.TRIAL}
    if trials:
        known[Noun.TRIAL] = set(map(str, await rows.places(conn, trials)))
    tasks = {topic.id for topic in topics if topic.noun is Noun.TASK}
    if tasks:
        known[Noun.TASK] = await rows.known_tasks(conn, tasks)
    return {topic.name for topic in topics if topic.id in known.get(topic.noun, ())}
