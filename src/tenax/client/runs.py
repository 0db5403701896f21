"""Runs: trials of many experiments, found by any column, and what is done to many of them at once."""

from __future__ import annotations

import datetime
import difflib
import json
import re
from dataclasses import dataclass
from typing import Dict, Iterator, List, Optional, Sequence

from tenax.client.connection import reading
from tenax.client.connection.reading import Answer, part
from tenax.client.connection.session import Session, at
from tenax.errors import InvalidInput
from tenax.jsonvalue import Json, JsonObject

#: What can be done to runs.
VERBS = ("kill", "pause", "resume", "archive", "unarchive", "delete")
_OPERATORS = ("!=", ">=", "<=", "=", ">", "<", "!~", "~")
_CONDITION = re.compile(r"\s*(?P<column>[^=<>!~]+?)\s*(?P<operator>!=|>=|<=|=|>|<|!~|~)\s*(?P<value>.*?)\s*")
#: What operators are made of.
_SIGNS = ("=", "<", ">", "!", "~")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_QUALIFIERS = ("min", "max", "mean", "last")
_GROUPS = {"training": "TRAINING", "validation": "VALIDATIONS"}


@dataclass(frozen=True)
class Run(Answer):
    """One run, with what a table shows of its experiment."""

    id: int = part(reading.integer, "id")
    #: ``KEY-n``.
    local_id: str = part(reading.text, "localId")
    experiment_id: int = part(reading.integer, "experiment", "id")
    experiment_name: str = part(reading.text, "experiment", "name")
    state: str = part(reading.state, "state")
    hparams: JsonObject = part(reading.record, "hyperparameters")
    metadata: JsonObject = part(reading.record, "metadata")
    #: The searcher's metric at the best validation.
    searcher_metric: Optional[float] = part(reading.measure, "searcherMetricValue")
    started: Optional[datetime.datetime] = part(reading.moment, "startTime")
    ended: Optional[datetime.datetime] = part(reading.moment, "endTime")
    #: Seconds in which it ran, without waiting; None from masters that do not say it.
    ran_s: Optional[float] = part(reading.measure, "runningSeconds")
    archived: bool = part(reading.flag, "archived")


@dataclass(frozen=True)
class RunOutcome:
    """What became of one run."""

    id: int
    #: Why it could not be done; empty: it is done.
    error: str


def search_runs(
    session: Session,
    *,
    project_id: Optional[int] = None,
    conditions: Sequence[str] = (),
    archived: bool = False,
    sort: str = "id=desc",
    limit: Optional[int] = None,
) -> Iterator[Run]:
    """Runs for which all conditions hold, in order; ``limit`` at most.

    A condition is ``COLUMN OPERATOR VALUE`` with one of ``= != < <= > >= ~ !~`` (contains, does not):
    ``state=COMPLETED``, ``hp.lr>0.01``, ``metadata.team~vision``, ``validation.loss.min<0.2``; a column alone has to be
    there. Raises InvalidInput for what is none.
    """
    filter_document = filter_text(conditions, archived=archived)
    offset, given = 0, 0
    while True:
        size = 200 if limit is None else min(200, limit - given)
        body: JsonObject = {
            "projectId": project_id,
            "filter": filter_document,
            "sort": sort,
            "offset": offset,
            "limit": size,
        }
        answer = session.post("/api/v1/runs", body)
        for value in reading.records(answer, "runs"):
            given += 1
            yield Run.read(value)
        page = reading.record(answer, "pagination")
        offset = reading.integer(page, "endIndex")
        if offset >= reading.integer(page, "total") or (limit is not None and given >= limit):
            return


def filter_text(conditions: Sequence[str], *, archived: bool = False) -> str:
    """The filter for which all of ``conditions`` hold. Raises InvalidInput."""
    children: List[Json] = [_condition(condition) for condition in conditions]
    group: JsonObject = {"kind": "group", "conjunction": "and", "children": children}
    return json.dumps({"filterGroup": group, "showArchived": archived})


def act(session: Session, verb: str, ids: Sequence[int], project_id: Optional[int] = None) -> List[RunOutcome]:
    """Do one of `VERBS` to each of these runs."""
    return _outcomes(session.post(at("/api/v1/runs/{}", verb), {"runIds": list(ids), "projectId": project_id}))


def move(session: Session, ids: Sequence[int], source_id: int, destination_id: int) -> List[RunOutcome]:
    """File runs, with all others of their experiments, in another project."""
    body: JsonObject = {"runIds": list(ids), "sourceProjectId": source_id, "destinationProjectId": destination_id}
    return _outcomes(session.post("/api/v1/runs/move", body))


def columns(session: Session, project_id: int) -> List[JsonObject]:
    """What runs of a project can be filtered and ordered by: ``column``, ``location``, ``type`` of each."""
    path = at("/api/v1/projects/{}/columns", project_id)
    return reading.records(session.get(path, {"tableType": "TABLE_TYPE_RUN"}), "columns")


def require_columns(session: Session, conditions: Sequence[str], project_ids: Sequence[int]) -> None:
    """Raises InvalidInput for a condition on what no run of these projects has, with names like it.

    Where none has anything of that kind yet, there is nothing to compare it with; metadata comes and goes as people
    like.
    """
    known = {reading.text(column, "column") for number in project_ids for column in columns(session, number)}
    for condition in conditions:
        name = str(_condition(condition)["columnName"])
        kind = name.partition(".")[0] + "."
        alike = sorted(other for other in known if other.startswith(kind))
        if name not in known and alike and kind != "metadata.":
            near = difflib.get_close_matches(name, alike, n=3) or alike[:10]
            raise InvalidInput(f"No run has {name!r}; there is {', '.join(near)}.")


def _outcomes(answer: JsonObject) -> List[RunOutcome]:
    return [
        RunOutcome(reading.integer(result, "id"), reading.text(result, "error"))
        for result in reading.records(answer, "results")
    ]


def _condition(text: str) -> JsonObject:
    match = _CONDITION.fullmatch(text)
    if match is None and (not text.strip() or any(sign in text for sign in _OPERATORS)):
        raise InvalidInput(f"{text!r} is not a condition: write COLUMN OPERATOR VALUE, as in 'hp.lr>0.01'")
    if match is not None and match["value"][:1] in _SIGNS:
        raise InvalidInput(
            f"{text!r} has no operator that there is: write one of {' '.join(_OPERATORS)}, "
            "and a value that begins with such a sign in quotes"
        )
    column = text.strip() if match is None else match["column"]
    made: Dict[str, Json] = {"kind": "field", "columnName": column, "location": f"LOCATION_TYPE_{_location(column)}"}
    if match is None:
        return {**made, "operator": "notEmpty", "value": None}
    operator = {"~": "contains", "!~": "notContains"}.get(match["operator"], match["operator"])
    value = _value(match["value"]) if operator not in ("contains", "notContains") else match["value"]
    kind = "NUMBER" if isinstance(value, float) else "DATE" if _DAY.match(str(value)) else "TEXT"
    return {**made, "operator": operator, "value": value, "type": f"COLUMN_TYPE_{kind}"}


def _location(column: str) -> str:
    head, _, rest = column.partition(".")
    if head in ("hp", "metadata") and rest:
        return {"hp": "RUN_HYPERPARAMETERS", "metadata": "RUN_METADATA"}[head]
    if "." in rest and rest.rpartition(".")[2] in _QUALIFIERS:
        return _GROUPS.get(head, "CUSTOM_METRIC")
    return "RUN"


def _value(text: str) -> Json:
    """A number where it is one; in quotes a text in any case."""
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    try:
        return float(text)
    except ValueError:
        return text
