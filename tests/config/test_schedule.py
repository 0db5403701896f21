"""Durations and schedules as people write them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenax.config.durations import parse_duration
from tenax.config.master import load_master_settings
from tenax.config.problems import ConfigError
from tenax.config.schedule import Cron, Every, next_after, parse_schedule

NOW = datetime(2026, 11, 21, 17, 30, 12, 5, tzinfo=timezone.utc)  # A Saturday.


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("24h", 86400),
        ("1h30m", 5400),
        ("2w", 1209600),
        ("5d", 432000),
        ("1.5h", 5400),
        ("250ms", 0.25),
        ("0.3333333333333333h", 1200),
        ("0s", 0),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    """As Go writes them, and days and weeks."""
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "h", "24", "1 h", "-1h", "1h-", "1y", "1h 30m", "∞", f"{10**40}h"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    """With what to write instead."""
    with pytest.raises(ValueError, match="is no duration: write"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "following"),
    [
        ("@daily", "2026-11-22 00:00"),
        ("0 3 * * *", "2026-11-22 03:00"),
        ("*/20 * * * *", "2026-11-21 17:40"),
        ("31 17 * * *", "2026-11-21 17:31"),
        ("30 17 * * *", "2026-11-22 17:30"),
        ("0 0 1 * *", "2026-12-01 00:00"),
        ("0 12 * * 1-5", "2026-11-23 12:00"),
        ("0 12 * * 7", "2026-11-22 12:00"),
        ("0 0 29 2 *", "2028-02-29 00:00"),
        ("0 0 1 * 0", "2026-11-22 00:00"),
        ("5,10 8-9/1 2 1 *", "2027-01-02 08:05"),
    ],
)
def test_cron_lines(text: str, following: str) -> None:
    """The first time after one moment, in UTC."""
    following_time = next_after(parse_schedule(text), NOW)
    assert following_time is not None
    assert following_time.strftime("%Y-%m-%d %H:%M") == following


def test_a_time_that_never_comes_is_none() -> None:
    """The 30th of February."""
    assert next_after(parse_schedule("0 0 30 2 *"), NOW) is None


@pytest.mark.parametrize(
    "text", ["* * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "*/0 * * * *", "a * * * *", "0.1s"]
)
def test_what_is_no_schedule_is_refused(text: str) -> None:
    """In words, also by the settings of the master."""
    with pytest.raises(ValueError, match=r"is no|too often"):
        parse_schedule(text)
    with pytest.raises(ConfigError, match="log_retention_schedule"):
        load_master_settings(environ={}, flags={"log_retention_schedule": text})


FIELD = st.sampled_from(["*", "*/7", "3", "1-3", "2,4"])


@given(FIELD, FIELD, FIELD, FIELD, FIELD, st.datetimes(datetime(2020, 1, 1), datetime(2040, 1, 1)))
def test_the_next_time_is_the_first_that_matches(
    minute: str, hour: str, day: str, month: str, weekday: str, naive: datetime
) -> None:
    """It matches, and no minute between does."""
    schedule = parse_schedule(f"{minute} {hour} {day} {month} {weekday}")
    assert isinstance(schedule, Cron)
    moment = naive.replace(tzinfo=timezone.utc)
    following = next_after(schedule, moment)
    assert following is not None
    assert following > moment
    assert _matches(schedule, following)
    step = max(timedelta(minutes=1), (following - moment) / 500)
    between = moment.replace(second=0, microsecond=0) + timedelta(minutes=1)
    while between < following:
        assert not _matches(schedule, between.replace(second=0, microsecond=0))
        between += step


def _matches(schedule: Cron, moment: datetime) -> bool:
    of_month, of_week = moment.day in schedule.days, moment.isoweekday() % 7 in schedule.weekdays
    day = of_month or of_week if schedule.either_day else of_month and of_week
    return (
        day and moment.month in schedule.months and moment.hour in schedule.hours and moment.minute in schedule.minutes
    )


def test_an_interval_begins_anew_each_time() -> None:
    """After what was done last, not at round hours."""
    assert parse_schedule("36h") == Every(129600.0)
    assert next_after(Every(60.0), NOW) == NOW + timedelta(minutes=1)
