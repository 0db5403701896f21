"""The queue and the cluster, on a master that schedules and machines that pretend: why each waits, and who has what."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import cast

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tenax.local.postgres import EmbeddedPostgres
from tests.kits.database import database_in
from tests.kits.machine import wait_for
from tests.kits.pretend_fleet import pretend_fleet
from tests.web.pictures import keep
from tests.web.site import TIMEOUT_MS, Site, log_in, scheduling, watched

POOLS = "[{name: default}, {name: spare}, {name: vast}]"


@pytest.fixture(scope="module")
def cluster(
    postgres: EmbeddedPostgres, template: str, tmp_path_factory: pytest.TempPathFactory, built: None
) -> Iterator[Site]:
    """Two machines of four slots in the pool that most use, one of two in another."""
    dsn = database_in(postgres.dsn, f"w_{uuid.uuid4().hex}")
    directory = tmp_path_factory.mktemp("cluster")
    with scheduling(postgres.dsn, dsn, template, directory, pools=POOLS, launch_error="false") as site:
        token = directory / "master" / "join-token"
        with (
            pretend_fleet(site.url, token, pool="default", agents=2, slots=4),
            pretend_fleet(site.url, token, pool="spare", agents=1, slots=2),
        ):
            wait_for(lambda: len(agents(site)) == 3, "the machines")
            yield site


@pytest.fixture
def at_cluster(browser: Browser, cluster: Site) -> Iterator[Page]:
    """A page of an administrator's; it stays quiet."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.set_default_timeout(TIMEOUT_MS)
    page = context.new_page()
    log_in(page, cluster, who="admin")
    troubles = watched(page, cluster)
    yield page
    context.close()
    assert troubles == []


def agents(site: Site) -> list[dict[str, object]]:
    return cast("list[dict[str, object]]", site.api("GET", "/api/v1/agents")["agents"])


def submit(site: Site, name: str, slots: int, pool: str = "default", **more: str) -> int:
    """An experiment of one trial."""
    lines = [
        *(f"name: {name}", "entrypoint: python3 train.py", "searcher: {name: single, metric: loss, max_length: 9}"),
        f"resources: {{slots_per_trial: {slots}, resource_pool: {pool}}}",
        *(f"{field}: {value}" for field, value in more.items()),
    ]
    made = site.api("POST", "/api/v1/experiments", {"config": "\n".join(lines), "activate": True})
    return int(cast("dict[str, int]", made["experiment"])["id"])


def queued(site: Site, pool: str = "default") -> dict[str, dict[str, object]]:
    """By the name, the jobs of a pool."""
    reply = site.api("GET", f"/api/v1/job-queues-v2?resourcePool={pool}")
    return {str(job["full"]["name"]): job["full"] for job in cast("list[dict[str, dict[str, object]]]", reply["jobs"])}


def end(site: Site, *numbers: int) -> None:
    for number in numbers:
        site.api("POST", f"/api/v1/experiments/{number}/kill")
    wait_for(lambda: not queued(site), "an empty queue")


def row(page: Page, name: str) -> Locator:
    return page.get_by_role("row").filter(has=page.get_by_role("link", name=name, exact=False))


def test_why_each_waits(at_cluster: Page, cluster: Site) -> None:
    """Of three that wait each says another thing to do; the impossible one, that it can never start. What is freed and
    who comes back changes the words without a reload. Keys move a job, and take it back."""
    page, site = at_cluster, cluster
    _, second = sorted(
        str(agent["id"]) for agent in agents(site) if "default" in cast("list[str]", agent["resourcePools"])
    )
    site.api("POST", f"/api/v1/agents/{second}/disable", {"drain": True})
    holder = submit(site, "holder", 3)
    wait_for(lambda: queued(site).get("holder", {}).get("allocatedSlots") == 3, "the holder")
    waits, closed, huge = submit(site, "patient", 2), submit(site, "wide", 8), submit(site, "huge", 16)
    wait_for(lambda: all(queued(site)[name].get("waitClass") for name in ("patient", "wide", "huge")), "reasons")
    page.goto(f"{site.url}/ui/queue")
    expect(row(page, "patient")).to_contain_text("Wait: waits for 2 free slots in pool default: 3 in use")
    held_by = row(page, "patient").get_by_role("link", name=f"experiment {holder} of admin (3)")
    expect(held_by).to_have_attribute("href", f"/ui/experiments/{holder}")
    expect(row(page, "patient")).to_contain_text("pool spare has room for it now")
    expect(row(page, "wide")).to_contain_text("Ask someone: cannot start before somebody acts")
    expect(row(page, "huge")).to_contain_text(
        "Change the request: can never start as it is: 16 slots can never run here"
    )
    expect(row(page, "huge")).to_contain_text("It will never start by itself")
    totals = page.get_by_role("list", name="Pools").get_by_role("link", name="default")
    expect(totals).to_contain_text("1 running, 3 queued, 1 of 8 slots free")
    expect(row(page, "huge")).to_contain_text("● you")
    keep(page, "queue-classes")
    page.evaluate("document.body.dataset.loaded = 'once'")

    # By keys: to the third, and ahead of the second.
    for _ in range(3):
        page.keyboard.press("j")
    expect(row(page, "wide")).to_have_attribute("aria-current", "true")
    page.keyboard.press("<")
    page.get_by_role("status").get_by_text(f"Moved experiment {closed} ahead of experiment {waits}").wait_for()
    expect(page.get_by_role("row").nth(2)).to_contain_text("wide")
    page.keyboard.press("z")
    expect(page.get_by_role("row").nth(2)).to_contain_text("patient")

    site.api("POST", f"/api/v1/experiments/{holder}/kill")
    expect(row(page, "patient")).to_contain_text("Running")
    expect(row(page, "patient").get_by_text("waits for")).to_have_count(0)
    site.api("POST", f"/api/v1/agents/{second}/enable")
    expect(row(page, "wide")).to_contain_text("Wait: waits for 8 free slots in pool default")
    assert page.evaluate("document.body.dataset.loaded") == "once"
    end(site, waits, closed, huge)
    page.get_by_text("Nothing runs or waits in default").wait_for()
