"""Payloads of webhook deliveries: an event as JSON as it is, or as a message that Slack shows."""

from __future__ import annotations

import json

from tenax.jsonvalue import Json, JsonObject

#: Slack refuses longer texts.
_LONGEST = 2900
#: What is shown of a line of output, so that what stands behind it has room.
_LONGEST_LINE = 1500
_SIGNS = {"COMPLETED": ":white_check_mark:", "ERROR": ":x:", "CANCELED": ":no_entry_sign:"}
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
    data = _object(event, "event_data")
    experiment = _object(data, "experiment")
    custom = _object(data, "custom")
    line = _object(data, "task_log")
    if custom:
        head = f"{_LEVELS.get(_text(custom, 'level'), ':information_source:')} *{_safe(_text(custom, 'title'))}*"
        lines = [head, _safe(_text(custom, "description"))]
    elif line:
        lines = [_matched(line, _text(_object(event, "condition"), "regex"), base_url)]
    else:
        state = _text(experiment, "state")
        lines = [f"{_SIGNS.get(state, ':information_source:')} *{_experiment(experiment, base_url)} is {state}*"]
    blocks = [_section("\n".join(text for text in lines if text))]
    if experiment:
        blocks.append(_section("\n".join(_facts(experiment, base_url, titled=not custom))))
    return {"text": lines[0][:_LONGEST], "blocks": blocks}


def _matched(line: JsonObject, regex: str, base_url: str) -> str:
    """In the words that Determined has for it."""
    experiment, trial = line.get("experiment_id"), line.get("trial_id")
    logs = f"{base_url}/det/experiments/{experiment}/trials/{trial}/logs"
    known = experiment is not None
    what = f"Experiment ID `{experiment}`, Trial ID `{trial}`" if known else f"Task ID `{_text(line, 'task_id')}`"
    link = f"<{logs} | View full logs here>" if base_url else f"View full logs at {logs}"
    lines = [
        f"{what}, running on node `{_safe(_text(line, 'node_name'))}`, reported a log",
        f"```{_safe(_text(line, 'triggering_log')[:_LONGEST_LINE])}```",
        "This log matched the regex",
        f"```{_safe(regex)}```",
        link if known else "",
    ]
    return "\n".join(lines)


def _facts(experiment: JsonObject, base_url: str, *, titled: bool) -> list[str]:
    lines = [] if titled else [f"*Experiment*: {_experiment(experiment, base_url)}"]
    for title, name in (("Workspace", "workspace"), ("Project", "project"), ("Pool", "resource_pool")):
        lines.append(f"*{title}*: {_safe(str(experiment.get(name, '')))}")
    lines.append(f"*Slots per trial*: {experiment.get('slots_per_trial')}")
    lines.append(f"*Duration*: {experiment.get('duration')} s")
    if "trial_id" in experiment:
        lines.append(f"*Trial*: {experiment['trial_id']}")
    return lines


def _experiment(experiment: JsonObject, base_url: str) -> str:
    title = f"{_safe(_text(experiment, 'name'))} ({experiment.get('id')})"
    return f"<{base_url}/det/experiments/{experiment.get('id')}/overview|{title}>" if base_url else title


def _section(text: str) -> Json:
    cut = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return {"type": "section", "text": {"type": "mrkdwn", "text": cut}}


def _safe(text: str) -> str:
    """Without what Slack reads as a link or as a call to everyone."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("`", "'")


def _object(value: JsonObject, key: str) -> JsonObject:
    child = value.get(key)
    return child if isinstance(child, dict) else {}


def _text(value: JsonObject, key: str) -> str:
    child = value.get(key)
    return child if isinstance(child, str) else ""
