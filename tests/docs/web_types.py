"""The types that the web page has of our API: ``make web-types`` writes ``webui/src/services/schema.d.ts``.

They are made by openapi-typescript from the part of our OpenAPI document that the page's services name: a route
which the page does not use changes nothing. Its first line says of what contract it was made, which is compared
without node.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from tenax.jsonvalue import Json, JsonObject
from tenax.master.api.http.openapi import document
from tenax.master.app import create_app
from tenax.master.context import Master

ROOT = Path(__file__).resolve().parents[2]
WEBUI = ROOT / "webui"
SERVICES = WEBUI / "src" / "services"
TYPES = SERVICES / "schema.d.ts"
_PATH = re.compile(r"\"(/api/v1/[^\"]*)\"")
_SCHEMA = "#/components/schemas/"


def used() -> list[str]:
    """The paths that services name, as OpenAPI spells them."""
    services = (path.read_text() for path in sorted(SERVICES.glob("*.ts")) if path != TYPES)
    return sorted({path for text in services for path in _PATH.findall(text)})


def contract() -> JsonObject:
    """That part of our OpenAPI document, with what it refers to."""
    nothing = SimpleNamespace(settings=SimpleNamespace(body_limit_bytes=1))
    whole = document(create_app(cast(Master, nothing)))
    paths, schemas = cast(JsonObject, whole["paths"]), cast(JsonObject, whole["components"])["schemas"]
    unknown = [path for path in used() if path not in paths]
    assert not unknown, f"services of the web page name what the master does not have: {unknown}"
    chosen: JsonObject = {path: _plain(paths[path]) for path in used()}
    kept: JsonObject = {}
    _collect(chosen, cast(JsonObject, schemas), kept)
    components: JsonObject = {"schemas": {name: kept[name] for name in sorted(kept)}}
    return {
        "openapi": whole["openapi"],
        "info": {"title": "Tenax", "version": "1"},
        "paths": chosen,
        "components": components,
    }


def _plain(value: Json) -> Json:
    """Without descriptions and titles: words that change say nothing about types."""
    if isinstance(value, dict):
        return {
            key: _plain(inner)
            for key, inner in value.items()
            if not (key in ("description", "title") and isinstance(inner, str))
        }
    return [_plain(inner) for inner in value] if isinstance(value, list) else value


def _collect(value: Json, schemas: JsonObject, kept: JsonObject) -> None:
    if isinstance(value, list):
        for inner in value:
            _collect(inner, schemas, kept)
    elif isinstance(value, dict):
        reference = value.get("$ref")
        if isinstance(reference, str) and (name := reference.removeprefix(_SCHEMA)) not in kept:
            kept[name] = _plain(schemas[name])
            _collect(kept[name], schemas, kept)
        for inner in value.values():
            _collect(inner, schemas, kept)


def heading() -> str:
    """The first line of the file for the contract as it is now."""
    text = json.dumps(contract(), sort_keys=True, separators=(",", ":"))
    return f"// Made by `make web-types`; sha256 of the contract: {hashlib.sha256(text.encode()).hexdigest()}\n"


def main() -> None:
    """Write the file; openapi-typescript has to be in webui/node_modules."""
    with tempfile.TemporaryDirectory() as directory:
        source, made = Path(directory) / "openapi.json", Path(directory) / "schema.d.ts"
        source.write_text(json.dumps(contract()))
        command = ["npx", "--no-install", "openapi-typescript", str(source), "--output", str(made)]
        subprocess.run(command, cwd=WEBUI, check=True, capture_output=True)
        TYPES.write_text(heading() + made.read_text())


if __name__ == "__main__":
    main()
