"""The tour of the page (`docs/tour.md`): each of its pictures shows what the text beside it says.

With TENAX_TOUR=DIRECTORY the pictures are left there (`make tour`).
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.web.pictures import loaded
from tests.web.site import ROOT, Site

TOUR = ROOT / "docs" / "tour.md"
PICTURES = os.environ.get("TENAX_TOUR", "")
#: Picture -> address, what is there once the page is, and words of it that the text says.
STOPS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "home": ("", "role=img[name='loss of its best trial over its steps'] >> nth=1", ("Stalled", "left", "no agents")),
    "experiments": ("experiments?q=digits", "role=gridcell >> nth=0", ("halving over digits",)),
    "search": ("experiments/{sweep}", "role=list[name='Importance of hyperparameters']", ("Where its trials stand",)),
    "trial": ("trials/{well}", "figure canvas >> nth=3", ("Healthy: loss falling",)),
    "logs": ("trials/{trial}?tab=logs&q=step+59&line=591", "text=11 hits", ("11 hits",)),
    "compare": ("compare?trials={compared}", "figure canvas >> nth=1", ("Compare 4 trials",)),
    "queue": ("queue", "role=columnheader[name='Turn']", ("Change the request", "fork it with a different request")),
    "create": ("experiments/new", "role=heading[name='It would train 4 trials']", ("Where it would run",)),
}


def test_the_tour_has_these_pictures() -> None:
    """No more and no fewer, and each is there."""
    named = re.findall(r"\]\(images/(tour-[a-z]+\.png)\)", TOUR.read_text(encoding="utf-8"))
    assert sorted(named) == sorted(f"tour-{name}.png" for name in STOPS)
    assert [name for name in named if not (TOUR.parent / "images" / name).exists()] == []


@pytest.mark.parametrize("name", STOPS)
def test_each_shows_what_the_tour_says(home: Page, site: Site, name: str) -> None:
    """In the order of the tour."""
    address, shown, words = STOPS[name]
    home.set_viewport_size({"width": 1280, "height": 760})
    compared = ",".join(map(str, site.swept[:4]))
    home.goto(f"{site.url}/ui/" + address.format(compared=compared, **vars(site)))
    home.locator(shown).first.wait_for()
    for word in words:
        expect(home.get_by_role("main").get_by_text(word).first).to_be_visible()
    loaded(home)
    if PICTURES:
        home.screenshot(path=Path(PICTURES) / f"tour-{name}.png")
