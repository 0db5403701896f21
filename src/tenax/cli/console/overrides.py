"""The text of a configuration: as it stands in the file, or with values from the command line laid over it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Callable, List, Optional, Sequence, Tuple, TypeVar

import click

from tenax.errors import InvalidInput
from tenax.jsonvalue import Json, JsonObject

Function = TypeVar("Function", bound=Callable[..., object])
#: A file to read, or ``-`` for standard input.
FILE = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)


def overrides_option(example: str) -> Callable[[Function], Function]:
    """``--config KEY=VALUE``, as often as needed, for `configuration` and `document_of`."""
    what = f"Set a value of the configuration: --config {example}. May be given several times."
    return click.option("--config", "overrides", metavar="KEY=VALUE", multiple=True, help=what)


def configuration(path: Path, overrides: Sequence[str] = ()) -> str:
    """YAML text to submit; exactly what was typed, comments and all, unless there are overrides.

    Raises InvalidInput for what cannot be read, or for an override that does not fit.
    """
    text = _read(path)
    if not overrides:
        return text
    from tenax.cli.console import yaml12

    document = parsed(text, path)
    for override in overrides:
        keys, value = _assignment(override, "--config")
        _lay(document, keys, value, f"--config {override!r}")
    return yaml12.dump(document)


def document_of(path: Optional[Path], overrides: Sequence[str] = ()) -> JsonObject:
    """The document of a YAML file (of none: an empty one) with the overrides laid over it. Raises InvalidInput."""
    return laid_over({} if path is None else parsed(_read(path), path), overrides)


def laid_over(document: JsonObject, overrides: Sequence[str], option: str = "--config") -> JsonObject:
    """``document``, changed in place, with the overrides of an option laid over it. Raises InvalidInput."""
    for override in overrides:
        keys, value = _assignment(override, option)
        _lay(document, keys, value, f"{option} {override!r}")
    return document


def parsed(text: str, path: Path) -> JsonObject:
    """YAML text as a document. Raises InvalidInput."""
    import yaml

    from tenax.cli.console import yaml12

    try:
        document = yaml12.load(text)
    except yaml.YAMLError as error:
        raise InvalidInput(f"{path} is not YAML: {error}") from None
    if not isinstance(document, dict):
        raise InvalidInput(f"{path} must hold a map of keys and values, as every configuration does.")
    return document


def _read(path: Path) -> str:
    if str(path) == "-":
        return sys.stdin.read()
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is not UTF-8 text.") from None


def _assignment(override: str, option: str) -> Tuple[List[str], Json]:
    import yaml

    from tenax.cli.console import yaml12

    key, equals, text = override.partition("=")
    if not equals or not all(key.split(".")):
        example = "searcher.max_trials=4" if option == "--config" else "lr=0.1"
        raise InvalidInput(f"{option} {override!r}: write KEY=VALUE, for example {example}.")
    try:
        value = yaml12.load(text)
    except yaml.YAMLError:
        value = text
    return key.split("."), value


def _lay(document: JsonObject, keys: List[str], value: Json, where: str) -> None:
    place = document
    for key in keys[:-1]:
        inner = place.setdefault(key, {})
        if inner is None:
            inner = place[key] = {}
        if not isinstance(inner, dict):
            raise InvalidInput(f"{where}: {key!r} is not a map in the configuration.")
        place = inner
    place[keys[-1]] = value
