"""Many experiments at once: chosen by what they are, and told what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Optional, Tuple

from tenax.client import reading
from tenax.client.session import Query, Session, at
from tenax.jsonvalue import JsonObject


@dataclass(frozen=True)
class Wanted:
    """Which experiments are meant; empty and None: no matter."""

    #: A part of the name, whatever its case.
    name: str = ""
    description: str = ""
    #: All of them.
    labels: Tuple[str, ...] = ()
    users: Tuple[str, ...] = ()
    states: Tuple[str, ...] = ()
    archived: Optional[bool] = None
    project_id: Optional[int] = None

    def query(self) -> Query:
        """As the master is asked."""
        return {
            "name": self.name or None,
            "description": self.description or None,
            "labels": list(self.labels),
            "users": list(self.users),
            "states": [f"STATE_{state}" for state in self.states],
            "archived": self.archived,
            "projectId": self.project_id,
        }


def count_experiments(session: Session, wanted: Wanted) -> int:
    """How many there are."""
    answer = session.get("/api/v1/experiments", {**wanted.query(), "limit": -2})
    return reading.integer(reading.record(answer, "pagination"), "total")


@dataclass(frozen=True)
class Outcome:
    """What became of one of many."""

    id: int
    #: Why it was not done; empty where it was.
    error: str


def act_on_many(session: Session, verb: str, wanted: Wanted, **more: int) -> List[Outcome]:
    """Do something to all experiments that are meant, each by itself.

    ``verb``: one of VERBS, ``delete``, ``move`` (with ``destinationProjectId``) or ``retain_logs`` (with ``numDays``).
    """
    from tenax.client.users import get_user

    filters: JsonObject = {
        "name": wanted.name or None,
        "description": wanted.description or None,
        "labels": list(wanted.labels),
        "states": [f"STATE_{state}" for state in wanted.states],
        "archived": wanted.archived,
        "userIds": [get_user(session, user).id for user in wanted.users],
    }
    body: JsonObject = {"experimentIds": [], "filters": filters, "projectId": wanted.project_id, **more}
    method = {"delete": "DELETE", "retain_logs": "PUT"}.get(verb, "POST")
    answer = session.call(method, at("/api/v1/projects/{}/experiments/{}", wanted.project_id or 0, verb), body=body)
    return [
        Outcome(reading.integer(one, "id"), reading.text(one, "error")) for one in reading.records(answer, "results")
    ]
