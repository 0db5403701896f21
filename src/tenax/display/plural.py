"""Numbers of things, for people."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """``1 slot``, ``2 slots``; of nouns whose plural is an s."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
