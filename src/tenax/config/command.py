"""From what a user submits for a command or a generic task to a complete configuration.

Layers, the highest first: the user's own, the template, the task container defaults (a pool's over the master's), the
pool's default priority, the defaults of the schema. All problems of all layers are reported at once.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from functools import reduce

from tenax.config import container_defaults
from tenax.config.display import report_stars, secret_parts
from tenax.config.names import readable_name
from tenax.config.problems import ProblemReport, raise_problems
from tenax.config.resolve import Layers
from tenax.config.schema.command import COMMAND, GENERIC, CommandConfig, GenericTaskConfig
from tenax.config.structs import Struct
from tenax.config.templates import for_struct
from tenax.config.text import check_size, read_object
from tenax.jsonvalue import Json, JsonObject, as_object


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedCommand:
    """A complete configuration: as a document, and what must be known of it to launch it."""

    #: Every key with its value. Holds secrets; to show it, use `without_secrets`.
    document: JsonObject
    description: str
    slots: int
    priority: int | None
    weight: float
    time_limit: float | None = None
    #: What of its secrets the user's own text says.
    own: JsonObject = field(default_factory=dict)
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandWishes:
    """What must be known of a configuration before its layers can be loaded; empty where it says nothing."""

    resource_pool: str
    slots: int
    workspace: str = ""
    project: str = ""


def parse_command(
    config: str | JsonObject, *, rng: random.Random, title: str, layers: Layers, generic: bool = False
) -> ResolvedCommand:
    """The complete configuration of ``config`` (a document, or YAML or JSON text) over ``layers``.

    ``title`` and three words that ``rng`` draws are the description of what has none. ``generic``: the configuration
    of a generic task. Raises `ConfigError` with every problem found.
    """
    known = _known(generic)
    own, report = _own_layer(config, known)
    reports = [report]
    template = _template_layer(layers.template, known, reports)
    slots = _wishes(known, own).slots
    stack = [own, template, *_cluster_layers(layers, known, slots, reports)]
    document = as_object(known.fill(reduce(known.merge, stack)))
    _complete(document, layers, title, rng)
    known.finish(document, (), report)
    check_size(document, report)
    raise_problems(reports)
    notices = dict.fromkeys(notice for each in reports for notice in each.notices)
    return replace(_resolved(known, document, tuple(notices)), own=secret_parts(own))


def command_wishes(config: str | JsonObject, *, template: JsonObject | None = None, generic: bool) -> CommandWishes:
    """What ``config`` over ``template`` asks for, so that its layers can be loaded. Raises `ConfigError`."""
    known = _known(generic)
    own, report = _own_layer(config, known)
    reports = [report]
    below = _template_layer(template, known, reports)
    raise_problems(reports)
    return _wishes(known, known.merge(own, below))


def _known(generic: bool) -> Struct[CommandConfig] | Struct[GenericTaskConfig]:
    return GENERIC if generic else COMMAND


def _own_layer(
    config: str | JsonObject, known: Struct[CommandConfig] | Struct[GenericTaskConfig]
) -> tuple[JsonObject, ProblemReport]:
    document, lines = read_object(config) if isinstance(config, str) else (config, {})
    report = ProblemReport(lines)
    resources = document.get("resources")
    if isinstance(resources, dict) and resources.get("slots_per_trial") is not None:
        report.add(("resources", "slots_per_trial"), "is for experiments: a task that is none has slots")
        resources = {name: value for name, value in resources.items() if name != "slots_per_trial"}
        document = {**document, "resources": resources}
    report_stars(document, report)
    return as_object(known.check(document, (), report)), report


def _template_layer(
    template: str | JsonObject | None,
    known: Struct[CommandConfig] | Struct[GenericTaskConfig],
    reports: list[ProblemReport],
) -> JsonObject:
    if template is None:
        return {}
    document, lines = read_object(template) if isinstance(template, str) else (template, {})
    report = ProblemReport(lines, origin="the template")
    reports.append(report)
    checked = as_object(known.check(for_struct(document, known), (), report))
    resources = checked.get("resources")
    if isinstance(resources, dict):
        # How many slots it takes is said in its own configuration alone.
        checked["resources"] = {name: value for name, value in resources.items() if name != "slots"}
    return checked


def _cluster_layers(
    layers: Layers, known: Struct[CommandConfig] | Struct[GenericTaskConfig], slots: int, reports: list[ProblemReport]
) -> list[Json]:
    report = ProblemReport(origin="the cluster's defaults; tell its operator")
    reports.append(report)
    pool = layers.pool
    defaults = container_defaults.merged(
        layers.task_container_defaults, pool.task_container_defaults if pool is not None else None, report
    )
    layer = container_defaults.as_layer(defaults, slots=slots)
    if defaults.get("work_dir") is not None:
        layer["work_dir"] = defaults["work_dir"]
    stack: list[Json] = [for_struct(layer, known)]
    if pool is not None and pool.default_priority is not None:
        stack.append({"resources": {"priority": pool.default_priority}})
    report.notices.clear()  # what an operator spells in an older way is no business of the user
    return stack


def _complete(document: JsonObject, layers: Layers, title: str, rng: random.Random) -> None:
    """Fill in what is drawn or decided here."""
    if not document.get("description"):
        named = document.get("name")
        document["description"] = named if isinstance(named, str) and named else f"{title} ({readable_name(rng)})"
    resources = {**as_object(document.get("resources")), "is_single_node": True}
    if layers.pool is not None:
        resources["resource_pool"] = layers.pool.name
    document["resources"] = resources


def _resolved(
    known: Struct[CommandConfig] | Struct[GenericTaskConfig], document: JsonObject, notices: tuple[str, ...]
) -> ResolvedCommand:
    built: CommandConfig | GenericTaskConfig = known.build(document)
    return ResolvedCommand(
        document=document,
        description=built.description or "",
        slots=built.resources.slots,
        priority=built.resources.priority,
        weight=built.resources.weight,
        time_limit=built.resources.time_limit,
        notices=notices,
    )


def _wishes(known: Struct[CommandConfig] | Struct[GenericTaskConfig], document: Json) -> CommandWishes:
    filled = as_object(known.fill(document))
    resources = as_object(filled.get("resources"))
    slots = resources.get("slots")
    return CommandWishes(
        resource_pool=str(resources.get("resource_pool") or ""),
        slots=slots if isinstance(slots, int) else 1,
        workspace=str(filled.get("workspace") or ""),
        project=str(filled.get("project") or ""),
    )
