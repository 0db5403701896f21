"""Credentials of tasks and of rented machines, derived from the cluster's secret: given again, and nowhere read back.

Rules: a token names its kind by its first letters, so that a leaked one is recognised; the database keeps sha256 only.
"""

from __future__ import annotations

import base64
import hashlib
import hmac


def allocation_token(secret: bytes, allocation_id: str) -> str:
    """What the members of an allocation authenticate with (``DET_SESSION_TOKEN``)."""
    return "tnxa_" + _derive(secret, b"allocation:", allocation_id)


def task_session_token(secret: bytes, allocation_id: str) -> str:
    """The owner's session inside a task (``DET_USER_TOKEN``); good for as long as the allocation is open."""
    return "tnxu_" + _derive(secret, b"session:", allocation_id)


def machine_token(secret: bytes, machine_id: str) -> str:
    """What the agent of a rented machine joins with, once."""
    return "tnxm_" + _derive(secret, b"machine:", machine_id)


def token_hash(token: str) -> bytes:
    """What the database keeps of a token, 32 bytes."""
    return hashlib.sha256(token.encode()).digest()


def _derive(secret: bytes, purpose: bytes, name: str) -> str:
    digest = hmac.new(secret, purpose + name.encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
