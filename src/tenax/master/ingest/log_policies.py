"""Lines that mean something: policies of an experiment and triggers of webhooks, tried on what tasks say.

Rules:
- Only what tasks say is looked at, never what master and agents say about them; a line that shows a policy itself, as a
  printed configuration does, is no match.
- A policy matches once in a trial, one that excludes a machine once per machine; then it is not tried again.
- What follows is written in the transaction that stores the line, and a line of the log says so.
- Patterns are RE2's, tried in a thread on many lines at once.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import re2
import structlog
from asyncpg import Connection

from tenax.jsonvalue import Json
from tenax.master.store.database.connection import Database
from tenax.master.store.logs import policies as log_policies
from tenax.master.store.logs import rows as logs
from tenax.master.store.logs.policies import CANCEL_RETRIES, EXCLUDE_NODE, LABEL
from tenax.master.store.webhooks import events as webhook_events
from tenax.master.store.webhooks.events import LogTrigger
from tenax.master.telemetry.log_lines import clean
from tenax.wire.task_names import RUN_BEGINS

log = structlog.get_logger("tenax.logs")

#: Triggers may come and go.
_FRESH_S = 15.0
_KEPT = 10_000
_MAX_LINE = 2000
_ACTIONS = {"cancel_retries": CANCEL_RETRIES, "exclude_node": EXCLUDE_NODE}


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern, and what follows when a line matches it."""

    #: Of a policy: its name, or its pattern where it has none; of a trigger its number.
    name: str
    pattern: str
    #: Empty for a trigger.
    action: str
    trigger_id: int | None = None


@dataclass(frozen=True, slots=True)
class Match:
    """The first line that a rule matched."""

    rule: Rule
    line: str


@dataclass(slots=True)
class Watch:
    """What the output of one task is looked at for."""

    task_id: str
    trial_id: int
    rules: tuple[Rule, ...]
    #: (rule, agent) that need not be tried again; agent empty: on no machine.
    done: set[tuple[str, str]] = field(default_factory=set)
    loaded_at: float = 0.0

    def open_rules(self, agent_id: str) -> list[Rule]:
        """Those that may still match a line from there."""
        return [rule for rule in self.rules if _key(rule, agent_id) not in self.done]


class LogPolicies:
    """The policies and triggers of tasks, loaded and kept. For one event loop."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._watches: dict[str, Watch | None] = {}

    async def watch(self, task_id: str) -> Watch | None:
        """What a task's output is looked at for; None: nothing. Raises TryAgain."""
        known = self._watches.get(task_id)
        if task_id in self._watches and (known is None or time.monotonic() - known.loaded_at < _FRESH_S):
            return known
        if len(self._watches) >= _KEPT:
            self._watches.clear()
        async with self._database.connection() as conn:
            policies = await log_policies.of_task(conn, task_id)
            triggers: list[LogTrigger] = []
            if policies is not None and policies.any_triggers:
                triggers = await webhook_events.log_triggers(conn, task_id)
        made = None
        if policies is not None:
            rules = (*_configured(policies.configured), *(_of_trigger(trigger) for trigger in triggers))
            made = Watch(task_id, policies.trial_id, rules, loaded_at=time.monotonic())
            made.done.update((policy, agent) for policy, _, agent in policies.matched)
        self._watches[task_id] = made
        return made

    async def record(self, conn: Connection, watch: Watch, matches: Sequence[Match], agent_id: str) -> None:
        """Write what follows from matches, in the transaction that stores the lines."""
        for match in matches:
            rule, line = match.rule, clean(match.line[:_MAX_LINE])
            if rule.trigger_id is not None:
                await webhook_events.log_line_matched(conn, rule.trigger_id, watch.task_id, line, agent_id)
            elif await log_policies.record(conn, watch.trial_id, rule.name, rule.action, _key(rule, agent_id)[1], line):
                text = f"log policy {rule.name!r} matched: {line[:200]!r}{_CONSEQUENCES[rule.action].format(agent_id)}"
                await logs.append_system_line(conn, watch.task_id, text, "WARNING", agent_id=agent_id)

    def recorded(self, watch: Watch, matches: Sequence[Match], agent_id: str) -> None:
        """What `record` wrote is durable: it need not be looked for again."""
        watch.done.update(_key(match.rule, agent_id) for match in matches)


_CONSEQUENCES = {
    LABEL: "",
    CANCEL_RETRIES: "; should this run fail, the trial is not tried again",
    EXCLUDE_NODE: "; from now on the trial is not placed on agent {}",
}


def matches_in(texts: Sequence[str], rules: Sequence[Rule], agent_id: str) -> list[Match]:
    """The first matching line of each rule. For a thread."""
    if not texts or not rules:
        return []
    whole = "\n".join(texts)
    matches = []
    for rule in rules:
        if rule.action == EXCLUDE_NODE and not agent_id:
            continue
        pattern = _compiled(rule.pattern)
        # One look at everything: as a rule nothing matches.
        if pattern is None or pattern.search(whole) is None:
            continue
        line = next((text for text in texts if _shows(text, rule) and pattern.search(text) is not None), None)
        if line is not None:
            matches.append(Match(rule, line))
    return matches


def _shows(text: str, rule: Rule) -> bool:
    """Whether a line could be a match, and not the policy itself in print."""
    return RUN_BEGINS not in text and not (rule.pattern in text and "pattern" in text)


def _key(rule: Rule, agent_id: str) -> tuple[str, str]:
    return rule.name, agent_id if rule.action == EXCLUDE_NODE else ""


def _configured(policies: Json) -> list[Rule]:
    rules = []
    for policy in policies if isinstance(policies, list) else []:
        if not isinstance(policy, dict):
            continue
        pattern, name, action = policy.get("pattern"), policy.get("name"), policy.get("action")
        if isinstance(pattern, str) and pattern:
            rules.append(Rule(str(name or pattern), pattern, _ACTIONS.get(str(action), LABEL)))
    return rules


def _of_trigger(trigger: LogTrigger) -> Rule:
    return Rule(f"\x00{trigger.trigger_id}", trigger.regex, "", trigger.trigger_id)


def _bare(pattern: str) -> str:
    """Without leading and trailing ``.*``: they say nothing where any part of a line may match, and take long."""
    if "\\" in pattern:
        return pattern
    if pattern.startswith(".*") and pattern[2:3] not in ("?", "+", "*", "{"):
        pattern = pattern[2:]
    return pattern.removesuffix(".*")


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re2._Regexp | None:
    """For lines of a text; None for what was a pattern when it was taken, and is none any more."""
    options = re2.Options()
    options.log_errors = False
    bare = _bare(pattern)
    try:
        return re2.compile(f"(?m){bare}" if bare else pattern, options=options)
    except re2.error:
        log.warning("a pattern of a log policy cannot be used", pattern=pattern)
        return None
