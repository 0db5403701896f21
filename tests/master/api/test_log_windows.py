"""Output by the numbers of its lines: windows at every border, hits, histograms, and the line that shows a failure."""

from __future__ import annotations

import re
import zlib

import pytest

from tenax.master.api.logs.messages import LogHitsResponse, LogWindowResponse
from tenax.master.reading import log_windows
from tenax.master.reading.log_search import ERROR_LINE
from tenax.master.store.logs import rows as logs
from tenax.master.telemetry.log_lines import LEVELS, Origin, OutputLine
from tests.kits.api import Api
from tests.kits.telemetry import Book

#: When the first line was written; each next one a second later.
BEGAN_US = 1_795_000_000_000_000
LINES = 250


def origin(stdtype: str = "stdout") -> Origin:
    return Origin("", "c1", "a1", "task", stdtype)


@pytest.fixture
def desk(api: Api) -> Book:
    """Trials of the master that answers."""
    return Book(api.master.db, api.master.intake)


async def written(desk: Book, texts: list[tuple[str, str]], *, at_once: int = 40) -> tuple[int, str]:
    """A trial that wrote lines of these texts and levels, in chunks; and its task."""
    trial = await desk.trial()
    task = (await desk.run(trial, 1)).task_id
    for start in range(0, len(texts), at_once):
        part = texts[start : start + at_once]
        lines = [
            OutputLine(BEGAN_US + (start + n) * 1_000_000, text, LEVELS.index(level), (start + n) % 2)
            for n, (text, level) in enumerate(part)
        ]
        await desk.intake.logs.posted(task, lines, [origin()])
    return trial, task


async def counted(desk: Book, lines: int = LINES, at_once: int = 40) -> tuple[int, str]:
    return await written(
        desk, [(f"line {n}", "ERROR" if n % 100 == 7 else "INFO") for n in range(lines)], at_once=at_once
    )


async def window(api: Api, trial: int, **query: object) -> tuple[list[int], dict[str, object]]:
    """The numbers of the lines, each of which says its own, and the whole answer."""
    reply = await api.user.get(f"/api/v1/trials/{trial}/logs/lines", **query)
    assert reply.status_code == 200, reply.text
    body = LogWindowResponse.model_validate(reply.json())
    assert [line.text for line in body.lines] == [f"line {line.number}" for line in body.lines]
    return [line.number for line in body.lines], reply.json()


async def test_the_newest_lines_are_what_is_asked_for_by_itself(api: Api, desk: Book) -> None:
    """The end of the output, in order, with how many lines there are; of a task the same as of its trial."""
    trial, task = await counted(desk)
    numbers, body = await window(api, trial)
    assert (numbers, body["total"]) == (list(range(50, 250)), 250)
    assert (await api.user.get(f"/api/v1/tasks/{task}/logs/lines")).json() == body
    numbers, body = await window(api, trial, limit=3)
    assert numbers == [247, 248, 249]
    line = body["lines"][0]  # type: ignore[index]
    assert (line["level"], line["rankId"], line["source"], line["agentId"]) == ("LOG_LEVEL_INFO", 1, "task", "a1")
    assert line["timestamp"] == "2026-11-18T11:10:47.000000Z"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"offset": 0, "limit": 3}, range(3)),
        ({"offset": 39, "limit": 2}, range(39, 41)),
        ({"offset": 80, "limit": 40}, range(80, 120)),
        ({"offset": 248, "limit": 10}, range(248, 250)),
        ({"offset": 250}, range(0)),
        ({"offset": 2**53}, range(0)),
        ({"before": 0}, range(0)),
        ({"before": 1, "limit": 5}, range(1)),
        ({"before": 41, "limit": 2}, range(39, 41)),
        ({"before": 2**53, "limit": 2}, range(248, 250)),
        ({"aroundLine": 120, "limit": 10}, range(115, 125)),
        ({"aroundLine": 0, "limit": 4}, range(4)),
        ({"aroundLine": 249, "limit": 4}, range(246, 250)),
        ({"aroundLine": 999, "limit": 4}, range(246, 250)),
        ({"aroundTime": "2026-11-18T11:07:40Z", "limit": 2}, range(59, 61)),
        ({"aroundTime": "2026-11-18T11:07:39.5Z", "limit": 2}, range(59, 61)),
        ({"aroundTime": "2020-01-01T00:00:00Z", "limit": 2}, range(2)),
        ({"aroundTime": "2030-01-01T00:00:00Z", "limit": 2}, range(248, 250)),
        ({"numbers": [249, 0, 40, 39, 40, 1000]}, [0, 39, 40, 249]),
        ({"limit": 500}, range(250)),
    ],
)
async def test_any_part_is_there_at_once(api: Api, desk: Book, query: dict[str, object], expected: list[int]) -> None:
    """At the borders of chunks and at both ends, before chunks are joined and after."""
    trial, task = await counted(desk)
    for _ in range(2):
        assert (await window(api, trial, **query))[0] == list(expected)
        async with api.master.db.connection() as conn:
            place = await logs.place_of(conn, task)
        await api.master.intake.logs.join(place)


@pytest.mark.parametrize(
    "query",
    [
        {"limit": 0},
        {"limit": 501},
        {"offset": -1},
        {"offset": 1, "before": 9},
        {"aroundLine": 1, "numbers": [1]},
        {"aroundTime": "yesterday"},
        {"numbers": [-1]},
        {"numbers": list(range(501))},
        {"offset": 2**70},
    ],
)
async def test_a_window_that_is_none_is_refused(api: Api, desk: Book, query: dict[str, object]) -> None:
    """What excludes one another, is negative or too much."""
    trial, _ = await counted(desk, 3)
    assert (await api.user.get(f"/api/v1/trials/{trial}/logs/lines", **query)).status_code == 400


async def test_what_has_no_output_has_empty_windows(api: Api, desk: Book) -> None:
    """A trial that wrote nothing; one that is not there is not found."""
    trial = await desk.trial()
    assert (await window(api, trial))[1] == {"lines": [], "total": 0, "unfinished": []}
    assert (await api.user.get(f"/api/v1/trials/{trial}/logs/hits")).json() == {
        "first": [],
        "last": [],
        "next": 0,
        "total": 0,
    }
    histogram = (await api.user.get(f"/api/v1/trials/{trial}/logs/histogram")).json()
    assert (histogram["begins"], histogram["firstLine"]) == ([], [])
    for part in ("lines", "hits", "histogram", "failure"):
        reply = await api.user.get(f"/api/v1/trials/999999/logs/{part}")
        assert (reply.status_code, "not found" in reply.text) == (404, True)
    for part in ("lines", "hits", "histogram"):
        assert (await api.user.get(f"/api/v1/tasks/none/logs/{part}")).status_code == 404


async def test_a_line_without_its_end_is_shown_as_it_is_now(api: Api, desk: Book) -> None:
    """A bar of progress is one line that changes: what a terminal shows, and only where the window is at the end."""
    trial = await desk.trial()
    name = (await desk.run(trial, 1)).allocation_id
    intake, offset = api.master.intake.logs, 0
    for written_, shown in ((b"start\n 10%", " 10%"), (b"\r 20%", " 20%"), (b"\r[rank=1] INFO: 30%\r", "30%")):
        body = zlib.compress(written_)
        offset = await intake.output("a1", name, "stderr", offset, body)
        reply = await api.user.get(f"/api/v1/trials/{trial}/logs/lines")
        assert [line["text"] for line in reply.json()["lines"]] == ["start"]
        (begun,) = reply.json()["unfinished"]
        assert (begun["text"], begun["number"], begun["stdtype"]) == (shown, 1, "stderr")
    assert (begun["rankId"], begun["level"]) == (1, "LOG_LEVEL_INFO")
    assert (await api.user.get(f"/api/v1/trials/{trial}/logs/lines", before=0)).json()["unfinished"] == []
    await intake.output("a1", name, "stderr", offset, zlib.compress(b"\n"))
    reply = (await api.user.get(f"/api/v1/trials/{trial}/logs/lines")).json()
    assert ([line["text"] for line in reply["lines"]], reply["unfinished"]) == (["start", "30%"], [])


async def test_a_very_long_line_is_cut(api: Api, desk: Book) -> None:
    """And says how much of it is missing."""
    trial, _ = await written(desk, [("x" * 12_000, "INFO")])
    (line,) = (await api.user.get(f"/api/v1/trials/{trial}/logs/lines")).json()["lines"]
    assert (line["text"], line["leftOut"]) == ("x" * 10_000, 2000)


async def hits(api: Api, trial: int, **query: object) -> list[int]:
    """The numbers of all lines that match, asked for until there are no more."""
    numbers: list[int] = []
    offset = 0
    while True:
        reply = await api.user.get(f"/api/v1/trials/{trial}/logs/hits", offset=offset, **query)
        assert reply.status_code == 200, reply.text
        body = LogHitsResponse.model_validate(reply.json())
        assert len(body.first) == len(body.last) <= int(str(query.get("limit", 10_000)))
        numbers += [number for first, last in zip(body.first, body.last) for number in range(first, last + 1)]
        assert body.next > offset
        offset = body.next
        if offset >= body.total:
            return numbers


@pytest.mark.parametrize("limit", [1, 2, 10_000])
@pytest.mark.parametrize("at_once", [1, 40, 250])
async def test_hits_are_what_the_stream_of_lines_gives(api: Api, desk: Book, limit: int, at_once: int) -> None:
    """Whatever is looked for, however chunks and requests are cut: none twice, and none left out."""
    trial, _ = await counted(desk, at_once=at_once)
    for query in (
        {"searchText": "LINE 1"},
        {"searchText": "line .*[13]$", "enableRegex": True},
        {"searchText": "nowhere"},
        {"levels": "ERROR"},
        {"rankIds": 1, "searchText": "7"},
        {"timestampAfter": "2026-11-18T11:08:00Z"},
    ):
        reply = await api.user.get(f"/api/v1/trials/{trial}/logs", **query)
        ids = [int(number) for number in re.findall(r'"id":"(\d+)"', reply.text)]
        assert await hits(api, trial, limit=limit, **query) == ids


async def test_a_search_goes_on_where_it_ended(api: Api, desk: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    """One request looks through so many chunks, and the next one through those behind them."""
    monkeypatch.setattr(log_windows, "_MAX_CHUNKS", 8)
    trial, _ = await counted(desk, at_once=10)
    first = (await api.user.get(f"/api/v1/trials/{trial}/logs/hits", searchText="9")).json()
    assert first["next"] == 80
    assert await hits(api, trial, searchText="9") == [n for n in range(LINES) if "9" in str(n)]


async def test_errors_are_lines_of_that_level_and_what_names_an_exception(api: Api, desk: Book) -> None:
    """Of a traceback the one line that says what it was."""
    texts = [
        ("fine", "INFO"),
        ("Traceback (most recent call last):", "UNSPECIFIED"),
        ('  File "train.py", line 3', "UNSPECIFIED"),
        ("torch.cuda.OutOfMemoryError: CUDA out of memory", "UNSPECIFIED"),
        ("it broke", "ERROR"),
        ("an Error: in a sentence", "INFO"),
    ]
    trial, _ = await written(desk, texts)
    assert await hits(api, trial, errors=True) == [3, 4]
    assert await hits(api, trial, errors=True, searchText="cuda") == [3]


@pytest.mark.parametrize(
    ("text", "is_error"),
    [
        ("KeyError: 'x'", True),
        ("[rank3]: ValueError: no", True),
        ("\x1b[31mRuntimeError: red\x1b[0m", True),
        ("KeyboardInterrupt", True),
        ("Fatal Python error: Aborted", True),
        ("Segmentation fault (core dumped)", True),
        ("Killed", True),
        ("no Error: here", False),
        ("ErrorBudget: 3", False),
        ("", False),
    ],
)
def test_what_names_an_exception(text: str, is_error: bool) -> None:
    """At the beginning of a line, after its rank and its colour."""
    assert bool(ERROR_LINE.lines(f"before\n{text}\nafter".encode())) is is_error


@pytest.mark.parametrize(
    "query",
    [
        {"searchText": "(", "enableRegex": True},
        {"levels": "LOUD"},
        {"limit": 0},
        {"limit": 50_001},
        {"offset": -1},
        {"searchText": "x" * 1001, "enableRegex": True},
    ],
)
async def test_a_search_for_nothing_that_can_be_found_is_refused(
    api: Api, desk: Book, query: dict[str, object]
) -> None:
    """With the reason."""
    trial, _ = await counted(desk, 3)
    assert (await api.user.get(f"/api/v1/trials/{trial}/logs/hits", **query)).status_code == 400


async def test_a_histogram_counts_every_line_once(api: Api, desk: Book, monkeypatch: pytest.MonkeyPatch) -> None:
    """By level and time, each bucket with its first line."""
    trial, task = await counted(desk, at_once=9)
    for buckets in (1, 7, 250, 500):
        shown = (await api.user.get(f"/api/v1/trials/{trial}/logs/histogram", buckets=buckets)).json()
        by_level = dict(zip(shown["levels"], shown["counts"]))
        assert sum(by_level["LOG_LEVEL_ERROR"]) == 3
        assert sum(map(sum, shown["counts"])) == LINES
        assert shown["exact"]
        for begin, first, *lines in zip(shown["begins"], shown["firstLine"], *shown["counts"]):
            inside = [n for n in range(LINES) if begin <= BEGAN_US + n * 1_000_000 < begin + shown["width"]]
            assert (first, sum(lines)) == (min(inside, default=None), len(inside))
    assert (await api.user.get(f"/api/v1/tasks/{task}/logs/histogram", buckets=500)).json() == shown
    for buckets in (0, 501):
        assert (await api.user.get(f"/api/v1/trials/{trial}/logs/histogram", buckets=buckets)).status_code == 400
    # Of very long output some chunks stand for those beside them, and the sum stays about what it is.
    monkeypatch.setattr(log_windows, "_MAX_UNPACKED", 5)
    rough = (await api.user.get(f"/api/v1/trials/{trial}/logs/histogram", buckets=10)).json()
    assert not rough["exact"]
    assert abs(sum(map(sum, rough["counts"])) - LINES) <= len(rough["begins"])


TRACEBACK = ["Traceback (most recent call last):", '  File "code/train.py", line 3, in <module>', "KeyError: 'x'"]


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ([*TRACEBACK], "KeyError: 'x'"),
        (["a warning", *TRACEBACK, "bye"], "KeyError: 'x'"),
        (["out of luck", ""], "out of luck"),
        (["[rank=1] " + line for line in TRACEBACK], "KeyError: 'x'"),
        ([*TRACEBACK, "tenax: rank 1 failed first: KeyError: 'x' (in code/train.py, line 3)"], "KeyError: 'x'"),
        (["tenax: no entrypoint."], "tenax: no entrypoint."),
        ([], "run 1 was the last: exited with code 1"),
    ],
)
async def test_a_failed_trial_names_the_line_that_shows_why(
    api: Api, desk: Book, errors: list[str], expected: str
) -> None:
    """What its code raised, else its last line of error output, else what the platform said; never another's."""
    trial = await desk.trial()
    attempt = await desk.run(trial, 1)
    path = f"/api/v1/trials/{trial}/logs/failure"
    await desk.intake.logs.posted(attempt.task_id, [OutputLine(BEGAN_US, "step 1", 3)], [origin()])
    raw = "".join(f"{line}\n" for line in errors).encode()
    if raw:
        await desk.intake.logs.output("a1", attempt.allocation_id, "stderr", 0, zlib.compress(raw))
    assert (await api.user.get(path)).json() == {"reason": "", "runId": 1}
    async with api.master.db.transaction() as conn:
        await logs.append_system_line(conn, attempt.task_id, "run 1 was the last: exited with code 1", "ERROR")
        await conn.execute(
            "update trials set state = 'ERROR', ended_at = now(), reason = 'it exited with code 1' where id = $1", trial
        )
    shown = (await api.user.get(path)).json()
    assert (shown["reason"], shown["runId"]) == ("it exited with code 1", 1)
    assert shown["line"]["text"] == expected
    (line,) = (await api.user.get(f"/api/v1/trials/{trial}/logs/lines", numbers=shown["line"]["number"])).json()[
        "lines"
    ]
    assert line == shown["line"]
