"""Whose files a user cannot reach by naming a directory as the place of checkpoints."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tenax.agent.app import directory_lock
from tenax.errors import NotFound, NotNow
from tenax.jsonvalue import JsonObject
from tenax.master.checkpoints.archive import Form, packed
from tenax.master.checkpoints.files import CheckpointPlace, delete_checkpoint, files_of
from tenax.master.checkpoints.roots import checkpoint_roots
from tenax.master.loops.checkpoint_gc import CheckpointGc
from tenax.master.loops.loop import PassContext
from tenax.master.store.database.wakeups import Woken
from tenax.master.store.users.rows import FileOwner
from tenax.storage.port import EVERYTHING, StorageFailed, claimed_id
from tenax.storage.private_directory import mark_private
from tests.kits.api import Api, settings_in
from tests.kits.master.attempts import Running, running
from tests.kits.master.checkpoints import UUID, report, stored_files
from tests.kits.master.deleting import context, ended, make_pass
from tests.kits.master.experiments import CONFIG, create
from tests.kits.rows import add_trial, run_attempt

__all__ = ["context"]

VICTIM = "0d6e4079-4c8e-4f5f-9a39-2f4e2b1c00ff"
as_root = pytest.mark.skipif(os.getuid() != 0, reason="gives files to another user")


async def stored_at(api: Api, place: Path, **more: str) -> Running:
    """An ended experiment whose own configuration names that place, and with it the directory UUID there."""
    run, _ = await ended(api)
    section = {"type": "shared_fs", "host_path": str(place), **more}
    async with api.master.db.transaction() as conn:
        await conn.execute(
            "update experiment_documents set config = jsonb_set(config, '{checkpoint_storage}', $1)", section
        )
    return run


def secret_in(folder: Path, name: str = UUID) -> Path:
    (folder / name).mkdir(parents=True)
    (folder / name / "spec.json").write_text('{"token": "geheim"}')
    return folder / name / "spec.json"


@pytest.mark.parametrize("way", ["elsewhere", "checkpoints/../elsewhere", "checkpointsx/../elsewhere"])
async def test_a_directory_that_nobody_listed_is_neither_read_nor_deleted(
    api: Api, context: PassContext, tmp_path: Path, way: str
) -> None:
    """Download is refused with the setting's name; deletion of the files, or of all, becomes a task of the owner."""
    spec = secret_in(tmp_path / "elsewhere")
    await stored_at(api, tmp_path / way)
    refused = await api.user.get(f"/checkpoints/{UUID}")
    assert (refused.status_code, "checkpoint_roots" in refused.text) == (400, True)
    assert "geheim" not in refused.text
    listed = await api.user.post("/api/v1/checkpoints/rm", {"checkpointUuids": [UUID], "checkpointGlobs": []})
    assert (listed.status_code, "checkpoint_roots" in listed.text) == (400, True)
    assert (await api.user.delete("/api/v1/checkpoints", {"checkpointUuids": [UUID]})).status_code == 200
    await CheckpointGc(api.master.settings).make_pass(context, Woken(frozenset(), full=True))
    async with api.master.db.connection() as conn:
        task = await conn.fetchrow(
            "select j.owner_id, k.spec from tasks k join jobs j using (job_id) where k.kind = 'CHECKPOINT_GC'"
        )
    assert task["owner_id"] == 2
    assert UUID in json.dumps(task["spec"])
    assert (await api.user.delete("/api/v1/experiments/1")).status_code == 200
    await make_pass(api, context)
    assert spec.exists()


async def test_what_tensorboard_wrote_is_deleted_where_it_is_listed_only(api: Api, tmp_path: Path) -> None:
    """Elsewhere a task of the owner does it."""
    await stored_at(api, tmp_path / "elsewhere")
    folder = tmp_path / "elsewhere" / str(api.master.cluster.cluster_id) / "tensorboard" / "experiment" / "1"
    folder.mkdir(parents=True)
    assert (await api.user.delete("/api/v1/experiments/1/tensorboard-files")).status_code == 200
    assert folder.exists()


async def test_what_tensorboard_wrote_elsewhere_goes_with_its_experiment(
    api: Api, context: PassContext, tmp_path: Path
) -> None:
    """Also where it has no checkpoint: a task of the owner, as the files' owner, deletes it; and for a run alike."""
    await stored_at(api, tmp_path / "elsewhere")
    async with api.master.db.transaction() as conn:
        await conn.execute("delete from checkpoints")
        second = await add_trial(conn, 1, 2)
        await conn.execute("update trials set state = 'COMPLETED', ended_at = now()")
    assert (await api.user.post("/api/v1/runs/delete", {"runIds": [second]})).json()["results"][0]["error"] == ""
    assert (await api.user.delete("/api/v1/experiments/1")).status_code == 200
    await make_pass(api, context)
    assert (await api.user.get("/api/v1/experiments/1")).status_code == 404
    async with api.master.db.connection() as conn:
        tasks = await conn.fetch("select k.spec, j.owner_id from tasks k join jobs j using (job_id)")
    told = [json.loads(task["spec"]["files"][0]["content"]) for task in tasks]
    folder = f"{api.master.cluster.cluster_id}/tensorboard/experiment/1"
    assert sorted(document["tensorboards"][0] for document in told) == [folder, f"{folder}/trial/{second}"]
    assert {task["owner_id"] for task in tasks} == {2}


async def test_a_place_below_a_listed_root_is_served(api: Api, tmp_path: Path) -> None:
    """As Determined's users write it: the host_path of the cluster, a storage_path of their own."""
    secret_in(tmp_path / "checkpoints" / "team" / "a")
    await stored_at(api, tmp_path / "checkpoints", storage_path="team/a")
    assert (await api.user.get(f"/checkpoints/{UUID}")).status_code == 200


async def test_a_run_is_deleted_once_a_task_has_deleted_its_files(api: Api, tmp_path: Path) -> None:
    """Where nobody has listed the place the master does not, and without its row nobody would find them again."""
    spec = secret_in(tmp_path / "elsewhere")
    await stored_at(api, tmp_path / "elsewhere")
    async with api.master.db.transaction() as conn:
        await add_trial(conn, 1, 2)
        await conn.execute("update trials set state = 'COMPLETED', ended_at = now()")
    reply = await api.user.post("/api/v1/runs/delete", {"runIds": [1]})
    assert "A task on an agent deletes them" in reply.text
    async with api.master.db.connection() as conn:
        assert await conn.fetchval("select count(*) from removals") == 1
    assert spec.exists()


async def test_no_link_below_a_root_is_followed(api: Api, tmp_path: Path) -> None:
    """Though the experiment's host_path ends in it: what lies beyond the root is no part of it."""
    spec = secret_in(tmp_path / "elsewhere")
    await stored_at(api, tmp_path / "checkpoints" / "link")
    (tmp_path / "checkpoints" / "link").symlink_to(tmp_path / "elsewhere")
    assert (await api.user.get(f"/checkpoints/{UUID}")).status_code == 400
    await api.user.delete("/api/v1/checkpoints", {"checkpointUuids": [UUID]})
    assert spec.exists()


def test_state_of_a_server_is_never_served(tmp_path: Path) -> None:
    """An agent's containers have UUIDs, too: wherever its directory lies, and however the root leads there."""
    agent = tmp_path / "srv" / "agent"
    spec = secret_in(agent)
    with directory_lock(agent):
        pass
    (agent / "containers").mkdir()
    secret_in(agent / "containers")
    (tmp_path / "alias").symlink_to(agent)
    settings = settings_in(tmp_path).model_copy(update={"checkpoint_roots": (str(tmp_path / "srv"), str(agent))})
    reached = checkpoint_roots(settings).place_of({"type": "shared_fs", "host_path": str(agent)}, None, None)
    for place in (
        reached,
        CheckpointPlace(str(agent)),
        CheckpointPlace(str(agent / "containers")),
        CheckpointPlace(str(tmp_path / "srv"), ("agent", "containers")),
        CheckpointPlace(str(tmp_path / "alias")),
    ):
        with pytest.raises(NotNow, match="never touched"):
            files_of(place, UUID)
        with pytest.raises(NotNow, match="never touched"):
            delete_checkpoint(place, UUID)
    agent.rename(tmp_path / "srv" / VICTIM)
    with pytest.raises(NotNow, match="never touched"):
        delete_checkpoint(CheckpointPlace(str(tmp_path / "srv")), VICTIM)
    assert (tmp_path / "srv" / VICTIM / UUID / spec.name).exists()


def test_only_the_checkpoints_of_a_local_cluster_are_served(tmp_path: Path) -> None:
    """Its state lies around them."""
    mark_private(str(tmp_path))
    secret_in(tmp_path / "checkpoints")
    secret_in(tmp_path / "agent")
    assert files_of(CheckpointPlace(str(tmp_path / "checkpoints")), UUID)
    for place in (CheckpointPlace(str(tmp_path / "agent")), CheckpointPlace(str(tmp_path), ("agent",))):
        with pytest.raises(NotNow, match="never touched"):
            files_of(place, UUID)


def test_a_storage_inside_of_a_checkpoint_is_none(tmp_path: Path) -> None:
    """Below a root a UUID is a checkpoint, or what TensorBoard wrote."""
    roots = checkpoint_roots(settings_in(tmp_path))
    inside = {"type": "shared_fs", "host_path": str(tmp_path / "checkpoints"), "storage_path": f"{VICTIM}/sub"}
    with pytest.raises(NotNow, match="checkpoint_roots"):
        roots.place_of(inside, inside, None)


async def test_what_tensorboard_wrote_for_all_is_no_checkpoint(api: Api) -> None:
    """Its directory lies beside the checkpoints, under the cluster's id."""
    run = await running(api)
    mine = str(api.master.cluster.cluster_id)
    body = {"uuid": mine, "state": "STATE_COMPLETED", "metadata": {"steps_completed": 1}, "resources": {}}
    assert (await run.task.post("/api/v1/checkpoints", {**body, "training": {}})).status_code == 400
    assert (await api.user.get(f"/checkpoints/{mine}")).status_code == 404


async def test_nobody_announces_an_upload_of_what_is_there(api: Api, context: PassContext) -> None:
    """One that broke off is deleted: another's checkpoint must not go that way."""
    owner = await running(api)
    await report(owner)
    folder = stored_files(api)
    async with api.master.db.transaction() as conn:
        attempt = await run_attempt(conn, await add_trial(conn, 1, 2), ("a1",))
    thief = Running(api, 2, attempt, await api.task(attempt.allocation_id))
    place = {"type": "shared_fs", "host_path": str(folder.parent)}
    lines = [
        {"n": number, "kind": "checkpoint_started", "at": 1790000000.0, "body": {"uuid": uuid, "storage": place}}
        for number, uuid in enumerate((UUID, str(api.master.cluster.cluster_id)), start=1)
    ]
    query = {"container_id": thief.attempt.containers[0], "stream": "s"}
    body = "".join(json.dumps(line) + "\n" for line in lines).encode()
    reply = await thief.task.ask("POST", f"{thief.path}/spool", body, params=query)
    assert reply.status_code == 200, reply.text
    async with api.master.db.transaction() as conn:
        assert await conn.fetchval("select count(*) from checkpoint_uploads") == 0
        await conn.execute("update allocations set state = 'TERMINATED', ended_at = now()")
        await conn.execute("update containers set gone_at = now()")
    await CheckpointGc(api.master.settings).make_pass(context, Woken(frozenset(), full=True))
    assert folder.exists()


async def test_an_upload_of_another_is_not_taken_over(api: Api) -> None:
    """Its UUID is no secret to whoever can list the storage: only the task that announced it reports it."""
    owner = await running(api)
    place = {"type": "shared_fs", "host_path": str(stored_files(api).parent)}
    line = {"n": 1, "kind": "checkpoint_started", "at": 1790000000.0, "body": {"uuid": UUID, "storage": place}}
    query = {"container_id": owner.attempt.containers[0], "stream": "s"}
    reply = await owner.task.ask("POST", f"{owner.path}/spool", json.dumps(line).encode() + b"\n", params=query)
    assert reply.json() == {"acked": 1, "refused": []}, reply.text
    async with api.master.db.transaction() as conn:
        attempt = await run_attempt(conn, await add_trial(conn, 1, 2), ("a1",))
    thief = await api.task(attempt.allocation_id)
    body = {"uuid": UUID, "state": "STATE_COMPLETED", "metadata": {"steps_completed": 1}, "resources": {}}
    reply = await thief.post("/api/v1/checkpoints", {**body, "training": {}})
    assert (reply.status_code, "another task" in reply.text) == (403, True)
    await report(owner)
    found = (await api.user.get(f"/api/v1/checkpoints/{UUID}")).json()["checkpoint"]
    assert found["training"]["trialId"] == owner.trial


@pytest.mark.parametrize("name", [UUID, f".{UUID}.partial"])
async def test_files_of_another_user_of_the_system_are_left_alone(api: Api, context: PassContext, name: str) -> None:
    """A task reports any UUID: of what the database does not know, the file system alone says whose it is."""
    await ended(api)
    folder = stored_files(api, VICTIM)
    if name != UUID:
        shutil.rmtree(folder.parent / UUID)
    else:
        shutil.rmtree(folder)
        folder = folder.parent / UUID
    folder = folder.rename(folder.parent / name)
    async with api.master.db.transaction() as conn:
        # Whose files these are is an administrator now, as far as the operating system knows.
        await conn.execute("update users set agent_uid = $1 where username = 'admin'", os.getuid())
    refused = await api.user.get(f"/checkpoints/{UUID}")
    assert refused.status_code == (400 if name == UUID else 404), refused.text
    assert name != UUID or f"belongs to uid {os.getuid()}" in refused.text
    assert (await api.user.delete("/api/v1/checkpoints", {"checkpointUuids": [UUID]})).status_code == 200
    await CheckpointGc(api.master.settings).make_pass(context, Woken(frozenset(), full=True))
    assert folder.exists()
    assert (await api.user.delete("/api/v1/experiments/1")).status_code == 200
    await make_pass(api, context)
    assert folder.exists()


@pytest.mark.parametrize("trace", ["{}", ".{}.partial"])
def test_a_name_of_ones_own_for_the_directory_of_another(tmp_path: Path, trace: str) -> None:
    """Whoever owns the directory in which others save renames what is there to a UUID that they alone can report."""
    uuid = claimed_id("of the thief alone")
    place = CheckpointPlace(str(tmp_path), owner=FileOwner(frozenset({os.getuid() + 1}), frozenset()))
    secret = secret_in(tmp_path, trace.format(uuid))
    with pytest.raises(NotNow if trace == "{}" else NotFound):
        files_of(place, uuid)
    with pytest.raises(NotNow, match=f"belongs to uid {os.getuid()}"):
        delete_checkpoint(place, uuid)
    assert secret.exists()


@as_root
@pytest.mark.parametrize("private", ["key.txt", "sub/", "sub/below/key.txt"])
def test_files_of_another_inside_of_ones_own_checkpoint(tmp_path: Path, private: str) -> None:
    """Moved there from where both may write, or saved there by the other: the master reads them for nobody."""
    inside = tmp_path / UUID / private
    folder = inside if private.endswith("/") else inside.parent
    folder.mkdir(parents=True)
    file = folder / "key.txt"
    file.write_text("geheim")
    (tmp_path / UUID / "own.bin").touch()
    stranger = folder if private.endswith("/") else file
    stranger.chmod(0o700)
    for path in (tmp_path, *(tmp_path / UUID).rglob("*"), tmp_path / UUID):
        os.chown(path, 4001, 4001)
    os.chown(stranger, 4002, 4002)
    place = CheckpointPlace(str(tmp_path), owner=FileOwner(frozenset({4001}), frozenset()))
    with pytest.raises(NotNow, match="belongs to uid 4002"):
        files_of(place, UUID)
    with pytest.raises(NotNow, match="belongs to uid 4002"):
        list(packed(place, UUID, Form.TAR))
    # What everybody may read, its owner may, too.
    stranger.chmod(0o755)
    assert list(packed(place, UUID, Form.TAR))
    if stranger.is_dir():
        for globs in (("sub/key.txt",), EVERYTHING):
            with pytest.raises(StorageFailed, match="belongs to uid 4002"):
                delete_checkpoint(place, UUID, globs)
        assert list(tmp_path.rglob("key.txt"))
    else:
        # Whoever owns a directory deletes what is in it.
        assert delete_checkpoint(place, UUID) == {}


async def test_the_tensorboard_directory_of_another(api: Api, context: PassContext, tmp_path: Path) -> None:
    """Renamed to that of an experiment of one's own."""
    await stored_at(api, tmp_path / "checkpoints")
    secret = secret_in(tmp_path / "checkpoints" / str(api.master.cluster.cluster_id) / "tensorboard/experiment", "1")
    async with api.master.db.transaction() as conn:
        await conn.execute("delete from checkpoints")
        second = await add_trial(conn, 1, 2)
        await conn.execute("update trials set state = 'COMPLETED', ended_at = now()")
        await conn.execute("update users set agent_uid = $1 where username = 'admin'", os.getuid())
    trial = secret_in(secret.parent / "trial", str(second))
    assert (await api.user.delete("/api/v1/experiments/1/tensorboard-files")).status_code == 200
    assert (await api.user.post("/api/v1/runs/delete", {"runIds": [second]})).status_code == 200
    assert (await api.user.delete("/api/v1/experiments/1")).status_code == 200
    await make_pass(api, context)
    assert secret.exists()
    assert trial.exists()


async def test_what_was_saved_before_another_link_is_its_users(api: Api, context: PassContext) -> None:
    """But for a uid that was somebody else's, too."""
    _, folder = await ended(api)
    for last, status in (("admin", 400), ("determined", 200)):
        async with api.master.db.transaction() as conn:
            await conn.execute("update users set agent_uid = null")
            await conn.execute("delete from user_uids where user_id <> 2 or uid <> $1", os.getuid())
            for user, uid in ((last, os.getuid()), ("determined", os.getuid()), ("determined", 4002), ("admin", 4003)):
                await conn.execute("update users set agent_uid = $2 where username = $1", user, uid)
        assert (await api.user.get(f"/checkpoints/{UUID}")).status_code == status
    assert (await api.user.delete("/api/v1/checkpoints", {"checkpointUuids": [UUID]})).status_code == 200
    assert not folder.exists()


async def test_an_upload_is_not_taken_over_before_its_announcement_came(api: Api) -> None:
    """Its directory is seen at once, and what announces it waits in a spool: only who made the UUID can report it."""
    claim = "of the owner alone"
    uuid = claimed_id(claim)
    owner = await running(api)
    place: JsonObject = {"type": "shared_fs", "host_path": str(stored_files(api, uuid).parent)}
    saved: JsonObject = {"uuid": uuid, "stepsCompleted": 1, "resources": {"w": 1}, "metadata": {}, "storage": place}
    async with api.master.db.transaction() as conn:
        attempt = await run_attempt(conn, await add_trial(conn, 1, 2), ("a1",))
    thief = Running(api, 2, attempt, await api.task(attempt.allocation_id))
    for number, (kind, body) in enumerate(
        [
            ("checkpoint_started", {"uuid": uuid, "storage": place}),
            ("checkpoint_started", {"uuid": uuid, "storage": place, "claim": "a guess"}),
            ("checkpoint", saved),
            ("checkpoint", {**saved, "claim": uuid}),
        ],
        start=1,
    ):
        assert "another task's" in await said(thief, number, kind, body)
    reported: JsonObject = {"uuid": uuid, "state": "STATE_COMPLETED", "metadata": {"steps_completed": 1}}
    reply = await thief.task.post("/api/v1/checkpoints", {**reported, "resources": {}, "training": {}})
    assert reply.status_code == 403, reply.text
    assert await said(owner, 1, "checkpoint_started", {"uuid": uuid, "storage": place, "claim": claim}) == ""
    assert await said(owner, 2, "checkpoint", {**saved, "claim": claim}) == ""
    found = (await api.user.get(f"/api/v1/checkpoints/{uuid}")).json()["checkpoint"]
    assert found["training"]["trialId"] == owner.trial


async def said(run: Running, number: int, kind: str, body: JsonObject) -> str:
    """A line of the spool of a running attempt; why it was refused, nothing if it was not."""
    line = json.dumps({"n": number, "kind": kind, "at": 1790000000.0, "body": body}).encode() + b"\n"
    query = {"container_id": run.attempt.containers[0], "stream": "s"}
    reply = await run.task.ask("POST", f"{run.path}/spool", line, params=query)
    assert reply.json()["acked"] == number, reply.text
    return "".join(refusal["message"] for refusal in reply.json()["refused"])


@pytest.mark.parametrize("linked", [False, True])
async def test_what_ran_elsewhere_has_no_files_of_unknown_owners(api: Api, linked: bool) -> None:
    """Once there are users who are linked with a uid, one who is not has none; in one domain of trust all have all."""
    made = await create(api, CONFIG, unmanaged=True)
    number = made["experiment"]["id"]  # type: ignore[index]
    reply = await api.user.post("/api/v1/trials", {"experimentId": number, "hparams": {}, "unmanaged": True})
    trial = reply.json()["trial"]["id"]
    folder = stored_files(api)
    async with api.master.db.transaction() as conn:
        if linked:
            await conn.execute("update users set agent_uid = 4001 where username = 'admin'")
        task = await conn.fetchval("select task_id from trials where id = $1", trial)
    body = {"uuid": UUID, "taskId": task, "state": "STATE_COMPLETED", "metadata": {"steps_completed": 1}}
    reply = await api.user.post("/api/v1/checkpoints", {**body, "resources": {"w": "1"}, "training": {}})
    assert reply.status_code == 200, reply.text
    reply = await api.user.get(f"/checkpoints/{UUID}")
    assert reply.status_code == (400 if linked else 200), reply.text[:300]
    async with api.master.db.transaction() as conn:
        await conn.execute("update trials set state = 'COMPLETED', ended_at = now() where id = $1", trial)
    reply = await api.user.delete("/api/v1/checkpoints", {"checkpointUuids": [UUID]})
    assert folder.exists() is linked, reply.text
