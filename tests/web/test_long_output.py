"""A million lines of output in the page; `make test-long` ends with how long it took until the end was in view."""

from __future__ import annotations

import subprocess
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Page, expect

from tests.kits import plain_http
from tests.kits.figures import Figures
from tests.web.site import Site

LINES, AT_ONCE = 1_000_000, 10_000
_SHOWN = """async last => {
  const began = performance.now();
  [...document.querySelectorAll('nav a')].find(link => link.textContent === 'Output').click();
  while (!document.querySelector(`[data-line='${last}'] time`)) await new Promise(requestAnimationFrame);
  return performance.now() - began;
}"""


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_million_lines_open_at_the_end(page: Page, site: Site, tmp_path: Path, figures: Figures) -> None:
    """At once, with few lines in the document; any line is reached, and a pattern has as many hits as `grep` says."""
    trial = site.failed_trial
    task = site.api("GET", f"/api/v1/trials/{trial}")["trial"]["taskId"]  # type: ignore[index]
    before = site.api("GET", f"/api/v1/trials/{trial}/logs/lines")["total"]
    login = {"username": "admin", "password": site.admin_password}
    token = plain_http.post(f"{site.url}/api/v1/auth/login", json=login).json()["token"]
    headers = {"Authorization": f"Bearer {token}"}
    written = tmp_path / "output.log"
    with (
        written.open("w") as file,
        httpx2.Client(verify=False, base_url=site.url, headers=headers, timeout=120) as http,
    ):
        for start in range(0, LINES, AT_ONCE):
            lines = [
                {"taskId": task, "log": f"epoch {n // 1000} step {n}: loss={1 / (n + 1):.6f}", "level": "INFO"}
                for n in range(start, start + AT_ONCE)
            ]
            assert http.post("/api/v1/task/logs", json={"logs": lines}).status_code == 200
            file.writelines(f"{line['log']}\n" for line in lines)
    last = LINES + int(str(before))
    taken = []
    for _ in range(5):
        page.goto(f"{site.url}/ui/trials/{trial}")
        page.get_by_role("link", name="Output", exact=True).wait_for()
        taken.append(page.evaluate(_SHOWN, last))
    figures.tell("ms from the click to the tail of a million lines", ms=sorted(round(each) for each in taken))
    view = page.get_by_role("region", name="Output of trial")
    expect(view.locator(f"[data-line='{last}']")).to_be_in_viewport()
    assert view.locator("[data-line]").count() < 200
    page.goto(f"{site.url}/ui/trials/{trial}?tab=logs&line=500000&q=step+77777")
    expect(view.locator("[data-line='500000']")).to_be_in_viewport()
    expect(view.locator("[data-line='500000']")).to_contain_text("step ")
    # 77777 and 777770 to 777779.
    expect(page.get_by_label("Hits")).to_have_text("11 hits")
    pattern = "step [0-9]*7: loss=0[.]00000[37]"
    counted = int(subprocess.run(["grep", "-c", pattern, written], capture_output=True, text=True).stdout)
    assert counted > 1000
    page.goto(f"{site.url}/ui/trials/{trial}?tab=logs&re=true&q={pattern}")
    expect(page.get_by_label("Hits")).to_have_text(f"{counted:,} hits")
