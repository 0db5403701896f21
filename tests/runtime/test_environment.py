"""Which paths of a task's environment are its own run directory's: values in, values out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenax.runtime.environment import in_run_directory

RUN = Path("/agent/c/run")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/run/determined", "/agent/c/run"),
        ("/run/determined/workdir/x", "/agent/c/run/workdir/x"),
        ("/run/determined/a:/opt/b:/run/determined/c", "/agent/c/run/a:/opt/b:/agent/c/run/c"),
        ("/run/determinedly:/x/run/determined/y", "/run/determinedly:/x/run/determined/y"),
        ('{"path": "/run/determined/x"}', '{"path": "/run/determined/x"}'),
        ("file:///run/determined/x", "file:///run/determined/x"),
        ("", ""),
    ],
)
def test_paths_below_the_run_directory(text: str, expected: str) -> None:
    """A path, and each of several between colons, is meant; one inside of other text is not."""
    assert in_run_directory(text, RUN) == expected
