"""Payloads of webhook deliveries: an event as JSON as it is, or as a message that Slack shows."""

from __future__ import annotations

import json
from collections.abc import Iterable

from tenax.jsonvalue import Json, JsonObject

#: Slack refuses longer texts, and longer fields of a section.
_MAX_TEXT, _MAX_FIELD = 2900, 1900
#: What is shown of a line of output, so that what stands behind it has room.
_MAX_LINE = 1500
#: Beside a message.
_GOOD, _BAD = "#13B670", "#DD5040"
_ENDS = {
    "COMPLETED": "Your experiment completed successfully 🎉",
    "ERROR": "Your experiment has stopped with errors",
}
_STATUS = {"COMPLETED": ("✅ ", "Completed"), "ERROR": ("❌ ", "Errored")}
#: What is said of a machine, by the event that the trigger names.
_MACHINES = {
    "LAUNCHED": "was launched",
    "FAILED": "has failed",
    "ENDED": "has ended",
    "NOTICE": "has a notice of its cloud",
    "ORPHAN": "had no row",
}
_BUDGETS = {"BUDGET_NEARLY": "nearly spent", "BUDGET_USED_UP": "used up"}
_LEVELS = {"WARNING": ":warning:", "ERROR": ":x:", "CRITICAL": ":x:"}


def body_of(kind: str, event: JsonObject, base_url: str) -> bytes:
    """The body for a webhook of that kind; ``base_url``: where links lead, blank for none."""
    shown = _slack(event, base_url) if kind == "SLACK" else event
    return json.dumps(shown, ensure_ascii=False, separators=(",", ":")).encode()


def sample_event(event_id: str, moment: int) -> JsonObject:
    """An event that is sent to test a webhook."""
    custom: JsonObject = {
        "title": "A test of this webhook",
        "description": "Somebody asked Tenax whether messages arrive here.",
        "level": "INFO",
    }
    return {
        "event_id": event_id,
        "event_type": "CUSTOM",
        "timestamp": moment,
        "condition": {},
        "event_data": {"custom": custom},
    }


def _slack(event: JsonObject, base_url: str) -> JsonObject:
    """Blocks, attachments and their colour as in Determined; ``text`` is what a notification shows."""
    data = _object(event, "event_data")
    experiment, custom, line = (_object(data, name) for name in ("experiment", "custom", "task_log"))
    if line:
        text = _matched(line, _text(_object(event, "condition"), "regex"), base_url)
        return {"text": text.splitlines()[0][:_MAX_TEXT], "blocks": [_section(text)]}
    if _text(event, "event_type") == "MACHINE":
        text = _of_machines(data, _text(_object(event, "condition"), "event"))
        return {"text": _cut(text.splitlines()[0]), "blocks": [_section(text)]}
    state = _text(experiment, "state")
    if custom:
        level, title = _text(custom, "level"), _text(custom, "title")
        head = f"{_LEVELS.get(level, ':information_source:')} {title}"
        facts = [("Level", level), ("Title", title), ("Description", _text(custom, "description"))]
        block = _plain("Event Data") | {"fields": _fields(f"*{name}*: {_safe(value)}" for name, value in facts)}
    else:
        head = _ENDS.get(state, f"The status of your experiment is {state}")
        block = _plain(head)
    attachments: list[Json] = []
    if experiment:
        colour = _BAD if state == "ERROR" else _GOOD
        attachments.append({"color": colour, "blocks": [_about(experiment, base_url)]})
    return {"text": _safe(head)[:_MAX_TEXT], "blocks": [block], "attachments": attachments}


def _of_machines(data: JsonObject, event: str) -> str:
    """What happened in a line, and why below it."""
    machine, offer, budget = (_object(data, name) for name in ("machine", "offer", "budget"))
    about = machine or offer or budget
    pool = _safe(_text(about, "resource_pool"))
    if machine:
        what = _safe(_text(machine, "offer") or _text(machine, "instance_type"))
        head = f"Machine {_safe(_text(machine, 'id'))} of pool {pool} {_MACHINES.get(event, event)}: {what}"
    elif offer:
        head = f"Offer {_safe(_text(offer, 'name'))} of pool {pool} is off until the settings of its provider change"
    else:
        head = f"The budget of {f'pool {pool}' if pool else 'all pools'} for machines is {_BUDGETS.get(event, event)}"
    return f"{head}\n{_safe(_text(about, 'why'))}".rstrip()


def _about(experiment: JsonObject, base_url: str) -> Json:
    """The block of an experiment: which one, and its facts beside each other."""
    name, number = _safe(_text(experiment, "name")), experiment.get("id")
    title = f"{name} (#{number})"
    head = f"<{base_url}/det/experiments/{number}/overview | {title}>" if base_url else title
    minutes = _whole(experiment, "duration") // 60
    state = _text(experiment, "state")
    sign, status = _STATUS.get(state, ("", state))
    facts = [
        f"*Status*: {status}",
        f"*Duration*: {minutes // 60}h {minutes % 60}min",
        f"*Workspace*: {_place(experiment, 'workspace', 'workspaces/{}/projects', base_url)}",
        f"*Project*: {_place(experiment, 'project', 'projects/{}', base_url)}",
    ]
    if "trial_id" in experiment:
        facts.append(f"*Trial ID*: {experiment['trial_id']}")
    return {"type": "section", "text": {"type": "mrkdwn", "text": _cut(sign + head)}, "fields": _fields(facts)}


def _place(experiment: JsonObject, noun: str, path: str, base_url: str) -> str:
    number = experiment.get(f"{noun}_id")
    name = _safe(_text(experiment, noun))
    return f"<{base_url}/det/{path.format(number)} | {name}>" if base_url and number is not None else name


def _matched(line: JsonObject, regex: str, base_url: str) -> str:
    """In the words that Determined has for it."""
    experiment, trial = line.get("experiment_id"), line.get("trial_id")
    logs = f"{base_url}/det/experiments/{experiment}/trials/{trial}/logs"
    known = experiment is not None
    what = (
        f"Experiment ID `{experiment}`, Trial ID `{trial}`"
        if known
        else f"Task ID `{_text(line, 'task_id')}`, task type `{_text(line, 'task_type')}`"
    )
    link = f"<{logs} | View full logs here>" if base_url else f"View full logs at {logs}"
    lines = [
        f"{what}, running on node `{_safe(_text(line, 'node_name'))}`, reported a log",
        f"```{_safe(_text(line, 'triggering_log')[:_MAX_LINE])}```",
        "This log matched the regex",
        f"```{_safe(regex)}```",
        link if known else "",
    ]
    return "\n".join(lines)


def _section(text: str) -> Json:
    return {"type": "section", "text": {"type": "mrkdwn", "text": _cut(text)}}


def _plain(text: str) -> JsonObject:
    return {"type": "section", "text": {"type": "plain_text", "text": _cut(text)}}


def _fields(facts: Iterable[str]) -> list[Json]:
    return [{"type": "mrkdwn", "text": _cut(fact, _MAX_FIELD)} for fact in facts]


def _cut(text: str, most: int = _MAX_TEXT) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _safe(text: str) -> str:
    """Without what Slack reads as a link or as a call to everyone."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("`", "'")


def _object(value: JsonObject, key: str) -> JsonObject:
    child = value.get(key)
    return child if isinstance(child, dict) else {}


def _text(value: JsonObject, key: str) -> str:
    child = value.get(key)
    return child if isinstance(child, str) else ""


def _whole(value: JsonObject, key: str) -> int:
    child = value.get(key)
    return child if isinstance(child, int) else 0
