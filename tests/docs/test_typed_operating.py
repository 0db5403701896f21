"""The page for whoever runs a cluster, typed from top to bottom: backups, TLS, upgrades."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tenax.cli.console import exits
from tenax.client.connect import Client
from tests.docs.desk import Desk, Hint, desk, walk
from tests.docs.pages import commands
from tests.kits.machine import wait_for
from tests.kits.ports import free_port

#: A page starts and stops clusters, on a machine that others use as well.
pytestmark = pytest.mark.timeout(900)

AGENT = "tenax agent --master-url https://FIRST:8080 --join-token-file token --master-cert master.crt"
LINK = "tenax user link-with-agent-user ann --agent-uid 1001 --agent-user ann --agent-gid 1001 --agent-group ann"
INVITE = "tenax master invite invitation --config master.yaml"
NOOP = "examples/noop/const.yaml examples/noop -f --config hyperparameters.seconds=0"


@pytest.fixture(scope="module")
def operator() -> Iterator[Desk]:
    with desk() as made:
        yield made


def lose(made: Desk) -> None:
    """The cluster of this machine, as after a disk that broke."""
    made.tenax("down")
    shutil.rmtree(made.cluster)


def make_room_for_the_certificate(made: Desk) -> None:
    (made.home / "etc" / "tenax").mkdir(parents=True)


def copy_the_certificate(made: Desk) -> None:
    shutil.copy(made.home / "etc" / "tenax" / "master.crt", made.home)


def as_another_machine(made: Desk) -> dict[str, str]:
    return {"--join-token-file": f"--agent-id second --dir {made.home}/second --join-token-file"}


def up_with_ann(made: Desk) -> None:
    made.tenax("up")
    code, said = made.type("echo Long-enough-1 | tenax user create ann --password-stdin")
    assert code == 0, said


def as_another_file(made: Desk) -> dict[str, str]:
    return {"invitation --config": "another --config"}


def beside_the_first(made: Desk) -> dict[str, str]:
    return {"--host": f"--port {free_port()} --dir {made.home}/joined --host"}


def down(made: Desk) -> None:
    made.tenax("down")


def test_the_page(operator: Desk) -> None:
    """Every command does what the page says, in the page's order."""
    operator.tenax("up")
    (openssl,) = (command.bare for command in commands() if command.bare.startswith("openssl "))
    walk(
        operator,
        "operations.md",
        {
            "tenax restore monday": Hint(before=lose),
            openssl: Hint(before=make_room_for_the_certificate),
            AGENT: Hint(before=copy_the_certificate, put=as_another_machine, until="connected"),
            "tenax user login admin": Hint(answer=Desk.password),
            INVITE: Hint(put=as_another_file),
            "tenax master join invitation --host 0.0.0.0": Hint(put=beside_the_first, until="serving"),
            "TENAX_MASTER_DB__BACKUP_COMMAND='[]' tenax up": Hint(before=down),
            LINK: Hint(before=up_with_ann),
        },
    )
    assert "The cluster of monday is in" in operator.said
    assert "TABLE DATA public experiments" in operator.said
    assert f"https://127.0.0.1:{operator.port}" in operator.said
    assert "second" in operator.tenax("agent", "list")


def test_all_of_it_goes_over_tls(operator: Desk) -> None:
    """Trials on both machines, the command line, the SDK; who does not know the certificate is told."""
    address = f"https://127.0.0.1:{operator.port}"
    certificate = operator.home / "master.crt"
    with operator.running(
        f"tenax agent --master-url {address} --agent-id second --dir {operator.home}/second --slots 1"
        " --master-cert master.crt",
        "connected",
    ):
        wait_for(lambda: operator.tenax("agent", "list").count("enabled") == 2 or None, "both agents")
        for agent in ("second", operator.first("id", "agent", "list")):
            operator.tenax("agent", "disable", agent)
            operator.tenax("experiment", "create", *NOOP.split())
            operator.tenax("agent", "enable", agent)
    assert operator.tenax("experiment", "list").count("COMPLETED") == 2
    with Client(address, user="admin", password=operator.password(), certificate=str(certificate)) as client:
        assert len(client.experiments()) == 2

    operator.environment["XDG_CONFIG_HOME"] = str(operator.home / "elsewhere")
    del operator.environment["TENAX_DIR"]
    operator.forget()
    code, said = operator.type_on_terminal(f"DET_MASTER={address} tenax user login admin", operator.password())
    assert (code, "DET_MASTER_CERT_FILE" in said) == (exits.UNREACHABLE, True)
    third = f"tenax agent --master-url {address} --agent-id third --dir {operator.home}/third --join-token-file token"
    with operator.running(third, until="--master-cert"):
        pass
