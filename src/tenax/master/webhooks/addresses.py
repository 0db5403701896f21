"""Which addresses a message may be sent to: every address of the network but this machine's own and its link's.

What is checked is the address of a socket, just before it is connected: however it was written, and whatever a name
means by then.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence
from contextlib import suppress

#: How long connecting may take, and looking a name up.
CONNECT_S = 5.0
#: Where clouds keep the credentials of their machines, beside the link-local ones.
_METADATA = tuple(map(ipaddress.ip_address, ("fd00:ec2::254", "100.100.100.200")))
#: Linux takes all of it for this machine, or for nothing.
_THIS_NETWORK = ipaddress.IPv4Network("0.0.0.0/8")
#: Translators: the address of IPv4 stands in the last 32 bits.
_NAT64 = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("64:ff9b:1::/48"))
#: ``::a.b.c.d``, an old way to write one of IPv4.
_COMPATIBLE = ipaddress.IPv6Network("::/96")

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class AddressRefused(OSError):
    """The address is one that this master does not send to."""


def check_address(address: str, allowed: Sequence[_Network]) -> None:
    """Raises AddressRefused for one that nothing is sent to, unless a network of ``allowed`` has it."""
    outer: _Address = ipaddress.ip_address(address.partition("%")[0])
    for ip in (outer, *_inside(outer)):
        named = any(ip.version == network.version and ip in network for network in allowed)
        if not named and (_is_near(ip) or _is_own(ip)):
            raise AddressRefused(
                "the address is one of this machine or of its own link, where nothing is sent unless the master's "
                "setting webhooks.allowed_networks names it"
            )


def _is_near(ip: _Address) -> bool:
    """This machine, its own link, no single machine, or where a cloud keeps credentials."""
    if isinstance(ip, ipaddress.IPv4Address) and ip in _THIS_NETWORK:
        return True
    if isinstance(ip, ipaddress.IPv6Address) and any(ip in network for network in (*_NAT64, _COMPATIBLE)):
        # What counts is the address inside of it; of these two there is none.
        return ip.is_loopback or ip.is_unspecified
    return (
        ip.is_loopback
        or ip.is_link_local
        or ip.is_multicast
        or ip.is_unspecified
        or (ip.is_reserved and getattr(ip, "ipv4_mapped", None) is None)
        or ip in _METADATA
    )


def _is_own(ip: _Address) -> bool:
    """Whether it is one of this machine's, on whichever of its networks: the system would send from the same one."""
    family = socket.AF_INET if isinstance(ip, ipaddress.IPv4Address) else socket.AF_INET6
    with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        # Nothing is sent.
        probe.connect((str(ip), 9))
        return ipaddress.ip_address(probe.getsockname()[0].partition("%")[0]) == ip
    return False


def _inside(ip: _Address) -> tuple[_Address, ...]:
    """The addresses of IPv4 that one of IPv6 leads to through this machine or a translator."""
    if isinstance(ip, ipaddress.IPv4Address):
        return ()
    inside = [ip.ipv4_mapped, ip.sixtofour, *(ip.teredo or ())]
    last = ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF)
    if any(ip in network for network in _NAT64) or (ip in _COMPATIBLE and int(ip) > 1):
        inside.append(last)
    return tuple(address for address in inside if address is not None)
