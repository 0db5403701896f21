"""Where a request comes from: the address of its socket, or what proxies that the operator trusts say of it.

Rules it keeps:

- ``X-Forwarded-For`` is read from its end, where the nearest proxy writes, and only as far as proxies are trusted: what
  stands before the first other address was written by whoever sent the request;
- a machine usually has 64 bits of IPv6 to itself, so for counting they are one address; an address of IPv4 in the
  clothes of IPv6 is that of IPv4.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from starlette.requests import HTTPConnection

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def client_address(connection: HTTPConnection, trusted: Sequence[str]) -> str:
    """The address from which a request came; ``trusted``: networks of the operator's proxies."""
    peer = connection.client.host if connection.client is not None else ""
    networks = [ipaddress.ip_network(network) for network in trusted]
    hops = [hop.strip() for value in connection.headers.getlist("x-forwarded-for") for hop in value.split(",")]
    while hops and _is_in(peer, networks):
        last = hops.pop()
        if _parsed(last) is None:
            break
        peer = last
    return peer


def counted_as(address: str) -> str:
    """What is counted for an address."""
    ip = _parsed(address)
    if isinstance(ip, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((ip, 64), strict=False))
    return address if ip is None else str(ip)


def _is_in(address: str, networks: Sequence[ipaddress.IPv4Network | ipaddress.IPv6Network]) -> bool:
    ip = _parsed(address)
    return ip is not None and any(ip in network for network in networks)


def _parsed(address: str) -> _Address | None:
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return None
    return getattr(ip, "ipv4_mapped", None) or ip
