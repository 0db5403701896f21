"""Groups of users over the wire."""

from __future__ import annotations

import asyncio

from tests.kits.api import Api
from tests.kits.master.refusals import refusal


async def made(api: Api, name: str, *users: int) -> int:
    reply = await api.admin.post("/api/v1/groups", {"name": name, "addUsers": list(users)})
    assert reply.status_code == 200, reply.text
    number: int = reply.json()["group"]["groupId"]
    return number


async def members(api: Api, group: int) -> list[str]:
    return [user["username"] for user in (await api.user.get(f"/api/v1/groups/{group}")).json()["group"]["users"]]


async def test_a_group_from_its_making_to_its_end(api: Api) -> None:
    """Made with users, renamed, filled and emptied, deleted; its users stay."""
    group = await made(api, "vision", 2)
    assert await members(api, group) == ["determined"]
    path = f"/api/v1/groups/{group}"
    reply = await api.admin.ask("PUT", path, {"name": "sight", "addUsers": [1], "removeUsers": [2]})
    assert reply.json()["group"]["name"] == "sight"
    assert await members(api, group) == ["admin"]
    assert (await api.admin.delete(path)).status_code == 200
    assert (await api.user.get(path)).status_code == 404
    assert (await api.user.get("/api/v1/users/1")).status_code == 200


async def test_groups_are_found_by_name_and_by_user_and_page_by_page(api: Api) -> None:
    """In the order of names, each with how many are in it."""
    for name, users in (("c", (1, 2)), ("a", ()), ("b", (2,))):
        await made(api, name, *users)

    async def search(**body: object) -> list[tuple[str, int]]:
        matching = (await api.user.post("/api/v1/groups/search", {"limit": 10, **body})).json()["groups"]
        return [(result["group"]["name"], result["numMembers"]) for result in matching]

    assert await search() == [("a", 0), ("b", 1), ("c", 2)]
    assert await search(userId=2) == [("b", 1), ("c", 2)]
    assert await search(name="C") == [("c", 2)]
    page = (await api.user.post("/api/v1/groups/search", {"limit": 2, "offset": 1})).json()
    assert [result["group"]["name"] for result in page["groups"]] == ["b", "c"]
    assert page["pagination"] == {"offset": 1, "limit": 2, "startIndex": 1, "endIndex": 3, "total": 3}


async def test_a_change_is_whole_or_not_at_all(api: Api) -> None:
    """A user who is not there keeps the others out, and the name as it was."""
    group = await made(api, "vision")
    path = f"/api/v1/groups/{group}"
    reply = await api.admin.ask("PUT", path, {"name": "sight", "addUsers": [1, 4711, 2]})
    assert reply.status_code == 404
    assert "4711" in refusal(reply)
    assert await members(api, group) == []
    assert (await api.user.get(path)).json()["group"]["name"] == "vision"
    assert (await api.admin.ask("PUT", path, {"addUsers": [1], "removeUsers": [1]})).status_code == 400


async def test_a_name_must_be_one(api: Api) -> None:
    """And it is given once, whatever its capitals."""
    for name in ("", " ", " x", "x" * 256):
        assert (await api.admin.post("/api/v1/groups", {"name": name})).status_code == 400
    await made(api, "vision")
    assert (await api.admin.post("/api/v1/groups", {"name": "Vision"})).status_code == 409


async def test_users_are_put_into_many_groups_at_once(api: Api) -> None:
    """And taken out of others."""
    old, new = await made(api, "old", 1, 2), await made(api, "new")
    body = {"userIds": [1, 2], "addGroups": [new], "removeGroups": [old]}
    assert (await api.admin.patch("/api/v1/users/assignments", body)).status_code == 200
    assert await members(api, old) == []
    assert await members(api, new) == ["admin", "determined"]


async def test_changes_at_the_same_time_all_count(api: Api) -> None:
    """Users are added by ten requests at once, in any order."""
    numbers = []
    for index in range(10):
        body = {"user": {"username": f"u{index}"}, "password": "Passw0rd"}
        numbers.append((await api.admin.post("/api/v1/users", body)).json()["user"]["id"])
    group = await made(api, "all")
    path = f"/api/v1/groups/{group}"
    replies = await asyncio.gather(
        *(api.admin.ask("PUT", path, {"addUsers": [number, numbers[0]]}) for number in numbers)
    )
    assert {reply.status_code for reply in replies} == {200}
    assert len(await members(api, group)) == 10


async def test_roles_are_not_offered(api: Api) -> None:
    """501 with what there is instead, also for a filter of users by role."""
    replies = [
        await api.admin.post("/api/v1/roles/search", {"limit": 10}),
        await api.admin.get("/api/v1/permissions/summary"),
        await api.admin.get("/api/v1/users", roleIdAssignedDirectlyToUser=1),
    ]
    for reply in replies:
        assert reply.status_code == 501
        assert "administrators change everything" in refusal(reply)
