"""A master behind TLS with a certificate of its own."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from tenax.agent.link import Link, MasterUnreachable
from tenax.config.agent import AgentSettings, AgentTlsSettings
from tenax.errors import UserError
from tests.agent.host import Host, spec
from tests.agent.master_double import MasterDouble


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """Certificate and key for a name that is not the address."""
    openssl = shutil.which("openssl")
    assert openssl is not None, "the TLS tests need openssl"
    cert, key = tmp_path / "master.crt", tmp_path / "master.key"
    command = [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=tenax-master", "-addext", "subjectAltName=DNS:tenax-master"]
    subprocess.run([*command, "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True)
    return cert, key


async def test_a_master_is_trusted_by_its_certificate(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    """Join, session, output: all over TLS; tasks get the certificate and the name in it."""
    cert, key = certificate
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(cert, key)
    async with MasterDouble(context) as master:
        host = Host(tmp_path / "agent", master.url)
        try:
            host.start(tls=AgentTlsSettings(master_cert=cert, master_cert_name="tenax-master"))
            code = (
                "import os; e = os.environ; print(e['DET_USE_TLS'], e['DET_MASTER_CERT_NAME'], e['DET_MASTER'])\n"
                "print(open(e['DET_MASTER_CERT_FILE']).read(), end='')"
            )
            task_spec = spec(code)
            await master.until(lambda: master.hellos)
            await master.run(task_spec)
            await master.until(lambda: master.exited(task_spec.container_id))
            assert master.text(task_spec.container_id) == f"true tenax-master {master.url}\n{cert.read_text()}"
        finally:
            await host.clean()


async def test_a_certificate_that_cannot_be_read(tmp_path: Path) -> None:
    """The message names the file."""
    host = Host(tmp_path / "agent", "https://127.0.0.1:1")
    with pytest.raises(UserError, match=r"absent\.crt"):
        await host.start(tls=AgentTlsSettings(master_cert=tmp_path / "absent.crt"))


async def test_a_certificate_that_nobody_knows(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    """The message says what to do: copy it, and name it with --master-cert."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)
    async with MasterDouble(context) as master:
        link = Link(AgentSettings(master_url=master.url, dir=tmp_path))
        await link.open()
        try:
            with pytest.raises(MasterUnreachable, match=r"--master-cert FILE"):
                await link.get("/info", {})
        finally:
            await link.close()


@pytest.mark.parametrize("with_tls", [True, False])
async def test_the_scheme_of_another_master(tmp_path: Path, certificate: tuple[Path, Path], *, with_tls: bool) -> None:
    """``http`` for one that speaks TLS, and the reverse: the message says which address to use."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)
    async with MasterDouble(context if with_tls else None) as master:
        scheme, _, place = master.url.partition("://")
        other = "http" if scheme == "https" else "https"
        link = Link(AgentSettings(master_url=f"{other}://{place}", dir=tmp_path))
        await link.open()
        try:
            with pytest.raises(MasterUnreachable, match=f"TLS: use {master.url}"):
                await link.get("/info", {})
            with pytest.raises(MasterUnreachable, match=f"TLS: use {master.url}"):
                await link.websocket("/agents/session", 1.0)
        finally:
            await link.close()
