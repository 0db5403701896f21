"""Builds the web page into wheels and source distributions; it never keeps anyone from installing.

An editable install builds nothing: ``make web`` does, and until then the master says so at ``/ui/``. With
``TENAX_SKIP_WEB`` set nothing is built either. A source distribution carries the built page, which is kept as it is.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parent
#: Where there are wheels of node.
_PLATFORMS = ("linux", "darwin")


class WebPageHook(BuildHookInterface):
    """What hatchling calls; the work is done by ``webui/build.py``."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Node, where the system has none and the page is not built. Asked before the environment is made."""
        builder = _builder()
        if builder is None or self._skipped() or builder.is_current() or builder.system_node():
            return []
        return [builder.NODE_PACKAGE] if sys.platform in _PLATFORMS else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build; whatever keeps it from that is a warning."""
        builder = _builder()
        if builder is None or version == "editable" or self._skipped():
            return
        try:
            builder.build(bring_node=False)
        except (builder.BuildFailed, OSError) as error:
            self.app.display_warning(f"The web page was not built, and is not in this package: {error}")

    def _skipped(self) -> bool:
        return bool(os.environ.get("TENAX_SKIP_WEB"))


def _builder() -> ModuleType | None:
    """None where there are no sources of the page, or where this is no system that it is built on."""
    source = ROOT / "webui" / "build.py"
    if not source.exists() or os.name != "posix":
        return None
    spec = importlib.util.spec_from_file_location("tenax_webui_build", source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
