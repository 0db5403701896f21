"""JSON for code that starts in a hurry. Standard library only, Python 3.9.

``import json`` loads regular expressions and enumerations, 6 ms of a task's start; the C scanner and encoder beneath it
load nothing. Where an interpreter has none (or another signature), ``json`` itself is used.

Rules: NaN and infinities are never written as bare words (``dumps`` raises ValueError); they are read leniently. What
is written is ASCII on one line.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from tenax.jsonvalue import Json

_WHITESPACE = " \t\n\r"
_CONSTANTS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


class _ScannerRules:
    """What the C scanner asks of its owner."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    array_hook = None
    parse_float = float
    parse_int = int
    parse_constant = _CONSTANTS.__getitem__


def _unknown(value: object) -> object:
    """Last resort of the encoder: scalars of numpy and torch know how to become Python's."""
    item = getattr(value, "item", None)
    if item is not None and getattr(value, "ndim", 1) == 0:
        plain: object = item()
        if plain.__class__ in (bool, int, float, str):
            return plain
    raise TypeError(f"a value of type {type(value).__name__} cannot be written as JSON")


def _make_dumps() -> Callable[[object], str]:
    try:
        from _json import encode_basestring_ascii, make_encoder

        chunks = make_encoder(None, _unknown, encode_basestring_ascii, None, ":", ",", False, False, False)
        "".join(chunks({"probe": [1, 2.5, None]}, 0))
    except (ImportError, TypeError, AttributeError):
        import json

        return json.JSONEncoder(default=_unknown, allow_nan=False, check_circular=False, separators=(",", ":")).encode
    join = "".join

    def dumps_fast(value: object) -> str:
        return join(chunks(value, 0))

    return dumps_fast


def _make_loads() -> Callable[[str], Json]:
    try:
        from _json import make_scanner

        scan = make_scanner(_ScannerRules())  # type: ignore[arg-type]  # any object with these attributes serves
        scan('{"probe": [1, 2.5, null]}', 0)
    except (ImportError, TypeError, AttributeError):
        import json

        return json.loads

    def loads_fast(text: str) -> Json:
        start = len(text) - len(text.lstrip(_WHITESPACE))
        try:
            value: Json
            value, end = scan(text, start)
        except StopIteration as stop:
            raise ValueError(f"not JSON: nothing readable at character {stop.value}") from None
        except SystemError:  # Python 3.10 finds no class for its error unless json is loaded
            import json

            parsed: Json = json.loads(text)
            return parsed
        if text[end:].strip(_WHITESPACE):
            raise ValueError(f"not JSON: more text after character {end}")
        return value

    return loads_fast


#: Value to text. Raises ValueError for NaN and infinities, TypeError for what JSON has no form for.
dumps = _make_dumps()
#: Text to value. Raises ValueError for what is not JSON.
loads = _make_loads()
