"""The live stream's source: wake-ups come in, each change is read once, and goes to all who follow it.

Rules it keeps:

- nothing is read, and nothing is remembered, of what nobody follows; whoever was followed a moment ago counts
  (`LINGER_S`), so that a follower who comes back, or changes topics, has missed nothing;
- what changes within a period is read together, in one statement for each kind, however many follow it;
- a wake-up says where to look, and a change what was seen there: two in one period are one;
- where changes may have been missed (the listening connection is new, the database was away for too long), every
  follower is told to fetch anew, and positions of before count no more;
- followers are bounded, of a person and in all; what is kept for each is, too (`tenax.master.reading.events.ring`).

How metrics come to followers without a statement for each report: `tenax.master.reading.events.arrivals`.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import msgspec
import structlog

from tenax.errors import TooOften, TryAgain
from tenax.jsonvalue import JsonObject
from tenax.master.reading.events.arrivals import Arrivals
from tenax.master.reading.events.marks import KINDS, Marks
from tenax.master.reading.events.news import Seen, live_trials, read
from tenax.master.reading.events.ring import Ring, StreamFollower
from tenax.master.reading.events.topics import Noun, Topic
from tenax.master.store.database.connection import Database
from tenax.master.store.database.wakeups import Listener
from tenax.master.store.events import rows

log = structlog.get_logger("tenax.events")

#: Streams of one master, and of one person.
MAX_FOLLOWERS, MAX_PER_USER = 2000, 24
#: Topics that are followed in all, those of a moment ago among them.
MAX_FOLLOWED = 20_000
#: So long what nobody follows any more is still remembered.
LINGER_S = 60.0
#: Changes are read once in it.
PERIOD_S = 0.2
#: After the database was away.
_RETRY_S = 1.0


@dataclass(slots=True)
class _Followed:
    """One topic that is followed, or was a moment ago."""

    topic: Topic
    #: Changes later than this one are remembered.
    since: int
    followers: set[StreamFollower] = field(default_factory=set)
    #: When the last of them left, on the monotonic clock.
    left_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Prepared:
    """What was read for topics before they are followed; of what is not there, nothing."""

    places: Mapping[int, rows.TrialPlace] = field(default_factory=dict)
    #: By experiment, its trials that go on.
    live: Mapping[int, dict[int, rows.TrialNews]] = field(default_factory=dict)


class _Ear:
    """Hears the wake-ups of one kind."""

    def __init__(self, feed: Feed, kind: str) -> None:
        self._feed, self._kind = feed, kind

    def wake(self, id: str) -> None:
        self._feed.hear(self._kind, id)

    def wake_all(self) -> None:
        self._feed.forget()


class Feed:
    """The live stream of one master. For one event loop; `run` is a task of the owner's."""

    def __init__(self, database: Database, listener: Listener, *, period_s: float = PERIOD_S) -> None:
        self._database = database
        self._period_s = period_s
        self._ring = Ring()
        #: Of the numbers of changes: others are another master's, or of before something was missed.
        self._epoch = uuid.uuid4().hex
        self._followed: dict[str, _Followed] = {}
        self._followers: set[StreamFollower] = set()
        self._per_user: Counter[int] = Counter()
        self._seen = Seen()
        self._marks = Marks(self._followed)
        self._arrivals = Arrivals(self._marks)
        self._work = asyncio.Event()
        self._closed = False
        for kind in (*KINDS, *self._arrivals.kinds, "credential"):
            listener.attach(kind, _Ear(self, kind))

    @property
    def followers(self) -> int:
        """How many streams there are."""
        return len(self._followers)

    def position(self, follower: StreamFollower) -> str:
        """How far a follower is, as it says it when it comes back."""
        return f"{self._epoch}-{follower.position(self._ring.number)}"

    async def look_up(self, topics: Collection[Topic]) -> Prepared:
        """Read what following needs to know of topics that nobody follows yet. Raises TryAgain."""
        begun = [topic for topic in topics if topic.name not in self._followed]
        trials = {topic.number for topic in begun if topic.noun is Noun.TRIAL}
        lists = {topic.number for topic in begun if topic.noun is Noun.EXPERIMENT_TRIALS}
        if not trials and not lists:
            return Prepared()
        async with self._database.connection() as conn:
            places = await rows.places(conn, trials) if trials else {}
            return Prepared(places, await live_trials(conn, lists) if lists else {})

    @contextmanager
    def follow(
        self, topics: Sequence[Topic], prepared: Prepared, user_id: int, tags: Collection[str], cursor: str
    ) -> Iterator[StreamFollower]:
        """A stream of these topics, from where ``cursor`` says; empty: from now on.

        Topics of which something may be missing since the cursor are to be fetched anew (`StreamFollower.stale`).
        Raises TooOften where there are too many streams.
        """
        self._admit(user_id, len(topics))
        follower = StreamFollower([topic.name for topic in topics], user_id, tags)
        self._followers.add(follower)
        self._per_user[user_id] += 1
        after = self._number_of(cursor)
        try:
            for topic in topics:
                followed = self._follow(topic, prepared)
                followed.followers.add(follower)
                if cursor and (after is None or followed.since > after):
                    follower.reset([topic.name])
            for change in () if after is None else self._ring.after(after):
                if not follower.topics.isdisjoint(change.topics) and follower.stale.isdisjoint(change.topics):
                    follower.push(change)
            if self._closed:
                follower.end()
            self._work.set()
            yield follower
        finally:
            self.leave(follower, list(follower.topics))
            self._followers.discard(follower)
            self._per_user[user_id] -= 1
            if not self._per_user[user_id]:
                del self._per_user[user_id]

    def leave(self, follower: StreamFollower, topics: Collection[str]) -> None:
        """It follows these no longer."""
        for name in topics:
            follower.topics.discard(name)
            follower.stale.discard(name)
            followed = self._followed[name]
            followed.followers.discard(follower)
            if not followed.followers:
                followed.left_at = time.monotonic()

    def hear(self, kind: str, id: str) -> None:
        """A wake-up."""
        if kind == "credential":
            for follower in self._followers:
                if id in follower.tags:
                    follower.doubt()
        elif kind in self._arrivals.kinds:
            if self._arrivals.hear(kind, id):
                self._work.set()
        elif self._followed and self._marks.note(kind, id):
            self._work.set()

    def stored(self, newest: Mapping[tuple[int, str], int]) -> None:
        """Metrics were stored here: the newest step of each trial and group."""
        if self._arrivals.stored(newest):
            self._work.set()

    def forget(self) -> None:
        """Changes may have been missed: everybody fetches anew."""
        self._epoch = uuid.uuid4().hex
        self._ring.forget()
        self._seen = Seen()
        for followed in self._followed.values():
            followed.since = self._ring.number
        for follower in self._followers:
            # Their own right to be here may have changed as well.
            follower.doubt()
            follower.reset(follower.topics)

    def close(self) -> None:
        """This process ends: so do the streams."""
        self._closed = True
        for follower in self._followers:
            follower.end()

    async def run(self) -> None:
        """Read what changes, and hand it on, until cancelled."""
        while True:
            with contextlib.suppress(asyncio.TimeoutError):
                async with asyncio.timeout(self._arrivals.next_in_s()):
                    await self._work.wait()
            self._work.clear()
            self._clean()
            try:
                await self._pass()
            except TryAgain:
                log.warning("changes cannot be read: followers fetch anew")
                self.forget()
                await asyncio.sleep(_RETRY_S)
            except Exception:
                # What was gathered is lost with it; it begins again (`keep_running`).
                self.forget()
                raise
            await asyncio.sleep(self._period_s)

    async def _pass(self) -> None:
        announcements = self._arrivals.announcements()
        if announcements:
            async with self._database.connection() as conn:
                for kind, names in announcements:
                    await rows.announce(conn, kind, names)
        marks = self._marks.take()
        if not marks:
            return
        epoch = self._epoch
        async for kind, id, topics, fields in read(self._database, marks, self._seen, self._followed):
            if epoch != self._epoch:
                return
            self._tell(kind, id, topics, fields)

    def _tell(self, kind: str, id: int | str, topics: Collection[str], fields: JsonObject) -> None:
        followed = tuple(name for name in topics if name in self._followed)
        if not followed:
            return
        if kind == "reset":
            for name in followed:
                self._followed[name].since = self._ring.step()
                for follower in self._followed[name].followers:
                    follower.reset([name])
            return
        data = msgspec.json.encode({"kind": kind, "id": id, **fields})
        change = self._ring.add((kind, str(id)), followed, b"event: change\ndata: " + data + b"\n\n")
        for follower in set().union(*(self._followed[name].followers for name in followed)):
            follower.push(change)

    def _admit(self, user_id: int, topics: int) -> None:
        if self._per_user[user_id] >= MAX_PER_USER:
            raise TooOften(
                f"you follow {MAX_PER_USER} live streams already, which is the most for one person: close some pages"
            )
        self._clean()
        if len(self._followers) >= MAX_FOLLOWERS or len(self._followed) + topics > MAX_FOLLOWED:
            raise TooOften("too many live streams are followed at this master: try again in a while", retry_after=30.0)

    def _number_of(self, cursor: str) -> int | None:
        """The change that a cursor stands at; None: nothing is known of it any more."""
        epoch, _, number = cursor.partition("-")
        if epoch != self._epoch or not number.isdecimal() or len(number) > 18:
            return None
        known = self._ring.forgotten <= int(number) <= self._ring.number
        return int(number) if known else None

    def _follow(self, topic: Topic, prepared: Prepared) -> _Followed:
        followed = self._followed.get(topic.name)
        if followed is None:
            followed = self._followed[topic.name] = _Followed(topic, self._ring.step())
            self._marks.begin(topic, prepared.places)
            if topic.noun is Noun.EXPERIMENT_TRIALS and topic.number in prepared.live:
                self._seen.live[topic.number] = prepared.live[topic.number]
        return followed

    def _clean(self) -> None:
        """Forget what nobody has followed for a while."""
        long_ago = time.monotonic() - LINGER_S
        gone = [each for each in self._followed.values() if not each.followers and each.left_at < long_ago]
        for each in gone:
            del self._followed[each.topic.name]
            self._marks.end(each.topic)
            self._seen.forget(each.topic)
