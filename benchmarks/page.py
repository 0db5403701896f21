"""How soon the web page shows something, answers a hand, and what it costs, on a master with 100,000 experiments.

    python -m benchmarks.page
    python -m benchmarks.page --experiments 2000 --steps 20000 --lines 50000 loads output

Prints one JSON line, of all parts or of those that are named: what is promised of the page, each figure beside its
target, in headless Chromium without a graphics card, on the processors that the master and the database use as well.
There is no peer in the run: `determined` quotes what the login page of Determined 0.38.1 came to on such a machine,
built from its sources and served compressed by a stub, beside which our login and our first row are read. Nothing is
kept between two loads: each has a browser of its own.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import time
from collections.abc import Callable, Mapping, Sequence

import httpx2
from playwright.sync_api import Page

from benchmarks._measure import LONG, Line, extremes
from benchmarks._page import Busy, Place, Size, drawn_ms, place, restart, scrolled, seen, taken, until, wire_of
from tests.kits.http_counter import counting

ROUNDS = 9 if LONG else 5
CHANGES, TABS = 30, 8
IDLE_S = 60
CURRENT = "html[data-current=true]"
ROW, PASSWORD = "[role=gridcell]", "input[type=password]"
#: First useful pixels and bytes of the login page of Determined 0.38.1, quoted.
DETERMINED = {"login_kb": 1414, "login_ms": 1718, "login_slow_ms": 4973}
TARGETS: Mapping[str, object] = {
    "login_kb": 200,
    "first_row_ms": 800,
    "first_row_slow_ms": 2000,
    "route_change_ms": 100,
    "action_ms": 50,
    "table": {"fps": 55, "main_thread_ms_per_frame": 16.7, "frame_p95_ms": 33, "dom_nodes": 2500},
    "filter_ms": 400,
    "curves_10_ms": 60,
    "curves_100_ms": 120,
    "charts_12_ms": 300,
    "zoom_ms": 300,
    "series_10_ms": 100,
    "log_tail_ms": 500,
    "log_scroll": {"fps": 60, "main_thread_ms_per_frame": 16.7},
    "log_first_hit_ms": 1000,
    "event_to_pixel_p95_ms": 250,
    "recovery_ms": 3000,
    "idle": {"requests_per_minute": 2, "main_thread_percent": 1},
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print the line."""
    every = {each.__name__: each for each in (loads, moves, table, charts, output, live, idle, recovery)}
    parser = argparse.ArgumentParser("benchmarks.page", description="Measure the web page.")
    for of in dataclasses.fields(Size):
        parser.add_argument(f"--{of.name}", type=int, default=of.default, help=f"{of.default}, unless said otherwise")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(every)}; without any all of them")
    given = vars(parser.parse_args(arguments))
    parts = given.pop("parts") or list(every)
    if unknown := sorted(set(parts) - every.keys()):
        parser.error(f"no part {', '.join(unknown)}; there are: {', '.join(every)}")
    size = Size(**given)
    line = Line("page")
    with place(size) as at:
        line.add(size=dataclasses.asdict(size), targets=TARGETS, determined=DETERMINED)
        for measure in (every[part] for part in parts):
            try:
                line.add(**measure(at))
            except Exception as error:
                # The rest is measured all the same, and the line says what is missing.
                line.add(**{f"{measure.__name__}_failed": str(error)[:300]})
    line.emit()


def times(measure: Callable[[], float], rounds: int = ROUNDS) -> dict[str, float]:
    """Of some rounds, after one that warms the master."""
    measure()
    return extremes([measure() for _ in range(rounds)])


def loads(at: Place) -> dict[str, object]:
    """From nothing to the login and to the first row of the table, on a fast line and on a slow one."""
    figures: dict[str, object] = {}
    lcp: list[float] = []

    def shown(address: str, selector: str, *, slow: bool, logged_in: bool) -> float:
        with at.page(slow=slow, logged_in=logged_in) as page:
            page.goto(f"{at.site.url}/ui/{address}")
            page.wait_for_function("selector => selector in bench.shown", arg=selector)
            # What is painted is told of a moment later.
            page.wait_for_function("() => bench.lcp > 0")
            lcp.append(page.evaluate("bench.lcp"))
            return float(page.evaluate("selector => bench.shown[selector]", selector))

    for name, address, selector in (("login", "login", PASSWORD), ("first_row", "experiments", ROW)):
        for suffix, slow in (("_ms", False), ("_slow_ms", True)):
            logged_in = name != "login"
            figures[name + suffix] = times(
                lambda a=address, s=selector, w=slow, i=logged_in: shown(a, s, slow=w, logged_in=i)
            )
            figures[f"{name}{suffix[:-3]}_lcp_ms"] = round(statistics.median(lcp[-ROUNDS:]), 1)
        with at.page(logged_in=name != "login") as page:
            came: list[float] = []
            wire = wire_of(page)
            wire.send("Network.enable")
            wire.on("Network.loadingFinished", lambda done, came=came: came.append(done["encodedDataLength"]))
            page.goto(f"{at.site.url}/ui/{address}")
            page.wait_for_selector(selector)
            page.wait_for_function("() => performance.getEntriesByType('resource').every(each => each.responseEnd > 0)")
            figures[f"{name}_kb"] = round(sum(came) / 1000, 1)
    return figures


def moves(at: Place) -> dict[str, object]:
    """From a click to the page that was seen before, and to what an action makes of what is shown."""
    with at.page() as page:
        page.goto(f"{at.site.url}/ui/experiments")
        page.wait_for_selector(ROW)
        ways = {"Home": "h1", "Experiments": ROW}
        for name, there in ways.items():
            _go(page, name, there)
        changes = [_go(page, name, there) for _ in range(ROUNDS) for name, there in ways.items()]
    (number,) = at.site.make("to be paused")
    with at.page() as page:
        page.goto(f"{at.site.url}/ui/experiments/{number}")
        page.get_by_role("button", name="Pause").wait_for()
        acted = []
        for _ in range(ROUNDS):
            for press, word in (("Pause", "Paused"), ("Resume", "Queued")):
                page.get_by_role("button", name=press, exact=True).wait_for()
                button = f"[...document.querySelectorAll('main button')].find(b => b.textContent.includes('{press}'))"
                said = f"document.querySelector('main header').innerText.includes('{word}')"
                acted.append(taken(page, f"{button}.click()", said))
                page.wait_for_timeout(300)
    return {"route_change_ms": extremes(changes), "action_ms": extremes(acted)}


def _go(page: Page, name: str, there: str) -> float:
    click = f"[...document.querySelectorAll('nav a')].find(a => a.textContent.includes('{name}')).click()"
    title = "/experiments" if name == "Experiments" else "/ui/"
    took = taken(page, click, f"location.pathname.endsWith('{title}') && !!document.querySelector('main {there}')")
    page.wait_for_timeout(200)
    return took


def table(at: Place) -> dict[str, object]:
    """All experiments: scrolled fast, and narrowed by what is typed."""
    with at.page() as page:
        page.goto(f"{at.site.url}/ui/experiments")
        page.wait_for_selector(ROW)
        frames = scrolled(page, "[role=grid]", 3000)
        took = []
        for word in ("amber", "cedar", "ember", "heron", "iris")[:ROUNDS]:
            page.goto(f"{at.site.url}/ui/experiments")
            page.wait_for_selector(ROW)
            count = page.get_by_role("grid").get_attribute("aria-rowcount")
            first = "document.querySelector('[aria-rowindex=\"2\"]')?.innerText"
            rows = f"(grid => grid && grid.ariaBusy === 'false' && grid.ariaRowCount !== '{count}')"
            until(page, f"{rows}(document.querySelector('[role=grid]')) && {first}.includes('{word}')")
            page.get_by_label("Filter", exact=True).press_sequentially(word)
            came = seen(page)
            took.append(came - page.evaluate("bench.input"))
    return {"table": frames, "filter_ms": extremes(took)}


def charts(at: Place) -> dict[str, object]:
    """From the arrival of the last data until all is drawn; a zoom, from the hand's letting go."""

    def drawn(address: str, chart: str, **more: object) -> float:
        with at.page(**more) as page:
            page.goto(f"{at.site.url}/ui/{address}")
            page.locator(chart).first.wait_for()
            return drawn_ms(page)

    def zoomed() -> float:
        with at.page() as page:
            page.goto(f"{at.site.url}/ui/trials/{at.long}?tab=metrics")
            drawn_ms(page)
            box = page.locator(".u-over").first.bounding_box()
            assert box is not None
            page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 40)
            page.mouse.down()
            page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 60, steps=4)
            page.mouse.up()
            page.wait_for_function("() => location.search.includes('from=')")
            return drawn_ms(page, "mouseup")

    def series() -> float:
        with httpx2.Client(headers={"Authorization": f"Bearer {at.site.token}"}, timeout=60) as http:
            names = [("metricNames", f"m{number}") for number in range(10)]
            query = [("trialIds", str(at.long)), *names, ("group", "training"), ("maxDatapoints", "2000")]
            began = time.perf_counter()
            reply = http.get(f"{at.site.url}/api/v1/trials/time-series", params=query)  # type: ignore[arg-type]
            reply.raise_for_status()
            return (time.perf_counter() - began) * 1e3

    curves = "figure[aria-labelledby] canvas"
    tall = {"viewport": {"width": 1440, "height": 4000}}
    search = f"experiments/{at.curved}"
    return tried(
        curves_10_ms=lambda: drawn(f"{search}?best=10", curves),
        curves_100_ms=lambda: drawn(f"{search}?best=100", curves, device_scale_factor=2),
        charts_12_ms=lambda: drawn(f"trials/{at.charted}?tab=metrics", "figure canvas >> nth=11", **tall),
        zoom_ms=zoomed,
        series_10_ms=series,
    )


def tried(**figures: Callable[[], float]) -> dict[str, object]:
    """Each of some figures; of one that cannot be had, why."""
    told: dict[str, object] = {}
    for name, measure in figures.items():
        try:
            told[name] = times(measure)
        except Exception as error:
            told[f"{name}_failed"] = str(error)[:300]
    return told


def output(at: Place) -> dict[str, object]:
    """A million lines: from the click to the end of them, scrolled, and the first hit of a search."""
    last = f"document.querySelector(\"[data-line='{at.size.lines}'] time\")"
    click = "[...document.querySelectorAll('nav a')].find(link => link.textContent === 'Output').click()"
    region = "[role=region], section[aria-label^='Output of trial']"

    def tail() -> float:
        with at.page() as page:
            page.goto(f"{at.site.url}/ui/trials/{at.talked}")
            page.get_by_role("link", name="Output", exact=True).wait_for()
            return taken(page, click, f"!!{last}")

    def first_hit(number: int) -> float:
        with at.page() as page:
            page.goto(f"{at.site.url}/ui/trials/{at.talked}?tab=logs")
            page.wait_for_function(f"() => !!{last}")
            until(page, "/[1-9]/.test(document.querySelector('output[aria-label=Hits]')?.textContent ?? '')")
            page.get_by_label("Search the output").fill(f"step {at.size.lines // 10 * 7 + number}")
            return seen(page) - float(page.evaluate("bench.input"))

    figures: dict[str, object] = {"log_tail_ms": times(tail)}
    figures["log_first_hit_ms"] = extremes([first_hit(number) for number in range(ROUNDS)])
    with at.page() as page:
        page.goto(f"{at.site.url}/ui/trials/{at.talked}?tab=logs")
        page.wait_for_function(f"() => !!{last}")
        page.evaluate(f"document.querySelector(\"{region}\").setAttribute('data-bench', '')")
        figures["log_scroll"] = scrolled(page, "[data-bench]", -3000)
    return figures


_NOTE = """() => {
  window.drawn = {};
  const look = () => {
    for (const [name] of document.body.innerText.matchAll(/measured \\d+/g)) window.drawn[name] ??= Date.now();
  };
  new MutationObserver(() => requestAnimationFrame(look)).observe(
    document.body, { subtree: true, childList: true, characterData: true });
}"""


def live(at: Place) -> dict[str, object]:
    """From a request that changes something until it is on screen, in one tab and in eight."""
    found = f"{at.site.url}/ui/experiments/{at.site.search}"
    with at.page() as page:
        tabs = [page]
        took: dict[int, list[float]] = {1: [], TABS: []}
        for count, number in ((count, number) for count in took for number in range(CHANGES)):
            # One alone first: behind others a tab is drawn once in a second.
            tabs += [page.context.new_page() for _ in range(count - len(tabs))]
            for tab in tabs[:count]:
                if "/experiments/" not in tab.url:
                    tab.goto(found)
                    tab.locator(CURRENT).wait_for()
                    tab.evaluate(_NOTE)
            name = f"measured {count}{number:03}"
            began = time.time() * 1e3
            at.site.rename(at.site.search, name)
            for tab in tabs[:count]:
                tab.wait_for_function("name => name in window.drawn", arg=name)
            took[count].append(
                max(float(tab.evaluate("name => window.drawn[name]", name)) for tab in tabs[:count]) - began
            )
    return {
        "event_to_pixel_p95_ms": round(statistics.quantiles(took[1], n=20)[-1], 1),
        "event_to_pixel_ms": extremes(took[1]),
        "last_of_8_tabs_ms": extremes(took[TABS]),
    }


def idle(at: Place) -> dict[str, object]:
    """The page of a trial of which nothing changes."""
    with counting(at.site.url) as between, at.page() as page:
        page.goto(f"{between.url}/ui/trials/{at.charted}")
        page.locator(CURRENT).wait_for()
        page.locator("figure canvas").first.wait_for()
        page.wait_for_timeout(3000)
        busy, asked = Busy(page), len(between.paths)
        page.wait_for_timeout(IDLE_S * 1000)
        share = busy.seconds() / IDLE_S * 100
        per_minute = (len(between.paths) - asked) * 60 / IDLE_S
    return {"idle": {"requests_per_minute": per_minute, "main_thread_percent": round(share, 2)}}


def recovery(at: Place) -> dict[str, object]:
    """From the first answer of a master that was killed until a page has what it missed."""
    took = []
    with at.page() as page:
        page.goto(f"{at.site.url}/ui/experiments/{at.site.search}")
        page.locator(CURRENT).wait_for()
        page.evaluate(_NOTE)
        for number in range(3):
            name = f"measured 99{number}"
            statement = "update experiment_documents set name = $2 where experiment_id = $1"
            at.site.write(statement, at.site.search, name)
            answered = restart(at.site)
            page.wait_for_function("name => name in window.drawn", arg=name)
            took.append(float(page.evaluate("name => window.drawn[name]", name)) - answered)
            page.locator(CURRENT).wait_for()
    return {"recovery_ms": extremes(took)}


if __name__ == "__main__":
    main()
