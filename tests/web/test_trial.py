"""The page of a trial: is it OK, and what shows it; its charts, its machines, its code, its checkpoints."""

from __future__ import annotations

import re
from typing import cast

from playwright.sync_api import Page, expect

from tests.kits.machine import wait_for
from tests.web.site import Site, box_of, fits
from tests.web.trained import NAMES

FOLD = 900


def bottom(page: Page, selector: str, place: int) -> float:
    """Where it ends, from the top of the window."""
    box = box_of(page.locator(selector).nth(place))
    return box["y"] + box["height"]


def test_one_sees_at_a_glance_whether_it_is_well(page: Page, site: Site) -> None:
    """Its health, eight facts and four charts, without scrolling; the newest line of output is at its foot."""
    site.speak()
    page.goto(f"{site.url}/ui/trials/{site.well}")
    health = page.get_by_role("region", name="Health")
    expect(health).to_contain_text("Healthy: loss falling, last report")
    page.locator("figure canvas").nth(3).wait_for()
    facts: dict[str, str | re.Pattern[str]] = {
        "Progress": re.compile(r"^\s*60 %\s*$"),
        "Time left": re.compile("^about "),
        "Slots": "2 on a1",
        "Utilisation": re.compile("^GPU "),
        "Time per step": "20 s",
        "Restarts": "0 of at most 5",
        "Last line": re.compile(" ago$"),
        "Best loss": re.compile("."),
    }
    shown = page.locator("dt")
    for name, value in facts.items():
        expect(page.locator(f"dt[title='{name}'] + dd")).to_have_text(value, use_inner_text=True)
    wait_for(lambda: set(shown.all_inner_texts()[:8]) == set(facts), "eight facts")
    assert bottom(page, "dt", 7) < FOLD
    assert bottom(page, "figure", 3) < FOLD
    foot = page.get_by_role("link", name=re.compile("newest line .*step 120 of 120"))
    expect(foot).to_be_in_viewport()
    # What can be done to a chart stands beside its title, however much its legend has.
    loss = page.get_by_role("figure", name="loss")
    title = box_of(loss.get_by_title("loss", exact=True))
    table = box_of(loss.get_by_role("button", name="View as table: loss"))
    assert abs(title["y"] + title["height"] / 2 - table["y"] - table["height"] / 2) < 4
    health.get_by_role("link", name="chart").click()
    expect(page).to_have_url(re.compile("tab=metrics&metric=loss"))


def test_what_is_wrong_comes_first_and_leads_to_what_shows_it(page: Page, site: Site) -> None:
    """One that is silent says for how long, and what is usual; one that failed leads to its line, which is in view."""
    page.goto(f"{site.url}/ui/trials/{site.silent}")
    health = page.get_by_role("region", name="Health")
    expect(health).to_contain_text(
        re.compile("Stalled: no line of output and no metric for 2 h .*usually it reports every 1 m")
    )
    page.goto(f"{site.url}/ui/trials/{site.failed_trial}")
    expect(health).to_contain_text("Failed: your code raised KeyError: 'x'")
    expect(health.locator(".font-semibold")).to_have_text("✕ Failed")
    health.get_by_role("link", name="line 3").click()
    marked = page.locator("[aria-current]").filter(has_text="KeyError: 'x'")
    expect(marked).to_be_in_viewport()
    expect(page).to_have_url(re.compile("tab=logs&line=3"))


def test_a_trial_says_whose_it_is(page: Page, site: Site) -> None:
    """The name of its experiment stands beside its number, and leads there; a long one is cut."""
    page.goto(f"{site.url}/ui/trials/{site.well}")
    header = page.locator("main header")
    of = header.get_by_role("link", name=f"{NAMES[0]}")
    expect(of).to_be_visible()
    page.set_viewport_size({"width": 390, "height": 844})
    fits(page)
    of.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(NAMES[0])


def test_a_trial_that_broke_off_says_where_it_is_continued(page: Page, site: Site) -> None:
    """With its experiment, if that can be."""
    page.goto(f"{site.url}/ui/trials/{site.failed_trial}")
    expect(
        page.get_by_text("Trials are continued with their experiment. The search stops trials early")
    ).to_be_visible()
    page.goto(f"{site.url}/ui/trials/{site.well}")
    page.get_by_role("button", name="Kill").wait_for()
    expect(page.get_by_text("Trials are continued with")).to_have_count(0)


def test_charts_stand_over_what_one_asks_for(page: Page, site: Site) -> None:
    """Steps, time or epochs; a zoom over epochs is one of steps; checkpoints lead to theirs; numbers as a table."""
    page.goto(f"{site.url}/ui/trials/{site.well}?tab=metrics&metric=loss")
    figure = page.get_by_role("figure", name="loss")
    figure.locator("canvas").wait_for()
    with page.expect_response(lambda reply: "metric=epoch&group=training" in reply.url):
        page.get_by_label("Horizontal axis").select_option("epoch")
    expect(figure.locator("p")).to_have_text("epoch")
    over = figure.locator(".u-over")
    over.wait_for()
    box = box_of(over)
    with page.expect_request(lambda sent: "metric=loss" in sent.url and "fromStep=" in sent.url):
        page.mouse.move(box["x"] + box["width"] * 0.2, box["y"] + 40)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 60, steps=5)
        page.mouse.up()
    expect(page).to_have_url(re.compile(r"from=2\d&to=4\d"))
    page.get_by_label("Logarithmic").check()
    expect(page).to_have_url(re.compile("log=true"))
    page.get_by_role("button", name="All steps").click()
    page.get_by_role("button", name="Table", exact=True).click()
    row = page.get_by_role("row").filter(has_text="validation")
    summaries = site.api("GET", f"/api/v1/trials/{site.well}/metric-summaries")
    least = cast("dict[str, dict[str, dict[str, float]]]", summaries)["validation"]["loss"]["min"]
    expect(row).to_contain_text(f"{least:.4g}")
    page.get_by_role("button", name="Table", exact=True).click()
    figure.get_by_role("link", name="◆ 3").click()
    expect(page).to_have_url(re.compile("tab=checkpoints"))


def test_machines_code_and_checkpoints_have_their_place(page: Page, site: Site) -> None:
    """All GPUs in one chart; files as text, or said what they are; a checkpoint becomes a version of a model."""
    page.goto(f"{site.url}/ui/trials/{site.well}?tab=system")
    gpus = page.get_by_role("figure", name="GPU utilisation, %")
    expect(gpus).to_have_accessible_description(re.compile("GPU 00000000: from .*GPU 00000001: from "))
    parts = page.get_by_role("navigation", name="Parts of this trial")
    parts.get_by_role("link", name="Code").click()
    files = page.get_by_role("navigation", name="Files")
    files.get_by_role("link", name="train.py").click()
    shown = page.get_by_role("region", name="Contents of train.py")
    expect(shown).to_contain_text("line_1 = 1")
    shown.press("End")
    expect(shown).to_contain_text("print('<b>done</b>')")
    assert page.locator("b").count() == 0
    files.get_by_role("link", name="weights.bin").click()
    expect(page.get_by_text("It is not text")).to_be_visible()
    files.get_by_role("link", name="large.csv").click()
    expect(page.get_by_text("It is larger than 1 MiB")).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download all of it").click()
    assert download.value.suggested_filename.endswith("_model_def.tar.gz")
    site.api("POST", "/api/v1/models", {"name": "digits reader"})
    parts.get_by_role("link", name="Checkpoints").click()
    page.get_by_role("row").filter(has_text="best").get_by_role("link").click()
    expect(page.get_by_role("region", name="Files")).to_contain_text("optimizer/adam.pt")
    expect(page.get_by_text("framework: torch")).to_be_visible()
    page.get_by_role("button", name="Register as a model version").click()
    page.get_by_label("Model").select_option("digits reader")
    page.get_by_role("button", name="Register", exact=True).click()
    page.get_by_text("Registered as version 1 of digits reader").wait_for()
    parts.get_by_role("link", name="Events").click()
    expect(page.get_by_role("region", name="Events")).to_contain_text("Saved a checkpoint at step 90")


def test_a_checkpoint_is_deleted_after_a_question(page: Page, site: Site) -> None:
    """Which names it; what is known of it stays."""
    page.goto(f"{site.url}/ui/trials/{site.well}?tab=checkpoints")
    row = page.get_by_role("row").filter(has=page.get_by_role("cell", name="30", exact=True))
    row.get_by_role("link").first.click()
    page.get_by_role("button", name="Delete", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("at step 30")
    dialog.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_text("Deleting the files of checkpoint").wait_for()


def test_deleted_checkpoints_do_not_bury_those_that_are_there(page: Page, site: Site) -> None:
    """They are shown when asked for, or when the address names one; where there are no others they are all there is."""
    (experiment,) = site.make("of deleted checkpoints", "COMPLETED")
    trial = site.make_trial(experiment)
    for step in (1, 2, 3):
        site.write(
            "insert into checkpoints (uuid, task_id, allocation_id, trial_id, run_id, state, steps_completed, metadata,"
            " resources, size_bytes, reported_at)"
            " select $2::text, task_id, task_id || '.1', id, 1, $3, $4::bigint,"
            " jsonb_build_object('steps_completed', $4::bigint), '{}', 0, now() + make_interval(secs => $4::bigint)"
            " from trials where id = $1",
            trial,
            f"{step:08d}-0000-4000-8000-{trial:012d}",
            "COMPLETED" if step == 1 else "DELETED",
            step,
        )
    page.goto(f"{site.url}/ui/trials/{trial}?tab=checkpoints")
    table = page.get_by_role("region", name="Checkpoints")
    expect(table.get_by_role("link")).to_have_text(["00000001"])
    page.get_by_role("button", name="Show the 2 whose files are deleted").click()
    expect(table.get_by_role("link")).to_have_text(["00000003", "00000002", "00000001"])
    page.goto(f"{site.url}/ui/trials/{trial}?tab=checkpoints&checkpoint=00000002-0000-4000-8000-{trial:012d}")
    expect(table.get_by_role("link")).to_have_text(["00000002", "00000001"])
    site.write("update checkpoints set state = 'DELETED' where trial_id = $1", trial)
    page.goto(f"{site.url}/ui/trials/{trial}?tab=checkpoints")
    expect(table.get_by_role("link")).to_have_count(3)
