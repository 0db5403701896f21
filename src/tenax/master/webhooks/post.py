"""One HTTP request to a receiver, and what it came to.

Loaded when the first message is sent: few clusters send any, and what it stands on takes a tenth of a master's start.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Mapping

import aiohttp
from aiohttp import AddrInfoType
from aiohttp.abc import AbstractResolver, ResolveResult

from tenax.lifecycle.delivery import DeliveryOutcome
from tenax.master.webhooks.addresses import CONNECT_S, AddressRefused


async def post(
    url: str, body: bytes, headers: Mapping[str, str], timeout_s: float, check: Callable[[str], None]
) -> DeliveryOutcome:
    """What one attempt came to; never raises for what the other side does.

    ``check`` raises AddressRefused for an address that nothing is sent to.
    """
    try:
        status = await _status(url, body, headers, timeout_s, check)
    except AddressRefused as error:
        return DeliveryOutcome(None, str(error), final=True)
    except (asyncio.TimeoutError, TimeoutError):
        return DeliveryOutcome(None, f"no answer within {timeout_s:g} seconds")
    except aiohttp.InvalidURL:
        return DeliveryOutcome(None, "the address cannot be read", final=True)
    except aiohttp.ClientConnectorCertificateError:
        return DeliveryOutcome(None, "the receiver's certificate is not trusted")
    except (aiohttp.ClientError, OSError, ValueError) as error:
        return _broken(error)
    return DeliveryOutcome(status, f"the receiver answered {status}")


async def _status(
    url: str, body: bytes, headers: Mapping[str, str], timeout_s: float, check: Callable[[str], None]
) -> int:
    def checked_socket(address: AddrInfoType) -> socket.socket:
        """The socket for one address, which it is connected to next."""
        family, kind, protocol, _, place = address
        check(str(place[0]))
        return socket.socket(family, kind, protocol)

    timeout = aiohttp.ClientTimeout(total=timeout_s, connect=CONNECT_S)
    connector = aiohttp.TCPConnector(
        resolver=_Careful(check), socket_factory=checked_socket, force_close=True, use_dns_cache=False
    )
    async with aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=False) as session:
        async with session.post(url, data=body, headers=headers, allow_redirects=False) as response:
            return response.status


class _Careful(AbstractResolver):
    """Looks names up, and gives only addresses that may be sent to."""

    def __init__(self, check: Callable[[str], None]) -> None:
        self._check = check
        self._inner = aiohttp.ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        results = await self._inner.resolve(host, port, family)
        for result in results:
            self._check(result["host"])
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
