"""Templates over the API: made, listed, changed, removed, and laid below what is submitted."""

from __future__ import annotations

import asyncio

from tests.kits.api import Api

TEMPLATES = "/api/v1/templates"
SMALL = {"resources": {"slots": 0, "slots_per_trial": 2}, "environment": {"environment_variables": ["A=1"]}}
EXPERIMENT = "name: x\nentrypoint: 'true'\nsearcher: {name: single, metric: loss}\n"


async def made(api: Api, name: str, config: dict[str, object] | None = None) -> None:
    body = {"name": name, "config": SMALL if config is None else config, "workspaceId": 0}
    reply = await api.user.post(f"{TEMPLATES}/{name}", body)
    assert reply.status_code == 200, reply.text


async def test_a_template_is_made_changed_and_removed(api: Api) -> None:
    """Under its name, in the default workspace; a second one of the name is refused."""
    await made(api, "a")
    assert (await api.user.post(f"{TEMPLATES}/a", {"config": {}})).status_code == 409
    template = (await api.user.get(f"{TEMPLATES}/a")).json()["template"]
    assert (template["config"], template["workspaceId"]) == (SMALL, 1)
    changed = await api.user.patch(f"{TEMPLATES}/a", {"description": "x"})
    assert (changed.status_code, changed.json()["template"]["config"]) == (200, {"description": "x"})
    assert (await api.user.delete(f"{TEMPLATES}/a")).status_code == 200
    assert (await api.user.get(f"{TEMPLATES}/a")).status_code == 404
    assert (await api.user.delete(f"{TEMPLATES}/a")).status_code == 404


async def test_only_owners_and_administrators_change_a_template(api: Api) -> None:
    """All see it."""
    reply = await api.admin.post(f"{TEMPLATES}/a", {"config": {}})
    assert reply.status_code == 200
    assert (await api.user.get(f"{TEMPLATES}/a")).status_code == 200
    assert (await api.user.patch(f"{TEMPLATES}/a", {})).status_code == 403
    assert (await api.user.delete(f"{TEMPLATES}/a")).status_code == 403
    await made(api, "b")
    assert (await api.admin.delete(f"{TEMPLATES}/b")).status_code == 200


async def test_put_makes_one_or_replaces_its_configuration(api: Api) -> None:
    """Its owner stays, and its workspace: another one is refused, and so is another's hand."""
    path = "/api/v1/templates/put"
    made = (await api.user.put(path, {"config": {"description": "first"}})).json()["template"]
    assert (made["workspaceId"], made["config"]) == (1, {"description": "first"})
    changed = (await api.admin.put(path, {"name": "put", "workspaceId": 1, "config": {"description": "second"}})).json()
    assert changed["template"]["config"] == {"description": "second"}
    assert changed["template"]["userId"] == made["userId"]
    assert (await api.user.put(path, {"config": {}, "workspaceId": 4711})).status_code == 400
    await api.admin.post("/api/v1/templates/admins", {"config": {}})
    assert (await api.user.put("/api/v1/templates/admins", {"config": {}})).status_code == 403
    assert (await api.user.put("/api/v1/templates/none", {"config": {"slots": []}})).status_code == 400
    assert (await api.user.get("/api/v1/templates/none")).status_code == 404


async def test_a_template_is_renamed(api: Api) -> None:
    """By who may change it, to a name that is free."""
    for name in ("old", "taken"):
        await api.user.post(f"/api/v1/templates/{name}", {"config": {"description": name}})
    await api.admin.post("/api/v1/templates/admins", {"config": {}})
    path = "/api/v1/template/rename"
    for new_name, status in (("taken", 409), (" ", 400), ("new", 200)):
        assert (await api.user.patch(path, {"oldName": "old", "newName": new_name})).status_code == status, new_name
    assert (await api.user.get("/api/v1/templates/old")).status_code == 404
    assert (await api.user.get("/api/v1/templates/new")).json()["template"]["config"] == {"description": "old"}
    assert (await api.user.patch(path, {"oldName": "old", "newName": "x"})).status_code == 404
    assert (await api.user.patch(path, {"oldName": "admins", "newName": "x"})).status_code == 403


async def test_the_list_is_filtered_and_paged(api: Api) -> None:
    """By a part of the name, by workspace."""
    for name in ("beta", "alpha", "team/gamma"):
        await made(api, name)

    async def names(**query: object) -> list[str]:
        reply = await api.user.get(TEMPLATES, **query)
        assert reply.status_code == 200, reply.text
        return [template["name"] for template in reply.json()["templates"]]

    assert await names() == ["alpha", "beta", "team/gamma"]
    assert await names(orderBy="ORDER_BY_DESC", limit=1, offset=1) == ["beta"]
    assert await names(name="ETA") == ["beta"]
    assert await names(name="%") == []
    assert await names(workspaceIds=[1, 9]) == ["alpha", "beta", "team/gamma"]
    assert await names(workspaceIds=[9]) == []
    assert (await api.user.get(f"{TEMPLATES}/team/gamma")).status_code == 200
    assert (await api.user.get(TEMPLATES, offset=9)).status_code == 400


WRONG = [
    ("a", {"config": {"enviroment": {}}}, "did you mean 'environment'?"),
    ("a", {"config": {"resources": {"slotss": 1}}}, "resources.slotss"),
    ("a", {"config": {"max_restarts": -1}}, "max_restarts"),
    ("a", {"config": {"idle_timeout": "soon"}}, "idle_timeout"),
    ("a", {"config": []}, "config"),
    ("%20", {"config": {}}, "blank"),
    ("x" * 300, {"config": {}}, "at most 255"),
]


async def test_a_wrong_template_is_refused_where_it_is_wrong(api: Api) -> None:
    """A template that nothing could be submitted with is told of when it is made."""
    for name, body, message in WRONG:
        reply = await api.user.post(f"{TEMPLATES}/{name}", body)
        assert (reply.status_code, message in reply.text) == (400, True), reply.text


NO_DOCUMENTS = [b"[1]", b"null", b'"x"']


async def test_a_change_that_is_no_document_is_refused(api: Api) -> None:
    """And changes nothing."""
    await made(api, "a")
    for body in NO_DOCUMENTS:
        assert (await api.user.ask("PATCH", f"{TEMPLATES}/a", body)).status_code == 400
        assert (await api.user.get(f"{TEMPLATES}/a")).json()["template"]["config"] == SMALL


async def test_a_command_takes_what_it_knows_of_a_template(api: Api) -> None:
    """Below its own configuration; what is for experiments is left out."""
    await made(api, "a")
    body = {"config": {"entrypoint": ["x"], "environment": {"environment_variables": ["A=2"]}}, "template_name": "a"}
    config = (await api.admin.post("/api/v1/commands", {**body, "preview": True})).json()["config"]
    # Its slots are those of what was submitted, where no template counts.
    assert config["resources"]["slots"] == 1
    assert config["environment"]["environment_variables"]["cpu"] == ["A=1", "A=2"]


async def test_an_experiment_takes_what_it_knows_of_a_template(api: Api) -> None:
    """Later changes of the template do not reach it."""
    await made(api, "a")
    body = {"config": EXPERIMENT, "template": "a", "activate": False}
    created = (await api.user.post("/api/v1/experiments", body)).json()["experiment"]
    await api.user.patch(f"{TEMPLATES}/a", {"resources": {"slots_per_trial": 1}})
    config = (await api.admin.get(f"/api/v1/experiments/{created['id']}")).json()["experiment"]["config"]
    assert config["resources"]["slots_per_trial"] == 2
    assert config["environment"]["environment_variables"]["cpu"] == ["A=1"]
    missing = await api.user.post("/api/v1/experiments", {"config": EXPERIMENT, "template": "none"})
    assert (missing.status_code, "not found" in missing.text, "none" in missing.text) == (404, True, True)


async def test_changes_at_once_come_one_after_the_other(api: Api) -> None:
    """None is refused, and the last one stands whole; of several that make it one does."""
    made_at_once = await asyncio.gather(*(api.user.post(f"{TEMPLATES}/a", {"config": {}}) for _ in range(5)))
    assert sorted(reply.status_code for reply in made_at_once) == [200, 409, 409, 409, 409]
    bodies = [{"description": str(number)} for number in range(5)]
    changed = await asyncio.gather(*(api.user.patch(f"{TEMPLATES}/a", body) for body in bodies))
    assert {reply.status_code for reply in changed} == {200}
    assert (await api.user.get(f"{TEMPLATES}/a")).json()["template"]["config"] in bodies


async def test_a_template_is_checked_as_text_before_it_is_made(api: Api) -> None:
    """What is wrong is said with its line; with validateOnly nothing is written; text beside config is refused."""
    path = f"{TEMPLATES}/typed"
    wrong = await api.user.post(path, {"text": "description: x\nmax_restarts: many\n", "validateOnly": True})
    assert wrong.status_code == 400
    assert "max_restarts (line 2): " in wrong.json()["error"]["error"]
    looked = await api.user.post(path, {"text": "max_restarts: 2\n", "validateOnly": True})
    assert looked.json()["template"]["config"] == {"max_restarts": 2}
    assert (await api.user.get(path)).status_code == 404
    assert (await api.user.post(path, {"text": "max_restarts: 2", "config": SMALL})).status_code == 400
    assert (await api.user.post(path, {"text": "max_restarts: 2"})).status_code == 200
    again = await api.user.put(path, {"text": "max_restarts: 3\n"})
    assert again.json()["template"]["config"] == {"max_restarts": 3}
