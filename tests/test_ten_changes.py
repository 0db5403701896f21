"""The ten changes of CONTRIBUTING.md, tried: each adds one thing where the table there says, and uses it to the end.

A test stands in for the file that a change would add, and for its line in the registry. Nothing else is touched: where
a change needed another place, what is asked here would not know of it.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated, ClassVar, cast

import click
import pytest
from click.testing import CliRunner

from tenax.agent.app import make_runtime
from tenax.agent.detect import detect
from tenax.cli.console.reference import page
from tenax.cli.main import cli
from tenax.cli.queue import group as queue
from tenax.config import agent, resolve
from tenax.config.agent import AgentSettings
from tenax.config.master import PoolSettings, SchedulerSettings
from tenax.config.problems import ConfigError
from tenax.config.resolve import Layers, parse_experiment
from tenax.config.schema import experiment as experiment_schema
from tenax.config.schema import searcher as searcher_schema
from tenax.config.schema import storage as storage_schema
from tenax.config.shapes import IntShape
from tenax.config.structs import Struct
from tenax.host import runtimes
from tenax.host.runtimes import RUNTIMES, RuntimeKind
from tenax.jsonvalue import Json
from tenax.lifecycle.experiment import TRANSITIONS, ExperimentEvent, ExperimentState
from tenax.master.access.authorization import Allow
from tenax.master.api.http.openapi import document
from tenax.master.api.http.routing import Routes
from tenax.master.api.queue.messages import SchedulerType
from tenax.master.app import ROUTES, create_app
from tenax.master.store.database.filter_sql import Column, Holds, Order
from tenax.master.store.experiments.columns import EXPERIMENTS
from tenax.master.store.queue.pools import rules
from tenax.runtime.fake import FakeMachine, FakeRuntime
from tenax.runtime.gpus import registry as gpus
from tenax.runtime.gpus.kind import EngineRequest, Gpu
from tenax.runtime.port import Runtime
from tenax.scheduler.policy import jobs_ahead
from tenax.scheduler.registry import POLICIES
from tenax.scheduler.snapshot import PoolPlan, PoolSnapshot, SlotRequest
from tenax.search import view
from tenax.search.brackets import BracketPlan, without_rungs
from tenax.search.config import Map, Method
from tenax.search.methods.registry import METHODS
from tenax.storage.directory import DirectoryStorage
from tenax.storage.kind import StorageKind, absolute
from tenax.storage.port import Storage
from tenax.storage.registry import KINDS, from_config
from tenax.wire.agents import SlotInfo
from tests.kits.api import Api, Client
from tests.kits.builders.pool import Pool
from tests.kits.builders.search import Run
from tests.kits.master.experiments import create
from tests.kits.rows import add_experiment

CONFIG: dict[str, Json] = {
    "name": "tried",
    "entrypoint": "python3 train.py",
    "hyperparameters": {"lr": {"type": "double", "minval": 0, "maxval": 1}},
    "searcher": {"name": "random", "metric": "loss", "max_trials": 2},
    "checkpoint_storage": {"type": "directory", "container_path": "/checkpoints"},
}


def parsed(**changes: Json) -> resolve.ResolvedExperiment:
    """The configuration above with these sections."""
    return parse_experiment({**CONFIG, **changes}, rng=random.Random(0), layers=Layers())


@dataclass(frozen=True, slots=True)
class Twins(Method):
    """Two samples for each pair."""

    name: ClassVar[str] = "twins"

    pairs: int

    def brackets(self, space: Map) -> tuple[BracketPlan, ...]:
        return (without_rungs(2 * self.pairs, 0),)


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinsSettings(searcher_schema.CommonConfig):
    """As configurations spell them."""

    pairs: Annotated[int, IntShape(minimum=1)] = 1

    def method(self) -> Method:
        return Twins(self.pairs)


def test_a_search_method(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its settings are parsed, its search makes trials and ends, and a person sees what it would do."""
    monkeypatch.setitem(METHODS, Twins.name, Twins)  # type: ignore[arg-type]  # a dict, to whom it is open
    monkeypatch.setitem(searcher_schema.SEARCHER.variants, Twins.name, Struct(TwinsSettings))
    resolved = parsed(searcher={"name": "twins", "metric": "loss", "pairs": 3})
    assert [row.count for row in view.preview(resolved.search)] == [6]
    run = Run(resolved.search, resolved.seed)
    assert len(run.creates) == 6
    ended = [decision for trial in range(6) for decision in run.exit(trial)]
    assert type(ended[-1]).__name__ == "Shutdown"


@dataclass(frozen=True, slots=True, kw_only=True)
class WithField(experiment_schema.ExperimentConfig):
    """The configuration of an experiment with one field more."""

    warmup_epochs: Annotated[int, IntShape(minimum=1)] = 7


def test_a_field_of_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its default is filled in, a layer below may set it, a wrong value is refused at its place."""
    schema = Struct(WithField, ignored=experiment_schema.IGNORED_SECTIONS)
    monkeypatch.setattr(resolve, "EXPERIMENT", schema)
    assert parsed().document["warmup_epochs"] == 7
    layers = Layers(template={"warmup_epochs": 9})
    assert parse_experiment(CONFIG, rng=random.Random(0), layers=layers).document["warmup_epochs"] == 9
    with pytest.raises(ConfigError, match="warmup_epochs"):
        parsed(warmup_epochs=0)


class Newest:
    """Whoever asked last goes first."""

    name: ClassVar[str] = "newest"
    in_turns: ClassVar[bool] = False

    def plan(self, snapshot: PoolSnapshot) -> PoolPlan:
        return POLICIES["priority"].plan(snapshot)

    def order(self, snapshot: PoolSnapshot) -> tuple[SlotRequest, ...]:
        return tuple(sorted(snapshot.requests, key=lambda request: -request.requested_at))


def test_a_scheduler_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings of a pool take it, a pool is planned and queued by it, and clients are told something they know."""
    from tenax.scheduler import registry as scheduler
    from tests.kits.builders.pool import agent as machine

    monkeypatch.setitem(POLICIES, Newest.name, Newest())  # type: ignore[arg-type]
    settings = PoolSettings(name="p", scheduler=SchedulerSettings(type="newest"))
    pool = Pool([machine("a", 2)], rules(settings)).ask("first", 2).ask("second", 2)
    queued = scheduler.queue(pool.snapshot)
    assert [request.allocation_id for request in queued] == ["second", "first"]
    assert list(jobs_ahead(queued)) == ["second", "first"]
    assert len(pool.plan().placements) == 1
    assert SchedulerType.of("newest") is SchedulerType.UNSPECIFIED


async def test_a_runtime(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Settings name it, an agent opens it, and one whose directory holds containers of it stays with it."""
    module = ModuleType("tests.pretend_runtime")

    async def open_runtime(settings: AgentSettings) -> Runtime:
        return FakeRuntime(FakeMachine(settings.dir, play=None))  # type: ignore[arg-type]  # nothing is started

    module.open_runtime = open_runtime  # type: ignore[attr-defined]
    kind = RuntimeKind("pretend", "pretended", module.__name__)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(RUNTIMES, kind.name, kind)  # type: ignore[arg-type]
    monkeypatch.setattr(agent, "CHOICES", (runtimes.AUTO, *RUNTIMES))
    assert (await make_runtime(AgentSettings(dir=tmp_path, runtime="pretend"))).name == FakeRuntime.name
    (tmp_path / kind.folder / "some-container").mkdir(parents=True)
    assert (await make_runtime(AgentSettings(dir=tmp_path))).name == FakeRuntime.name


class Shelf(StorageKind):
    """Checkpoints in a directory, under another name."""

    name = "shelf"
    standard_library_only = True

    def open(self, config: Mapping[str, Json], mount: str) -> Storage:
        path = absolute(config, "shelf", self.name)
        return DirectoryStorage(path, identity={"type": self.name, "shelf": path}, label=path)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShelfSettings:
    """As configurations spell them."""

    shelf: Annotated[str, storage_schema._NAME]
    save_experiment_best: Annotated[int, storage_schema._KEEP] = 0
    save_trial_best: Annotated[int, storage_schema._KEEP] = 1
    save_trial_latest: Annotated[int, storage_schema._KEEP] = 1


def test_a_checkpoint_storage(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its section is parsed and filled, and opens the storage that keeps a checkpoint and gives it back."""
    monkeypatch.setitem(KINDS, Shelf.name, Shelf())  # type: ignore[arg-type]
    monkeypatch.setitem(storage_schema.CHECKPOINT_STORAGE.variants, Shelf.name, Struct(ShelfSettings))
    section = parsed(checkpoint_storage={"type": "shelf", "shelf": str(tmp_path / "kept")}).document[
        "checkpoint_storage"
    ]
    assert isinstance(section, dict)
    assert section["save_trial_latest"] == 1
    storage = from_config(section)
    storage.stage_bytes("0d3c2b1a-0000-4000-8000-00000000000a", "weights", b"12345")
    storage.commit("0d3c2b1a-0000-4000-8000-00000000000a")
    assert storage.list_files("0d3c2b1a-0000-4000-8000-00000000000a")["weights"] == 5


async def test_an_endpoint(api: Api) -> None:
    """One that is declared is served to whom its policy names, in both spellings, and stands in the contract."""
    routes = Routes("Tried")

    @routes.get("/api/v1/tried/{some_number}", "GetTried", allow=Allow.USER)
    async def tried(some_number: int, how_often: int = 1) -> dict[str, int]:
        return {"product": some_number * how_often}

    app = create_app(api.master, (*ROUTES, routes))
    asked = Client(app, api.user._http.headers)
    for query in ({"howOften": 3}, {"how_often": 3}):
        reply = await asked.get("/api/v1/tried/7", **query)
        assert (reply.status_code, reply.json()) == (200, {"product": 21})
    nobody = Client(app)
    assert (await nobody.get("/api/v1/tried/7")).status_code == 401
    paths = document(app)["paths"]
    assert isinstance(paths, dict)
    operation = paths["/api/v1/tried/{someNumber}"]
    assert isinstance(operation, dict)
    assert operation["get"]["x-allow"] == "user"  # type: ignore[index, call-overload]
    await asked.close()
    await nobody.close()


def test_a_verb_of_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in the help of its noun, runs under each name of it, and is on the page of commands."""

    @click.command(help="Turn the queue over.")
    def turn() -> None:
        click.echo("turned")

    monkeypatch.setitem(queue.commands, "turn", turn)
    assert "Turn the queue over." in CliRunner().invoke(cli, ["queue", "--help"]).output
    assert CliRunner().invoke(cli, ["job", "turn"]).output == "turned\n"
    assert "\n## tenax queue turn\n" in page()


async def test_a_change_of_the_pause_rule(monkeypatch: pytest.MonkeyPatch, api: Api) -> None:
    """What may be paused is asked of one table: by the verb for one experiment and by that for many."""
    made = await create(api)
    experiment = made["experiment"]
    assert isinstance(experiment, dict)
    monkeypatch.delitem(TRANSITIONS, (ExperimentState.ACTIVE, ExperimentEvent.PAUSE))
    reply = await api.user.post(f"/api/v1/experiments/{experiment['id']}/pause")
    assert reply.status_code >= 400
    assert "cannot pause" in reply.text
    many = await api.user.post("/api/v1/projects/1/experiments/pause", {"experimentIds": [experiment["id"]]})
    assert "cannot pause" in many.json()["results"][0]["error"]
    shown = (await api.user.get(f"/api/v1/experiments/{experiment['id']}")).json()["experiment"]
    assert shown["state"] != "STATE_PAUSED"


class Abacus:
    """Beads."""

    kind: ClassVar[str] = "abacus"
    variable: ClassVar[str] = "ABACUS_VISIBLE_BEADS"
    withheld: ClassVar[Mapping[str, str]] = {"ABACUS_ENGINE": "void"}

    def find(self) -> list[Gpu]:
        return [Gpu("0", "BEAD-a", "Bead"), Gpu("1", "BEAD-b", "Bead")]

    def engine_request(self, uuids: Sequence[str]) -> EngineRequest:
        return EngineRequest(devices=("/dev/abacus:/dev/abacus:rw",), environment={self.variable: ",".join(uuids)})


def test_a_kind_of_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent finds it and keeps to what it may offer; a process and a container get theirs, and others none of it."""
    for known in gpus.GPUS.values():
        monkeypatch.setattr(type(known), "find", lambda self: [])
    monkeypatch.setitem(gpus.GPUS, Abacus.kind, Abacus())  # type: ignore[arg-type]
    settings = AgentSettings(agent_id="a")
    assert detect(settings, {})[1] == SlotInfo(1, "abacus", "Bead", "BEAD-b")
    assert [slot.uuid for slot in detect(settings, {Abacus.variable: "1"})] == ["BEAD-b"]
    assert gpus.variables("abacus", ["BEAD-b"]) == {Abacus.variable: "BEAD-b"}
    assert gpus.variables("cpu", [])[Abacus.variable] == ""
    given = gpus.engine_request("abacus", ["BEAD-b"])
    assert given.devices == ("/dev/abacus:/dev/abacus:rw",)
    assert given.environment == {"NVIDIA_VISIBLE_DEVICES": "void", Abacus.variable: "BEAD-b"}
    assert gpus.engine_request("cuda", ["GPU-1"]).environment == {"ABACUS_ENGINE": "void"}


_NOTES = Column(
    "d.notes",
    Holds.TEXT,
    sort_by="notes",
    order=Order("lower(d.notes)", "join experiment_documents d on d.experiment_id = e.id"),
    label="What people wrote",
)


async def test_a_column_of_the_experiment_list(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """The catalogue has it, searches filter and order by it, and the list is ordered by it."""
    async with api.master.db.transaction() as conn:
        for notes in ("b", "c", "A"):
            number = await add_experiment(conn)
            await conn.execute("update experiment_documents set notes = $2 where experiment_id = $1", number, notes)
    assert (await api.user.get("/api/v1/experiments", sortBy="SORT_BY_NOTES")).status_code == 400
    monkeypatch.setitem(cast("MutableMapping[str, Column]", EXPERIMENTS.columns), "notes", _NOTES)

    columns = (await api.user.get("/api/v1/projects/1/columns")).json()["columns"]
    (entry,) = [one for one in columns if one["column"] == "notes"]
    assert (entry["displayName"], entry["type"]) == ("What people wrote", "COLUMN_TYPE_TEXT")

    asked = {
        "kind": "field",
        "columnName": "notes",
        "operator": "contains",
        "value": "a",
        "location": "LOCATION_TYPE_EXPERIMENT",
        "type": "COLUMN_TYPE_TEXT",
    }
    wanted = json.dumps({"filterGroup": {"kind": "group", "conjunction": "and", "children": [asked]}})
    assert await _searched(api, filter=wanted) == [3]
    assert await _searched(api, sort="notes=desc") == [2, 1, 3]
    listed = await api.user.get("/api/v1/experiments", sortBy="SORT_BY_NOTES")
    assert [one["id"] for one in listed.json()["experiments"]] == [3, 1, 2]


async def _searched(api: Api, **more: str) -> list[int]:
    found = await api.user.post("/api/v1/experiments-search", more)
    assert found.status_code == 200, found.text
    return [one["experiment"]["id"] for one in found.json()["experiments"]]


def test_each_change_of_the_table_is_tried() -> None:
    """What CONTRIBUTING.md says of ten changes is held by a test each."""
    text = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text()
    rows = text.partition("| change | a new file | lines in |\n|---|---|---|\n")[2].partition("\n\n")[0].splitlines()
    names = [row.split("|")[1].strip().lower() for row in rows]
    assert len(names) == 10
    assert [name for name in names if f"test_{name.replace(' ', '_')}" not in globals()] == []
