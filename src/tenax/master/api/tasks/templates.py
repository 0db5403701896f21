"""Templates: made, shown, changed, removed.

Rules it keeps: everyone who is logged in sees and uses every template; only its owner and administrators change it, and
only they see its secrets, which are used for all. A change does not reach what was submitted before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from asyncpg import Connection
from fastapi import Body, Query, Response

from tenax.config.templates import check_template, parse_template
from tenax.display.terminal import is_name
from tenax.errors import InvalidInput, NotFound
from tenax.jsonvalue import JsonObject
from tenax.master.access.authorization import Allow, Caller, shown_config
from tenax.master.api.http.callers import CallerDep, MasterDep
from tenax.master.api.http.expected import check_expected
from tenax.master.api.http.paging import Rendering, WindowDep, as_json, listed
from tenax.master.api.http.requests import MAX_NAME, check_sizes
from tenax.master.api.http.routing import Routes
from tenax.master.api.tasks.messages import (
    GetTemplatesResponse,
    PatchTemplateNameRequest,
    PostTemplateRequest,
    Template,
    TemplateResponse,
    TemplateSortBy,
)
from tenax.master.store.tasks import templates
from tenax.master.store.workspaces import rows as workspaces
from tenax.master.store.workspaces.projects import DEFAULT_WORKSPACE_ID
from tenax.wire.message import Document, Empty

routes = Routes("Templates")


@routes.get("/api/v1/templates", "GetTemplates", allow=Allow.USER, response_model=GetTemplatesResponse)
async def get_templates(
    master: MasterDep,
    caller: CallerDep,
    window: WindowDep,
    sort_by: Annotated[TemplateSortBy, Query()] = TemplateSortBy.UNSPECIFIED,
    name: Annotated[str | None, Query()] = None,
    workspace_ids: Annotated[list[int] | None, Query()] = None,
) -> Response:
    """Templates by name; ``name`` is a part of it."""
    filters = templates.TemplateFilter(name, None if workspace_ids is None else tuple(workspace_ids))
    async with master.db.snapshot() as conn:
        page, pagination = window.of(await templates.count(conn, filters))
        names = await templates.names(conn, filters, page, descending=window.descending)

        async def load(part: Sequence[str]) -> list[templates.TemplateRow]:
            return await templates.views(conn, part)

        def render(template: templates.TemplateRow) -> bytes:
            return as_json(_message(template, caller))

        return await listed(master, names, Rendering("templates", load, render), pagination)


@routes.get("/api/v1/templates/{template_name:path}", "GetTemplate", allow=Allow.USER)
async def get_template(master: MasterDep, caller: CallerDep, template_name: str) -> TemplateResponse:
    """One template."""
    async with master.db.connection() as conn:
        template = await templates.get(conn, template_name)
    return TemplateResponse(template=_message(template, caller))


@routes.post("/api/v1/templates/{template_name:path}", "PostTemplate", allow=Allow.USER, creates=True)
async def post_template(
    master: MasterDep, caller: CallerDep, template_name: str, body: PostTemplateRequest
) -> TemplateResponse:
    """Make one; with ``validateOnly`` only say what it would be."""
    _check_name(template_name)
    config = await _written(master, body)
    if body.validate_only:
        return _imagined(template_name, body, config)
    async with master.db.transaction() as conn:
        await _create(conn, caller, template_name, body, config)
        made = await templates.get(conn, template_name)
    return TemplateResponse(template=_message(made, caller))


@routes.put("/api/v1/templates/{template_name:path}", "PutTemplate", allow=Allow.USER)
async def put_template(
    master: MasterDep, caller: CallerDep, template_name: str, body: PostTemplateRequest
) -> TemplateResponse:
    """Make it, or replace the configuration of the one there is; that stays in its workspace."""
    _check_name(template_name)
    config = await _written(master, body)
    if body.validate_only:
        return _imagined(template_name, body, config)
    async with master.db.transaction() as conn:
        existing = await templates.lock_if_there(conn, template_name)
        if existing is None and body.expected is not None:
            raise NotFound(f"template {template_name!r} was not found: it was deleted or renamed meanwhile")
        if existing is None:
            await _create(conn, caller, template_name, body, config)
        else:
            caller.may_change(existing.owner_id, f"template {template_name!r}")
            if body.workspace_id not in (0, existing.workspace_id):
                raise InvalidInput(
                    f"template {template_name!r} is in workspace {existing.workspace_id}, where it stays"
                )
            if body.expected is not None:
                present = _message(await templates.get(conn, template_name), caller)
                check_expected(body.expected, present, f"template {template_name!r}")
            await templates.set_config(conn, existing, config)
        stored = await templates.get(conn, template_name)
    return TemplateResponse(template=_message(stored, caller))


@routes.patch("/api/v1/template/rename", "PatchTemplateName", allow=Allow.USER)
async def rename(master: MasterDep, caller: CallerDep, body: PatchTemplateNameRequest) -> TemplateResponse:
    """Give it another name; what was submitted with it stays as it is."""
    _check_name(body.new_name)
    async with master.db.transaction() as conn:
        template = await templates.lock(conn, body.old_name)
        caller.may_change(template.owner_id, f"template {body.old_name!r}")
        await templates.rename(conn, template, body.new_name)
        renamed = await templates.get(conn, body.new_name)
    return TemplateResponse(template=_message(renamed, caller))


@routes.patch("/api/v1/templates/{template_name:path}", "PatchTemplateConfig", allow=Allow.USER)
async def patch_config(
    master: MasterDep, caller: CallerDep, template_name: str, body: Annotated[Document, Body()]
) -> TemplateResponse:
    """Replace its configuration with the body."""
    config = await _checked(master, body)
    async with master.db.transaction() as conn:
        template = await templates.lock(conn, template_name)
        caller.may_change(template.owner_id, f"template {template_name!r}")
        await templates.set_config(conn, template, config)
        changed = await templates.get(conn, template_name)
    return TemplateResponse(template=_message(changed, caller))


@routes.delete("/api/v1/templates/{template_name:path}", "DeleteTemplate", allow=Allow.USER)
async def delete_template(master: MasterDep, caller: CallerDep, template_name: str) -> Empty:
    """Remove it; what was submitted with it stays as it is."""
    async with master.db.transaction() as conn:
        template = await templates.lock(conn, template_name)
        caller.may_change(template.owner_id, f"template {template_name!r}")
        await templates.delete(conn, template_name)
    return Empty()


async def _create(conn: Connection, caller: Caller, name: str, body: PostTemplateRequest, config: JsonObject) -> None:
    workspace_id = body.workspace_id or DEFAULT_WORKSPACE_ID
    await workspaces.hold(conn, workspace_id)
    await templates.create(conn, name, workspace_id, caller.person.id, config)


def _check_name(name: str) -> None:
    if not name.strip() or name != name.strip():
        raise InvalidInput("the name of a template cannot be blank, nor begin or end with a space")
    if not is_name(name):
        raise InvalidInput("the name of a template is one line without control characters")
    if len(name) > MAX_NAME:
        raise InvalidInput(f"the name of a template has at most {MAX_NAME} characters, and this has {len(name)}")


async def _written(master: MasterDep, body: PostTemplateRequest) -> JsonObject:
    """What a request says in one of its two ways. Raises InvalidInput."""
    if body.text is None:
        return await _checked(master, body.config)
    if body.config:
        raise InvalidInput("config and text are both given: give one of them")
    config = await master.examiners.run(parse_template, body.text)
    check_sizes(config=config)
    return config


def _imagined(name: str, body: PostTemplateRequest, config: JsonObject) -> TemplateResponse:
    return TemplateResponse(
        template=Template(name=name, config=config, workspace_id=body.workspace_id or DEFAULT_WORKSPACE_ID)
    )


async def _checked(master: MasterDep, config: JsonObject) -> JsonObject:
    check_sizes(config=config)
    await master.examiners.run(check_template, config)
    return config


def _message(template: templates.TemplateRow, caller: Caller) -> Template:
    return Template(
        name=template.name,
        config=shown_config(template.config, caller, template.owner_id, own=template.config),
        workspace_id=template.workspace_id,
        workspace_name=template.workspace_name,
        user_id=template.owner_id,
        username=template.username,
        created_at=template.created_at,
        modified_at=template.modified_at,
    )
