"""Who used the cluster, as the page, the command line and the API say it; and the master's own log."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.kits.machine import wait_for
from tests.web.site import Site, drawn

JUNE = ("2025-06-01", "2025-06-30")
#: Who is called so would be run by a spreadsheet.
FORMULA = '=HYPERLINK("x"),y'


@pytest.fixture
def june(site: Site) -> Iterator[str]:
    """The address of a month in which many things ran, one of them somebody's whose name is a formula."""
    site.used()
    site.write(f"{USED} values ('f', 'f.1', 0, 'f', 'COMMAND', null, 1, $1, 'default', 'a1', 2, {MOMENTS})", FORMULA)
    yield f"{site.url}/ui/usage?from={JUNE[0]}&to={JUNE[1]}"
    site.write("delete from usage where container_id = 'f'")


USED = (
    "insert into usage (container_id, allocation_id, rank, task_id, kind, experiment_id, user_id, username, pool,"
    " agent_id, slots, requested_at, started_at, ended_at)"
)
MOMENTS = "timestamptz '2025-06-10 00:00Z', timestamptz '2025-06-10 03:00Z', timestamptz '2025-06-10 04:30Z'"


def sums(site: Site, by: str, field: str) -> dict[str, tuple[str, str]]:
    """Slot hours, and those that were waited, as the API has them, by name."""
    dates = f"startDate={JUNE[0]}&endDate={JUNE[1]}&period=RESOURCE_ALLOCATION_AGGREGATION_PERIOD_MONTHLY"
    reply = site.api("GET", f"/api/v1/resources/allocation/aggregated?{dates}&by={by}")
    (month,) = cast("list[dict[str, dict[str, float]]]", reply["resourceEntries"])
    names = {*month[field], *month["waited"]}
    return {
        name: (f"{month[field].get(name, 0) / 3600:.2f}", f"{month['waited'].get(name, 0) / 3600:.2f}")
        for name in names
    }


#: The texts of its rows but the first.
_CELLS = """table => [...table.querySelectorAll("tr")].slice(1)
  .map(row => [...row.querySelectorAll("th, td")].map(cell => cell.innerText.trim()))"""


def shown(table: Locator) -> dict[str, tuple[str, str]]:
    """What the table says, all of it at one moment."""
    rows = cast("list[list[str]]", table.evaluate(_CELLS))
    return {name: (used.replace(",", ""), waited.replace(",", "")) for name, used, _, waited in rows}


def shows(table: Locator, expected: dict[str, tuple[str, str]]) -> None:
    """Once the table says so: what it said before stays until the answer has come."""
    wait_for(lambda: shown(table) == expected, f"{expected} in the table")


def typed(site: Site, *arguments: str) -> list[list[str]]:
    """Lines of `tenax usage aggregated` without the first."""
    environment = {**os.environ, "DET_MASTER": site.url, "DET_USER": "determined", "DET_PASS": site.password}
    command = [str(Path(sys.executable).with_name("tenax")), "usage", "aggregated", *JUNE, "--monthly", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120)
    return [line.split() for line in done.stdout.splitlines()[1:]]


def test_page_command_line_and_api_agree(page: Page, site: Site, june: str) -> None:
    """On slot hours and on what was waited, by whatever they are summed; sorted by any column, as the address says. The
    file has full numbers and runs nothing."""
    page.goto(june)
    table = page.get_by_role("region", name="Slot hours by user", exact=True)
    expect(table.get_by_role("row")).to_have_count(len(sums(site, "user", "byUsername")) + 1)
    shows(table, sums(site, "user", "byUsername"))
    assert shown(table)[FORMULA] == ("3.00", "6.00")
    by_user = {row[1]: (row[2], row[3]) for row in typed(site, "--by", "user")}
    assert by_user == shown(table)
    in_all = f"{float(typed(site)[0][1]):,.2f} slot hours"
    expect(page.get_by_role("status", name="Total")).to_have_text(re.compile(rf"^\s*{re.escape(in_all)}"))

    used = table.get_by_role("columnheader", name="Slot hours")
    expect(used).to_have_attribute("aria-sort", "descending")
    table.get_by_role("button", name="Waited").click()
    expect(table.get_by_role("columnheader", name="Waited")).to_have_attribute("aria-sort", "descending")
    expect(page).to_have_url(re.compile("sort=-waited"))

    def waited() -> list[float]:
        return [float(hours) for _, hours in shown(table).values()]

    wait_for(lambda: waited() == sorted(waited(), reverse=True), "the order")
    page.reload()
    expect(table.get_by_role("row")).to_have_count(len(waited()) + 1)
    expect(table.get_by_role("columnheader", name="Waited")).to_have_attribute("aria-sort", "descending")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as CSV").click()
    assert download.value.suggested_filename == "usage-by-user-2025-06-01-2025-06-30.csv"
    with Path(download.value.path()).open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["user"] for row in rows} == {"total", f"'{FORMULA}", *sums(site, "user", "byUsername")} - {FORMULA}
    assert next(row["slot_hours"] for row in rows if row["user"] == f"'{FORMULA}") == "3"

    page.get_by_role("combobox", name="By").select_option("type")
    table = page.get_by_role("region", name="Slot hours by type")
    kinds = sums(site, "type", "byType")
    expect(table.get_by_role("row")).to_have_count(len(kinds) + 1)
    shows(table, {"Experiment": kinds["experiment"], "Command": kinds["command"]})
    page.get_by_role("combobox", name="Bars").select_option("week")
    chart = page.get_by_role("figure", name="Slot hours per week")
    expect(chart).to_be_visible()
    # A month that begins on a Sunday has six weeks.
    chart.get_by_role("button", name="View as table").click()
    expect(chart.get_by_role("row").nth(1).get_by_role("cell").nth(1)).to_have_text("6")
    page.get_by_role("combobox", name="Time").select_option("12 months")
    expect(page.get_by_role("combobox", name="Bars")).to_have_value("week")
    page.wait_for_url(re.compile(r"from=\d{4}-\d\d-01"))


@pytest.fixture
def march(site: Site) -> Iterator[str]:
    """The address of a month in which a machine was rented for four hours, and half of its slots used for two."""
    site.write(
        "insert into machines (machine_id, pool, provider, region, instance_type, slots, state, provider_id, price,"
        " rented_at, ended_at) values ('m-march', 'default', 'aws', 'r', 't', 4, 'GONE', 'm-march', 2.0,"
        " '2025-03-10 01:00Z', '2025-03-10 05:00Z')"
    )
    site.write(
        f"{USED} values ('m', 'm.1', 0, 'm', 'COMMAND', null, 1, $1, 'default', 'm-march', 2,"
        " '2025-03-10 01:30Z', '2025-03-10 02:00Z', '2025-03-10 04:00Z')",
        FORMULA,
    )
    yield f"{site.url}/ui/usage?from=2025-03-01&to=2025-03-31"
    site.write("delete from usage where container_id = 'm'")
    site.write("delete from machines where machine_id = 'm-march'")


def test_what_rented_machines_cost(page: Page, site: Site, march: str) -> None:
    """By whom it was for, as the API has it; what nothing used is a row of its own. Where nothing is rented, nothing is
    said of it."""
    page.goto(march)
    table = page.get_by_role("region", name="Cost by user")
    rows = [[FORMULA, "2.00", "1.0"], ["Idle", "6.00", "3.0"]]
    wait_for(lambda: table.count() and table.evaluate(_CELLS) == rows, f"{rows} in the table")
    reply = site.api("GET", "/api/v1/machines/cost?by=user&since=2025-03-01&until=2025-03-31")
    costs = cast("list[dict[str, object]]", reply["costs"])
    assert [(each["name"], each["cost"], each["idle"]) for each in costs] == [(FORMULA, 2, False), ("", 6, True)]
    expect(page.get_by_role("status", name="Total cost")).to_have_text("8.00 for 4.0 machine hours")
    page.get_by_role("combobox", name="By").select_option("pool")
    expect(page.get_by_role("region", name="Cost by pool").get_by_role("row").nth(1)).to_contain_text("8.00")
    page.goto(f"{site.url}/ui/usage?from=2001-01-01&to=2001-01-31")
    page.get_by_text("No slots were used from").wait_for()
    expect(page.get_by_role("heading", name="Rented machines")).to_have_count(0)


def test_budgets_of_rented_machines(page: Page, march: str) -> None:
    """What is spent of each this month, whether it is enough, and what follows; that of all pools is named once."""
    nearly = {"perMonth": 800, "spent": 700.5, "unpricedHours": 0, "stage": "NEARLY", "until": "2025-04-01T00:00:00Z"}
    of_pool = {**nearly, "resourcePool": "default", "stops": True, "warning": "87 % of it is spent"}
    of_all = {**nearly, "resourcePool": "", "perMonth": 2000, "stage": "WITHIN", "stops": False, "warning": ""}
    plans = {"plans": [{"budgets": [of_pool, of_all]}, {"budgets": [of_all]}]}
    page.route("**/api/v1/machines/plan", lambda route: route.fulfill(json=plans))
    page.goto(march)
    table = page.get_by_role("region", name="Budgets of this month")
    expect(table.get_by_role("row")).to_have_count(3)
    mine = table.get_by_role("row").filter(has_text="default")
    expect(mine).to_contain_text("700.50 of 800.00")
    expect(mine).to_contain_text("Nearly used up")
    expect(mine).to_contain_text("machines are let go")
    expect(table.get_by_role("row").filter(has_text="All pools")).to_contain_text("700.50 of 2,000.00")


def test_a_name_leads_to_what_made_it_up(page: Page, site: Site) -> None:
    """The experiments that were there in that time, with that label; others' usage is said to be seen by everyone."""
    (experiment, _) = site.make("made it up", count=2)
    site.api("PATCH", f"/api/v1/experiments/{experiment}", {"labels": ["of the night, all of it"]})
    site.write(
        f"{USED} values ('l', 'l.1', 0, 'l', 'TRIAL', $1, 1, 'determined', 'default', 'a1', 2, now(), now(), null)",
        experiment,
    )
    page.goto(f"{site.url}/ui/usage")
    page.get_by_text("Everyone who can log in sees everyone's usage").wait_for()
    page.get_by_role("combobox", name="By").select_option("label")
    page.get_by_role("link", name="of the night, all of it").click()
    page.wait_for_url("**/ui/experiments?*")
    grid = page.get_by_role("grid")
    expect(grid).to_have_attribute("aria-rowcount", "2")
    expect(grid.get_by_role("gridcell", name="made it up 1")).to_be_visible()
    # By keys, there and back.
    page.keyboard.press("g")
    page.keyboard.press("u")
    page.wait_for_url("**/ui/usage")
    site.write("delete from usage where container_id = 'l'")


def standing_count(part: Locator) -> int | None:
    """How many there are; None while more may be coming."""
    number = part.count()
    for _ in range(5):
        drawn(part.page)
        if part.count() != number:
            return None
    return number


def test_administrators_follow_the_log_of_the_master(admin_page: Page, page: Page, site: Site) -> None:
    """Line by line as it is said, narrowed by level and by a part; others are told that they may not."""
    site.warned()
    admin_page.goto(f"{site.url}/ui/cluster")
    admin_page.get_by_role("link", name="Master's log").click()
    log = admin_page.get_by_role("region", name="Log of the master")
    refused = log.get_by_text("login refused")
    expect(refused.last).to_be_visible()
    admin_page.get_by_label("Part of a line").fill("login refused")
    expect(admin_page).to_have_url(re.compile("q=login"))
    before = wait_for(lambda: standing_count(refused), "all that was said before")
    site.warned()
    expect(refused).to_have_count(before + 1)
    admin_page.get_by_role("combobox", name="Level").select_option("critical")
    admin_page.get_by_text("No matching lines").wait_for()
    admin_page.get_by_role("combobox", name="Level").select_option("warning")
    expect(refused).to_have_count(before + 1)
    page.goto(f"{site.url}/ui/master/logs")
    page.get_by_text("Only administrators can see the master's log").wait_for()


def test_quotas(site: Site, june: str, page: Page) -> None:
    """What everybody may have stands below what was used; without quotas nothing does."""
    page.goto(june)
    expect(page.get_by_role("region", name="Slot hours by user", exact=True)).to_be_visible()
    expect(page.get_by_role("heading", name="Quotas")).to_have_count(0)
    source = "half_life: 36h\nusers: {determined: {max_slots: 3, priority: 40}}\ngroups: {}\n"
    site.administer("PUT", "/api/v1/quotas", {"source": source})
    try:
        page.reload()
        table = page.get_by_role("region", name="Quotas")
        row = table.get_by_role("row").filter(has=page.get_by_role("cell", name="determined", exact=True))
        expect(row.get_by_role("cell").nth(5)).to_have_text(re.compile(r"\d of 3"))
        expect(row.get_by_role("cell").nth(7)).to_have_text("40")
        expect(page.get_by_text("Use counts half after 36 hours.")).to_be_visible()
    finally:
        site.administer("DELETE", "/api/v1/quotas")
