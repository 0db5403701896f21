"""``tenax template``: partial configurations below what is submitted."""

from __future__ import annotations

from pathlib import Path
from typing import Tuple

import click

from tenax.cli.console import exits, output
from tenax.cli.console.lazy import LazyGroup
from tenax.cli.console.options import Access, json_option, list_options, pass_access
from tenax.cli.console.overrides import FILE, document_of

_COLUMNS = (
    output.TableColumn("NAME", cuts=True),
    output.TableColumn("WORKSPACE", cuts=True),
    output.TableColumn("OWNER", cuts=True),
    output.TableColumn("CHANGED", spare=True),
)


@click.group(cls=LazyGroup, help="Manage partial configurations that experiments and commands are merged over.")
def group() -> None:
    pass


@group.command("list")
@click.option("--name", default="", metavar="PART", help="Only those with this in their name.")
@click.option("-w", "--workspace", "--workspace-name", default="", metavar="NAME", help="Only those in this workspace.")
@click.option("-d", "--details", is_flag=True, help="Print their configurations as well.")
@list_options
@pass_access
def list_(access: Access, name: str, workspace: str, details: bool, as_json: bool, as_csv: bool) -> None:
    """List templates by name."""
    from tenax.cli.console import yaml12
    from tenax.client.templates import list_templates
    from tenax.client.workspaces import get_workspace

    session = access.session()
    number = get_workspace(session, workspace).id if workspace else 0
    templates = list_templates(session, name=name, workspace_id=number)
    columns = (*_COLUMNS, output.TableColumn("CONFIG", wraps=True)) if details else _COLUMNS
    rows = []
    for template in templates:
        row: Tuple[str, ...] = (template.name, template.workspace, template.owner, output.moment(template.changed))
        rows.append((*row, yaml12.dump(template.config, sort=True).rstrip()) if details else row)
    if details and not (as_json or as_csv):
        for row in rows:
            output.pairs(list(zip((column.title.lower() for column in columns), row)))
            click.echo()
    else:
        output.listing(columns, rows, [template.raw for template in templates], as_json, as_csv)
    if not templates:
        output.say("There are no templates. Create one with: tenax template create NAME FILE")


@group.command()
@click.argument("template", metavar="NAME")
@json_option
@pass_access
def describe(access: Access, template: str, as_json: bool) -> None:
    """Print the configuration of a template as YAML."""
    from tenax.cli.console import yaml12
    from tenax.client.templates import get_template

    details = get_template(access.session(), template)
    if as_json:
        output.document(details.raw)
    else:
        print(yaml12.dump(details.config, sort=True), end="")


@group.command()
@click.argument("name")
@click.argument("file", type=FILE)
@click.option("-w", "--workspace", "--workspace-name", default="", metavar="NAME", help="Put it into this workspace.")
@pass_access
def create(access: Access, name: str, file: Path, workspace: str) -> None:
    """Create the template NAME from a YAML FILE."""
    from tenax.client.templates import create_template
    from tenax.client.workspaces import get_workspace

    session = access.session()
    number = get_workspace(session, workspace).id if workspace else 0
    create_template(session, name, document_of(file), workspace_id=number)
    print(f"Created template {name}")


@click.group(cls=LazyGroup, help="Change a template.")
def set_value() -> None:
    pass


@set_value.command("config")
@click.argument("template", metavar="NAME")
@click.argument("file", type=FILE)
@pass_access
def set_config(access: Access, template: str, file: Path) -> None:
    """Replace the configuration of a template with a YAML FILE."""
    from tenax.client.templates import set_template_config

    set_template_config(access.session(), template, document_of(file))
    print(f"Changed template {template}")


@group.command("set")
@click.argument("template", metavar="NAME")
@click.argument("file", type=FILE)
@pass_access
def set_(access: Access, template: str, file: Path) -> None:
    """Create the template NAME from a YAML FILE, or replace its configuration if it exists."""
    from tenax.client.templates import create_template, set_template_config
    from tenax.errors import AlreadyExists

    document = document_of(file)
    try:
        create_template(access.session(), template, document)
    except AlreadyExists:
        set_template_config(access.session(), template, document)
    print(f"Set template {template}")


@group.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
@pass_access
def remove(access: Access, names: Tuple[str, ...]) -> int:
    """Remove templates; what was submitted with them does not change."""
    from tenax.client.templates import delete_template
    from tenax.errors import UserError

    code = exits.OK
    for name in names:
        try:
            delete_template(access.session(), name)
        except UserError as error:
            output.fail(str(error))
            code = exits.code_of(error)
        else:
            print(f"Removed template {name}")
    return code


group.add_command(set_value, "set-value")
group.alias("list", "ls")
group.alias("remove", "rm")
