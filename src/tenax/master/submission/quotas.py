"""A quota file against the people, workspaces and groups that there are; and what it would change for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from asyncpg import Connection

from tenax.config.problems import Path, ProblemReport, nearest
from tenax.config.quotas import LimitConfig, QuotaConfig, QuotaFile
from tenax.master.store.quotas import rows
from tenax.scheduler.quotas import Association, LimitKey, Quota, Quotas, Use, turns_of, used_of


@dataclass(frozen=True, slots=True)
class QuotaLine:
    """Of one user, workspace, group, or of a user in a workspace: what it may have, and what it has."""

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
    in_workspaces = [user for workspace in file.workspaces.values() for user in workspace.users]
    ids = await rows.ids_of(conn, [*file.users, *in_workspaces], file.workspaces, file.groups)
    report = ProblemReport(lines=lines)
    known: dict[str, list[str]] = {}

    async def id_of(kind: str, name: str, at: Path) -> int:
        number = {"users": ids.users, "workspaces": ids.workspaces, "groups": ids.groups}[kind].get(name.lower())
        if number is None:
            if kind not in known:
                known[kind] = await rows.all_names(conn, kind)
            near = nearest(name, known[kind])
            report.add(at, f"there is no {kind[:-1]} {name!r}" + (f"; did you mean {near!r}?" if near else ""))
        return number or 0

    workspaces: dict[int, Quota] = {}
    associations: dict[Association, Quota] = {}
    for name, workspace in file.workspaces.items():
        number = await id_of("workspaces", name, ("workspaces", name))
        workspaces[number] = _quota(workspace)
        for user, quota in workspace.users.items():
            associations[await id_of("users", user, ("workspaces", name, "users", user)), number] = _quota(quota)
    users = {await id_of("users", name, ("users", name)): _quota(quota) for name, quota in file.users.items()}
    groups = {await id_of("groups", name, ("groups", name)): _quota(quota) for name, quota in file.groups.items()}
    report.raise_if_any(what="quota file")
    everyone = _quota(file.everyone) if file.everyone is not None else Quota()
    return Quotas(file.half_life, workspaces, users, groups, associations, everyone)


async def lines_of(conn: Connection, quotas: Quotas) -> list[QuotaLine]:
    """All that are named, and all who hold or have used something lately: workspaces, users, groups, associations."""
    use, held = await rows.use(conn), await rows.held(conn)
    memberships = await rows.memberships(conn)
    there = {*use, *held, *quotas.associations}
    turns = turns_of(quotas, use, there)
    keys: dict[LimitKey, Quota] = {
        **{("workspace", number, 0): quotas.workspace(number) for number in _of(there, 1, quotas.workspaces)},
        **{("user", number, 0): quotas.user(number) for number in _of(there, 0, quotas.users)},
        **{("group", number, 0): quota for number, quota in quotas.groups.items()},
        **{("association", *association): quotas.associations.get(association, Quota()) for association in there},
    }
    names = await rows.names_of(conn, keys)
    made = []
    for key, quota in keys.items():
        if key in names:
            holding = sum(slots for association, slots in held.items() if _belongs(key, association, memberships))
            turn = turns[key[1], key[2]] + 1 if key[0] == "association" else None
            used = used_of(key, use, memberships)
            share, used_share = _shares(quotas, key, there, use)
            made.append(QuotaLine(key, names[key], quota, holding, used, share, used_share, turn))
    return made


def changes(before: Iterable[QuotaLine], after: Iterable[QuotaLine]) -> list[str]:
    """Who gains and who loses, in sentences."""
    old = {line.key: line for line in before}
    sentences = []
    for line in after:
        was = old.pop(line.key, None)
        sentences += [f"{line.name}: {what}" for what in _changes_of(was, line)]
    sentences += [f"{line.name}: no quota any more" for line in old.values() if _limits(line.quota)]
    return sentences


def _changes_of(was: QuotaLine | None, now: QuotaLine) -> Iterable[str]:
    before = was.quota if was is not None else Quota()
    if now.quota.max_slots != before.max_slots:
        holds = f"; it holds {now.held} now" if now.held else ""
        yield f"{_most('slots', now.quota.max_slots)} (was: {_most('slots', before.max_slots)}){holds}"
    if now.quota.slot_hours != before.slot_hours:
        noun, used = "slot hours a month", f"{now.used.this_month / 3600:.1f} are used"
        yield f"{_most(noun, now.quota.slot_hours)} (was: {_most(noun, before.slot_hours)}); {used}"
    if now.quota.priority != before.priority:
        yield f"most urgent priority {now.quota.priority or 1} (was: {before.priority or 1})"
    if (now.quota.weight or 1.0) != (before.weight or 1.0):
        yield f"weight {now.quota.weight or 1:g} (was: {before.weight or 1:g})"
    if now.turn is not None and was is not None and was.turn != now.turn:
        yield f"turn {now.turn} (was: {was.turn})"


def _most(noun: str, limit: float | None) -> str:
    counted = noun.replace("slots", "slot").replace("hours", "hour") if limit == 1 else noun
    return f"any number of {noun}" if limit is None else f"at most {limit:g} {counted}"


def _limits(quota: Quota) -> bool:
    return quota != Quota()


def _quota(config: LimitConfig) -> Quota:
    weight = config.weight if isinstance(config, QuotaConfig) else None
    return Quota(weight, config.max_slots, config.priority, config.slot_hours)


def _of(associations: Iterable[Association], place: int, named: Iterable[int]) -> list[int]:
    return sorted({*(association[place] for association in associations), *named} - {0})


def _belongs(key: LimitKey, association: Association, groups: Mapping[int, frozenset[int]]) -> bool:
    kind, number, workspace = key
    return {
        "user": association[0] == number,
        "workspace": association[1] == number,
        "association": association == (number, workspace),
        "group": number in groups.get(association[0], ()),
    }[kind]


def _shares(
    quotas: Quotas, key: LimitKey, there: Iterable[Association], use: Mapping[Association, Use]
) -> tuple[float | None, float | None]:
    """Of a workspace among all, and of a association in its workspace."""
    kind, number, workspace = key
    if kind == "workspace":
        weights = {each: quotas.workspace(each).weight or 1.0 for each in _of(there, 1, quotas.workspaces)}
        used = {each: sum(u.recent for association, u in use.items() if association[1] == each) for each in weights}
        mine = number
    elif kind == "association":
        siblings = [association[0] for association in there if association[1] == workspace]
        weights = {each: quotas.weight_of((each, workspace)) for each in siblings}
        used = {each: use.get((each, workspace), Use()).recent for each in siblings}
        mine = number
    else:
        return None, None
    whole, all_used = sum(weights.values()), sum(used.values())
    return weights[mine] / whole, used[mine] / all_used if all_used > 0 else 0.0
