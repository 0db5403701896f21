"""Groups of users: seen by everyone, made and changed by administrators. A group gives nobody a right."""

from __future__ import annotations

from asyncpg import Connection

from tenax.errors import InvalidInput
from tenax.master.access.authorization import Allow
from tenax.master.api.http.callers import MasterDep
from tenax.master.api.http.expected import check_expected
from tenax.master.api.http.paging import Window
from tenax.master.api.http.requests import MAX_NAME
from tenax.master.api.http.routing import Routes
from tenax.master.api.users import messages
from tenax.master.store.users import groups
from tenax.master.store.users.groups import GroupFilter
from tenax.wire.message import Empty, OrderBy

routes = Routes("Groups")


@routes.post("/api/v1/groups/search", "GetGroups", allow=Allow.USER)
async def get_groups(master: MasterDep, body: messages.GetGroupsRequest) -> messages.GetGroupsResponse:
    """The groups by name; those of a user, or the one of a name."""
    filters = GroupFilter(body.name or None, body.user_id)
    window = Window(body.offset, body.limit, OrderBy.UNSPECIFIED)
    async with master.db.snapshot() as conn:
        page, pagination = window.of(await groups.count(conn, filters))
        rows = await groups.page(conn, filters, page)
    results = [
        messages.GroupSearchResult(group=messages.Group(group_id=group.id, name=group.name), num_members=members)
        for group, members in rows
    ]
    return messages.GetGroupsResponse(groups=results, pagination=pagination)


@routes.get("/api/v1/groups/{group_id}", "GetGroup", allow=Allow.USER)
async def get_group(master: MasterDep, group_id: int) -> messages.GroupResponse:
    """One group, and who is in it."""
    async with master.db.snapshot() as conn:
        return await _response(conn, group_id)


@routes.post("/api/v1/groups", "CreateGroup", allow=Allow.ADMIN, creates=True)
async def create_group(master: MasterDep, body: messages.CreateGroupRequest) -> messages.GroupResponse:
    """Make a group."""
    name = _checked(body.name)
    async with master.db.transaction() as conn:
        return await _response(conn, await groups.create(conn, name, body.add_users))


@routes.put("/api/v1/groups/{group_id}", "UpdateGroup", allow=Allow.ADMIN)
async def update_group(master: MasterDep, group_id: int, body: messages.UpdateGroupRequest) -> messages.GroupResponse:
    """Rename it, put users in and take others out; all of it or nothing."""
    both = sorted(set(body.add_users) & set(body.remove_users))
    if both:
        raise InvalidInput(f"addUsers and removeUsers both name {both[0]}: it must be one of them")
    async with master.db.transaction() as conn:
        if body.expected is not None:
            await groups.lock(conn, group_id)
            present = (await _response(conn, group_id)).group
            check_expected(body.expected, present, f"group {present.name!r}")
        if body.name:
            await groups.rename(conn, group_id, _checked(body.name))
        await groups.assign(conn, body.add_users, add=[group_id], remove=[])
        await groups.assign(conn, body.remove_users, add=[], remove=[group_id])
        return await _response(conn, group_id)


@routes.delete("/api/v1/groups/{group_id}", "DeleteGroup", allow=Allow.ADMIN)
async def delete_group(master: MasterDep, group_id: int) -> Empty:
    """Delete a group; its users stay."""
    async with master.db.transaction() as conn:
        await groups.delete(conn, group_id)
    return Empty()


@routes.patch("/api/v1/users/assignments", "AssignMultipleGroups", allow=Allow.ADMIN)
async def assign_multiple_groups(master: MasterDep, body: messages.AssignMultipleGroupsRequest) -> Empty:
    """Put users into groups and take them out of others; all of it or nothing."""
    both = sorted(set(body.add_groups) & set(body.remove_groups))
    if both:
        raise InvalidInput(f"addGroups and removeGroups both name {both[0]}: it must be one of them")
    async with master.db.transaction() as conn:
        await groups.assign(conn, body.user_ids, add=body.add_groups, remove=body.remove_groups)
    return Empty()


def _checked(name: str) -> str:
    if not name.strip() or name != name.strip() or len(name) > MAX_NAME:
        raise InvalidInput(f"name must have 1 to {MAX_NAME} characters, without blanks around them")
    return name


async def _response(conn: Connection, group_id: int) -> messages.GroupResponse:
    group = await groups.get(conn, group_id)
    users = [messages.user_message(user) for user in await groups.members(conn, group_id)]
    return messages.GroupResponse(group=messages.GroupDetails(group_id=group.id, name=group.name, users=users))
