"""A release replaces the one before while trials run: one master after the other, then the agent."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tenax.client.cluster import masters as present
from tests.e2e import noop
from tests.e2e.several_masters import Masters, check, masters, searched
from tests.kits.machine import ROOT, TENAX, wait_for

__all__ = ["masters"]

pytestmark = pytest.mark.timeout(900)
NEXT = "9.9.0"
#: Numbers that no release reaches soon.
PRE, POST = "8001_pre_next", "8002_post_next"


@pytest.fixture(scope="module")
def next_release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of this one under another version, which changes the database as releases do."""
    directory = tmp_path_factory.mktemp("next")
    shutil.copytree(ROOT / "src" / "tenax", directory / "tenax", ignore=shutil.ignore_patterns("__pycache__"))
    version = directory / "tenax" / "__init__.py"
    text = version.read_text()
    assert '__version__ = "' in text
    version.write_text(text.replace('__version__ = "', f'__version__ = "{NEXT}"  # "', 1))
    migrations = directory / "tenax" / "master" / "store" / "database" / "migrations"
    (migrations / f"{PRE}.sql").write_text("alter table trials add column of_next integer;\n")
    (migrations / f"{POST}.sql").write_text("alter table trials drop column of_next;\n")
    return directory


def upgrade(masters: Masters) -> subprocess.CompletedProcess[str]:
    """``tenax upgrade-database`` of the next release."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("DET_", "TENAX_"))}
    environment |= {"PYTHONPATH": str(masters.release), "TENAX_MASTER_DB__URL": masters.database_url}
    command = [str(TENAX), "upgrade-database", "--dir", str(masters.directory / "nowhere")]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def progress(books: Path) -> None:
    """Wait until trials have gone on for a while; at their end there is nothing to wait for."""
    goal = min(noop.reports(books) + 12, TRIALS * REPORTS)
    wait_for(lambda: noop.reports(books) >= goal or None, "some reports")


TRIALS, REPORTS = 8, 30


def test_a_release_replaces_the_one_before_while_trials_run(
    masters: Masters, next_release: Path, tmp_path: Path
) -> None:
    """Both work side by side meanwhile; what must wait until the older is gone does, and no trial notices."""
    books = tmp_path / "books"
    with masters.client() as client:
        number = searched(client, books, trials=TRIALS, reports=REPORTS).id
        progress(books)
        masters.release = next_release
        first, second = masters.ports
        masters.end(first)
        masters.start(first)
        versions = {each.address.rpartition(":")[2]: each.version for each in present(client.session)}
        assert versions[str(first)] == NEXT
        assert versions[str(second)] != NEXT
        progress(books)
        refused = upgrade(masters)
        assert refused.returncode != 0
        assert "no master of a release before is left" in refused.stderr
        masters.end(second)
        masters.start(second)
        assert {each.version for each in present(client.session)} == {NEXT}
        progress(books)
        masters.end_agent()
        masters.start_agent()
        wait_for(
            lambda: [agent.version for agent in client.agents()] == [NEXT] or None, "the agent of the next release"
        )
        done = upgrade(masters)
        assert (done.returncode, f"Applied: {POST}" in done.stderr + done.stdout) == (0, True), done.stderr
    check(masters, number, books, trials=TRIALS, reports=REPORTS)
