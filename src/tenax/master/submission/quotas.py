"""A quota file against the people, workspaces and groups that there are; and what it would change for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from asyncpg import Connection

from tenax.config.problems import Path
from tenax.config.quotas import QuotaFile, by_number, people_of
from tenax.master.concurrency.threads import Threads
from tenax.master.store.quotas import rows
from tenax.scheduler.quotas import (
    Association,
    LimitKey,
    Quota,
    Quotas,
    Use,
    figure,
    keys_of,
    number,
    shared_use,
    turns_of,
    used_by,
)

_PLAIN = Quota()
#: All workspaces that no quota names.
_OTHERS: LimitKey = ("workspace", 0, 0)


@dataclass(frozen=True, slots=True)
class QuotaStanding:
    """Of one user, workspace, group, or of a user in a workspace: what it may have, and what it has; of everyone that
    is not named: what each may have."""

    key: LimitKey
    name: str
    quota: Quota
    #: Slots in use now.
    held: int
    used: Use
    #: Its part of the weights of those that it shares with, and of what they have used; None: of a group.
    share: float | None = None
    used_share: float | None = None
    #: Of a user in a workspace: 1 comes first, at the same priority.
    turn: int | None = None


async def resolved(conn: Connection, file: QuotaFile, lines: Mapping[Path, int]) -> Quotas:
    """By number. Raises ConfigError for names of nobody."""
    users = people_of(file)
    ids = await rows.ids_of(conn, users, file.workspaces, file.groups)
    known: dict[str, list[str]] = {}
    for kind, names in (("users", users), ("workspaces", file.workspaces), ("groups", file.groups)):
        if any(name.lower() not in getattr(ids, kind) for name in names):
            known[kind] = await rows.all_names(conn, kind)
    return by_number(file, lines, ids, known)


async def lines_of(conn: Connection, threads: Threads, quotas: Quotas) -> list[QuotaStanding]:
    """All that are named, and all who hold something, have used something lately or have work that is open: workspaces,
    users, groups, associations; what no quota names of workspaces is one."""
    use, held = await rows.use(conn), await rows.held(conn)
    memberships = await rows.memberships(conn)
    figures = _Figures(quotas, use, held, memberships, frozenset({*use, *held, *await rows.open_associations(conn)}))
    named = [("workspace", number, 0) for number in sorted({0, *quotas.workspaces})]
    named += [("user", number, 0) for number in sorted({*(user for user, _ in figures.there), *quotas.users} - {0})]
    named += [("group", number, 0) for number in quotas.groups]
    named += [("association", *association) for association in sorted(figures.sharing)]
    named += [("everyone", 0, 0)] if quotas.everyone != _PLAIN else []
    keys = {key: quotas.quota_of(key) or _PLAIN for key in named}
    names = await rows.names_of(conn, keys)
    return await threads.run(_lines, figures, keys, names)


async def not_there(conn: Connection, file: QuotaFile, quotas: Quotas) -> list[str]:
    """Whom a file that was applied names and its quotas do not reach: they were renamed or deleted since then."""
    people = people_of(file)
    ids = await rows.ids_of(conn, people, file.workspaces, file.groups)
    users = {*quotas.users, *(user for user, _ in quotas.associations)}
    kinds = (
        ("workspace", file.workspaces, ids.workspaces, quotas.workspaces),
        ("user", people, ids.users, users),
        ("group", file.groups, ids.groups, quotas.groups),
    )
    return [
        f"{kind} {name}"
        for kind, names, numbers, bound in kinds
        for name in dict.fromkeys(names)
        if numbers.get(name.lower()) not in bound
    ]


@dataclass(frozen=True, slots=True)
class _Figures:
    """What lines are made of."""

    quotas: Quotas
    use: Mapping[Association, Use]
    held: Mapping[Association, int]
    memberships: Mapping[int, frozenset[int]]
    there: frozenset[Association]

    @property
    def sharing(self) -> frozenset[Association]:
        """Those who take turns."""
        return frozenset({*map(self.quotas.sharing, self.there), *self.quotas.associations})


def _lines(figures: _Figures, keys: Mapping[LimitKey, Quota], names: Mapping[LimitKey, str]) -> list[QuotaStanding]:
    shared = shared_use(figures.quotas, figures.use)
    turns = turns_of(figures.quotas, figures.use, figures.sharing)
    used = used_by(shared, figures.memberships)
    holding: Counter[LimitKey] = Counter()
    for association, slots in figures.held.items():
        groups = figures.memberships.get(association[0], ())
        for key in keys_of(figures.quotas.sharing(association), groups):
            holding[key] += slots
    shares = _shares(figures, used, names)
    made = []
    for key, quota in keys.items():
        if key not in names or (key == _OTHERS and key not in shares):
            continue
        turn = turns[key[1], key[2]] + 1 if key[0] == "association" else None
        share, used_share = shares.get(key, (None, None))
        line = QuotaStanding(key, names[key], quota, holding[key], used.get(key, Use()), share, used_share, turn)
        made.append(line)
    return made


def _shares(
    figures: _Figures, used: Mapping[LimitKey, Use], names: Mapping[LimitKey, str]
) -> dict[LimitKey, tuple[float, float]]:
    """Of each workspace among all, and of each association in its workspace: the part of weights, and of use. What is
    not there any more has none."""
    quotas = figures.quotas
    siblings: dict[int, dict[LimitKey, float]] = {}
    for user, workspace in figures.sharing:
        if ("association", user, workspace) in names:
            weight = quotas.weight_of((user, workspace))
            siblings.setdefault(workspace, {})["association", user, workspace] = weight
    workspaces = [number for number in {*siblings, *quotas.workspaces} if ("workspace", number, 0) in names]
    together: list[dict[LimitKey, float]] = [
        {("workspace", number, 0): quotas.workspace(number).weight or 1.0 for number in workspaces},
        *siblings.values(),
    ]
    result: dict[LimitKey, tuple[float, float]] = {}
    for weights in together:
        whole = sum(weights.values())
        all_used = sum(used.get(key, Use()).recent for key in weights)
        for key, weight in weights.items():
            part = used.get(key, Use()).recent / all_used if all_used > 0 else 0.0
            result[key] = weight / whole, part
    return result


def changes(before: Iterable[QuotaStanding], after: Iterable[QuotaStanding]) -> list[str]:
    """Who gains and who loses, in sentences."""
    old, new = {line.key: line for line in before}, {line.key: line for line in after}
    both = [key for key in new if key in old]
    turned = [{key: place for place, key in enumerate(_in_turns(lines, both))} for lines in (old, new)]
    sentences = []
    for key, line in new.items():
        was = old.pop(key, None)
        sentences += [f"{line.name}: {what}" for what in _changes_of(was, line)]
        # Somebody new in front is no change between the others.
        if was is not None and turned[0].get(key) != turned[1].get(key):
            sentences.append(f"{line.name}: turn {line.turn} (was: {was.turn})")
    sentences += [f"{line.name}: no quota any more" for line in old.values() if line.quota != _PLAIN]
    return sentences


def _in_turns(lines: Mapping[LimitKey, QuotaStanding], keys: Iterable[LimitKey]) -> list[LimitKey]:
    turns = {key: turn for key in keys if (turn := lines[key].turn) is not None}
    return sorted(turns, key=lambda key: (turns[key], key))


def _changes_of(was: QuotaStanding | None, now: QuotaStanding) -> Iterable[str]:
    before = was.quota if was is not None else _PLAIN
    if now.quota.max_slots != before.max_slots:
        holds = f"; it holds {now.held} now" if now.held else ""
        yield f"{_most('slots', now.quota.max_slots)} (was: {_most('slots', before.max_slots)}){holds}"
    if now.quota.slot_hours != before.slot_hours:
        noun = "slot hours a month"
        used = "" if now.key[0] == "everyone" else f"; {figure(now.used.this_month / 3600)} are used"
        yield f"{_most(noun, now.quota.slot_hours)} (was: {_most(noun, before.slot_hours)}){used}"
    if now.quota.priority != before.priority:
        yield f"most urgent priority {now.quota.priority or 1} (was: {before.priority or 1})"
    if (now.quota.weight or 1.0) != (before.weight or 1.0):
        yield f"weight {now.quota.weight or 1:g} (was: {before.weight or 1:g})"


def _most(noun: str, limit: float | None) -> str:
    counted = noun.replace("slots", "slot").replace("hours", "hour") if limit == 1 else noun
    return f"any number of {noun}" if limit is None else f"at most {number(limit)} {counted}"
