"""What a project's lists of experiments and runs can show, and between which values their metrics lie."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from fastapi import Query

from tenax.master.access.authorization import Allow
from tenax.master.api.http.callers import MasterDep
from tenax.master.api.http.routing import Routes
from tenax.master.api.runs.messages import (
    ColumnType,
    LocationType,
    MetricsRange,
    MetricsRangesResponse,
    ProjectColumn,
    ProjectColumnsResponse,
    TableType,
)
from tenax.master.store.database.filter_sql import Holds, Table
from tenax.master.store.experiments.columns import EXPERIMENTS
from tenax.master.store.runs import lists as run_lists
from tenax.master.store.runs.lists import RUNS, Named
from tenax.master.store.workspaces import projects

routes = Routes("Projects")

_HOLDS = {
    Holds.NUMBER: ColumnType.NUMBER,
    Holds.TIME: ColumnType.DATE,
    Holds.BOOLEAN: ColumnType.UNSPECIFIED,
}
_GROUPS = {"training": LocationType.TRAINING, "validation": LocationType.VALIDATIONS}
_QUALIFIERS = ("last", "max", "mean", "min")


@routes.get("/api/v1/projects/{project_id}/columns", "GetProjectColumns", allow=Allow.USER)
async def get_columns(
    master: MasterDep,
    project_id: int,
    table_type: Annotated[TableType, Query()] = TableType.UNSPECIFIED,
) -> ProjectColumnsResponse:
    """The columns of its list of runs, or else of its list of experiments."""
    async with master.db.snapshot() as conn:
        await projects.get(conn, project_id)
        metrics = await run_lists.metric_columns(conn, project_id)
        if table_type is TableType.RUN:
            columns = _own(RUNS, LocationType.RUN)
            columns += _hyperparameters(
                await run_lists.hyperparameter_columns(conn, project_id), LocationType.RUN_HYPERPARAMETERS
            )
            columns += [_metadata(key) for key in await run_lists.metadata_columns(conn, project_id)]
        else:
            columns = _own(EXPERIMENTS, LocationType.EXPERIMENT)
            columns += _hyperparameters(await run_lists.configured(conn, project_id), LocationType.HYPERPARAMETERS)
    return ProjectColumnsResponse(
        columns=columns + [each for group, metric in metrics for each in _metric(group, metric)]
    )


@routes.get(
    "/api/v1/projects/{project_id}/experiments/metric-ranges", "GetProjectNumericMetricsRange", allow=Allow.USER
)
async def get_ranges(master: MasterDep, project_id: int) -> MetricsRangesResponse:
    """Of each metric, by least, greatest, mean and last value of a run: between which values it lies."""
    async with master.db.connection() as conn:
        await projects.get(conn, project_id)
        ranges = await run_lists.metric_ranges(conn, project_id)
    return MetricsRangesResponse(
        ranges=[MetricsRange(metrics_name=name, min=low, max=high) for name, low, high in ranges]
    )


def _own(table: Table, location: LocationType) -> list[ProjectColumn]:
    return [
        ProjectColumn(
            column=name,
            location=location,
            type=_HOLDS.get(column.holds, ColumnType.TEXT),
            display_name=table.label(name),
        )
        for name, column in sorted(table.columns.items())
    ]


def _hyperparameters(parameters: Iterable[Named], location: LocationType) -> list[ProjectColumn]:
    return [
        ProjectColumn(
            column=f"hp.{parameter.name}",
            location=location,
            type=ColumnType.NUMBER if parameter.number else ColumnType.TEXT,
        )
        for parameter in parameters
    ]


def _metadata(key: Named) -> ProjectColumn:
    kinds = ((key.list, ColumnType.ARRAY), (key.number, ColumnType.NUMBER), (key.moment, ColumnType.DATE))
    kind = next((kind for holds, kind in kinds if holds), ColumnType.TEXT)
    return ProjectColumn(column=f"metadata.{key.name}", location=LocationType.RUN_METADATA, type=kind)


def _metric(group: str, metric: Named) -> list[ProjectColumn]:
    location = _GROUPS.get(group, LocationType.CUSTOM_METRIC)
    if not metric.number:
        return [ProjectColumn(column=f"{group}.{metric.name}.last", location=location, type=ColumnType.TEXT)]
    return [
        ProjectColumn(column=f"{group}.{metric.name}.{qualifier}", location=location, type=ColumnType.NUMBER)
        for qualifier in _QUALIFIERS
    ]
