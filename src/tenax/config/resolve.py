"""From what a user submits to a complete configuration.

Layers, the highest first: the user's own text, the template, the task container defaults (a pool's over the master's),
the workspace's checkpoint storage, the master's, the pool's default priority, the defaults of the schema. All problems
of all layers are reported at once. The resolved document holds every key, and resolving it again changes nothing.
`search_config` is what it asks of the search.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from functools import lru_cache, reduce

from tenax.config import container_defaults
from tenax.config.dialect import modernised
from tenax.config.display import report_stars, secret_parts
from tenax.config.names import readable_name
from tenax.config.problems import ConfigError, ProblemReport, raise_problems
from tenax.config.schema.experiment import EXPERIMENT, ExperimentConfig
from tenax.config.schema.searcher import CommonConfig
from tenax.config.schema.storage import CHECKPOINT_STORAGE
from tenax.config.templates import for_struct
from tenax.config.text import check_size, read_object
from tenax.jsonvalue import Json, JsonObject, as_object
from tenax.search import config as search
from tenax.search.config import SearchConfig

#: Seeds that are drawn; a user may give any of 32 bits.
_DRAWN_SEEDS = 1 << 31


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolLayer:
    """What the pool that an experiment will run in adds to it."""

    name: str
    default_priority: int | None = None
    task_container_defaults: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers:
    """What stands below a user's own text. The documents are as their owners wrote them."""

    #: YAML or JSON text, or a document.
    template: str | JsonObject | None = None
    #: The master's.
    task_container_defaults: JsonObject = field(default_factory=dict)
    pool: PoolLayer | None = None
    workspace_checkpoint_storage: JsonObject | None = None
    master_checkpoint_storage: JsonObject | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What must be known of a configuration before its layers can be loaded; empty where it says nothing."""

    workspace: str
    project: str
    resource_pool: str
    slots_per_trial: int
    priority: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedExperiment:
    """A complete configuration: as values for our code, as a document, and what to tell its owner."""

    experiment: ExperimentConfig
    search: SearchConfig
    #: Every key with its value, as ``DET_EXPERIMENT_CONFIG`` and API replies carry it. Holds secrets; to show it, use
    #: `without_secrets`.
    document: JsonObject
    #: What of its secrets the user's own text says.
    own: JsonObject = field(default_factory=dict)
    #: Old spellings that were translated, settings without effect.
    notices: tuple[str, ...] = ()
    #: Whether the user's text or the template says ``max_restarts``, or it was resolved before.
    max_restarts_given: bool = field(default=True, compare=False)

    @property
    def name(self) -> str:
        """The user's name for it, or the three words that were drawn."""
        assert self.experiment.name is not None
        return self.experiment.name

    @property
    def seed(self) -> int:
        """Seeds the random stream of the search."""
        assert self.experiment.reproducibility.experiment_seed is not None
        return self.experiment.reproducibility.experiment_seed


def parse_experiment(
    config: str | JsonObject,
    *,
    rng: random.Random,
    layers: Layers | None = None,
    managed: bool = True,
) -> ResolvedExperiment:
    """The complete configuration of ``config`` (YAML or JSON text, or a document) over ``layers``.

    ``rng`` draws the name and the seed where none is given. A ``managed`` experiment is one that we run, and needs an
    entrypoint. Raises `ConfigError` with every problem found.
    """
    layers = layers or Layers()
    own, report = _own_layer(config)
    reports = [report]
    template = _template_layer(layers.template, reports)
    wished = _wishes(EXPERIMENT.merge(own, template))
    stack = [own, template, *_cluster_layers(layers, wished.slots_per_trial, reports)]
    united = as_object(EXPERIMENT.check(reduce(EXPERIMENT.merge, stack), (), report))
    given = united.get("max_restarts") is not None
    document = modernised(united, report)
    document = _completed(as_object(EXPERIMENT.fill(document)), layers.pool, rng)
    if managed and document.get("entrypoint") is None:
        report.missing((), "entrypoint", "the command that runs the training, such as 'python3 train.py'")
    EXPERIMENT.finish(document, (), report)
    check_size(document, report)
    raise_problems(reports)
    notices = dict.fromkeys(notice for each in reports for notice in each.notices)
    return replace(_built(document, tuple(notices)), own=secret_parts(own), max_restarts_given=given)


def with_priority(document: JsonObject, priority: int) -> JsonObject:
    """A complete configuration with the priority that its job has, where it names one."""
    resources = as_object(document.get("resources"))
    if resources.get("priority") in (None, priority):
        return document
    return {**document, "resources": {**resources, "priority": priority}}


@lru_cache(maxsize=1)
def experiment_schema() -> JsonObject:
    """What a configuration may hold, as JSON Schema, for editors; it takes all that `parse_experiment` takes."""
    about: JsonObject = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Tenax experiment"}
    return {**about, **EXPERIMENT.json_schema()}


def stored_experiment(document: JsonObject) -> ResolvedExperiment:
    """A configuration that was resolved before, from its document. Nothing is checked, drawn or reported again."""
    return _built(document, ())


@lru_cache(maxsize=2048)
def written_secrets(original_config: str) -> JsonObject:
    """What of the secrets of a resolved configuration its user's own text says; it is not to be changed.

    A text that cannot be read any more says none.
    """
    try:
        return secret_parts(_own_layer(original_config)[0])
    except ConfigError:
        return {}


def wishes_of(config: str | JsonObject, *, template: str | JsonObject | None = None) -> Wishes:
    """What ``config`` over ``template`` asks for, so that its layers can be loaded. Raises `ConfigError`."""
    own, report = _own_layer(config)
    reports = [report]
    below = _template_layer(template, reports)
    raise_problems(reports)
    return _wishes(EXPERIMENT.merge(own, below))


def _own_layer(config: str | JsonObject) -> tuple[JsonObject, ProblemReport]:
    document, lines = read_object(config) if isinstance(config, str) else (config, {})
    report = ProblemReport(lines)
    resources = document.get("resources")
    if isinstance(resources, dict) and resources.get("slots") is not None:
        report.add(("resources", "slots"), "is for notebooks, shells and commands: an experiment has slots_per_trial")
    report_stars(document, report)
    return as_object(EXPERIMENT.check(document, (), report)), report


def _template_layer(template: str | JsonObject | None, reports: list[ProblemReport]) -> JsonObject:
    if template is None:
        return {}
    document, lines = read_object(template) if isinstance(template, str) else (template, {})
    report = ProblemReport(lines, origin="the template")
    reports.append(report)
    return as_object(EXPERIMENT.check(for_struct(document, EXPERIMENT), (), report))


def _cluster_layers(layers: Layers, slots: int, reports: list[ProblemReport]) -> list[Json]:
    """The layers of the cluster, the highest first."""
    report = ProblemReport(origin="the cluster's defaults; tell its operator")
    reports.append(report)
    pool = layers.pool
    defaults = container_defaults.merged(
        layers.task_container_defaults, pool.task_container_defaults if pool is not None else None, report
    )
    stack: list[Json] = [container_defaults.as_layer(defaults, slots=slots)]
    for storage in (layers.workspace_checkpoint_storage, layers.master_checkpoint_storage):
        if storage is not None:
            checked = CHECKPOINT_STORAGE.check(storage, ("checkpoint_storage",), report)
            stack.append({"checkpoint_storage": checked})
    if pool is not None and pool.default_priority is not None:
        stack.append({"resources": {"priority": pool.default_priority}})
    report.notices.clear()  # what an operator spells in an older way is no business of the user
    return stack


def _completed(document: JsonObject, pool: PoolLayer | None, rng: random.Random) -> JsonObject:
    """A filled document with a name, a seed and the name of its pool."""
    name = document.get("name")
    document = {**document, "name": name if name is not None else readable_name(rng)}
    reproducibility = as_object(document.get("reproducibility"))
    if reproducibility.get("experiment_seed") is None:
        document["reproducibility"] = {**reproducibility, "experiment_seed": rng.randrange(_DRAWN_SEEDS)}
    if pool is not None:
        document["resources"] = {**as_object(document.get("resources")), "resource_pool": pool.name}
    return document


def _built(document: JsonObject, notices: tuple[str, ...]) -> ResolvedExperiment:
    experiment = EXPERIMENT.build(document)
    search = search_config(experiment.searcher, experiment.hyperparameters)
    return ResolvedExperiment(experiment=experiment, search=search, document=document, notices=notices)


def _wishes(document: Json) -> Wishes:
    filled = as_object(EXPERIMENT.fill(document))
    resources = as_object(filled.get("resources"))
    slots, priority = resources.get("slots_per_trial"), resources.get("priority")
    return Wishes(
        workspace=str(filled.get("workspace") or ""),
        project=str(filled.get("project") or ""),
        resource_pool=str(resources.get("resource_pool") or ""),
        slots_per_trial=slots if isinstance(slots, int) else 1,
        priority=priority if isinstance(priority, int) else None,
    )


def search_config(searcher: CommonConfig, hyperparameters: search.Map) -> search.SearchConfig:
    """The search of a complete configuration. Raises `Impossible` for a searcher that cannot run."""
    return search.SearchConfig(
        hyperparameters=hyperparameters,
        method=searcher.method(),
        metric=searcher.metric,
        smaller_is_better=searcher.smaller_is_better,
    )
