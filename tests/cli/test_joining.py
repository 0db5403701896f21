"""``tenax master invite`` and ``join``: what goes along, and what is refused before anything is written."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import pytest

from tenax.cli.master import joining
from tenax.cli.master.joining import CannotInvite, CannotJoin, Invitation
from tenax.config.agreement import fingerprints
from tenax.config.master import MasterSettings, load_master_settings
from tenax.config.problems import ConfigError
from tenax.local.postgres import EmbeddedPostgres
from tenax.local.state_dir import StateDir
from tenax.local.supervise.cluster import PortInUse
from tenax.local.supervise.options import Options, save_options
from tenax.master.store.cluster.masters import ClusterSeen, MasterAbout, MasterRow
from tests.kits.database import database_in
from tests.kits.machine import ROOT
from tests.kits.ports import free_port

NOW = datetime(2026, 1, 1, tzinfo=timezone.utc)
CLUSTER = "5e8a9a9e-6f4d-4d0c-9d44-3a6a8f3a3a11"
#: A certificate with its key.
PEM = ROOT / "tests" / "kits" / "self_signed.pem"
SETTINGS = """
db: {{url: '{url}', max_connections: 12}}
host: 0.0.0.0
port: 8443
roles: [loops]
cluster_name: two of us
pools: [{{name: default}}, {{name: second, scheduler: {{type: fair_share}}}}]
tls: {{cert: {directory}/tls.crt, key: {directory}/tls.key}}
checkpoint_storage: {{type: s3, bucket: shared, secret_key: of-the-store}}
security: {{agent_join_token_file: {directory}/token, initial_password_file: {directory}/password}}
webhooks: {{signing_key: a-signature}}
"""


@pytest.fixture
def of_first(tmp_path: Path) -> MasterSettings:
    """Settings of a first master, with what lies beside them on its machine."""
    for name, text in (("tls.crt", PEM.read_text()), ("tls.key", PEM.read_text()), ("token", "a-token\n")):
        (tmp_path / name).write_text(text)
    file = tmp_path / "first.yaml"
    file.write_text(SETTINGS.format(url="postgresql://tenax:hidden@db.example.org/tenax", directory=tmp_path))
    return load_master_settings(file, environ={"TENAX_MASTER_LAUNCH_ERROR": "false"})


@pytest.fixture
def invitation(of_first: MasterSettings, monkeypatch: pytest.MonkeyPatch) -> Invitation:
    """From it, while the database answers."""
    seen = ClusterSeen(CLUSTER, b"secret", [row(fingerprints(of_first, b"secret"))])
    monkeypatch.setattr(joining, "_cluster_at", lambda url: seen)
    return joining.invite(of_first)


def row(settings: dict[str, str]) -> MasterRow:
    """A master at work with these."""
    return MasterRow(MasterAbout("a", "m", "u", "v", ("api",), settings), NOW, ())


def test_all_that_masters_must_agree_on_goes_along(invitation: Invitation, tmp_path: Path) -> None:
    """With its secrets, from file and environment; what belongs to the first machine stays there."""
    target = tmp_path / "invitation"
    joining.write(invitation, target)
    assert target.stat().st_mode & 0o777 == 0o600
    read = joining.read(target)
    assert read == invitation
    place = tmp_path / "second"
    file = joining.join(read, place, "127.0.0.1", free_port())
    assert sorted(path.name for path in place.iterdir()) == ["join-token", "master.crt", "master.key", "master.yaml"]
    assert {path.stat().st_mode & 0o777 for path in place.iterdir()} == {0o600}
    settings = load_master_settings(file, environ={})
    assert settings.db.url is not None
    assert settings.db.url.get_secret_value() == "postgresql://tenax:hidden@db.example.org/tenax"
    assert [pool.name for pool in settings.pools] == ["default", "second"]
    assert settings.pools[1].scheduler.type == "fair_share"
    assert settings.checkpoint_storage == {"type": "s3", "bucket": "shared", "secret_key": "of-the-store"}
    assert settings.webhooks.signing_key is not None
    assert settings.webhooks.signing_key.get_secret_value() == "a-signature"
    assert (settings.cluster_name, settings.launch_error, settings.dir) == ("two of us", False, place)
    assert settings.tls is not None
    assert {settings.tls.cert.read_text(), settings.tls.key.read_text()} == {PEM.read_text()}
    assert (place / "join-token").read_text() == "a-token\n"
    assert settings.security.initial_password_file is None
    assert settings.roles == MasterSettings().roles


def test_it_keeps_the_port_and_listens_at_home_unless_told_otherwise(invitation: Invitation, tmp_path: Path) -> None:
    """A certificate and names of the first are no reason to be open to all of the network."""
    port = free_port()
    settings = load_master_settings(
        joining.join(replace(invitation, settings={**invitation.settings, "port": port}), tmp_path / "b", None, None),
        environ={},
    )
    assert (settings.host, settings.port) == ("127.0.0.1", port)


def test_settings_that_no_master_has_are_refused(of_first: MasterSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of another file, or without the variables that the master was started with; one of several will do."""
    other = fingerprints(of_first.model_copy(update={"cluster_name": "other", "kill_timeout": 9.0}), b"secret")
    same = fingerprints(of_first, b"secret")
    rows = [row(other), row(same)]
    monkeypatch.setattr(joining, "_cluster_at", lambda url: ClusterSeen(CLUSTER, b"secret", rows[:1]))
    with pytest.raises(CannotInvite, match=r"\(cluster_name, kill_timeout\)"):
        joining.invite(of_first)
    monkeypatch.setattr(joining, "_cluster_at", lambda url: ClusterSeen(CLUSTER, b"secret", rows))
    assert joining.invite(of_first).cluster_id == CLUSTER
    monkeypatch.setattr(joining, "_cluster_at", lambda url: ClusterSeen(CLUSTER, b"secret", []))
    with pytest.raises(CannotInvite, match="at work"):
        joining.invite(of_first)


def test_the_file_that_tenax_up_runs_with_is_that_cluster(tmp_path: Path) -> None:
    """Whose storage and token it has, and whose database: where that is one of your own it must be named."""
    state = StateDir(tmp_path / "cluster")
    state.prepare()
    state.supervisor.write_text("{}")
    file = tmp_path / "master.yaml"
    file.write_text("kill_timeout: 9.0\ndb: {url: 'postgresql://a@db.example.org/tenax'}\n")
    save_options(state, Options(config=str(file), own_database=True))
    (tmp_path / "link.yaml").symlink_to(file)
    for config in (None, file, tmp_path / "link.yaml"):
        settings = joining.settings_of(state, config)
        assert settings.security.agent_join_token_file == state.join_token
        assert settings.checkpoint_storage == {"type": "shared_fs", "host_path": str(state.checkpoints)}
    file.write_text("kill_timeout: 9.0\n")
    with pytest.raises(CannotInvite, match="one of your own"):
        joining.settings_of(state, None)


def test_what_others_can_read_is_no_invitation(invitation: Invitation, tmp_path: Path) -> None:
    """Nor what is none: each with what to do about it."""
    target = tmp_path / "invitation"
    joining.write(invitation, target)
    target.chmod(0o640)
    with pytest.raises(CannotJoin, match="mode 600"):
        joining.read(target)
    target.chmod(0o600)
    with pytest.raises(CannotInvite, match="there already"):
        joining.write(invitation, target)
    document = json.loads(target.read_text())
    wrong: list[object] = [{}, [], {**document, "v": 2}, {**document, "more": 1}, {**document, "settings": {}}]
    wrong += [{**document, "settings": {"db": 3}}, {**document, "key": 1}, {**document, "settings": []}]
    for each in wrong:
        target.write_text(json.dumps(each))
        with pytest.raises(CannotJoin, match="tenax master invite"):
            joining.read(target)
    target.write_text("db: {url: x}")
    with pytest.raises(CannotJoin, match="tenax master invite"):
        joining.read(target)
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(CannotJoin, match="is no file"):
        joining.read(tmp_path / "pipe")


def test_nothing_is_written_for_what_does_not_fit(invitation: Invitation, tmp_path: Path) -> None:
    """A setting that this release does not know, a port in use, a directory with something in it."""
    place = tmp_path / "second"
    newer = replace(invitation, settings={**invitation.settings, "from_the_future": 1})
    with pytest.raises(ConfigError, match="from_the_future"):
        joining.join(newer, place, None, free_port())
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(PortInUse):
        joining.join(invitation, place, None, taken.getsockname()[1])
    assert not place.exists()
    place.mkdir()
    (place / "mine").write_text("")
    with pytest.raises(CannotJoin, match="not empty"):
        joining.join(invitation, place, None, free_port())
    assert [path.name for path in place.iterdir()] == ["mine"]
    (place / "mine").unlink()
    with pytest.raises(CannotJoin, match="certificate and the key"):
        joining.join(replace(invitation, key="none"), place, None, free_port())
    place.chmod(0o777)
    with pytest.raises(CannotJoin, match="chmod 700"):
        joining.join(invitation, place, None, free_port())
    place.chmod(0o700)
    assert list(place.iterdir()) == []
    joining.join(invitation, place, None, free_port())
    with pytest.raises(CannotJoin, match="start it with `tenax master --config"):
        joining.join(invitation, place, None, free_port())


@pytest.mark.parametrize("host", ["127.0.0.1:1", "nowhere.invalid"])
def test_a_database_that_cannot_be_reached_is_named(of_first: MasterSettings, host: str, tmp_path: Path) -> None:
    """An address of the first machine itself leads to this one here, which is said; no password is."""
    from_afar = Invitation(CLUSTER, "first", {"db": {"url": f"postgresql://a:hidden@{host}/tenax"}}, "", "", "")
    with pytest.raises(CannotJoin, match="cannot be reached") as refused:
        joining.join(from_afar, tmp_path / "second", None, None)
    assert ("itself" in refused.value.message) == host.startswith("127.")
    assert "hidden" not in refused.value.message
    assert not (tmp_path / "second").exists()


def test_the_database_of_tenax_up_is_refused_from_afar(tmp_path: Path) -> None:
    """With the way out."""
    url = "postgresql://tenax:hidden@/tenax?host=%2Fvar%2Flib%2Fnowhere%2Fsocket&port=5432"
    from_afar = Invitation(CLUSTER, "first", {"db": {"url": url}}, "", "", "")
    with pytest.raises(CannotJoin, match=r"serves first alone.*pg_restore"):
        joining.join(from_afar, tmp_path / "second", None, None)
    with pytest.raises(CannotInvite, match="--dir"):
        joining.settings_of(StateDir(tmp_path / "none"), None)


def test_a_database_of_another_cluster_is_refused(
    postgres: EmbeddedPostgres, database_url: str, tmp_path: Path
) -> None:
    """One without a cluster would become a new one; both are told apart, and one without tables is as empty."""
    for url, what in ((database_url, "no cluster"), (database_in(postgres.dsn, "tenax"), "no cluster")):
        invitation = Invitation(CLUSTER, "first", {"db": {"url": url}}, "", "", "")
        with pytest.raises(CannotJoin, match=what):
            joining.join(invitation, tmp_path / "second", None, None)
        with pytest.raises(CannotInvite, match="first master"):
            joining.invite(MasterSettings.model_validate({"db": {"url": url}}, strict=False))
    assert not (tmp_path / "second").exists()
