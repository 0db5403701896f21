"""What tests of looks share: axe, what it is asked about, and pictures."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from tests.web.site import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Page

AXE = ROOT / "webui" / "node_modules" / "axe-core" / "axe.min.js"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
PICTURES = os.environ.get("TENAX_PICTURES", "")


def keep(page: Page, name: str) -> None:
    """Pictures, if they are wanted."""
    if not PICTURES:
        return
    page.screenshot(path=Path(PICTURES) / f"{name}-1440.png")
    page.set_viewport_size({"width": 390, "height": 844})
    page.screenshot(path=Path(PICTURES) / f"{name}-390.png")
    page.set_viewport_size({"width": 1440, "height": 900})
