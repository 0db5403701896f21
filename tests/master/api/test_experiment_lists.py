"""Lists of experiments say of each what the experiment itself says, and hide from others what it hides."""

from __future__ import annotations

import json
from typing import cast

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenax.config.display import may_hold_secrets
from tenax.display.secrets import without_secrets
from tenax.jsonvalue import JsonObject
from tests.kits.api import Api
from tests.kits.master.experiments import CONFIG, create

_SECRET = CONFIG + "environment: {registry_auth: {username: u, password: hush-hush}}\n"
_NAMES = ("environment", "registry_auth", "password", "auth", "data", "secrets", "integrations", "pachyderm", "dataset")
_MORE = ("token", "checkpoint_storage", "access_key", "secret_key", "x")
_DOCUMENTS = st.recursive(
    st.none() | st.text(max_size=3) | st.integers(),
    lambda inner: st.dictionaries(st.sampled_from(_NAMES + _MORE), inner, max_size=4),
    max_leaves=12,
)


async def test_a_list_says_what_each_experiment_says(api: Api) -> None:
    """Field by field, to its owner, to an administrator and to others, of one with secrets and one without."""
    for config in (CONFIG, _SECRET):
        await create(api, config)
    body = {"user": {"username": "other", "active": True}, "password": "Passw0rd-of-other"}
    assert (await api.admin.post("/api/v1/users", body)).status_code == 200
    other = await api.login("other", "Passw0rd-of-other")
    for client, sees in ((api.user, True), (api.admin, True), (other, False)):
        listed = (await client.get("/api/v1/experiments?sortBy=SORT_BY_ID")).json()["experiments"]
        assert len(listed) == 2
        for experiment in listed:
            single = (await client.get(f"/api/v1/experiments/{experiment['id']}")).json()["experiment"]
            passing = {"trialIds", "duration"}
            assert {k: v for k, v in experiment.items() if k not in passing} == {
                k: v for k, v in single.items() if k not in passing
            }
            assert experiment["config"]["searcher"]["metric"] == experiment["searcherMetric"] == "accuracy"
            assert experiment["hyperparameters"] == experiment["config"]["hyperparameters"] != {}
        assert ("hush-hush" in json.dumps(listed)) is sees
        assert (listed[1]["originalConfig"] == _SECRET) is sees
        assert listed[0]["originalConfig"] == CONFIG


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(_NAMES + _MORE), _DOCUMENTS, max_size=4))
def test_a_text_that_may_not_hold_secrets_holds_none(document: JsonObject) -> None:
    """Whatever hiding them would change is seen in the text."""
    if without_secrets(document) != document:
        assert may_hold_secrets(json.dumps(document))


def test_most_texts_hold_none() -> None:
    """A configuration without any of the places where a secret may stand is not looked through."""
    assert not may_hold_secrets(
        json.dumps(cast(JsonObject, {"searcher": {"metric": "token"}, "data": {"url": "auth"}}))
    )


async def test_what_is_put_away_with_its_place_is_left_out(api: Api) -> None:
    """Where no project is asked for; in a project only an experiment's own mark counts."""
    await create(api)
    workspace = (await api.user.post("/api/v1/workspaces", {"name": "w"})).json()["workspace"]["id"]
    made = [await api.user.post(f"/api/v1/workspaces/{workspace}/projects", {"name": name}) for name in ("one", "two")]
    first, second = (reply.json()["project"]["id"] for reply in made)
    there = [(await create(api, projectId=project))["experiment"]["id"] for project in (first, second)]  # type: ignore[index]

    async def listed(**query: object) -> list[int]:
        reply = (await api.user.get("/api/v1/experiments", sortBy="SORT_BY_ID", **query)).json()
        assert reply["pagination"]["total"] == len(reply["experiments"])
        return [experiment["id"] for experiment in reply["experiments"]]

    assert await listed(archived="false") == [1, *there]
    assert (await api.user.post(f"/api/v1/projects/{first}/archive")).status_code == 200
    assert await listed(archived="false") == [1, there[1]]
    assert (await api.user.post(f"/api/v1/workspaces/{workspace}/archive")).status_code == 200
    assert await listed(archived="false") == [1]
    assert await listed() == [1, *there]
    assert await listed(archived="false", projectId=first) == there[:1]
