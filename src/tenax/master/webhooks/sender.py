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
import importlib
import ipaddress
import socket
from urllib.parse import urlsplit

from tenax import __version__
from tenax.config.master import WebhookSettings
from tenax.errors import InvalidInput
from tenax.jsonvalue import JsonObject
from tenax.lifecycle.delivery import DeliveryOutcome
from tenax.master.webhooks.addresses import CONNECT_S, AddressRefused, check_address
from tenax.master.webhooks.payloads import body_of

SIGNATURE = "X-Determined-AI-Signature"
TIMESTAMP = "X-Determined-AI-Signature-Timestamp"
MAX_URL = 2000
_POST = "tenax.master.webhooks.post"


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
        # In a thread: the first time it loads for a tenth of a second.
        loaded = await asyncio.to_thread(importlib.import_module, _POST)
        outcome: DeliveryOutcome = await loaded.post(url, body, headers, self._settings.timeout, self.check_address)
        return outcome

    async def check_receiver(self, url: str) -> None:
        """Raises InvalidInput for an address that nothing will be sent to; a name that means nothing yet is taken."""
        host = urlsplit(url).hostname or ""
        try:
            async with asyncio.timeout(CONNECT_S):
                results = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
            for *_, place in results:
                self.check_address(str(place[0]))
        except AddressRefused as refused:
            raise InvalidInput(f"url: {refused}") from None
        except (OSError, UnicodeError, TimeoutError):
            # It is judged again, and for good, at each message.
            return

    def check_address(self, address: str) -> None:
        """Raises AddressRefused for one that this master does not send to."""
        check_address(address, self._allowed)
