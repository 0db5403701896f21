"""The queue and the cluster, on a master that schedules and machines that pretend: why each waits, and who has what."""

from __future__ import annotations

import re
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
from tests.web.site import TIMEOUT_MS, Site, box_of, hover_until, log_in, scheduling
from tests.web.troubles import watched

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
    met = list(troubles)
    context.close()
    assert met == []


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


def reads_on_a_phone(page: Page) -> None:
    """The reason stands below its job, as wide as the screen: it was out of sight, in rows as high as it."""
    wide = page.viewport_size
    assert wide
    page.set_viewport_size({"width": 390, "height": 844})
    reason = page.get_by_text("waits for 2 free slots in pool default: 3 in use")
    expect(reason).to_be_in_viewport(ratio=1)
    assert box_of(reason)["height"] < 120
    keep(page, "queue-classes-phone")
    page.set_viewport_size(wide)
    expect(row(page, "patient")).to_contain_text("waits for 2 free slots")


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
    patient = row(page, "patient")
    patient.get_by_role("button", name="When will it start, and what would help?").click()
    expect(patient).to_contain_text("It would start at once with")
    expect(patient.get_by_role("listitem").filter(has_text="the pool spare")).to_be_visible()
    expect(patient).to_contain_text(re.compile("It is not known when it will start|It is likely to start in"))
    keep(page, "queue-classes")
    patient.get_by_role("button", name="Close").click()
    expect(patient.get_by_role("listitem")).to_have_count(0)

    reads_on_a_phone(page)
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
    page.get_by_text("Nothing is running or waiting in default").wait_for()


def pools(site: Site) -> dict[str, dict[str, int]]:
    reply = site.api("GET", "/api/v1/resource-pools")["resourcePools"]
    return {str(pool["name"]): pool for pool in cast("list[dict[str, int]]", reply)}


def shown(page: Page, pool: str, title: str) -> int:
    """A figure of the table of pools."""
    table = page.get_by_role("region", name="Pools")
    titles = table.get_by_role("columnheader").all_inner_texts()
    named = table.get_by_role("row").filter(has=page.get_by_role("link", name=pool, exact=True))
    return int(named.get_by_role("cell").nth(titles.index(title)).inner_text().replace(",", ""))


def adds_up(page: Page, site: Site) -> bool:
    """Whether in use, free and offline are all slots of each pool, and what the API says: cells are read one by one."""
    for name, pool in pools(site).items():
        used, free, offline, total = (shown(page, name, title) for title in ("In use", "Free", "Offline", "Slots"))
        said = (pool["slotsUsed"], pool["slotsAvailable"] - pool["slotsUsed"], pool["slotsTotal"])
        if used + free + offline != total or (used, free, total) != said:
            return False
    return True


def test_what_each_slot_does(at_cluster: Page, cluster: Site) -> None:
    """In use, free and offline are all slots of a pool. A slot that is pointed at, or reached by keys, names whose it
    is and what for; a pool that is chosen is shown alone."""
    page, site = at_cluster, cluster
    holder = submit(site, "keeps slots", 3)
    wait_for(lambda: queued(site).get("keeps slots", {}).get("allocatedSlots") == 3, "its slots")
    page.goto(f"{site.url}/ui/cluster")
    grid = page.get_by_role("grid", name="Agents and their slots")
    whose = f"in use by admin for experiment {holder} keeps slots"
    used = grid.get_by_role("gridcell", name=whose)
    expect(used).to_have_count(3)
    problems = page.get_by_role("list", name="Problems")
    # Those who pretend say so in their version.
    expect(problems.get_by_role("listitem")).to_have_text(re.compile("^!3 agents run a different version from the mas"))
    wait_for(lambda: adds_up(page, site), "the sums")
    pointed = page.get_by_role("main").get_by_text(re.compile(rf"^Slot \d of .*: {whose} \(trial \d+\)$"))
    expect(pointed).to_have_count(0)
    hover_until(used.first, pointed)
    page.get_by_role("heading", level=1).hover()
    expect(pointed).to_have_count(0)
    expect(page.get_by_role("region", name="Who is using slots").get_by_role("row", name="admin")).to_contain_text("3")
    keep(page, "cluster-slots")

    row_of_it, slots = next((n, held) for n, held in enumerate(map(held_slots, agents(site))) if any(held))
    page.get_by_role("region", name="Pools").get_by_role("link", name="spare", exact=True).click()
    expect(grid.get_by_role("row").filter(has_text="Ready")).to_have_count(1)
    expect(page.get_by_text("by priority")).to_be_visible()
    page.get_by_role("link", name="Cluster", exact=True).first.click()
    expect(used).to_have_count(3)
    # By keys: to the first machine, along its slots, and to the trial that has one.
    page.keyboard.press("j")
    expect(grid).to_be_focused()
    page.keyboard.press("Home")
    for key in ["ArrowDown"] * row_of_it + ["ArrowRight"] * (slots.index(True) + 1):
        page.keyboard.press(key)
    expect(pointed).to_be_visible()
    page.keyboard.press("Enter")
    page.wait_for_url("**/trials/*")
    end(site, holder)


def test_a_machine_that_is_drained_or_away_says_so(at_cluster: Page, cluster: Site) -> None:
    """Without a reload: it is among the problems, and its slots are offline. What runs on it goes on."""
    page, site = at_cluster, cluster
    holder = submit(site, "stays there", 3)
    wait_for(lambda: queued(site).get("stays there", {}).get("allocatedSlots") == 3, "its slots")
    page.goto(f"{site.url}/ui/cluster")
    grid = page.get_by_role("grid", name="Agents and their slots")
    problems = page.get_by_role("list", name="Problems")
    expect(grid.get_by_role("gridcell", name="in use by admin")).to_have_count(3)
    page.evaluate("document.body.dataset.loaded = 'once'")
    machine = str(next(each["id"] for each in agents(site) if any(held_slots(each))))
    site.api("POST", f"/api/v1/agents/{machine}/disable", {"drain": True})
    expect(grid.get_by_role("row").filter(has_text=machine)).to_contain_text("Draining")
    expect(grid.get_by_role("gridcell", name="in use, takes no more work by admin")).to_have_count(3)
    expect(problems).to_contain_text(
        f"1 agent is draining: what is running there may finish, nothing new starts{machine}"
    )
    wait_for(lambda: adds_up(page, site), "the sums")
    wait_for(lambda: shown(page, "default", "Offline") == 1, "the slot that is offline")
    token = site.directory / "master" / "join-token"
    with pretend_fleet(site.url, token, pool="vast", agents=1, slots=2):
        expect(grid.get_by_role("row").filter(has_text="vast")).to_contain_text("Ready")
    expect(grid.get_by_role("row").filter(has_text="vast")).to_contain_text("Away")
    wait_for(lambda: adds_up(page, site), "the sums")
    wait_for(lambda: (shown(page, "vast", "Offline"), shown(page, "vast", "Slots")) == (2, 2), "both offline")
    keep(page, "cluster-problems")
    problems.get_by_role("link", name="1 agent is away").click()
    expect(page.get_by_role("status", name="Agents shown")).to_have_text("1 of 4")
    page.get_by_role("link", name="Show all").click()
    gone = next(str(each["id"]) for each in agents(site) if each["resourcePools"] == ["vast"])
    site.api("DELETE", f"/api/v1/agents/{gone}")
    expect(problems.get_by_role("listitem")).to_have_count(2)
    site.api("POST", f"/api/v1/agents/{machine}/enable")
    expect(problems.get_by_role("listitem")).to_have_count(1)
    assert page.evaluate("document.body.dataset.loaded") == "once"
    end(site, holder)


def held_slots(agent: dict[str, object]) -> list[bool]:
    """Of each of its slots, whether a container has it."""
    return [bool(slot["container"]) for slot in cast("dict[str, dict[str, object]]", agent["slots"]).values()]


def test_of_a_thousand_machines_those_in_view_are_there(page: Page, site: Site) -> None:
    """Each with eight slots; the last one is reached by a key, any other by a part of its name."""
    site.write(
        "insert into agents (agent_id, pool, credential_hash)"
        " select 'm' || to_char(n, 'FM0000'), 'default', sha256(n::text::bytea) from generate_series(1, 1000) n"
    )
    site.write(
        "insert into agent_presence (agent_id, connected) select agent_id, true from agents where agent_id like 'm____'"
    )
    site.write(
        "insert into agent_slots (agent_id, slot_id, kind, name, memory)"
        " select agent_id, n, 'cuda', 'A100', 42949672960 from agents, generate_series(0, 7) n"
        " where agent_id like 'm____'"
    )
    site.write('update agent_presence set labels = \'{"rack": "r7", "disk": "nvme"}\' where agent_id = \'m0707\'')
    try:
        page.goto(f"{site.url}/ui/cluster")
        grid = page.get_by_role("grid", name="Agents and their slots")
        expect(grid).to_have_attribute("aria-rowcount", str(len(agents(site)) + 1))
        assert page.evaluate("document.querySelectorAll('*').length") < 2500
        grid.press("End")
        expect(grid.get_by_text("m1000")).to_be_visible()
        assert page.evaluate("document.querySelectorAll('*').length") < 2500
        page.get_by_label("Name or label of an agent").fill("m0500")
        expect(grid.get_by_role("row")).to_have_count(2)
        expect(grid.get_by_role("gridcell", name="of m0500, A100: free")).to_have_count(8)
        page.get_by_label("Name or label of an agent").fill("rack=R7")
        expect(grid.get_by_role("row")).to_have_count(2)
        grid.get_by_role("gridcell", name="of m0707, A100: free").first.click()
        grid.press("Enter")
        slots = page.get_by_role("dialog", name="Slots of m0707")
        expect(slots).to_contain_text("Labels: disk=nvme, rack=r7")
        expect(slots.get_by_role("listitem").first).to_contain_text("Slot 0 A100, 40 GiB")
        keep(page, "cluster-labels")
        page.keyboard.press("Escape")
    finally:
        for table in ("agent_slots", "agent_presence", "agents"):
            site.write(f"delete from {table} where agent_id like 'm____'")
