"""Checkpoints over the wire: reported, listed, spoken about, trimmed, deleted, fetched."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from tenax.master.checkpoints.archive import Form, NotAcceptable, form_of
from tests.kits.api import Api
from tests.kits.master.attempts import running
from tests.kits.master.checkpoints import UUID, report, stored_files
from tests.kits.master.metrics import reported, validated
from tests.kits.master.refusals import refusal


async def test_a_checkpoint_is_reported_by_its_attempt(api: Api) -> None:
    """Whose it is follows from the token; said twice it stands once; metrics at its step are shown beside it."""
    run = await running(api)
    for _ in range(2):
        await report(run)
    await validated(api, run.trial, 10, 0.75)
    shown = (await api.user.get(f"/api/v1/checkpoints/{UUID}")).json()["checkpoint"]
    assert shown["allocationId"] == run.attempt.allocation_id
    assert shown["resources"] == {"weights/": "0", "weights/w.bin": "4"}
    assert shown["state"] == "STATE_COMPLETED"
    training = shown["training"]
    assert (training["trialId"], training["experimentId"]) == (run.trial, 1)
    assert training["searcherMetric"] == 0.75
    assert training["validationMetrics"]["avgMetrics"] == {"accuracy": 0.75}
    assert training["experimentConfig"]["entrypoint"] == "python3 train.py"
    for path in ("/api/v1/experiments/1/checkpoints", f"/api/v1/trials/{run.trial}/checkpoints"):
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
        {"resources": {"a": -1}},
        {"resources": {"a": "99999999999999999999"}},
        {"resources": ["a"]},
        {"metadata": {"steps_completed": 1, "nul": "\0"}},
    ],
)
async def test_a_report_that_cannot_be_is_refused(api: Api, change: dict[str, object]) -> None:
    """And leaves nothing behind."""
    run = await running(api)
    body = {"uuid": UUID, "metadata": {"steps_completed": 1}, "state": "STATE_COMPLETED", "resources": {}, **change}
    reply = await run.task.post("/api/v1/checkpoints", body)
    assert reply.status_code == 400, reply.text
    async with api.master.db.connection() as conn:
        assert await conn.fetchval("select count(*) from checkpoints") == 0


async def test_a_checkpoint_shows_all_that_was_reported_at_its_step(api: Api) -> None:
    """What was trained and what was validated there, one by one, in lists, and as a version of a model."""
    run = await running(api)
    for step in (9, 10, 11):
        for group, values in (("training", {"loss": 1 / step, "rate": step}), ("validation", {"accuracy": step})):
            metrics = {"trialRunId": 1, "stepsCompleted": step, "metrics": {"avgMetrics": values}}
            reply = await run.task.post(f"/api/v1/trials/{run.trial}/metrics", {"group": group, "metrics": metrics})
            assert reply.status_code == 200, reply.text
    await report(run, steps=10)
    assert (await api.user.post("/api/v1/models", {"name": "m"})).status_code == 200
    assert (await api.user.post("/api/v1/models/m/versions", {"checkpointUuid": UUID})).status_code == 200
    for checkpoint in (
        (await api.user.get(f"/api/v1/checkpoints/{UUID}")).json()["checkpoint"],
        (await api.user.get("/api/v1/experiments/1/checkpoints")).json()["checkpoints"][0],
        (await api.user.get(f"/api/v1/trials/{run.trial}/checkpoints")).json()["checkpoints"][0],
        (await api.user.get("/api/v1/models/m/versions/1")).json()["modelVersion"]["checkpoint"],
        (await api.user.get("/api/v1/models/m/versions")).json()["modelVersions"][0]["checkpoint"],
        (await api.user.post(f"/api/v1/checkpoints/{UUID}/metadata", {"checkpoint": {"metadata": {}}})).json()[
            "checkpoint"
        ],
    ):
        assert checkpoint["training"]["trainingMetrics"]["avgMetrics"] == {"loss": 0.1, "rate": 10}
        assert checkpoint["training"]["validationMetrics"]["avgMetrics"] == {"accuracy": 10}


async def test_what_is_left_of_a_checkpoint_can_be_told(api: Api) -> None:
    """Fewer files make it partly deleted, none deleted; files cannot be added, and strangers cannot tell."""
    run = await running(api)
    await report(run)

    async def tell(client: object, resources: dict[str, str]) -> int:
        body = {"checkpoints": [{"uuid": UUID, "resources": {"resources": resources}}]}
        return (await client.patch("/api/v1/checkpoints", body)).status_code  # type: ignore[attr-defined, no-any-return]

    async def state() -> str:
        return str((await api.user.get(f"/api/v1/checkpoints/{UUID}")).json()["checkpoint"]["state"])

    await api.admin.post("/api/v1/users", {"user": {"username": "eve"}, "password": "s3cret-!!"})
    assert await tell(await api.login("eve", "s3cret-!!"), {}) == 403
    assert await tell(run.task, {"other": "3"}) == 403
    assert await tell(run.task, {"weights/": "0"}) == 200
    assert await state() == "STATE_PARTIALLY_DELETED"
    assert await tell(run.task, {}) == 200
    assert await state() == "STATE_DELETED"
    # It keeps the list of what it had.
    shown = (await api.user.get(f"/api/v1/checkpoints/{UUID}")).json()["checkpoint"]
    assert shown["resources"] == {"weights/": "0"}


async def test_files_come_through_the_master(api: Api) -> None:
    """As a tar archive, compressed if that is accepted; not where the master cannot reach them."""
    run = await running(api)
    await report(run)
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
    run = await running(api)
    await report(run)
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
    assert (await api.user.delete("/api/v1/checkpoints", {"checkpointUuids": [UUID]})).status_code == 200
    left = (await api.user.get(f"/api/v1/checkpoints/{UUID}")).json()["checkpoint"]
    assert left["state"] == "STATE_PARTIALLY_DELETED"
    assert "leads elsewhere" in left["going"]
    assert (secret / "key.bin").read_text() == "k"


@pytest.mark.parametrize("name", ["ssh", "outputs", "hr-salaries", "..", "a/b", UUID + "0", "", f" {UUID}"])
async def test_what_is_no_uuid_is_no_checkpoint(api: Api, name: str) -> None:
    """Else a task could have the master serve and delete whatever folder lies beside the checkpoints."""
    run = await running(api)
    reply = await run.task.post(
        "/api/v1/checkpoints", {"uuid": name, "state": "STATE_COMPLETED", "resources": {"a": "1"}, "training": {}}
    )
    assert (reply.status_code, "a UUID is expected" in refusal(reply)) == (400, True)


async def test_files_of_ended_trials_can_be_deleted(api: Api) -> None:
    """By pattern or whole; a live trial's are kept, since it may start from them."""
    run = await running(api)
    await report(run)
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


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("application/gzip", Form.TGZ),
        ("application/x-tar", Form.TAR),
        ("application/zip", Form.ZIP),
        ("*/*", Form.TAR),
        ("", Form.TAR),
        ("text/html, application/*;q=0.5", Form.TAR),
        ("application/zip;q=0.3, application/gzip;q=0.9", Form.TGZ),
        ("Application/ZIP", Form.ZIP),
        ("text/html", None),
        ("application/zip;q=0", None),
        ("application/zip;q=much", None),
    ],
)
def test_the_form_is_what_is_liked_best(accept: str, form: Form | None) -> None:
    """By weight; anything is a tar archive, and what is none of the three is refused."""
    if form is not None:
        assert form_of(accept) is form
        return
    with pytest.raises(NotAcceptable, match="application/zip"):
        form_of(accept)


async def test_archives_hold_every_file(api: Api) -> None:
    """A large one in pieces, an empty one, with their modes; another form is refused with 415."""
    run = await running(api)
    await report(run)
    folder = stored_files(api)
    large = bytes(range(256)) * 12_000
    (folder / "weights" / "large.bin").write_bytes(large)
    (folder / "empty").touch()
    (folder / "run.sh").write_text("true")
    (folder / "run.sh").chmod(0o755)
    reply = await api.user.ask("GET", f"/checkpoints/{UUID}", headers={"Accept": "application/zip"})
    assert reply.headers["content-type"] == "application/zip"
    assert f'"{UUID}.zip"' in reply.headers["content-disposition"]
    with zipfile.ZipFile(io.BytesIO(reply.content)) as zipped:
        assert zipped.testzip() is None
        assert zipped.read("weights/large.bin") == large
        assert sorted(zipped.namelist()) == [
            *("empty", "metadata.json", "run.sh", "weights/", "weights/large.bin", "weights/w.bin"),
        ]
        assert zipped.getinfo("run.sh").external_attr >> 16 & 0o777 == 0o755
    for accept, mode in (("application/gzip", "r:gz"), ("application/x-tar", "r:")):
        reply = await api.user.ask("GET", f"/checkpoints/{UUID}", headers={"Accept": accept})
        with tarfile.open(fileobj=io.BytesIO(reply.content), mode=mode) as tar:  # type: ignore[call-overload]
            assert tar.extractfile("weights/large.bin").read() == large
            assert tar.extractfile("empty").read() == b""
            assert tar.getmember("run.sh").mode == 0o755
    refused = await api.user.ask("GET", f"/checkpoints/{UUID}", headers={"Accept": "text/html"})
    assert refused.status_code == 415
    assert "application/zip" in refused.json()["message"]
    assert (await api.user.get(f"/checkpoints/{UUID[:-1]}9")).status_code == 404


async def test_what_is_said_about_a_checkpoint_is_replaced(api: Api) -> None:
    """All of it but the steps at which it was saved; by its owner."""
    run = await running(api)
    await report(run)
    path = f"/api/v1/checkpoints/{UUID}/metadata"

    async def say(metadata: object, who: object = None) -> tuple[int, object]:
        body = {"checkpoint": {"uuid": UUID, "metadata": metadata, "resources": {}, "state": "STATE_UNSPECIFIED"}}
        reply = await (who or api.user).post(path, body)  # type: ignore[attr-defined]
        return reply.status_code, reply.json().get("checkpoint", {}).get("metadata")

    assert await say({"note": "good", "nested": {"a": [1, None]}}) == (
        200,
        {"note": "good", "nested": {"a": [1, None]}, "steps_completed": 10},
    )
    assert await say({}) == (200, {"steps_completed": 10})
    assert (await say({"steps_completed": 11}))[0] == 400
    for wrong in (3, "text", ["list"]):
        assert (await say(wrong))[0] == 400
    assert (await api.user.post(path, {})).status_code == 400
    assert (await api.user.post(path.replace(UUID, "absent"), {"checkpoint": {"metadata": {}}})).status_code == 404
    await api.admin.post("/api/v1/users", {"user": {"username": "eve"}, "password": "s3cret-!!"})
    assert (await say({}, await api.login("eve", "s3cret-!!")))[0] == 403


async def test_reports_of_trials_that_use_a_checkpoint_are_found(api: Api) -> None:
    """By what they use it for, and by group."""
    run = await running(api)
    await report(run)
    await reported(run, "training", 1, loss=1.0)
    await reported(run, "validation", 1, accuracy=0.5)
    path = f"/api/v1/checkpoints/{UUID}/metrics"
    assert (await api.user.get(path)).json() == {"metrics": []}
    async with api.master.db.transaction() as conn:
        await conn.execute(
            "insert into trial_sources (trial_id, checkpoint_uuid, kind) values ($1, $2, 'INFERENCE')", run.trial, UUID
        )

    async def groups(**query: str) -> list[str]:
        return [each["group"] for each in (await api.user.get(path, **query)).json()["metrics"]]

    assert await groups() == ["training", "validation"]
    assert await groups(metricGroup="validation") == ["validation"]
    assert await groups(trialSourceInfoType="TRIAL_SOURCE_INFO_TYPE_FINE_TUNING") == []
    assert await groups(trial_source_info_type="TRIAL_SOURCE_INFO_TYPE_INFERENCE") == ["training", "validation"]
    assert (await api.user.get(path, trialSourceInfoType="ANY")).status_code == 400
    assert (await api.user.get(path.replace(UUID, "absent"))).status_code == 404


async def test_without_a_pattern_the_record_follows_the_files(api: Api) -> None:
    """What was deleted by hand is no longer counted."""
    run = await running(api)
    await report(run)
    folder = stored_files(api)
    (folder / "weights" / "w.bin").unlink()
    body = {"checkpointUuids": [UUID], "checkpointGlobs": []}
    assert (await api.user.post("/api/v1/checkpoints/rm", body)).status_code == 200
    shown = (await api.user.get(f"/api/v1/checkpoints/{UUID}")).json()["checkpoint"]
    assert shown["state"] == "STATE_PARTIALLY_DELETED"
    assert shown["resources"] == {"metadata.json": "2", "weights/": "0"}


async def test_deletions_that_cannot_be_are_refused(api: Api) -> None:
    """For all of them, and nothing is touched: registered, unknown, a stranger's, none at all, a blank pattern."""
    run = await running(api)
    await report(run)
    folder = stored_files(api)
    async with api.master.db.transaction() as conn:
        await conn.execute("update trials set state = 'COMPLETED', ended_at = now()")
        await conn.execute("insert into models (name, workspace_id, owner_id) values ('bert', 1, 2)")
        await conn.execute(
            "insert into model_versions (model_id, version, checkpoint_uuid, owner_id) values (1, 1, $1, 2)", UUID
        )
    await api.admin.post("/api/v1/users", {"user": {"username": "eve"}, "password": "s3cret-!!"})
    eve = await api.login("eve", "s3cret-!!")
    registered = await api.user.delete("/api/v1/checkpoints", {"checkpointUuids": [UUID]})
    assert registered.status_code == 400
    assert "version 1 of model bert" in refusal(registered)
    patch = {"checkpoints": [{"uuid": UUID, "resources": {"resources": {}}}]}
    assert (await api.user.patch("/api/v1/checkpoints", patch)).status_code == 400
    assert (await eve.delete("/api/v1/checkpoints", {"checkpointUuids": [UUID]})).status_code == 403
    assert (await api.user.delete("/api/v1/checkpoints", {"checkpointUuids": [UUID, "absent"]})).status_code == 404
    for body in ({}, {"checkpointUuids": []}, {"checkpointUuids": None}, {"checkpointUuids": UUID}, [], 3):
        assert (await api.user.delete("/api/v1/checkpoints", body)).status_code == 400, body
    blank = {"checkpointUuids": [UUID], "checkpointGlobs": [" "]}
    assert (await api.user.post("/api/v1/checkpoints/rm", blank)).status_code == 400
    assert (folder / "weights" / "w.bin").exists()
    async with api.master.db.connection() as conn:
        assert await conn.fetchval("select count(*) from removals") == 0


async def test_a_place_that_only_a_task_has_named_is_left_alone(api: Api, tmp_path: Path) -> None:
    """It is neither read nor deleted by the master, and the checkpoint says why."""
    run = await running(api)
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / UUID).mkdir(parents=True)
    (elsewhere / UUID / "secret.bin").write_text("s")
    place = {"type": "directory", "container_path": str(elsewhere)}
    started = (await run.task.post("/api/v1/runs/start", {"runId": run.trial, "checkpointStorage": place})).json()
    await report(run, storageId=started["storageId"])
    async with api.master.db.transaction() as conn:
        await conn.execute("update trials set state = 'COMPLETED', ended_at = now()")
    assert (await api.user.get(f"/checkpoints/{UUID}")).status_code == 400
    reply = await api.user.delete("/api/v1/checkpoints", {"checkpointUuids": [UUID]})
    assert reply.status_code == 200, "a task on an agent may, as its owner"
    assert (elsewhere / UUID / "secret.bin").exists()
    shown = (await api.user.get(f"/api/v1/checkpoints/{UUID}")).json()["checkpoint"]
    assert "deleted by determined" in shown["going"]
    assert "checkpoint_roots" in shown["going"]


async def test_tensorboard_files_are_deleted_on_request(api: Api) -> None:
    """Those of one experiment that has ended, by its owner; what is not there is no error."""
    run = await running(api)
    folder = stored_files(api)
    events = folder.parent / api.master.cluster.cluster_id / "tensorboard" / "experiment" / "1" / "trial" / "1"
    events.mkdir(parents=True)
    (events / "events.out.tfevents.1").write_text("e")
    path = "/api/v1/experiments/1/tensorboard-files"
    running_still = await api.user.delete(path)
    assert running_still.status_code == 400
    assert "still writes" in refusal(running_still)
    async with api.master.db.transaction() as conn:
        await conn.execute("update experiments set state = 'COMPLETED', ended_at = now()")
    await api.admin.post("/api/v1/users", {"user": {"username": "eve"}, "password": "s3cret-!!"})
    assert (await (await api.login("eve", "s3cret-!!")).delete(path)).status_code == 403
    for _ in range(2):
        assert (await api.user.delete(path)).status_code == 200
    assert not events.exists()
    assert folder.exists()
    assert (await api.user.delete(path.replace("/1/", "/77/"))).status_code == 404
    assert run.trial == 1


async def test_what_a_policy_would_do_takes_only_counts(api: Api) -> None:
    """Malformed numbers are refused by name, unknown experiments are not found; both say it in their route's form."""
    await running(api)
    for path in ("/experiments/{}/preview_gc", "/api/v1/experiments/{}/garbage"):
        assert (await api.user.get(path.format(1))).status_code == 200
        assert (await api.user.get(path.format(77))).status_code == 404
        for wrong in ("-1", "many", "1.5", "99999999999"):
            reply = await api.user.get(path.format(1), save_trial_best=wrong)
            assert reply.status_code == 400, wrong
            assert "save_trial_best" in reply.text
    policy = {"checkpointStorage": {"saveTrialBest": -1}}
    assert (await api.user.patch("/api/v1/experiments/1", policy)).status_code == 400


async def test_nonsense_is_refused_and_never_our_error(api: Api) -> None:
    """Whatever stands where something else belongs."""
    run = await running(api)
    await report(run)
    bodies: list[object] = [3, "text", [], [3]]
    bodies += [{"checkpoints": wrong} for wrong in (3, [3], [{"uuid": 3}], [{"uuid": UUID, "resources": 3}])]
    for sizes in ({"a": -1}, {"a": {}}, 3):
        bodies.append({"checkpoints": [{"uuid": UUID, "resources": {"resources": sizes}}]})
    for body in bodies:
        assert (await api.user.patch("/api/v1/checkpoints", body)).status_code in (400, 403, 404), body
    for nothing in ({}, {"checkpoints": None}, {"checkpoints": [{"uuid": UUID, "resources": None}]}):
        assert (await api.user.patch("/api/v1/checkpoints", nothing)).status_code == 200
    for body in ({"checkpointUuids": [UUID], "checkpointGlobs": 3}, {"checkpointUuids": {"a": 1}}, 3, [UUID]):
        assert (await api.user.post("/api/v1/checkpoints/rm", body)).status_code == 400, body
    for name in ("%00", "..%2f..", "x" * 5000, "%ff"):
        for path in (f"/api/v1/checkpoints/{name}", f"/checkpoints/{name}", f"/api/v1/checkpoints/{name}/metrics"):
            assert (await api.user.get(path)).status_code in (400, 404), path
    for number in ("x", "-1", str(2**70)):
        for path in (f"/experiments/{number}/preview_gc", f"/api/v1/experiments/{number}/garbage"):
            assert (await api.user.get(path)).status_code in (400, 404), path
    shown = (await api.user.get(f"/api/v1/checkpoints/{UUID}")).json()["checkpoint"]
    assert shown["state"] == "STATE_COMPLETED"


async def test_checkpoints_of_other_tasks_belong_to_who_launched_them(api: Api) -> None:
    """A command may keep some, too: its owner may say something about them and delete them, and nobody else may."""
    run = await running(api)
    await report(run)
    async with api.master.db.transaction() as conn:
        # As of a task that is no trial.
        await conn.execute("update checkpoints set trial_id = null")
        await conn.execute("update tasks set trial_id = null, kind = 'COMMAND'")
    folder = stored_files(api)
    await api.admin.post("/api/v1/users", {"user": {"username": "eve"}, "password": "s3cret-!!"})
    eve = await api.login("eve", "s3cret-!!")
    body = {"checkpointUuids": [UUID]}
    assert (await eve.delete("/api/v1/checkpoints", body)).status_code == 403
    reply = await api.user.post(f"/api/v1/checkpoints/{UUID}/metadata", {"checkpoint": {"metadata": {"a": 1}}})
    assert reply.status_code == 200
    assert reply.json()["checkpoint"]["training"]["trialId"] is None
    assert (await api.user.delete("/api/v1/checkpoints", body)).status_code == 200
    assert not folder.exists()


async def test_many_are_deleted_in_the_background(api: Api) -> None:
    """The request only decides; the loop does it."""
    run = await running(api)
    uuids = [f"0d6e4079-4c8e-4f5f-9a39-{number:012d}" for number in range(21)]
    for number, uuid in enumerate(uuids):
        await report(run, uuid, number)
    async with api.master.db.transaction() as conn:
        await conn.execute("update trials set state = 'COMPLETED', ended_at = now()")
    folder = stored_files(api, uuids[0])
    assert (await api.user.delete("/api/v1/checkpoints", {"checkpointUuids": uuids})).status_code == 200
    assert folder.exists()
    shown = (await api.user.get(f"/api/v1/checkpoints/{uuids[0]}")).json()["checkpoint"]
    assert shown["going"] == "deleted by determined"
