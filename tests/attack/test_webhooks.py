"""Addresses of webhooks that lead to the master's own machine or link: none is connected to, however it is written."""

from __future__ import annotations

import ipaddress
import socket

import psutil
import pytest

from tenax.config.master import WebhookSettings
from tenax.master.webhooks.addresses import AddressRefused
from tenax.master.webhooks.sender import Sender
from tests.kits.receiver import receiving

#: Ways to write 127.0.0.1.
WRITTEN = [
    "127.0.0.1",
    "127。0。0。1",
    "127．0．0．1",
    "①②⑦.⓪.⓪.①",
    "１２７.0.0.1",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0x7f.0.0.1",
    "0177.0.0.1",
    "127.0.0.1.",
    "0.0.0.0",
    "0",
    "0.1.2.3",
    "localhost",
    "LOCALHOST.",
    "ⓛocalhost",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:0:127.0.0.1]",
    "[::127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::]",
    "%31%32%37.0.0.1",
    "127%2e0.0.1",
]


@pytest.mark.parametrize("host", WRITTEN)
@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
async def test_this_machine_is_never_reached(host: str, family: int) -> None:
    """A receiver that listens there hears nothing."""
    async with receiving(host="127.0.0.1" if family == socket.AF_INET else "::1") as receiver:
        port = receiver.url.rpartition(":")[2].partition("/")[0]
        outcome = await Sender(WebhookSettings(timeout=5), b"s").send(f"http://{host}:{port}/x", "DEFAULT", {}, 0)
    assert not receiver.requests
    assert outcome.status is None


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "::ffff:169.254.169.254",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::a9fe:a9fe",
        "2002:a9fe:a9fe::1",
        "2001:0:a9fe:a9fe::1",
        str(ipaddress.IPv6Address((0x20010000 << 96) | (0xA9FEA9FE ^ 0xFFFFFFFF))),
        "fe80::1%1",
        "fd00:ec2::254",
        "100.100.100.200",
        "255.255.255.255",
        "224.0.0.1",
        "ff02::1",
        "0.0.0.0",
        "0.255.0.1",
        "::",
        "::1",
    ],
)
def test_neither_is_its_link(address: str) -> None:
    """Nor what leads there through a translator or a tunnel."""
    with pytest.raises(AddressRefused):
        Sender(WebhookSettings(), b"s").check_address(address)


@pytest.mark.parametrize(
    "address", ["10.0.0.1", "192.168.1.1", "8.8.8.8", "64:ff9b::808:808", "2001:db8::1", "2606:4700::1", "fd12::1"]
)
def test_other_machines_are_reached(address: str) -> None:
    """Private networks, too, and through a translator."""
    Sender(WebhookSettings(), b"s").check_address(address)


async def test_a_name_that_changes_its_meaning_leads_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is connected to was looked at itself: it does not matter what the name meant when it was first asked."""
    real = socket.getaddrinfo
    asked: list[object] = []

    def meaning(host: object, port: object, *more: object, **options: object) -> object:
        if host not in ("rebinds.example", b"rebinds.example"):
            return real(host, port, *more, **options)  # type: ignore[arg-type]
        asked.append(host)
        address = "192.0.2.1" if len(asked) == 1 else "127.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(socket, "getaddrinfo", meaning)
    async with receiving() as receiver:
        port = receiver.url.rpartition(":")[2].partition("/")[0]
        url = f"http://rebinds.example:{port}/x"
        # Nobody answers at the first address; that the second one is refused is waited for.
        outcomes = [await Sender(WebhookSettings(timeout=t), b"s").send(url, "DEFAULT", {}, 0) for t in (0.5, 60)]
    assert not receiver.requests
    assert outcomes[1].final


def own_addresses(family: int) -> list[str]:
    """Of this machine on its networks, as others reach it."""
    known = [entry.address for of in psutil.net_if_addrs().values() for entry in of if entry.family == family]
    return [text for text in known if not text.startswith(("127.", "::1", "fe80"))]


@pytest.mark.parametrize(
    ("family", "way"), [(socket.AF_INET, "{}"), (socket.AF_INET, "::ffff:{}"), (socket.AF_INET6, "{}")]
)
def test_the_masters_own_address_on_its_network(family: int, way: str) -> None:
    """What listens there behind a firewall is open to the machine itself."""
    addresses = own_addresses(family)
    if not addresses:
        pytest.skip("this machine is on no such network")
    for address in addresses:
        with pytest.raises(AddressRefused):
            Sender(WebhookSettings(), b"s").check_address(way.format(address))
    Sender(WebhookSettings(allowed_networks=("0.0.0.0/0", "::/0")), b"s").check_address(way.format(addresses[0]))
