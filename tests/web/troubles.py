"""What goes wrong in a page while a test uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import ConsoleMessage, Page

    from tests.web.site import Site


def watched(page: Page, site: Site) -> list[str]:
    """What goes wrong in a page, from now on."""
    troubles: list[str] = []

    def heard(said: ConsoleMessage) -> None:
        if said.type in ("error", "warning"):
            # What failed to load is not in the words.
            troubles.append(f"{said.text} [{said.location['url']}]")

    page.on("console", heard)
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on(
        "request",
        lambda sent: troubles.append(sent.url) if not sent.url.startswith((site.url, "data:", "blob:")) else None,
    )
    return troubles
