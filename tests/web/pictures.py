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
#: Those of them that ask for colours.
COLOURS = ["color-contrast", "link-in-text-block"]
PICTURES = os.environ.get("TENAX_PICTURES", "")


#: Charts below what is in view are fetched when one scrolls there.
_LOADS = """() => [...document.querySelectorAll("main *")].some((each) => {
  const box = each.getBoundingClientRect();
  const words = [...each.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data).join("");
  return /^Loading/.test(words) && box.height > 0 && box.top < innerHeight && box.bottom > 0;
})"""


def loaded(page: Page) -> None:
    """Waits until nothing in view is still being fetched."""
    page.wait_for_function(f"() => !({_LOADS})()")


def violations(page: Page, *, colours: bool = False) -> list[str]:
    """What axe finds on a page that has it: rule, what it asks for, and the first element that breaks it. Of what is
    well it makes no report, which would take as long again. ``colours``: of them alone, which is all that another
    theme changes."""
    only = {"type": "rule", "values": COLOURS} if colours else {"type": "tag", "values": TAGS}
    options = {"runOnly": only, "resultTypes": ["violations"]}
    found = page.evaluate("options => axe.run(options)", options)
    return [f"{each['id']}: {each['help']}: {each['nodes'][0]['html'][:300]}" for each in found["violations"]]


def keep(page: Page, name: str) -> None:
    """Pictures, if they are wanted."""
    if not PICTURES:
        return
    page.screenshot(path=Path(PICTURES) / f"{name}-1440.png")
    page.set_viewport_size({"width": 390, "height": 844})
    page.screenshot(path=Path(PICTURES) / f"{name}-390.png")
    page.set_viewport_size({"width": 1440, "height": 900})
