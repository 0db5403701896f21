"""The application: every declared route, behind one door.

What a route needs is declared beside its handler (`tenax.master.api.routing`); here all of them are put together, in
the order of `ROUTES`. Nothing is registered in any other way, and a test walks what came out.
"""

from __future__ import annotations

from collections.abc import Iterable

from fastapi import Depends, FastAPI

from tenax.master.api import (
    agent_sessions,
    allocations,
    auth,
    checkpoint_lists,
    checkpoints,
    cluster,
    commands,
    config_policies,
    continuing,
    errors,
    experiment_actions,
    experiment_files,
    experiment_metrics,
    experiment_search,
    experiments,
    garbage,
    generic_tasks,
    groups,
    interactive,
    jobs,
    kubernetes,
    legacy_users,
    logs,
    machines,
    metrics,
    model_versions,
    models,
    pools,
    profiler,
    projects,
    prometheus,
    reports,
    retention,
    roles,
    run_actions,
    run_columns,
    runs,
    searches,
    spool,
    submissions,
    system,
    tasks,
    templates,
    tokens,
    trial_charts,
    trials,
    unmanaged,
    usage,
    user_settings,
    users,
    webhooks,
    workloads,
    workspaces,
)
from tenax.master.api.deps import authorize
from tenax.master.api.edge import Edge
from tenax.master.api.route import WireRoute
from tenax.master.api.routing import Routes
from tenax.master.context import Master

#: All routes of the master; the first that matches a path answers.
ROUTES: tuple[Routes, ...] = (
    # What tasks and agents call all the time comes first: a request is matched against one route after another.
    spool.routes,
    # Before metrics, whose paths take anything for an id.
    reports.routes,
    experiment_metrics.routes,
    metrics.routes,
    logs.routes,
    system.routes,
    auth.routes,
    # Before users, whose paths take anything for an id.
    user_settings.routes,
    groups.routes,
    users.routes,
    legacy_users.routes,
    tokens.routes,
    roles.routes,
    webhooks.routes,
    submissions.routes,
    # Before those, whose paths take anything for an id.
    unmanaged.routes,
    continuing.routes,
    experiment_actions.routes,
    experiment_files.routes,
    experiment_search.routes,
    # Before those, whose paths take anything for an id.
    trial_charts.routes,
    experiments.routes,
    trials.routes,
    workloads.routes,
    profiler.routes,
    run_actions.routes,
    runs.routes,
    run_columns.routes,
    searches.routes,
    checkpoints.routes,
    checkpoint_lists.routes,
    garbage.routes,
    workspaces.routes,
    projects.routes,
    models.routes,
    model_versions.routes,
    tasks.routes,
    generic_tasks.routes,
    commands.routes,
    templates.routes,
    config_policies.routes,
    interactive.routes,
    allocations.routes,
    machines.routes,
    pools.routes,
    jobs.routes,
    usage.routes,
    kubernetes.routes,
    cluster.routes,
    prometheus.routes,
    retention.routes,
    agent_sessions.routes,
)


def create_app(master: Master, routes: Iterable[Routes] = ROUTES) -> FastAPI:
    """The ASGI application of ``master``."""
    app = FastAPI(
        title="Tenax",
        dependencies=[Depends(authorize)],
        # The contract is a declared route of its own, with a policy like any other.
        openapi_url=None,
        redirect_slashes=False,
    )
    app.state.master = master
    app.router.route_class = WireRoute
    for noun in routes:
        _register(app, noun)
    errors.install(app)
    app.add_middleware(Edge, body_limit=master.settings.body_limit_bytes)
    return app


def _register(app: FastAPI, noun: Routes) -> None:
    for route in noun.declared:
        if route.method == "WEBSOCKET":
            app.router.add_api_websocket_route(route.path, route.handler, name=route.operation)
        else:
            app.router.add_api_route(
                route.path,
                route.handler,
                methods=[route.method],
                operation_id=route.operation,
                name=route.operation,
                tags=[noun.tag],
                **route.options,  # type: ignore[arg-type]
            )
