"""Checkpoints over the wire: reported, listed, spoken about, trimmed, deleted, fetched."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from tests.kits.api import Api
from tests.master.api.test_allocations import running
from tests.master.api.test_experiments import refusal
from tests.master.api.test_trials import UUID, report, stored_files, validated


async def test_a_checkpoint_is_reported_by_its_attempt(api: Api) -> None:
    """Whose it is follows from the token; said twice it stands once; metrics at its step are shown beside it."""
    one = await running(api)
    for _ in range(2):
        await report(one)
    await validated(api, one.trial, 10, 0.75)
    shown = (await api.user.get(f"/api/v1/checkpoints/{UUID}")).json()["checkpoint"]
    assert shown["allocationId"] == one.attempt.allocation_id
    assert shown["resources"] == {"weights/": "0", "weights/w.bin": "4"}
    assert shown["state"] == "STATE_COMPLETED"
    training = shown["training"]
    assert (training["trialId"], training["experimentId"]) == (one.trial, 1)
    assert training["searcherMetric"] == 0.75
    assert training["validationMetrics"]["avgMetrics"] == {"accuracy": 0.75}
    assert training["experimentConfig"]["entrypoint"] == "python3 train.py"
    for path in ("/api/v1/experiments/1/checkpoints", f"/api/v1/trials/{one.trial}/checkpoints"):
        listed = (await api.user.get(path)).json()
        assert [each["uuid"] for each in listed["checkpoints"]] == [UUID]
        assert listed["pagination"]["total"] == 1


@pytest.mark.parametrize(
    "change",
    [
        {"uuid": "../../etc"},
        {"uuid": ""},
        {"metadata": {"steps_completed": "ten"}},
        {"metadata": {"steps_completed": -1}},
        {"metadata": {"steps_completed": True}},
        {"state": "STATE_DELETED"},
        {"resources": {"a": "x"}},
    ],
)
async def test_a_report_that_cannot_be_is_refused(api: Api, change: dict[str, object]) -> None:
    """And leaves nothing behind."""
    one = await running(api)
    body = {"uuid": UUID, "metadata": {"steps_completed": 1}, "state": "STATE_COMPLETED", "resources": {}, **change}
    reply = await one.task.post("/api/v1/checkpoints", body)
    assert reply.status_code == 400, reply.text
    async with api.master.db.connection() as conn:
        assert await conn.fetchval("select count(*) from checkpoints") == 0


async def test_checkpoints_are_listed_by_metric_with_the_missing_last(api: Api) -> None:
    """In both directions; states filter."""
    one = await running(api)
    for number, metric in enumerate((0.5, 0.9, None), start=1):
        uuid = UUID[:-1] + str(number)
        await report(one, uuid, number)
        if metric is not None:
            await validated(api, one.trial, number, metric)
    path = "/api/v1/experiments/1/checkpoints"

    async def steps(**query: str) -> list[int]:
        reply = await api.user.get(path, **query)
        return [each["metadata"]["steps_completed"] for each in reply.json()["checkpoints"]]

    assert await steps(sortByAttr="SORT_BY_SEARCHER_METRIC", orderBy="ORDER_BY_DESC") == [2, 1, 3]
    assert await steps(sortByAttr="SORT_BY_SEARCHER_METRIC", orderBy="ORDER_BY_ASC") == [1, 2, 3]
    assert await steps(sort_by_attr="SORT_BY_BATCH_NUMBER", order_by="ORDER_BY_DESC") == [3, 2, 1]
    assert await steps(states="STATE_DELETED") == []
    for order in ("UUID", "TRIAL_ID", "END_TIME", "STATE"):
        assert len(await steps(sortByAttr=f"SORT_BY_{order}")) == 3


async def test_what_is_left_of_a_checkpoint_can_be_told(api: Api) -> None:
    """Fewer files make it partly deleted, none deleted; files cannot be added, and strangers cannot tell."""
    one = await running(api)
    await report(one)

    async def tell(client: object, resources: dict[str, str]) -> int:
        body = {"checkpoints": [{"uuid": UUID, "resources": {"resources": resources}}]}
        return (await client.patch("/api/v1/checkpoints", body)).status_code  # type: ignore[attr-defined, no-any-return]

    async def state() -> str:
        return str((await api.user.get(f"/api/v1/checkpoints/{UUID}")).json()["checkpoint"]["state"])

    await api.admin.post("/api/v1/users", {"user": {"username": "eve"}, "password": "s3cret"})
    assert await tell(await api.login("eve", "s3cret"), {}) == 403
    assert await tell(one.task, {"other": "3"}) == 403
    assert await tell(one.task, {"weights/": "0"}) == 200
    assert await state() == "STATE_PARTIALLY_DELETED"
    assert await tell(one.task, {}) == 200
    assert await state() == "STATE_DELETED"


async def test_files_come_through_the_master(api: Api) -> None:
    """As a tar archive, compressed if that is accepted; not where the master cannot reach them."""
    one = await running(api)
    await report(one)
    assert (await api.user.get(f"/checkpoints/{UUID}")).status_code in (400, 404)
    stored_files(api)
    for accept, mode in (("application/gzip", "r:gz"), ("application/x-tar", "r:"), ("*/*", "r:")):
        reply = await api.user.ask("GET", f"/checkpoints/{UUID}", headers={"Accept": accept})
        assert "content-encoding" not in reply.headers
        with tarfile.open(fileobj=io.BytesIO(reply.content), mode=mode) as tar:
            assert sorted(tar.getnames()) == ["metadata.json", "weights", "weights/w.bin"]
            assert tar.extractfile("weights/w.bin").read() == b"data"


async def test_the_master_follows_no_link_out_of_a_checkpoint(api: Api, tmp_path: Path) -> None:
    """Users say where checkpoints are; what lies elsewhere on the master's machine is neither read nor deleted."""
    one = await running(api)
    await report(one)
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key.bin").write_text("k")
    async with api.master.db.transaction() as conn:
        await conn.execute("update trials set state = 'COMPLETED', ended_at = now()")
    folder = stored_files(api)
    (folder / "inside").symlink_to(secret)
    body = {"checkpointUuids": [UUID], "checkpointGlobs": ["**/*.bin"]}
    (folder / "beside").symlink_to("metadata.json")
    for accept in ("application/x-tar", "application/zip"):
        reply = await api.user.ask("GET", f"/checkpoints/{UUID}", headers={"Accept": accept})
        assert b"inside" not in reply.content
        assert b"beside" in reply.content
    assert (await api.user.post("/api/v1/checkpoints/rm", body)).status_code == 200
    assert not (folder / "weights" / "w.bin").exists()
    assert (secret / "key.bin").read_text() == "k"
    folder.rename(folder.with_name("moved"))
    folder.symlink_to(secret)
    assert (await api.user.get(f"/checkpoints/{UUID}")).status_code == 400
    assert (await api.user.delete("/api/v1/checkpoints", {"checkpointUuids": [UUID]})).status_code == 400
    await report(one, "ssh", 11)
    assert (await api.user.get("/checkpoints/ssh")).status_code == 400
    assert (secret / "key.bin").read_text() == "k"


async def test_files_of_ended_trials_can_be_deleted(api: Api) -> None:
    """By pattern or whole; a live trial's are kept, since it may start from them."""
    one = await running(api)
    await report(one)
    folder = stored_files(api)
    refused = await api.user.delete("/api/v1/checkpoints", {"checkpointUuids": [UUID]})
    assert refused.status_code == 400
    assert "still runs" in refusal(refused)
    async with api.master.db.transaction() as conn:
        await conn.execute("update trials set state = 'COMPLETED', ended_at = now()")
    some = {"checkpointUuids": [UUID], "checkpointGlobs": ["**/*.bin"]}
    assert (await api.user.post("/api/v1/checkpoints/rm", some)).status_code == 200
    assert not (folder / "weights" / "w.bin").exists()
    assert (folder / "metadata.json").exists()
    assert (await api.user.delete("/api/v1/checkpoints", {"checkpointUuids": [UUID]})).status_code == 200
    assert not folder.exists()
    assert (await api.user.get(f"/api/v1/checkpoints/{UUID}")).json()["checkpoint"]["state"] == "STATE_DELETED"
