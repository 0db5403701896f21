"""One attempt of a webhook delivery: sends a message, and says how that ended.

Rules it keeps:

- a master sends where people tell it to, so it checks where that is: it never sends to itself, to its own link (where
  clouds hand out credentials) or to addresses that are no single machine, unless the settings name the network; what is
  checked is the address of each socket, just before it is connected: however it was written, and whatever a name means
  by then;
- no redirection is followed, no proxy of the environment is used, certificates are checked, and of the answer only the
  status is read: what is behind an address cannot be read through here;
- addresses of webhooks are secrets: neither outcomes nor logs hold more of one than its host;
- a message is signed: HMAC-SHA256, in hex, of ``<seconds>,<body>`` with the signing key, and the seconds beside it.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import os
import socket
from contextlib import suppress
from urllib.parse import urlsplit

import aiohttp
from aiohttp import AddrInfoType
from aiohttp.abc import AbstractResolver, ResolveResult

from tenax import __version__
from tenax.config.master import WebhookSettings
from tenax.errors import InvalidInput
from tenax.jsonvalue import JsonObject
from tenax.lifecycle.delivery import DeliveryOutcome
from tenax.master.webhooks.payloads import body_of

SIGNATURE = "X-Determined-AI-Signature"
TIMESTAMP = "X-Determined-AI-Signature-Timestamp"
MAX_URL = 2000
_CONNECT_S = 5.0
#: Where clouds keep the credentials of their machines, beside the link-local ones.
_METADATA = tuple(map(ipaddress.ip_address, ("fd00:ec2::254", "100.100.100.200")))
#: Linux takes all of it for this machine, or for nothing.
_THIS_NETWORK = ipaddress.IPv4Network("0.0.0.0/8")
#: Translators: the address of IPv4 stands in the last 32 bits.
_NAT64 = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("64:ff9b:1::/48"))
#: ``::a.b.c.d``, an old way to write one of IPv4.
_COMPATIBLE = ipaddress.IPv6Network("::/96")

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class AddressRefused(OSError):
    """The address is one that this master does not send to."""


def check_url(url: str) -> None:
    """Raises InvalidInput for what cannot be the address of a webhook, without repeating it."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    if parts.scheme not in ("http", "https") or not host or port == 0:
        raise InvalidInput("url must be a whole address that begins with http:// or https://")
    if parts.username is not None or parts.password is not None:
        raise InvalidInput("url must not hold a name or a password: let the receiver check the signature instead")
    if len(url) > MAX_URL or not url.isprintable() or " " in url:
        raise InvalidInput(f"url must have at most {MAX_URL} characters, without blanks")


def signing_key(settings: WebhookSettings, secret: bytes) -> str:
    """The configured key, or the one that every master of the cluster derives."""
    if settings.signing_key is not None:
        return settings.signing_key.get_secret_value()
    return hmac.new(secret, b"webhooks", hashlib.sha256).hexdigest()


def signature(key: str, seconds: int, body: bytes) -> str:
    """What a receiver computes, too."""
    return hmac.new(key.encode(), f"{seconds},".encode() + body, hashlib.sha256).hexdigest()


class Sender:
    """Sends messages; any number at a time."""

    def __init__(self, settings: WebhookSettings, secret: bytes) -> None:
        self._settings = settings
        self._key = signing_key(settings, secret)
        self._allowed = tuple(ipaddress.ip_network(network) for network in settings.allowed_networks)

    async def send(self, url: str, kind: str, event: JsonObject, seconds: int) -> DeliveryOutcome:
        """One attempt at ``seconds`` of Unix time. Never raises for what the receiver or the network does."""
        body = body_of(kind, event, self._settings.base_url)
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"Tenax/{__version__}",
            TIMESTAMP: str(seconds),
            SIGNATURE: signature(self._key, seconds, body),
        }
        try:
            status = await self._post(url, body, headers)
        except AddressRefused as error:
            return DeliveryOutcome(None, str(error), final=True)
        except (asyncio.TimeoutError, TimeoutError):
            return DeliveryOutcome(None, f"no answer within {self._settings.timeout:g} seconds")
        except aiohttp.InvalidURL:
            return DeliveryOutcome(None, "the address cannot be read", final=True)
        except aiohttp.ClientConnectorCertificateError:
            return DeliveryOutcome(None, "the receiver's certificate is not trusted")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return _broken(error)
        return DeliveryOutcome(status, f"the receiver answered {status}")

    async def check_receiver(self, url: str) -> None:
        """Raises InvalidInput for an address that nothing will be sent to; a name that means nothing yet is taken."""
        host = urlsplit(url).hostname or ""
        try:
            async with asyncio.timeout(_CONNECT_S):
                results = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
            for *_, place in results:
                self.check_address(str(place[0]))
        except AddressRefused as refused:
            raise InvalidInput(f"url: {refused}") from None
        except (OSError, UnicodeError, TimeoutError):
            # It is judged again, and for good, at each message.
            return

    async def _post(self, url: str, body: bytes, headers: dict[str, str]) -> int:
        timeout = aiohttp.ClientTimeout(total=self._settings.timeout, connect=_CONNECT_S)
        connector = aiohttp.TCPConnector(
            resolver=_Careful(self), socket_factory=self._socket, force_close=True, use_dns_cache=False
        )
        async with aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=False) as session:
            async with session.post(url, data=body, headers=headers, allow_redirects=False) as response:
                return response.status

    def check_address(self, address: str) -> None:
        """Raises AddressRefused for one that this master does not send to."""
        outer: _Address = ipaddress.ip_address(address.partition("%")[0])
        for ip in (outer, *_inside(outer)):
            if not self._is_named(ip) and (_is_near(ip) or _is_own(ip)):
                raise AddressRefused(
                    "the address is one of this machine or of its own link, where nothing is sent unless the master's "
                    "setting webhooks.allowed_networks names it"
                )

    def _is_named(self, ip: _Address) -> bool:
        return any(ip.version == network.version and ip in network for network in self._allowed)

    def _socket(self, address: AddrInfoType) -> socket.socket:
        """The socket for one address, which it is connected to next."""
        family, kind, protocol, _, place = address
        self.check_address(str(place[0]))
        return socket.socket(family, kind, protocol)


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


class _Careful(AbstractResolver):
    """Looks names up, and gives only addresses that may be sent to."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._inner = aiohttp.ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        results = await self._inner.resolve(host, port, family)
        for result in results:
            self._sender.check_address(result["host"])
        return results

    async def close(self) -> None:
        await self._inner.close()


def _broken(error: BaseException) -> DeliveryOutcome:
    """A connection that failed, without its address; what our own resolver refused is somewhere below."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, AddressRefused):
            return DeliveryOutcome(None, str(cause), final=True)
        cause = cause.__cause__ or getattr(cause, "os_error", None)
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return DeliveryOutcome(None, "the receiver's name is not known")
    # The system's own text: that of the connection holds the address that the name stands for.
    number = getattr(getattr(error, "os_error", error), "errno", None)
    reason = os.strerror(number).lower() if number else type(error).__name__
    return DeliveryOutcome(None, f"the receiver cannot be reached: {reason}")
