"""What the benchmark of the page stands on: a master with as much in it as a big team has, Chromium, and what is
looked at inside of a page."""

from __future__ import annotations

import asyncio
import contextlib
import math
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import asyncpg
import httpx2
from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

from tenax.local.postgres import EmbeddedPostgres
from tests.kits.database import database_in, make_template
from tests.kits.many_experiments import Amount
from tests.web.site import CHROMIUM, FLAGS, Site, log_in, serving

#: Of one trial with long series.
METRICS = 10
#: Of one with many charts.
CHARTS, CHART_STEPS = 16, 2000
#: Of a search, whose curves are drawn.
TRIALS, CURVE_STEPS = 100, 1000
_LINES_AT_ONCE = 10_000
_AT_ONCE = 20_000
#: What a laptop on a slow line has: a quarter of a processor, 10 Mbit/s, 40 ms.
_SLOW_CPU, _SLOW_BYTES, _SLOW_MS = 4, 10_000_000 / 8, 40
#: Milliseconds without anything drawn, after which a chart is.
_QUIET_MS = 600

#: In every page, from its beginning: when data of charts came, when something was drawn, and what was done last.
_WATCH = """(() => {
  const bench = window.bench =
    { data: 0, painted: 0, took: {}, strokes: 0, input: 0, mouseup: 0, lcp: 0, shown: {} };
  for (const name of ["json", "text", "arrayBuffer"]) {
    const own = Response.prototype[name];
    Response.prototype[name] = async function (...given) {
      const read = await own.apply(this, given);
      if (this.url.includes("series")) bench.data = performance.now();
      return read;
    };
  }
  const stroke = CanvasRenderingContext2D.prototype.stroke;
  let waiting = false;
  CanvasRenderingContext2D.prototype.stroke = function (...given) {
    bench.strokes += 1;
    if (!waiting) {
      waiting = true;
      requestAnimationFrame(() => requestAnimationFrame(() => {
        waiting = false;
        bench.painted = performance.now();
        for (const since of ["data", "mouseup"]) if (bench[since]) bench.took[since] = bench.painted - bench[since];
      }));
    }
    return stroke.apply(this, given);
  };
  for (const name of ["input", "mouseup"])
    addEventListener(name, () => { bench[name] = performance.now(); }, true);
  new PerformanceObserver((list) => { for (const each of list.getEntries()) bench.lcp = each.startTime; })
    .observe({ type: "largest-contentful-paint", buffered: true });
  const look = () => {
    for (const selector of ["input[type=password]", "[role=gridcell]"])
      if (document.querySelector(selector)) bench.shown[selector] ??= performance.now();
  };
  new MutationObserver(() => requestAnimationFrame(look)).observe(document, { subtree: true, childList: true });
})();"""
#: Milliseconds from what begins it until a frame in which a condition holds.
_TAKEN = """async ([begin, condition]) => {
  const [start, holds] = [new Function(begin), new Function("return " + condition)];
  const began = performance.now();
  start();
  while (!holds()) await new Promise(requestAnimationFrame);
  return performance.now() - began;
}"""
_SCROLL = """async ([selector, speed, seconds]) => {
  const place = document.querySelector(selector);
  const frames = [], from = place.scrollTop, began = performance.now();
  let [last, most] = [began, 0];
  await new Promise((done) => {
    const step = (now) => {
      frames.push(now - last);
      last = now;
      place.scrollTop = from + (speed * (now - began)) / 1000;
      if (frames.length % 15 === 0) most = Math.max(most, document.querySelectorAll("*").length);
      if (now - began < seconds * 1000) requestAnimationFrame(step); else done();
    };
    requestAnimationFrame(step);
  });
  frames.shift();
  frames.sort((a, b) => a - b);
  const sum = frames.reduce((all, each) => all + each, 0);
  const p95 = frames[Math.floor(frames.length * 0.95)];
  return { fps: Math.round((10000 * frames.length) / sum) / 10, frame_p95_ms: Math.round(p95), dom_nodes: most };
}"""


@dataclass(frozen=True)
class Size:
    """How much is in the master; less of it is there sooner, for a look."""

    experiments: int = 100_000
    #: Of one trial with long series.
    steps: int = 1_000_000
    #: Of the output of one trial.
    lines: int = 1_000_000


@dataclass
class Place:
    """The master, what is in it, and a browser."""

    size: Size
    site: Site
    browser: Browser
    session: dict[str, object]
    #: Trials: with long series, with many charts, with a million lines; an experiment with many curves.
    long: int = 0
    charted: int = 0
    talked: int = 0
    curved: int = 0

    @contextlib.contextmanager
    def page(self, *, slow: bool = False, logged_in: bool = True, **more: object) -> Iterator[Page]:
        """In a browser that has nothing of it yet."""
        given: dict[str, object] = {"viewport": {"width": 1440, "height": 900}, **more}
        if logged_in:
            given["storage_state"] = self.session
        context = self.browser.new_context(**given)  # type: ignore[arg-type]
        context.set_default_timeout(60_000)
        context.add_init_script(_WATCH)
        page = context.new_page()
        wire = wire_of(page)
        wire.send("Network.enable")
        if slow:
            wire.send("Emulation.setCPUThrottlingRate", {"rate": _SLOW_CPU})
            speed = {"downloadThroughput": _SLOW_BYTES, "uploadThroughput": _SLOW_BYTES}
            wire.send("Network.emulateNetworkConditions", {"offline": False, "latency": _SLOW_MS, **speed})
        try:
            yield page
        finally:
            context.close()


def wire_of(page: Page) -> CDPSession:
    return page.context.new_cdp_session(page)


def taken(page: Page, begin: str, condition: str) -> float:
    """Milliseconds from ``begin`` until the frame in which ``condition`` holds; both are JavaScript."""
    return float(page.evaluate(_TAKEN, [begin, condition]))


def until(page: Page, condition: str) -> None:
    """From now on it is looked for in each frame; `seen` says when it was."""
    page.evaluate(
        """condition => {
          const holds = new Function("return " + condition);
          window.seen = (async () => {
            while (!holds()) await new Promise(requestAnimationFrame);
            return performance.now();
          })();
        }""",
        condition,
    )


def seen(page: Page) -> float:
    return float(page.evaluate("window.seen"))


class Busy:
    """Processor time of a page's main thread, from now on: what else the machine does is no part of it."""

    def __init__(self, page: Page) -> None:
        # It is counted from the beginning of the connection that asks, so all that is asked goes by one.
        self._wire = wire_of(page)
        self._wire.send("Performance.enable", {"timeDomain": "threadTicks"})
        self._began = self._counted()

    def seconds(self) -> float:
        """So far."""
        return self._counted() - self._began

    def _counted(self) -> float:
        metrics = self._wire.send("Performance.getMetrics")["metrics"]
        return float(next(each["value"] for each in metrics if each["name"] == "TaskDuration"))


def scrolled(page: Page, selector: str, speed: float, seconds: float = 4) -> dict[str, float]:
    """Frames a second, the 95th percentile of a frame, elements at most, and what a frame cost the main thread."""
    busy = Busy(page)
    told = cast("dict[str, float]", page.evaluate(_SCROLL, [selector, speed, seconds]))
    cost = busy.seconds() * 1e3 / (told["fps"] * seconds)
    return {**told, "main_thread_ms_per_frame": round(cost, 1)}


def drawn_ms(page: Page, since: str = "data") -> float:
    """Milliseconds from the last data of charts, or from what a hand did, until all is drawn.

    What is asked for again and comes as it was is not drawn again: it counts for nothing.
    """
    came = f"bench.took.{since} && (bench.data > bench.mouseup)"
    page.wait_for_function(f"() => {came} && performance.now() - Math.max(bench.painted, bench.data) > {_QUIET_MS}")
    return float(page.evaluate(f"bench.took.{since}"))


@contextlib.contextmanager
def place(size: Size) -> Iterator[Place]:
    """A master with a large database, and all that is measured; gone with all its files afterwards."""
    root = Path(tempfile.gettempdir()) / f"tenax-bench-{uuid.uuid4().hex[:12]}"
    postgres = EmbeddedPostgres(root / "postgres")
    try:
        server = postgres.start()
        asyncio.run(make_template(server, "migrated"))
        dsn = database_in(server, "page")
        amount = Amount(experiments=size.experiments)
        with serving(server, dsn, "migrated", root, amount) as site, sync_playwright() as playwright:
            with ThreadPoolExecutor(1) as thread:
                thread.submit(asyncio.run, _settle(dsn)).result()
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            context = browser.new_context()
            log_in(context.new_page(), site)
            made = Place(size, site, browser, dict(context.storage_state()))
            context.close()
            _fill(made)
            yield made
            browser.close()
    finally:
        postgres.stop()
        shutil.rmtree(root, ignore_errors=True)


async def _settle(dsn: str) -> None:
    conn = await asyncpg.connect(dsn)
    await conn.execute("vacuum analyze")
    await conn.close()


def _fill(made: Place) -> None:
    site = made.site
    experiment = _experiment(site, "long series", "{name: single, metric: m0}")
    made.long, made.charted = (_trial(site, experiment) for _ in range(2))
    _report(site, made.long, "training", made.size.steps, METRICS)
    _report(site, made.charted, "training", CHART_STEPS, CHARTS)
    made.curved = _experiment(site, "many curves", f"{{name: random, metric: m0, max_trials: {TRIALS}}}")
    for number in range(TRIALS):
        _report(site, _trial(site, made.curved, {"lr": 0.1 / (number + 1)}), "validation", CURVE_STEPS, 1, number)
    made.talked = _trial(site, experiment)
    task = str(cast("dict[str, object]", site.api("GET", f"/api/v1/trials/{made.talked}")["trial"])["taskId"])
    for start in range(0, made.size.lines, _LINES_AT_ONCE):
        numbers = range(start, min(start + _LINES_AT_ONCE, made.size.lines))
        lines = [f"epoch {n // 1000} step {n}: loss={1 / (n + 1):.6f}" for n in numbers]
        site.post(task, lines)


def _experiment(site: Site, name: str, searcher: str) -> int:
    config = f"name: {name}\nsearcher: {searcher}\n"
    made = site.api("POST", "/api/v1/experiments", {"config": config, "unmanaged": True})["experiment"]
    return int(cast("dict[str, int]", made)["id"])


def _trial(site: Site, experiment: int, hparams: dict[str, float] | None = None) -> int:
    asked = {"experimentId": experiment, "hparams": hparams or {}, "unmanaged": True}
    made = site.api("POST", "/api/v1/trials", asked)["trial"]
    number = int(cast("dict[str, int]", made)["id"])
    site.api("POST", f"/api/v1/trials/{number}/start", {"resume": False})
    return number


def _report(site: Site, trial: int, group: str, steps: int, metrics: int, shift: int = 0) -> None:
    """As our client ships them."""
    url = f"{site.url}/api/v1/trials/{trial}/runs/1/spool?stream=reports"
    headers = {"Authorization": f"Bearer {site.token}"}
    for first in range(1, steps + 1, _AT_ONCE):
        lines = []
        for step in range(first, min(first + _AT_ONCE, steps + 1)):
            value = 1 / math.sqrt(step + shift) + 0.01 * math.sin(step * 0.7)
            values = ",".join(f'"m{number}":{value * (number + 1):.6f}' for number in range(metrics))
            body = f'{{"group":"{group}","stepsCompleted":{step},"metrics":{{{values}}}}}'
            lines.append(f'{{"n":{step},"kind":"metrics","at":{1.79e9 + step},"body":{body}}}')
        reply = httpx2.post(url, content=("\n".join(lines) + "\n").encode(), headers=headers, timeout=120)
        assert reply.status_code == 200, reply.text


def restart(site: Site) -> float:
    """Kill the master and start it; when it answered, on the clock of pages."""
    site.kill()
    site.start()
    return time.time() * 1e3
