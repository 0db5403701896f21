"""Whether a master answers with TLS where its address names none, or the other way round. Standard library, Python 3.9.

Asked for after a failure: what comes back is only said to people, and nobody goes on there by themselves. A handshake
sends nothing of ours, and what is asked without TLS is ``/info``, which needs no login. What is not established is
not said.
"""

from __future__ import annotations

import socket
import ssl
from typing import Sequence
from urllib.parse import urlsplit

#: For a connection, and between two pieces of what comes back.
_WAIT_S = 3.0
_PORTS = {"http": 80, "https": 443}


def may_explain(error: BaseException) -> bool:
    """Whether an error can come from the wrong scheme: somebody was reached, and it was no certificate."""
    text = str(error)
    if "CERTIFICATE_VERIFY_FAILED" in text or "certificate verify failed" in text:
        return False
    return "timed out" not in text and not isinstance(error, (ConnectionRefusedError, socket.gaierror))


def advice(urls: Sequence[str]) -> str:
    """Which address to use instead of the first of these that has the wrong scheme; empty where that is not so."""
    return next((words for words in map(_advice, urls) if words), "")


def _advice(url: str) -> str:
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 80)
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    path = parts.path.rstrip("/")
    if parts.scheme == "http" and _speaks_tls(host, port):
        return f"the master at {url} answers with TLS: use https://{place}{path}"
    if parts.scheme == "https" and not _speaks_tls(host, port) and _answers_plainly(host, port, place, path):
        return (
            f"the master at {url} answers without TLS: use http://{place}{path}, if passwords and tokens may be read "
            "on the way there"
        )
    return ""


def _speaks_tls(host: str, port: int) -> bool:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with socket.create_connection((host, port), _WAIT_S) as sock:
            with context.wrap_socket(sock, server_hostname=host):
                return True
    except (OSError, ValueError):
        return False


def _answers_plainly(host: str, port: int, place: str, path: str) -> bool:
    # A server with TLS may answer this, too: with 400.
    request = f"GET {path}/info HTTP/1.1\r\nHost: {place}\r\nConnection: close\r\n\r\n"
    try:
        with socket.create_connection((host, port), _WAIT_S) as sock:
            sock.sendall(request.encode("ascii"))
            with sock.makefile("rb") as reader:
                return reader.readline(64).startswith((b"HTTP/1.1 200", b"HTTP/1.0 200"))
    except (OSError, ValueError):
        return False
