"""Experiments, trials and checkpoints as values, against a pretended master."""

from __future__ import annotations

import datetime
import io
import math
import sys
import tarfile
from pathlib import Path

import pandas
import pytest

import tenax.client
from tenax.client import Client
from tenax.client.checkpoints import Checkpoint, storage_directory
from tenax.client.connection import reading
from tenax.client.connection.session import BrokenStream, Session
from tenax.client.experiments import Experiment, check_experiment
from tenax.client.trials import Trial
from tenax.errors import AlreadyExists, InvalidInput, NotFound
from tenax.jsonvalue import JsonObject
from tenax.storage.objects import ObjectStorage
from tests.kits.pretend_master import PretendMaster, Reply

EXPERIMENT: JsonObject = {
    "id": 7,
    "name": "digits",
    "state": "STATE_RUNNING",
    "progress": 0.5,
    "config": {"searcher": {"name": "adaptive_asha", "metric": "accuracy", "smaller_is_better": False}},
    "numTrials": 3,
    "startTime": "2026-01-02T03:04:05.123456789Z",
    "reason": "waits for slots",
}


@pytest.fixture
def client(master: PretendMaster) -> Client:
    return Client(master.url, token="t")


def checkpoint(uuid: str, metric: float | None, steps: int = 1, **more: object) -> JsonObject:
    value: JsonObject = {
        "uuid": uuid,
        "state": "STATE_COMPLETED",
        "metadata": {"steps_completed": steps},
        "resources": {"a/": "0", "a/w.bin": "4"},
        "training": {"trialId": 1, "experimentId": 7, "searcherMetric": metric},
    }
    return {**value, **more}  # type: ignore[dict-item]


def test_every_name_of_the_sdk_is_there() -> None:
    """Names are loaded when they are asked for, and all of them can be."""
    assert [name for name in tenax.client.__all__ if getattr(tenax.client, name).__name__ != name] == []


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"trials": 1, "starting": 1}, "If it was created now, its trial would start at once."),
        (
            {
                "trials": 1,
                "starting": 0,
                "reason": "waits for 1 free slot",
                "likelyStart": "2026-11-27T14:05:30Z",
                "sureness": "GUESS",
            },
            "If it was created now, nothing of it would start at once: its first trial waits for 1 free slot; as a "
            "guess it starts about 2026-11-27 14:05 UTC.",
        ),
        ({"trials": 8, "starting": 8}, "If it was created now, its first 8 trials would start at once."),
        (
            {"trials": 8, "starting": 3, "reason": "waits for 1 free slot", "waitClass": "WAIT"},
            "If it was created now, 3 of its first 8 trials would start at once, and the next waits for 1 free slot.",
        ),
        (
            {"trials": 1, "starting": 0, "reason": "waits for 2 free slots", "leaving": 2},
            "If it was created now, nothing of it would start at once: its first trial waits for 2 free slots; "
            "2 of what runs would be asked to save and leave for it.",
        ),
    ],
)
def test_what_would_become_of_a_submission(client: Client, master: PretendMaster, said: JsonObject, words: str) -> None:
    """In a sentence; a master that does not say is no error."""
    master.on("POST", "/api/v1/experiments", {"experiment": EXPERIMENT, "forecast": said, "notices": ["old"]})
    check = check_experiment(Session(master.url, token="t"), "entrypoint: 'true'", [])
    assert check.remarks == ["old"]
    assert check.forecast is not None
    assert check.forecast.words == words
    body = master.asked[-1].body
    assert isinstance(body, dict)
    assert body["validateOnly"] is True
    master.on("POST", "/api/v1/experiments", {"experiment": EXPERIMENT})
    assert check_experiment(Session(master.url, token="t"), "entrypoint: 'true'", []).forecast is None


def test_experiment(client: Client, master: PretendMaster) -> None:
    """An answer becomes a value, whatever spelling its numbers and times have."""
    master.on("GET", "/api/v1/experiments/7", {"experiment": EXPERIMENT})
    experiment = client.experiment(7)
    assert (experiment.state, experiment.metric, experiment.smaller_is_better) == ("RUNNING", "accuracy", False)
    assert experiment.started == datetime.datetime(2026, 1, 2, 3, 4, 5, 123456, tzinfo=datetime.timezone.utc)
    assert experiment.reason == "waits for slots"
    assert not experiment.has_ended


def test_lenient() -> None:
    """An answer that lacks everything is a value, too."""
    session = Session("http://127.0.0.1:1", token="t")
    assert Experiment.read({}, session).progress is None
    assert Trial.read({}, session).best_validation is None
    assert Checkpoint.read({}, session).resources == {}


@pytest.mark.parametrize(
    ("sent", "read"), [(1, 1.0), ("Infinity", math.inf), ("-Infinity", -math.inf), ("1", None), (True, None)]
)
def test_numbers(sent: object, read: float | None) -> None:
    """Infinities travel as words; other text is no number."""
    assert reading.real(sent) == read  # type: ignore[arg-type]
    assert math.isnan(reading.real("NaN") or 0.0)


def test_wait(client: Client, master: PretendMaster) -> None:
    """Waiting shows every state on the way, survives a master that is away, and gives the end."""
    ended = {"experiment": {**EXPERIMENT, "state": "STATE_COMPLETED"}}
    away = Reply({"error": {"error": "starting"}}, 503)
    client.session._retry_for_s = 0.0
    master.on("GET", "/api/v1/experiments/7", {"experiment": EXPERIMENT}, away, {"experiment": EXPERIMENT}, ended)
    seen: list[str] = []
    result = client.experiment(7).wait(interval=0.0, seen=lambda current: seen.append(current.state))
    assert result.state == "COMPLETED"
    assert seen == ["RUNNING", "RUNNING", "COMPLETED"]


def test_create(client: Client, master: PretendMaster, tmp_path: Path) -> None:
    """A configuration goes as it was typed, with the code beside it."""
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "train.py").write_text("print(1)")
    config = tmp_path / "a.yaml"
    config.write_text("name: digits # a comment\n")
    master.on("POST", "/api/v1/experiments", {"experiment": EXPERIMENT, "config": {}})
    assert client.create_experiment(config, tmp_path / "code").id == 7
    body = master.asked[0].body
    assert isinstance(body, dict)
    assert body["config"] == "name: digits # a comment\n"
    assert [file["path"] for file in body["modelDefinition"]] == ["train.py"]
    assert body["activate"] is True


def test_create_without_its_script(client: Client, master: PretendMaster, tmp_path: Path) -> None:
    """From Python, too, a script that is not sent is named, and nothing is submitted; a template's is not known."""
    (tmp_path / "other.py").write_text("print(1)")
    config: JsonObject = {"entrypoint": "python3 train.py"}
    with pytest.raises(InvalidInput, match=r"train\.py, which is not among the files"):
        client.create_experiment(config, tmp_path)
    with pytest.raises(InvalidInput, match=r"train\.py, and no code is sent"):
        client.create_experiment(config)
    assert master.asked == []
    master.on("POST", "/api/v1/experiments", {"experiment": EXPERIMENT, "config": {}})
    assert client.create_experiment(config, parent_id=3).id == 7
    assert client.create_experiment(config, template="code").id == 7


def test_create_without_a_file(client: Client) -> None:
    """A configuration that is not there is named."""
    with pytest.raises(InvalidInput, match=r"nowhere\.yaml does not exist"):
        client.create_experiment("nowhere.yaml")


def test_pages(client: Client, master: PretendMaster) -> None:
    """Lists are read page by page to their end."""
    pages = [
        {"experiments": [{"id": 1}, {"id": 2}], "pagination": {"endIndex": 2, "total": 3}},
        {"experiments": [{"id": 3}], "pagination": {"endIndex": 3, "total": 3}},
    ]
    master.on("GET", "/api/v1/experiments", *pages)
    assert [experiment.id for experiment in client.experiments()] == [1, 2, 3]
    assert [request.query["offset"] for request in master.asked] == [["0"], ["2"]]


def test_best_checkpoint(client: Client, master: PretendMaster) -> None:
    """The best checkpoint is that with the best metric in the search's direction, among those that still have files."""
    listed = [
        checkpoint("none", None),
        checkpoint("low", 0.1),
        checkpoint("gone", 0.99, state="STATE_DELETED"),
        checkpoint("high", 0.9),
    ]
    page = {"checkpoints": listed, "pagination": {"endIndex": 4, "total": 4}}
    master.on("GET", "/api/v1/experiments/7", {"experiment": EXPERIMENT})
    master.on("GET", "/api/v1/experiments/7/checkpoints", page)
    assert client.experiment(7).best_checkpoint().uuid == "high"


def test_what_a_run_by_hand_saved_is_found_on_its_machine(
    client: Client, master: PretendMaster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It lies where such runs keep it, and its experiment names the storage of the cluster."""
    monkeypatch.setenv("TENAX_DATA_DIR", str(tmp_path))
    master.on("GET", "/api/v1/checkpoints/u", {"checkpoint": checkpoint("u", 0.5)})
    assert client.checkpoint("u").path() is None
    saved = tmp_path / "checkpoints" / "u"
    saved.mkdir(parents=True)
    (saved / "w.bin").write_bytes(b"1234")
    assert client.checkpoint("u").path() == saved
    assert (client.checkpoint("u").download(tmp_path / "here") / "w.bin").read_bytes() == b"1234"


def test_of_equal_checkpoints_the_first_is_the_best(client: Client, master: PretendMaster) -> None:
    """The one that was saved first, whatever its steps and its uuid."""
    listed = [
        checkpoint("a-late", 0.9, steps=9, reportTime="2026-01-02T03:04:07Z"),
        checkpoint("z-first", 0.9, steps=1, reportTime="2026-01-02T03:04:05Z"),
        checkpoint("b-second", 0.9, steps=5, reportTime="2026-01-02T03:04:06Z"),
    ]
    page = {"checkpoints": listed, "pagination": {"endIndex": 3, "total": 3}}
    master.on("GET", "/api/v1/experiments/7", {"experiment": EXPERIMENT})
    master.on("GET", "/api/v1/experiments/7/checkpoints", page)
    assert [each.uuid for each in client.experiment(7).checkpoints()] == ["z-first", "b-second", "a-late"]


def test_no_checkpoint(client: Client, master: PretendMaster) -> None:
    """Without a checkpoint that was measured there is no best one."""
    master.on("GET", "/api/v1/experiments/7", {"experiment": EXPERIMENT})
    master.on("GET", "/api/v1/experiments/7/checkpoints", {"checkpoints": [checkpoint("none", None)]})
    with pytest.raises(NotFound, match="accuracy"):
        client.experiment(7).best_checkpoint()


def line(number: int) -> JsonObject:
    return {"result": {"id": str(number), "message": f"line {number}\n", "level": "LOG_LEVEL_INFO"}}


def test_followed_logs_go_on_after_a_break(client: Client, master: PretendMaster) -> None:
    """When the connection breaks the log goes on where it was, each line once."""
    master.on("GET", "/api/v1/trials/3", {"trial": {"id": 3}})
    master.on(
        "GET",
        "/api/v1/trials/3/logs",
        Reply(lines=[line(1), line(2)], broken=True),
        Reply(lines=[line(1), line(2), line(3)]),
    )
    assert [line.message for line in client.trial(3).logs(follow=True)] == ["line 1", "line 2", "line 3"]


def test_tail(client: Client, master: PretendMaster) -> None:
    """The last lines are asked for newest first and given oldest first."""
    master.on("GET", "/api/v1/trials/3", {"trial": {"id": 3}})
    master.on("GET", "/api/v1/trials/3/logs", Reply(lines=[line(9), line(8)]))
    assert [line.message for line in client.trial(3).logs(tail=2)] == ["line 8", "line 9"]
    newest: JsonObject = {"result": {"id": "9", "message": "line 9", "timestamp": "2026-01-02T03:04:05Z"}}
    master.on("GET", "/api/v1/trials/3/logs", Reply(lines=[newest, line(8)]), Reply(lines=[newest, line(10)]))
    assert [line.message for line in client.trial(3).logs(tail=2, follow=True)] == ["line 8", "line 9", "line 10"]
    asked = master.sent("GET", "/api/v1/trials/3/logs")[-1].query
    assert (asked["follow"], asked["timestampAfter"]) == (["true"], ["2026-01-02T03:04:05+00:00"])
    assert master.asked[1].query == {"limit": ["2"], "orderBy": ["ORDER_BY_DESC"]}


def test_metrics(client: Client, master: PretendMaster) -> None:
    """Reports come with their step, run and values: a list, which is gone through again and again."""
    report = {"trialId": 3, "trialRunId": 2, "group": "validation", "totalBatches": 10, "metrics": {}}
    first = {**report, "metrics": {"validation_metrics": {"accuracy": 0.5}}}
    second = {**report, "metrics": {"avg_metrics": {"loss": "NaN"}}}
    master.on("GET", "/api/v1/trials/3", {"trial": {"id": 3}})
    lines: list[object] = [{"result": {"metrics": [first]}}, {"result": {"metrics": [second]}}]
    master.on("GET", "/api/v1/trials/metrics/trial_metrics", Reply(lines=lines))
    got = client.trial(3).metrics("validation")
    assert len(got) == len(got.to_pandas()) == len(pandas.DataFrame(got)) == 2
    assert list(got) == list(client.trial(3).iter_metrics("validation"))
    assert [(report.steps, report.run_id, report.metrics) for report in got] == [
        (10, 2, {"accuracy": 0.5}),
        (10, 2, {"loss": "NaN"}),
    ]


@pytest.mark.parametrize(
    ("storage", "directory"),
    [
        ({"type": "directory", "container_path": "/c"}, "/c"),
        ({"type": "shared_fs", "host_path": "/h"}, "/h"),
        ({"type": "shared_fs", "host_path": "/h", "storage_path": "s"}, "/h/s"),
        ({"type": "shared_fs", "host_path": "/h", "storage_path": "/h/t"}, "/h/t"),
        ({"type": "s3", "bucket": "b"}, None),
    ],
)
def test_storage_directory(storage: JsonObject, directory: str | None) -> None:
    """Where a storage is a directory, it is known which."""
    assert storage_directory(storage) == (Path(directory) if directory else None)


def with_storage(path: Path) -> JsonObject:
    config: JsonObject = {"checkpoint_storage": {"type": "shared_fs", "host_path": str(path)}}
    return checkpoint("u", 0.9, training={"experimentConfig": config})


def test_download_from_here(client: Client, master: PretendMaster, tmp_path: Path) -> None:
    """Where this machine sees the storage the files are copied; a second download refuses to overwrite the first."""
    (tmp_path / "store" / "u" / "a").mkdir(parents=True)
    (tmp_path / "store" / "u" / "a" / "w.bin").write_bytes(b"1234")
    (tmp_path / "private").write_text("of whoever downloads")
    (tmp_path / "store" / "u" / "link").symlink_to(tmp_path / "private")
    master.on("GET", "/api/v1/checkpoints/u", {"checkpoint": with_storage(tmp_path / "store")})
    target = client.checkpoint("u").download(tmp_path / "out" / "best")
    assert (target / "a" / "w.bin").read_bytes() == b"1234"
    assert (target / "link").is_symlink(), "what a link of somebody else's leads to was copied"
    with pytest.raises(AlreadyExists, match="another directory"):
        client.checkpoint("u").download(target)
    (tmp_path / "store" / "u").rename(tmp_path / "elsewhere")
    (tmp_path / "store" / "u").symlink_to(tmp_path / "elsewhere")
    assert client.checkpoint("u").path() is None


def archive(*names: str) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as file:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = 4
            file.addfile(member, io.BytesIO(b"1234"))
    return packed.getvalue()


def test_download_through_the_master(client: Client, master: PretendMaster, tmp_path: Path) -> None:
    """Elsewhere the master sends the files."""
    master.on("GET", "/api/v1/checkpoints/u", {"checkpoint": checkpoint("u", 0.9)})
    master.on("GET", "/checkpoints/u", Reply(archive("a/w.bin", "top")))
    target = client.checkpoint("u").download(tmp_path / "best")
    assert (target / "a" / "w.bin").read_bytes() == b"1234"
    assert master.asked[-1].headers["Accept"] == "application/gzip"


def test_download_from_nowhere(client: Client, master: PretendMaster, tmp_path: Path) -> None:
    """Where neither this machine nor the master has the files, the message says where they are."""
    master.on("GET", "/api/v1/checkpoints/u", {"checkpoint": with_storage(tmp_path / "elsewhere")})
    with pytest.raises(NotFound, match=r"shared_fs at .*elsewhere, which this machine does not see"):
        client.checkpoint("u").download(tmp_path / "best")
    assert not (tmp_path / "best").exists()


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The servers of the stores that are asked for a checkpoint; each has one file."""
    servers: list[str] = []

    def fetch(storage: ObjectStorage, uuid: str, target: str) -> None:
        servers.append(str(storage.identity().get("endpoint_url", "")))
        Path(target).mkdir(parents=True, exist_ok=True)
        (Path(target) / "w.bin").write_bytes(uuid.encode())

    monkeypatch.setattr(ObjectStorage, "download", fetch)
    return servers


def in_a_bucket(master: PretendMaster, owner: str, server: str = "") -> None:
    """A checkpoint of that owner's experiment, which the master does not send."""
    storage: JsonObject = {"type": "s3", "bucket": "b", **({"endpoint_url": server} if server else {})}
    training: JsonObject = {"trialId": 1, "experimentId": 7, "experimentConfig": {"checkpoint_storage": storage}}
    master.on("GET", "/api/v1/checkpoints/u", {"checkpoint": checkpoint("u", 0.9, training=training)})
    refusal: JsonObject = {"message": "the master touches none but its own checkpoint_storage"}
    master.on("GET", "/checkpoints/u", Reply(refusal, status=400))
    master.on("GET", "/api/v1/experiments/7", {"experiment": {**EXPERIMENT, "username": owner}})
    master.on("GET", "/api/v1/me", {"user": {"id": 2, "username": "ann"}})


@pytest.mark.parametrize(
    ("owner", "server", "mode", "asked"),
    [
        ("ann", "http://minio:9000", "auto", True),
        ("bob", "http://minio:9000", "auto", False),
        ("bob", "http://minio:9000", "direct", True),
        ("bob", "", "auto", True),
        ("ann", "http://minio:9000", "master", False),
    ],
    ids=["own", "of another", "of another, but said so", "the vendor's", "through the master alone"],
)
def test_own_credentials_go_where_one_says(
    client: Client,
    master: PretendMaster,
    opened: list[str],
    tmp_path: Path,
    owner: str,
    server: str,
    mode: str,
    asked: bool,
) -> None:
    """Whoever may submit an experiment names a server in it: nobody's credentials are sent there unasked."""
    in_a_bucket(master, owner, server)
    if asked:
        assert (client.checkpoint("u").download(tmp_path / "best", mode=mode) / "w.bin").read_bytes() == b"u"
    else:
        says = "touches none but its own" if mode == "master" else "your credentials go there only if you say so"
        with pytest.raises((NotFound, InvalidInput), match=says):
            client.checkpoint("u").download(tmp_path / "best", mode=mode)
        assert not list(tmp_path.iterdir())
    assert opened == ([server] if asked else [])


def test_a_way_that_there_is_not(client: Client, master: PretendMaster, tmp_path: Path) -> None:
    """It is refused before anything is asked for."""
    in_a_bucket(master, "ann")
    with pytest.raises(InvalidInput, match="one of auto, direct, master, not 'web'"):
        client.checkpoint("u").download(tmp_path / "best", mode="web")


@pytest.mark.parametrize(
    ("body", "kind"),
    [(archive("../out"), InvalidInput), (archive("/tmp/out"), InvalidInput), (archive("a")[:40], BrokenStream)],
    ids=["above", "absolute", "cut off"],
)
def test_bad_download(
    client: Client, master: PretendMaster, tmp_path: Path, body: bytes, kind: type[Exception]
) -> None:
    """An archive that is broken or reaches outside leaves nothing behind."""
    master.on("GET", "/api/v1/checkpoints/u", {"checkpoint": checkpoint("u", 0.9)})
    master.on("GET", "/checkpoints/u", Reply(body))
    with pytest.raises(kind):
        client.checkpoint("u").download(tmp_path / "best" / "u")
    assert not (tmp_path / "out").exists()
    assert not list((tmp_path / "best").glob("*"))


def test_a_series_is_found_in_its_group(client: Client, master: PretendMaster) -> None:
    """Validation before training before others; a name that nobody reported is refused with those like it."""
    master.on("GET", "/api/v1/trials/3", {"trial": {"id": 3}})
    number = {"type": "number", "count": 2}
    groups = {
        "validation": {"validation_loss": number, "loss": number},
        "training": {"loss": number},
        "x": {"y": number},
    }
    master.on("GET", "/api/v1/trials/3/metric-summaries", groups)
    chart = {"total": 1, "steps": [10], "times": [0], "values": ["NaN"]}
    master.on("GET", "/api/v1/trials/3/series", chart)
    trial = client.trial(3)
    for metric in ("validation_loss", "loss", "y"):
        assert [point.steps for point in trial.series(metric)] == [10]
    trial.series("loss", "validation")
    asked = [request.query["group"] for request in master.sent("GET", "/api/v1/trials/3/series")]
    assert asked == [["validation"], ["validation"], ["x"], ["validation"]]
    with pytest.raises(NotFound, match="validation_loss"):
        trial.series("validaton_loss")


def test_lists_as_data_frames(client: Client, master: PretendMaster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row for each, what lies inside has a dot; without pandas it is said what to install."""
    trials = [{"id": 3, "hparams": {"lr": 0.1, "net": {"units": 8}}}, {"id": 4, "hparams": {"lr": 0.2}}]
    page = {"pagination": {"endIndex": 2, "total": 2}}
    master.on("GET", "/api/v1/experiments/7", {"experiment": {"id": 7}, "config": {}})
    master.on("GET", "/api/v1/experiments/7/trials", {"trials": trials, **page})
    table = client.experiment(7).trials()
    frame = table.to_pandas()
    assert list(frame["id"]) == [3, 4]
    assert list(frame["hparams.lr"]) == [0.1, 0.2]
    assert frame["hparams.net.units"].fillna(0).tolist() == [8, 0]
    assert not {"raw", "session"} & set(frame.columns)
    assert [trial.id for trial in table[:1]] == [3]
    report = {"trialId": 3, "trialRunId": 1, "group": "validation", "totalBatches": 10}
    lines: list[object] = [{"result": {"metrics": [{**report, "metrics": {"validation_metrics": {"loss": 0.5}}}]}}]
    master.on("GET", "/api/v1/trials/metrics/trial_metrics", Reply(lines=lines))
    assert table[0].metrics("validation").to_pandas()["loss"].tolist() == [0.5]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InvalidInput, match="pip install pandas"):
        table.to_pandas()


def test_metrics_as_columns(client: Client, master: PretendMaster) -> None:
    """Lists of one length: what a report lacks is None, what lies inside has a dot, our own names stay ours."""
    report = {"trialId": 3, "trialRunId": 2, "group": "validation", "totalBatches": 10, "metrics": {}}
    first = {**report, "metrics": {"validation_metrics": {"accuracy": 0.5, "per": {"cat": 1}}}}
    second = {**report, "totalBatches": 20, "metrics": {"validation_metrics": {"loss": "NaN", "steps": 7}}}
    master.on("GET", "/api/v1/trials/3", {"trial": {"id": 3}})
    lines: list[object] = [{"result": {"metrics": [first, second]}}]
    master.on("GET", "/api/v1/trials/metrics/trial_metrics", Reply(lines=lines))
    columns = client.trial(3).metrics("validation").columns()
    assert {len(column) for column in columns.values()} == {2}
    assert columns["steps"] == [10, 20]
    assert columns["accuracy"] == [0.5, None]
    assert columns["per.cat"] == [1, None]
    assert columns["metrics.steps"] == [None, 7]
    assert str(columns["loss"]) == "[None, nan]"
