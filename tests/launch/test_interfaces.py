"""The interface that leads to another machine."""

from __future__ import annotations

import socket
import sys

import psutil
import pytest

from tenax.launch.interfaces import interface_towards


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="interfaces are asked for as Linux has them")
def test_interfaces() -> None:
    """The loopback's for this machine itself, and for each of its addresses the interface that has it."""
    assert interface_towards("127.0.0.1") == "lo"
    assert interface_towards("no.such.host.invalid") == ""
    for name, addresses in psutil.net_if_addrs().items():
        first = [each.address for each in addresses if each.family == socket.AF_INET][:1]
        if first:
            assert interface_towards(first[0]) == name
