"""What the pages say can be done."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from tenax.cli.console.reference import page
from tenax.cli.console.servers import ServerGroup
from tenax.cli.main import cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])
WRITTEN = [one for one in PAGES if one.name != "cli.md"]


def commands() -> list[tuple[str, str]]:
    """(page, command) of every line that a reader would type."""
    found = []
    for path in WRITTEN:
        for line in path.read_text().splitlines():
            typed = line.split("  #")[0].strip()
            if line.startswith("    tenax ") or (line.startswith("ExecStart=") and "tenax" in line):
                found.append((path.name, typed.removeprefix("ExecStart=/opt/tenax/bin/")))
    return found


def scripts() -> list[tuple[str, str]]:
    """(page, source) of every Python block that uses the Core API."""
    found = []
    for path in WRITTEN:
        blocks = re.findall(r"```python\n(.*?)```", path.read_text(), re.DOTALL)
        found += [(path.name, source) for source in blocks]
    return found


def resolve(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that is meant and its own words."""
    command: click.Command = cli
    context = click.Context(cli)
    while isinstance(command, click.Group):
        if isinstance(command, ServerGroup) and words and words[0].startswith("-"):
            return command, []
        name, inner, words = command.resolve_command(context, words)
        assert inner is not None
        command, context = inner, click.Context(inner, parent=context, info_name=name)
    return command, words


def test_command_page() -> None:
    """docs/cli.md is what the commands say about themselves: make docs."""
    assert (ROOT / "docs" / "cli.md").read_text() == page()


@pytest.mark.parametrize(("where", "typed"), commands())
def test_commands_exist(where: str, typed: str) -> None:
    """Every command in the pages exists with the options that it is given."""
    command, words = resolve(shlex.split(typed)[1:])
    command.make_parser(click.Context(command)).parse_args(words)


def test_an_unknown_option_is_found() -> None:
    """The check above refuses what does not exist."""
    command, words = resolve(["experiment", "list", "--no-such-option"])
    with pytest.raises(click.NoSuchOption):
        command.make_parser(click.Context(command)).parse_args(words)


@pytest.mark.parametrize(("where", "source"), [one for one in scripts() if "core.init" in one[1]])
def test_scripts_run_without_a_cluster(where: str, source: str, tmp_path: Path) -> None:
    """Every training script in the pages runs as it stands, off the cluster; one of several ranks by the launcher."""
    (tmp_path / "train.py").write_text(source)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("DET_", "TENAX_"))}
    launcher = ["-m", "tenax.launch.torch_distributed"] if "from_torch_distributed" in source else []
    done = subprocess.run(
        [sys.executable, *launcher, "train.py"],
        cwd=tmp_path,
        env={**environment, "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("where", "source"), [one for one in scripts() if "tenax.client" in one[1]])
def test_sdk_examples_name_what_exists(where: str, source: str) -> None:
    """SDK examples compile, and import names that exist."""
    compile(source, where, "exec")
    for line in source.splitlines():
        if line.startswith("from "):
            exec(line, {})


def anchors(page: Path) -> set[str]:
    """What the headings of a page can be linked by."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def test_links() -> None:
    """Every link to a file of this project leads to one, and to a heading that is there."""
    for path in PAGES:
        for target, _, anchor in re.findall(r"\]\((?!https?:)([^)#]*)(#([^)]+))?\)", path.read_text()):
            leads_to = path.parent / target if target else path
            assert leads_to.exists(), f"{path.name}: {target}"
            assert not anchor or anchor in anchors(leads_to), f"{path.name}: {target}#{anchor}"


def test_every_page_is_found_from_the_first() -> None:
    """README.md links to each of them."""
    linked = set(re.findall(r"\]\((docs/[^)#]+)", (ROOT / "README.md").read_text()))
    assert linked == {f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")}
