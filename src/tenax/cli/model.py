"""``tenax model``: the registry of models and their versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional, Sequence, Tuple

import click

from tenax.cli.console import output
from tenax.cli.console.layout import TableColumn
from tenax.cli.console.lazy import LazyGroup
from tenax.cli.console.options import (
    Access,
    archived_option,
    json_option,
    list_options,
    name_filter,
    named,
    pass_access,
)

if TYPE_CHECKING:
    from tenax.client.models import Model, ModelVersion
    from tenax.jsonvalue import JsonObject

_COLUMNS: output.Columns[Model] = (
    (TableColumn("ID", right=True), lambda model: str(model.id)),
    (TableColumn("NAME", cuts=True), lambda model: model.name),
    (TableColumn("VERSIONS", right=True), lambda model: str(model.versions_count)),
    (TableColumn("OWNER", spare=True), lambda model: model.owner),
    (TableColumn("LABELS", wraps=True), lambda model: ", ".join(model.labels)),
    (TableColumn("CHANGED", spare=True), lambda model: output.moment(model.updated)),
    (TableColumn("DESCRIPTION", wraps=True), lambda model: model.description),
)
_VERSIONS: output.Columns[ModelVersion] = (
    (TableColumn("VERSION", right=True), lambda version: str(version.version)),
    (TableColumn("NAME", cuts=True), lambda version: version.name),
    (TableColumn("CHECKPOINT"), lambda version: version.checkpoint.uuid),
    (TableColumn("EXPERIMENT", right=True), lambda version: str(version.checkpoint.experiment_id or "")),
    (TableColumn("TRIAL", right=True), lambda version: str(version.checkpoint.trial_id or "")),
    (TableColumn("STEPS", right=True, spare=True), lambda version: str(version.checkpoint.steps)),
    (TableColumn("METRIC", right=True, spare=True), lambda version: output.number(version.checkpoint.searcher_metric)),
    (TableColumn("OWNER", spare=True), lambda version: version.owner),
    (TableColumn("REGISTERED", spare=True), lambda version: output.moment(version.created)),
)
_ORDERS = ("name", "description", "creation_time", "last_updated_time", "num_versions", "workspace")


@click.group(cls=LazyGroup, help="Register checkpoints as versions of models; registered checkpoints are kept.")
def group() -> None:
    pass


@group.command("list")
@click.option("--name", metavar="PART", help="Only those with this in their name.")
@click.option("--description", metavar="PART", help="Only those with this in their description.")
@click.option(
    "--label", "labels", multiple=True, metavar="LABEL", help="Only models with this label; may be given several times."
)
@click.option("--user", "users", multiple=True, metavar="NAME", help="Only this user's; may be given several times.")
@click.option("-w", "--workspace", "--workspace-names", "workspaces", multiple=True, metavar="NAME",
              help="Only those in this workspace; may be given several times, or separated by commas.")  # fmt: skip
@archived_option
@click.option("--sort-by", type=click.Choice(_ORDERS), default="last_updated_time", help="The order.")
@click.option("--reverse", is_flag=True, help="Reverse the order.")
@list_options
@pass_access
def list_(
    access: Access,
    name: Optional[str],
    description: Optional[str],
    labels: Sequence[str],
    users: Sequence[str],
    workspaces: Sequence[str],
    archived: Optional[bool],
    sort_by: str,
    reverse: bool,
    as_json: bool,
    as_csv: bool,
) -> None:
    """List models."""
    from tenax.client.models import list_models

    models = list_models(
        access.session(),
        name=name,
        description=description,
        labels=labels,
        users=users,
        workspaces=[workspace for names in workspaces for workspace in names.split(",") if workspace],
        archived=archived,
        sort=sort_by,
        descending=reverse,
    )
    output.records(_COLUMNS, models, as_json, as_csv)
    if not models:
        output.say("There are no such models. Create one with: tenax model create NAME")


@group.command()
@click.argument("model", metavar="MODEL")
@click.option("--version", "number", type=int, metavar="N", help="That version (default: the newest).")
@json_option
@pass_access
def describe(access: Access, model: str, number: Optional[int], as_json: bool) -> None:
    """Show a MODEL, by its name or id, and one of its versions."""
    details = _model(access, model)
    version = details.version(number) if number is not None or details.versions_count else None
    if as_json:
        output.document({"model": details.raw, "modelVersion": None if version is None else version.raw})
        return
    _show(details)
    if version is not None:
        _show_version(version)


@group.command("list-versions")
@click.argument("model", metavar="MODEL")
@name_filter
@click.option(
    "--user", "users", multiple=True, metavar="NAME", help="Only what this user registered; may be given several times."
)
@list_options
@pass_access
def list_versions(access: Access, model: str, part: str, users: Tuple[str, ...], as_json: bool, as_csv: bool) -> None:
    """List the versions of a MODEL, the newest first."""
    versions = named(part, _model(access, model).versions(), lambda version: version.name)
    chosen = [version for version in versions if not users or version.owner in users]
    output.records(_VERSIONS, chosen, as_json, as_csv)
    if not chosen:
        output.say(f"There are no such versions. Register one with: tenax model register-version {model} CHECKPOINT")


@group.command()
@click.argument("name")
@click.option("-w", "--workspace", "--workspace-name", metavar="NAME", help="The workspace to create it in.")
@click.option("--description", default="", metavar="TEXT", help="Its description.")
@click.option(
    "--label", "labels", multiple=True, metavar="LABEL", help="Give it this label; may be given several times."
)
@json_option
@pass_access
def create(
    access: Access, name: str, workspace: Optional[str], description: str, labels: Tuple[str, ...], as_json: bool
) -> None:
    """Create the model NAME."""
    from tenax.client.models import create_model

    model = create_model(access.session(), name, description=description, labels=labels, workspace=workspace)
    _show(model) if not as_json else output.document(model.raw)


@group.command()
@click.argument("model", metavar="MODEL")
@click.option("--name", metavar="NAME", help="Its new name.")
@click.option("--description", metavar="TEXT", help="Its description.")
@click.option("--notes", metavar="TEXT", help="Markdown.")
@click.option(
    "--label", "labels", multiple=True, metavar="LABEL", help="Replace its labels; may be given several times."
)
@click.option("--no-labels", is_flag=True, help="Remove all its labels.")
@click.option("--metadata", metavar="YAML", help="Replace its metadata, as YAML or JSON.")
@json_option
@pass_access
def edit(
    access: Access,
    model: str,
    name: Optional[str],
    description: Optional[str],
    notes: Optional[str],
    labels: Tuple[str, ...],
    no_labels: bool,
    metadata: Optional[str],
    as_json: bool,
) -> None:
    """Edit a MODEL: its name, description, notes, labels or metadata."""
    edited = _model(access, model).edit(
        name=name,
        description=description,
        notes=notes,
        labels=labels if labels or no_labels else None,
        metadata=_document(metadata),
    )
    _show(edited) if not as_json else output.document(edited.raw)


@group.command("register-version")
@click.argument("model", metavar="MODEL")
@click.argument("checkpoint", metavar="CHECKPOINT")
@click.option("--name", default="", metavar="NAME", help="The name of this version.")
@click.option("--comment", default="", metavar="TEXT", help="Why it was registered.")
@json_option
@pass_access
def register_version(access: Access, model: str, checkpoint: str, name: str, comment: str, as_json: bool) -> None:
    """Register a CHECKPOINT, by its uuid or the beginning of it, as the next version of a MODEL."""
    from tenax.client.checkpoints import get_checkpoint

    uuid = get_checkpoint(access.session(), checkpoint).uuid
    version = _model(access, model).register_version(uuid, name=name, comment=comment)
    _show_version(version) if not as_json else output.document(version.raw)


@group.command("edit-version")
@click.argument("model", metavar="MODEL")
@click.argument("number", type=int, metavar="VERSION")
@click.option("--name", metavar="NAME", help="Its new name.")
@click.option("--comment", metavar="TEXT", help="Why it was registered.")
@click.option("--notes", metavar="TEXT", help="Markdown.")
@click.option("--metadata", metavar="YAML", help="Replace its metadata, as YAML or JSON.")
@pass_access
def edit_version(
    access: Access,
    model: str,
    number: int,
    name: Optional[str],
    comment: Optional[str],
    notes: Optional[str],
    metadata: Optional[str],
) -> None:
    """Edit a VERSION of a MODEL: its name, comment, notes or metadata."""
    version = _model(access, model).version(number)
    _show_version(version.edit(name=name, comment=comment, notes=notes, metadata=_document(metadata)))


@group.command("delete-version")
@click.argument("model", metavar="MODEL")
@click.argument("number", type=int, metavar="VERSION")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@pass_access
def delete_version(access: Access, model: str, number: int, yes: bool) -> None:
    """Delete a VERSION of a MODEL; its checkpoint stays until it is deleted or garbage-collected."""
    version = _model(access, model).version(number)
    if not yes:
        output.confirm(f"Delete version {number} of {version.model.name}?")
    version.delete()
    print(f"Deleted version {number} of {version.model.name}")


@group.command()
@click.argument("model", metavar="MODEL")
@click.option(
    "-w", "--workspace", "--workspace-name", required=True, metavar="NAME", help="The workspace to move it to."
)
@pass_access
def move(access: Access, model: str, workspace: str) -> None:
    """Move a MODEL to another workspace."""
    target = _model(access, model)
    target.move(workspace)
    print(f"The model {target.name} is in the workspace {workspace}")


@group.command()
@click.argument("model", metavar="MODEL")
@pass_access
def archive(access: Access, model: str) -> None:
    """Archive a MODEL: it takes no new versions."""
    target = _model(access, model)
    target.archive()
    print(f"The model {target.name} is archived")


@group.command()
@click.argument("model", metavar="MODEL")
@pass_access
def unarchive(access: Access, model: str) -> None:
    """Unarchive a MODEL: it takes new versions again."""
    target = _model(access, model)
    target.unarchive()
    print(f"The model {target.name} is no longer archived")


@group.command()
@click.argument("model", metavar="MODEL")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@pass_access
def delete(access: Access, model: str, yes: bool) -> None:
    """Delete a MODEL and its versions; their checkpoints stay until they are deleted or garbage-collected."""
    target = _model(access, model)
    if not yes:
        output.confirm(f"Delete the model {target.name} and its {target.versions_count} versions?")
    target.delete()
    print(f"Deleted the model {target.name}")


@group.command("labels")
@name_filter
@list_options
@pass_access
def labels_(access: Access, part: str, as_json: bool, as_csv: bool) -> None:
    """List the labels of models, the most used first."""
    from tenax.client.models import model_labels

    labels = named(part, model_labels(access.session()), str)
    raw: list[JsonObject] = [{"label": label} for label in labels]
    output.listing([output.TableColumn("LABEL")], [[label] for label in labels], raw, as_json, as_csv)


group.alias("list", "ls")


def _show(model: Model) -> None:
    from tenax.client.workspaces import get_workspace

    rows = [
        ("model", f"{model.name} ({model.id})"),
        ("description", model.description),
        ("state", "archived" if model.archived else ""),
        ("owner", model.owner),
        ("workspace", get_workspace(model.session, model.workspace_id).name),
        ("versions", str(model.versions_count)),
        ("labels", ", ".join(model.labels)),
        ("metadata", output.assignments(model.metadata)),
        ("made", output.moment(model.created)),
        ("changed", output.moment(model.updated)),
        ("notes", model.notes),
    ]
    output.pairs([row for row in rows if row[1]])


def _show_version(version: ModelVersion) -> None:
    checkpoint = version.checkpoint
    rows = [
        ("version", f"{version.version}  {version.name}".rstrip()),
        ("of model", version.model.name),
        ("comment", version.comment),
        ("checkpoint", checkpoint.uuid),
        ("experiment", str(checkpoint.experiment_id or "")),
        ("trial", str(checkpoint.trial_id or "")),
        ("steps", str(checkpoint.steps)),
        ("metric", output.number(checkpoint.searcher_metric)),
        ("metadata", output.assignments(version.metadata)),
        ("owner", version.owner),
        ("registered", output.moment(version.created)),
        ("notes", version.notes),
    ]
    output.pairs([row for row in rows if row[1]])


def _document(text: Optional[str]) -> Optional[JsonObject]:
    from pathlib import Path

    from tenax.cli.console.overrides import parsed

    return None if text is None else parsed(text, Path("--metadata"))


def _model(access: Access, which: str) -> Model:
    from tenax.client.models import get_model

    return get_model(access.session(), which)
