"""``tenax master`` and ``tenax version``: the master about itself."""

from __future__ import annotations

import click

from tenax import __version__
from tenax.cli import output
from tenax.cli.access import Access, json_option, pass_access
from tenax.cli.servers import ServerGroup


@click.group(
    cls=ServerGroup,
    module="tenax.master",
    help="Show the master; with options of the server, run a master in the foreground (`tenax up` runs one for you): "
    "tenax master --config FILE",
)
def group() -> None:
    pass


@group.command()
@json_option
@pass_access
def info(access: Access, as_json: bool) -> None:
    """Show which master answers."""
    from tenax.client.reading import text

    answer = access.session().get("/api/v1/master")
    if as_json:
        output.document(answer)
        return
    rows = [
        ("address", access.session().url),
        ("version", text(answer, "tenaxVersion") or text(answer, "version")),
        ("compatible with", f"Determined {text(answer, 'version')}"),
        ("cluster", text(answer, "clusterName")),
        ("cluster id", text(answer, "clusterId")),
        ("master id", text(answer, "masterId")),
    ]
    output.pairs([row for row in rows if row[1]])


@click.command()
@json_option
@pass_access
def version(access: Access, as_json: bool) -> None:
    """Show the versions of this client and of the master."""
    from tenax.client.reading import text
    from tenax.client.session import Session, Unreachable

    session = Session(access.master, patience=0.0)
    try:
        answer = session.get_anonymously("/info")
    except Unreachable:
        answer = {}
    master = text(answer, "tenax_version")
    if as_json:
        output.document({"client": __version__, "master": master or None, "url": session.url})
        return
    output.pairs([("client", __version__), ("master", master or f"(none answers at {session.url})")])
