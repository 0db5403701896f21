"""Filters that people type: read, checked while they are typed, and completed."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timezone
from typing import Annotated

from asyncpg import Connection
from fastapi import Query

from tenax.errors import InvalidInput
from tenax.jsonvalue import JsonObject
from tenax.master.access.authorization import Allow, Caller
from tenax.master.api.experiments.search_messages import CheckQueryResponse, Completion, QueryProblem
from tenax.master.api.http.callers import CallerDep, MasterDep
from tenax.master.api.http.routing import Routes
from tenax.master.api.runs.messages import TableType
from tenax.master.store.database.filter_language import (
    Expression,
    Joined,
    Negated,
    QueryError,
    Token,
    open_token,
    parse,
    quoted,
)
from tenax.master.store.database.filter_names import STATES, Names, bound, unknown_names
from tenax.master.store.database.filter_sql import Holds, Table
from tenax.master.store.database.filter_text import Filter, FilterGroup
from tenax.master.store.experiments import columns as experiment_columns
from tenax.master.store.experiments.columns import EXPERIMENTS
from tenax.master.store.runs.lists import RUNS
from tenax.master.store.workspaces import projects

routes = Routes("Experiments")

#: What is offered at once: more nobody reads.
MAX_COMPLETIONS = 12


async def narrowed(
    conn: Connection,
    caller: Caller,
    project_id: int | None,
    filters: Filter,
    query: str | None,
    table: Table = EXPERIMENTS,
) -> Filter:
    """``filters``, and what was typed beside them. Raises InvalidInput, with the place."""
    if not query or not query.strip():
        return filters
    try:
        group = await _group(conn, caller, project_id, parse(query), table)
    except QueryError as error:
        raise InvalidInput(f"query, characters {error.start + 1} to {error.end}: {error.message}") from None
    return Filter(FilterGroup((filters.root, group)), filters.show_archived)


async def _group(conn: Connection, caller: Caller, project_id: int | None, read: Joined, table: Table) -> FilterGroup:
    names = experiment_columns.plain_names(table)
    # What the columns of the list say already is not looked for.
    if unknown_names(read, names):
        names, _ = await experiment_columns.recent_names(conn, project_id, table)
    return FilterGroup((bound(read, names, caller_id=caller.person.id, now=datetime.now(timezone.utc)),))


@routes.get("/api/v1/experiments-search/query", "CheckExperimentsQuery", allow=Allow.USER)
async def check_query(
    master: MasterDep,
    caller: CallerDep,
    query: Annotated[str, Query()] = "",
    project_id: Annotated[int, Query()] = 0,
    at: Annotated[int | None, Query()] = None,
    table_type: Annotated[TableType, Query()] = TableType.UNSPECIFIED,
) -> CheckQueryResponse:
    """Whether a filter of experiments, or of runs, can be read: how it is, or what is wrong with it and where; with
    ``at``, a place in characters from its start, what may stand there. A problem is no error of the request: it is what
    was asked for."""
    completions: list[Completion] = []
    problem, tree = None, None
    table = RUNS if table_type is TableType.RUN else EXPERIMENTS
    async with master.db.connection() as conn:
        if project_id:
            await projects.get(conn, project_id)
        try:
            read = parse(query)
            await _group(conn, caller, project_id or None, read, table)
            tree = _tree(read)
        except QueryError as error:
            problem = QueryProblem(message=error.message, start=error.start, end=error.end)
        if at is not None:
            completions = await _completions(conn, project_id or None, query[: max(0, at)], table)
    return CheckQueryResponse(problem=problem, tree=tree, completions=completions)


def _tree(expression: Expression) -> JsonObject:
    if isinstance(expression, Joined):
        return {"any": expression.any_of, "parts": [_tree(part) for part in expression.parts]}
    if isinstance(expression, Negated):
        return {"not": _tree(expression.part)}
    values: JsonObject = {
        "values": [value.text for value in expression.values],
        "quoted": any(value.quoted for value in expression.values),
    }
    if expression.column is None or expression.operator is None:
        return values
    return {"column": expression.column.text, "operator": expression.operator.text, **values}


async def _completions(conn: Connection, project_id: int | None, before: str, table: Table) -> list[Completion]:
    plain = experiment_columns.plain_names(table)
    place = open_token(before)
    if place is None:
        return []
    column, token = place
    if column is None:
        names, _ = await experiment_columns.recent_names(conn, project_id, table)
        matching = _matching(names.listed(), token.text)
        return [
            *(
                _completion(f"{quoted(name)}:" if _by_text(plain, name) else quoted(name), token, "column")
                for name in matching
            ),
            *(_completion(f"{word} ", token, "keyword") for word in ("AND", "OR", "NOT") if _begins(word, token)),
        ][:MAX_COMPLETIONS]
    if column == "has":
        names, _ = await experiment_columns.recent_names(conn, project_id, table)
        return [_completion(quoted(name), token, "column") for name in _matching(names.listed(), token.text)]
    meaning = plain.meaning(column)
    if meaning is None:
        return []
    if meaning.holds is Holds.STATE:
        return [_completion(state, token, "state") for state in _matching(STATES, token.text)]
    if meaning.holds is Holds.USER:
        people = await experiment_columns.owners_like(conn, token.text, MAX_COMPLETIONS)
        return [_completion(name, token, "person") for name in ["me", *people] if _begins(name, token)]
    if meaning.holds is Holds.LIST:
        _, labels = await experiment_columns.recent_names(conn, project_id)
        return [_completion(quoted(label), token, "label") for label in _matching(labels, token.text)]
    return []


def _by_text(names: Names, name: str) -> bool:
    """Whether what comes next is clear: texts, states and people are compared by a colon."""
    meaning = names.meaning(name)
    return meaning is not None and meaning.holds in (Holds.TEXT, Holds.STATE, Holds.USER, Holds.LIST)


def _begins(word: str, token: Token) -> bool:
    return word.lower().startswith(token.text.lower()) and word != token.text


def _matching(texts: Iterable[str], typed: str) -> list[str]:
    """Those that begin with what is typed, then those that hold it."""
    lowered = typed.lower()
    holding = [text for text in texts if lowered in text.lower() and text != typed]
    holding.sort(key=lambda text: not text.lower().startswith(lowered))
    return holding[:MAX_COMPLETIONS]


def _completion(text: str, token: Token, kind: str) -> Completion:
    return Completion(text=text, start=token.start, end=token.end, kind=kind)
