"""What the pages say can be done."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import click
import pytest

from tenax.cli.console.reference import page
from tenax.cli.console.servers import ServerGroup
from tenax.cli.main import cli
from tests.docs.not_typed import NOT_TYPED
from tests.docs.pages import PAGES, commands, inline, scripts

ROOT = Path(__file__).resolve().parents[2]
PICTURE = "docs/images/demo.svg"


def named() -> list[tuple[str, str]]:
    """(page, command) of each that nobody types in a test: of sentences, of a unit of systemd, of the list."""
    units = re.findall(r"^ExecStart=/opt/tenax/bin/(tenax .*)$", PAGES["operations.md"].read_text(), re.MULTILINE)
    listed = [(command.page, command.bare) for command in commands() if command.bare in NOT_TYPED]
    return [
        (page, words.strip())
        for page, text in [*inline(), *(("operations.md", unit) for unit in units), *listed]
        for words in text.split("&&")
        if words.strip().startswith("tenax ")
    ]


def python() -> list[tuple[str, str]]:
    """(page, source) of every Python block."""
    return [(page, source) for page in PAGES for source in scripts(page)]


def resolve(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that is meant and its own words."""
    command: click.Command = cli
    context = click.Context(cli)
    while isinstance(command, click.Group) and words:
        if isinstance(command, ServerGroup) and words and words[0].startswith("-"):
            return command, []
        name, inner, words = command.resolve_command(context, words)
        assert inner is not None
        command, context = inner, click.Context(inner, parent=context, info_name=name)
    return command, words


def test_command_page() -> None:
    """docs/cli.md is what the commands say about themselves: make docs."""
    assert (ROOT / "docs" / "cli.md").read_text() == page()


def refuse_unknown(words: list[str]) -> None:
    """Raises click's errors; a sentence may leave arguments out."""
    command, own = resolve(words)
    known = {option for parameter in command.params for option in parameter.opts + parameter.secondary_opts}
    known |= {"--help"}
    for word in own:
        if word.startswith("-") and word.partition("=")[0] not in known:
            raise click.NoSuchOption(word)


@pytest.mark.parametrize(("where", "typed"), named())
def test_commands_exist(where: str, typed: str) -> None:
    """Every command that a page names exists, with the options that it is given; the others are typed."""
    words = [word for word in shlex.split(typed)[1:] if word != "..."]
    if words[0] == "-u":
        words = words[2:]
    if words and words != ["--help"]:
        refuse_unknown(words[: words.index("--")] if "--" in words else words)


def test_an_unknown_option_is_found() -> None:
    """The check above refuses what does not exist."""
    with pytest.raises(click.NoSuchOption):
        refuse_unknown(["experiment", "list", "--no-such-option"])
    with pytest.raises(click.UsageError):
        refuse_unknown(["experiment", "no-such-verb"])


def is_script(source: str) -> bool:
    """Whether it trains by itself, off the cluster too."""
    return "core.init" in source or "core_v2.init" in source


@pytest.mark.parametrize(("where", "source"), [one for one in python() if is_script(one[1])])
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


def test_every_block_of_python_is_run() -> None:
    """Above, or by tests/docs/test_typed_pages.py: the SDK's on a cluster, that of a webhook's receiver; and by
    tests/docs/test_training_loop.py and test_frameworks.py: those of the examples."""
    others = [page for page, source in python() if not is_script(source)]
    assert others == ["access.md", *["frameworks.md"] * 10, *["sdk.md"] * 2, *["training.md"] * 4]


def anchors(page: Path) -> set[str]:
    """What the headings of a page can be linked by."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def test_links() -> None:
    """Every link to a file of this project leads to one, and to a heading that is there."""
    for path in PAGES.values():
        for target, _, anchor in re.findall(r"\]\((?!https?:)([^)#]*)(#([^)]+))?\)", path.read_text()):
            leads_to = path.parent / target if target else path
            assert leads_to.exists(), f"{path.name}: {target}"
            assert not anchor or anchor in anchors(leads_to), f"{path.name}: {target}#{anchor}"


def test_every_page_is_found_from_the_first() -> None:
    """README.md links to each of them."""
    linked = set(re.findall(r"\]\((docs/[^)#]+)", (ROOT / "README.md").read_text()))
    pages = {f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")}
    assert {each for each in linked if each not in pages} == {PICTURE, "docs/images/tour-trial.png"}
    assert pages <= linked


def test_the_picture_shows_what_the_demo_says() -> None:
    """Today as well: `python -m tests.docs.picture docs/images/demo.svg` draws it anew, from a real run."""
    drawn = ElementTree.parse(ROOT / PICTURE)
    shown = "".join(drawn.getroot().itertext()).replace("\N{NO-BREAK SPACE}", " ")
    source = (ROOT / "src" / "tenax" / "cli" / "local" / "demo.py").read_text()
    for words in (
        "were stopped early by the search.",
        "It gives the figure that was reported.",
        "up, then docs/quickstart.md with a script of your own.",
    ):
        assert words in source
        assert words.split(", then")[0] in shown
    assert "COMPLETED" in shown
