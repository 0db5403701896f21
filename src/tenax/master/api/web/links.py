"""Where Determined's links lead: ``/det/experiments/7/trials/9/logs`` is ``trials/9?tab=logs`` of our page."""

from __future__ import annotations

import re

#: Address of Determined's page, without its ``/det/`` -> ours. The first that matches counts.
_EQUALS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), ours)
    for pattern, ours in (
        (r"(?:dashboard)?", ""),
        (r"log(?:in|out)", "login"),
        (r"(?:experiments/\d+/)?trials/(\d+)/logs", r"trials/\1?tab=logs"),
        (r"(?:experiments/\d+/)?trials/(\d+)(?:/.*)?", r"trials/\1"),
        (r"(?:experiments|searches)/(\d+)(?:/.*)?", r"experiments/\1"),
        (r"projects/(\d+)/notes", r"projects/\1?tab=notes"),
        (r"projects/(\d+)(?:/.*)?", r"projects/\1"),
        (r"experiments", "experiments"),
        (r"workspaces", "workspaces"),
        (r"workspaces/(\d+)/members", r"workspaces/\1?tab=members"),
        (r"workspaces/(\d+)/tasks", r"tasks?workspace=\1"),
        (r"workspaces/(\d+)(?:/.*)?", r"workspaces/\1"),
        (r"models", "models"),
        (r"models/([^/?&=]+)/versions/(\d+)(?:/.*)?", r"models/\1/versions/\2"),
        (r"models/([^/?&=]+)(?:/.*)?", r"models/\1"),
        (r"tasks", "tasks"),
        (r"(?:commands?|generic|shells?|notebooks?|tensorboards?)/([^/?&=]+)/logs", r"tasks/\1"),
        (r"wait/[^/?&=]+/([^/?&=]+)(?:/.*)?", r"tasks/\1"),
        (r"interactive/([^/?&=]+)(?:/.*)?", r"tasks/\1"),
        (r"admin(?:/.*)?|settings/user-management", "admin/users"),
        (r"templates(?:/.*)?", "templates"),
        (r"webhooks(?:/.*)?", "webhooks"),
        (r"settings(?:/.*)?", "settings"),
        (r"jobs(?:/.*)?", "queue"),
        (r"resourcepool/([^/?&=]+)(?:/.*)?", r"queue?pool=\1"),
        (r"clusters?/historical-usage", "usage"),
        (r"clusters?/logs|logs", "master/logs"),
        (r"clusters?(?:/.*)?|agents", "cluster"),
    )
)


def equal_of(path: str) -> str:
    """Our address, below the page's; one that has no equal stays as it is, and the page says that it knows none."""
    trimmed = path.rstrip("/")
    for pattern, ours in _EQUALS:
        match = pattern.fullmatch(trimmed)
        if match is not None:
            return match.expand(ours)
    return path
