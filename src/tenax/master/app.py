"""The application: every declared route, behind one door.

What a route needs is declared beside its handler (`tenax.master.api.http.routing`); here all of them are put
together; their order decides nothing (`in_order`). Nothing is registered in any other way, and a test walks what came
out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from fastapi import Depends, FastAPI

from tenax.config.master import Role
from tenax.master.api.agents import bootstrap as agent_bootstrap
from tenax.master.api.agents import join_tokens
from tenax.master.api.agents import routes as agents
from tenax.master.api.agents import sessions as agent_sessions
from tenax.master.api.allocations import routes as allocations
from tenax.master.api.changes import routes as changes
from tenax.master.api.checkpoints import garbage
from tenax.master.api.checkpoints import lists as checkpoint_lists
from tenax.master.api.checkpoints import routes as checkpoints
from tenax.master.api.cluster import elsewhere, prometheus, unsupported
from tenax.master.api.cluster import routes as cluster
from tenax.master.api.events import routes as events
from tenax.master.api.experiments import actions as experiment_actions
from tenax.master.api.experiments import files as experiment_files
from tenax.master.api.experiments import queries as experiment_queries
from tenax.master.api.experiments import routes as experiments
from tenax.master.api.experiments import searches, submissions, unmanaged
from tenax.master.api.http import errors
from tenax.master.api.http.callers import authorize
from tenax.master.api.http.edge import Edge
from tenax.master.api.http.packing import Packing
from tenax.master.api.http.requests import WireRoute
from tenax.master.api.http.routing import Declared, Routes, in_order
from tenax.master.api.logs import routes as logs
from tenax.master.api.logs import windows as log_windows
from tenax.master.api.machines import audit as machine_audit
from tenax.master.api.machines import costs as machine_costs
from tenax.master.api.machines import routes as machines
from tenax.master.api.machines import steering as machine_steering
from tenax.master.api.metrics import charts as trial_charts
from tenax.master.api.metrics import experiments as experiment_metrics
from tenax.master.api.metrics import profiler
from tenax.master.api.metrics import routes as metrics
from tenax.master.api.models import routes as models
from tenax.master.api.models import versions as model_versions
from tenax.master.api.queue import jobs, pools, trace, usage
from tenax.master.api.quotas import routes as quotas
from tenax.master.api.runs import actions as run_actions
from tenax.master.api.runs import columns as run_columns
from tenax.master.api.runs import routes as runs
from tenax.master.api.tasks import commands, launched, templates
from tenax.master.api.tasks import generic as generic_tasks
from tenax.master.api.tasks import routes as tasks
from tenax.master.api.trials import by_hand, health, history, workloads
from tenax.master.api.trials import routes as trials
from tenax.master.api.users import access_tokens, groups, login, tickets
from tenax.master.api.users import legacy as legacy_users
from tenax.master.api.users import routes as users
from tenax.master.api.users import settings as user_settings
from tenax.master.api.web import routes as web
from tenax.master.api.web.built import WebPage
from tenax.master.api.webhooks import routes as webhooks
from tenax.master.api.workspaces import projects
from tenax.master.api.workspaces import routes as workspaces
from tenax.master.context import Master

#: All routes of the master, by noun.
ROUTES: tuple[Routes, ...] = (
    access_tokens.routes,
    agent_bootstrap.routes,
    agent_sessions.routes,
    agents.routes,
    allocations.routes,
    by_hand.routes,
    changes.routes,
    checkpoint_lists.routes,
    checkpoints.routes,
    cluster.routes,
    commands.routes,
    launched.routes,
    events.routes,
    experiment_actions.routes,
    experiment_files.routes,
    experiment_metrics.routes,
    experiments.routes,
    experiment_queries.routes,
    garbage.routes,
    generic_tasks.routes,
    groups.routes,
    health.routes,
    history.routes,
    jobs.routes,
    join_tokens.routes,
    legacy_users.routes,
    login.routes,
    tickets.routes,
    logs.routes,
    log_windows.routes,
    machines.routes,
    machine_costs.routes,
    machine_steering.routes,
    machine_audit.routes,
    metrics.routes,
    model_versions.routes,
    models.routes,
    pools.routes,
    profiler.routes,
    projects.routes,
    prometheus.routes,
    quotas.routes,
    run_actions.routes,
    run_columns.routes,
    runs.routes,
    searches.routes,
    submissions.routes,
    tasks.routes,
    templates.routes,
    trace.routes,
    trial_charts.routes,
    trials.routes,
    unmanaged.routes,
    unsupported.routes,
    usage.routes,
    user_settings.routes,
    users.routes,
    web.routes,
    webhooks.routes,
    workloads.routes,
    workspaces.routes,
)


#: Of a process without the role ``api``.
ABOUT_ITSELF: tuple[Routes, ...] = (cluster.routes, prometheus.routes, elsewhere.routes)


def routes_of(roles: Collection[Role]) -> tuple[Routes, ...]:
    """What a process with these roles serves."""
    return ROUTES if Role.API in roles else ABOUT_ITSELF


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
    app.state.web_page = WebPage()
    app.router.route_class = WireRoute
    for route in in_order(routes):
        _register(app, route)
    errors.install(app)
    app.add_middleware(Packing)
    app.add_middleware(Edge, body_limit=master.settings.body_limit_bytes)
    return app


def _register(app: FastAPI, route: Declared) -> None:
    if route.method == "WEBSOCKET":
        app.router.add_api_websocket_route(route.path, route.handler, name=route.operation)
        return
    app.router.add_api_route(
        route.path,
        route.handler,
        methods=[route.method],
        operation_id=route.operation,
        name=route.operation,
        tags=[route.tag],
        **route.options,  # type: ignore[arg-type]
    )
