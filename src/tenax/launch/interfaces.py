"""Which network interface leads to another machine. Standard library only, Python 3.9."""

from __future__ import annotations

import socket
import struct

#: ``ioctl``: the IPv4 address of an interface.
_SIOCGIFADDR = 0x8915
_ANY_PORT = 9


def interface_towards(address: str) -> str:
    """The name of the interface from which ``address`` is reached; empty where the system does not say."""
    own = _own_address(address)
    for _, name in socket.if_nameindex():
        if own and own in _addresses(name):
            return name
    return ""


def _own_address(address: str) -> str:
    """Ours, on the way there. No packet is sent: the system only says which one it would use."""
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(address, _ANY_PORT, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(place)
            return str(probe.getsockname()[0])
    except OSError:
        return ""


def _addresses(name: str) -> list[str]:
    addresses = []
    try:
        import fcntl

        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            answer = fcntl.ioctl(probe, _SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
            addresses.append(socket.inet_ntoa(answer[20:24]))
    except (ImportError, OSError):  # it has none, or this is not Linux
        pass
    try:
        with open("/proc/net/if_inet6", encoding="ascii") as file:
            fields = [line.split() for line in file]
        addresses += [socket.inet_ntop(socket.AF_INET6, bytes.fromhex(line[0])) for line in fields if line[-1] == name]
    except OSError:
        pass
    return addresses
