"""``tenax run``: trials of many experiments in one table, their metadata, and what is done to many at once."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, List, Optional, Sequence, Tuple

import click

from tenax.cli.console import exits, output
from tenax.cli.console.lazy import LazyGroup
from tenax.cli.console.options import Access, json_option, list_options, name_filter, named, pass_access
from tenax.errors import InvalidInput
from tenax.jsonvalue import Json, JsonObject

if TYPE_CHECKING:
    from tenax.client.runs import Run, RunOutcome

#: Whose columns are looked at for a name that no run has.
_PROJECTS = 50
_PROJECT = click.option("--project", "project_id", type=int, metavar="ID", help="Only runs of this project.")
_NUMBERS = click.argument("numbers", metavar="RUN...", type=int, nargs=-1, required=True)


@click.group(cls=LazyGroup, help="Find runs (trials) across experiments, and act on many at once.")
def group() -> None:
    pass


@group.command("list")
@_PROJECT
@click.option(
    "--filter",
    "conditions",
    multiple=True,
    metavar="CONDITION",
    help="Only runs that match: hp.lr>0.01, state=COMPLETED, metadata.team~vision, validation.loss.min<0.2. "
    "May be given several times; all must match.",
)
@click.option("--sort", default="id=desc", show_default=True, metavar="COLUMN=asc|desc", help="Order of the list.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="List at most this many.")
@click.option("--archived", is_flag=True, help="Include archived ones.")
@list_options
@pass_access
def list_(
    access: Access,
    project_id: Optional[int],
    conditions: Tuple[str, ...],
    sort: str,
    limit: int,
    archived: bool,
    as_json: bool,
    as_csv: bool,
) -> None:
    """List runs, the newest first."""
    from tenax.client.projects import list_projects
    from tenax.client.runs import require_columns, search_runs

    runs = list(
        search_runs(
            access.session(), project_id=project_id, conditions=conditions, archived=archived, sort=sort, limit=limit
        )
    )
    if not runs and conditions:
        projects = [project_id] if project_id is not None else [each.id for each in list_projects(access.session(), 0)]
        require_columns(access.session(), conditions, projects[:_PROJECTS])
    names = list({name: None for run in runs for name in run.hparams})
    beside = names if as_csv else []
    columns = [
        output.TableColumn("RUN", right=True),
        output.TableColumn("NAME", cuts=True),
        output.TableColumn("EXPERIMENT", right=True),
        output.TableColumn("STATE", state=True),
        output.TableColumn("METRIC", right=True),
        output.TableColumn("STARTED", spare=True),
        output.TableColumn("TOOK", right=True, spare=True),
        output.TableColumn("WAITED", right=True, spare=True),
        *(output.TableColumn(name, right=True) for name in beside),
        output.TableColumn("OF", cuts=True),
    ]
    rows = [_row(run, beside) for run in runs]
    if names and not as_csv:
        columns.append(output.TableColumn("HYPERPARAMETERS", wraps=True))
        rows = [(*row, output.assignments(run.hparams)) for row, run in zip(rows, runs)]
    output.listing(columns, rows, [run.raw for run in runs], as_json, as_csv)
    if not runs and not as_json and not as_csv:
        output.say("There are no such runs.")


def _row(run: Run, names: List[str]) -> Tuple[str, ...]:
    return (
        str(run.id),
        run.local_id,
        str(run.experiment_id),
        run.state,
        output.number(run.searcher_metric),
        output.moment(run.started),
        output.ran(run),
        output.waited(run),
        *(output.short(run.hparams[name]) if name in run.hparams else "" for name in names),
        run.experiment_name,
    )


@group.command()
@click.argument("project_id", metavar="PROJECT", type=int)
@name_filter
@list_options
@pass_access
def columns(access: Access, project_id: int, part: str, as_json: bool, as_csv: bool) -> None:
    """List the columns that runs of a project can be filtered and sorted by."""
    from tenax.client.connection import reading
    from tenax.client.runs import columns as columns_of

    available = named(part, columns_of(access.session(), project_id), lambda column: reading.text(column, "column"))
    rows = [
        (
            reading.text(column, "column"),
            reading.text(column, "type").replace("COLUMN_TYPE_", "").lower(),
            reading.text(column, "location").replace("LOCATION_TYPE_", "").replace("_", " ").lower(),
        )
        for column in available
    ]
    output.listing(
        (output.TableColumn("COLUMN"), output.TableColumn("TYPE"), output.TableColumn("OF")),
        rows,
        available,
        as_json,
        as_csv,
    )


def _verb(verb: str, done: str, help_: str) -> None:
    @group.command(verb, help=help_)
    @_NUMBERS
    @pass_access
    def run(access: Access, numbers: Tuple[int, ...]) -> int:
        return _act(access, verb, numbers, done)


_verb("kill", "is being ended", "End runs at once.")
_verb(
    "pause",
    "is pausing",
    "Pause runs: each saves a checkpoint and frees its slots. Each must be the only run of its experiment.",
)
_verb("resume", "is resumed", "Resume paused runs.")
_verb("archive", "is archived", "Hide runs that have ended from lists.")
_verb("unarchive", "is no longer archived", "Show runs in lists again.")


@group.command()
@_NUMBERS
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@pass_access
def delete(access: Access, numbers: Tuple[int, ...], yes: bool) -> int:
    """Delete runs that have ended, with their checkpoints, metrics and logs."""
    if not yes:
        which = f"run {numbers[0]}" if len(numbers) == 1 else f"these {len(numbers)} runs"
        output.confirm(f"Delete {which} with checkpoints, metrics and logs?")
    return _act(access, "delete", numbers, "is deleted")


@group.command()
@_NUMBERS
@click.option("--from", "source_id", type=int, required=True, metavar="ID", help="The project they are in.")
@click.option("--to", "target_id", type=int, required=True, metavar="ID", help="The project to move them to.")
@pass_access
def move(access: Access, numbers: Tuple[int, ...], source_id: int, target_id: int) -> int:
    """Move runs, and all other runs of their experiments, to another project."""
    from tenax.client.runs import move as move_runs

    return _report(move_runs(access.session(), numbers, source_id, target_id), f"is in project {target_id}")


@group.command()
@click.argument("number", metavar="RUN", type=int)
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Set this key; VALUE may be JSON.")
@click.option("--unset", "unwanted", multiple=True, metavar="KEY", help="Remove this key.")
@json_option
@pass_access
def metadata(access: Access, number: int, settings: Tuple[str, ...], unwanted: Tuple[str, ...], as_json: bool) -> None:
    """Show or set the metadata of a run; team.lead=Ada sets lead inside team."""
    from tenax.client.trials import get_trial

    trial = get_trial(access.session(), number)
    document = trial.metadata()
    if settings or unwanted:
        document = changed(document, settings, unwanted)
        trial.set_metadata(document)
    if as_json:
        output.document(document)
    elif document:
        output.pairs(leaves(document))
    else:
        output.say(f"Run {number} has no metadata: tenax run metadata {number} --set KEY=VALUE")


def _act(access: Access, verb: str, numbers: Tuple[int, ...], done: str) -> int:
    from tenax.client.runs import act

    return _report(act(access.session(), verb, numbers), done)


def _report(outcomes: List[RunOutcome], done: str) -> int:
    failed = False
    for outcome in outcomes:
        if outcome.error:
            failed = True
            output.fail(f"run {outcome.id}: {outcome.error}")
        else:
            print(f"Run {outcome.id} {done}")
    return exits.FAILED if failed else exits.OK


def leaves(document: JsonObject, prefix: str = "") -> List[Tuple[str, str]]:
    """(path with dots, value) of each leaf."""
    pairs: List[Tuple[str, str]] = []
    for key, value in document.items():
        if isinstance(value, dict) and value:
            pairs += leaves(value, f"{prefix}{key}.")
        else:
            pairs.append((prefix + key, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)))
    return pairs


def changed(document: JsonObject, settings: Sequence[str], unwanted: Sequence[str]) -> JsonObject:
    """A copy with ``KEY=VALUE`` set and keys removed; a key is a path with dots. Raises InvalidInput."""
    made: JsonObject = json.loads(json.dumps(document))
    for setting in settings:
        path, equals, text = setting.partition("=")
        if not equals or not path:
            raise InvalidInput(f"{setting!r} sets nothing: write KEY=VALUE")
        *parents, name = path.split(".")
        _inside(made, parents, path)[name] = _value(text)
    for path in unwanted:
        *parents, name = path.split(".")
        if _inside(made, parents, path).pop(name, _ABSENT) is _ABSENT:
            raise InvalidInput(f"there is no {path} to remove")
    return made


_ABSENT: JsonObject = {}


def _inside(document: JsonObject, parents: Sequence[str], path: str) -> JsonObject:
    for parent in parents:
        inner = document.setdefault(parent, {})
        if not isinstance(inner, dict):
            raise InvalidInput(f"{path}: {parent} is a value, and holds no keys")
        document = inner
    return document


def _value(text: str) -> Json:
    try:
        value: Json = json.loads(text)
    except ValueError:
        return text
    return value
