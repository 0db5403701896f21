"""Following an experiment until it ends: one live table on a terminal, a line per change elsewhere.

Of an experiment of one trial, the output is shown, which is what its author wants to see.
"""

from __future__ import annotations

import contextlib
import datetime
import sys
from typing import TYPE_CHECKING, List, Optional

import click

from tenax.cli.console import output
from tenax.cli.experiment.view import best_first, best_line, counts, trial_cells, trial_table
from tenax.client.experiments import Experiment
from tenax.client.trials import Trial, pages
from tenax.errors import TenaxError
from tenax.visible import VisibleStream, visible_line

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

_EVERY_S = 0.5
#: A search of more trials is shown by its numbers and its best trials.
_SHOWN = 200
_BEST_SHOWN = 10
_BAR = 60
#: Off a terminal: a line at least this often while something changes.
_LINE_EVERY = datetime.timedelta(seconds=5)


class Follower:
    """Shows one experiment. Owned by one command."""

    def __init__(self, experiment: Experiment, *, hint: str = "Ctrl-C detaches; the experiment keeps running.") -> None:
        self._experiment = experiment
        self._hint = hint
        self._trials: List[Trial] = []
        self._shown = ""
        self._shown_state = ""
        self._shown_at: Optional[datetime.datetime] = None

    def run(self) -> Experiment:
        """Until it has ended; the experiment as it ended."""
        if self._experiment.searcher == "single":
            ended = self._watch_output()
        elif sys.stderr.isatty():
            ended = self._watch_table()
        else:
            ended = self._experiment.wait(interval=_EVERY_S, seen=self._say_line)
        self._refresh(ended)
        self._conclude(ended)
        return ended

    def _watch_output(self) -> Experiment:
        """The lines of its only trial as they come, then its end."""
        from tenax.cli.trial import show_line

        trial = self._first_trial()
        if trial is not None:
            for line in trial.logs(follow=True):
                show_line(line)
        return self._experiment.wait(interval=_EVERY_S)

    def _first_trial(self) -> Optional[Trial]:
        first: List[Trial] = []

        class _Started(Exception):
            pass

        def check(current: Experiment) -> None:
            self._say_waiting(current)
            first.extend(self._fetch(current)[:1])
            if first:
                raise _Started

        with contextlib.suppress(_Started):
            self._experiment.wait(interval=_EVERY_S, seen=check)
        return first[0] if first else None

    def _say_waiting(self, current: Experiment) -> None:
        message = f"{current.state.lower()}: {current.reason}" if current.reason and not current.has_ended else ""
        if message and message != self._shown:
            output.say(message)
            self._shown = message

    def _watch_table(self) -> Experiment:
        from rich.console import Console
        from rich.live import Live

        # It moves the cursor itself; all that it shows is made visible below.
        stream = sys.stderr.below if isinstance(sys.stderr, VisibleStream) else sys.stderr
        terminal = Console(file=stream, highlight=False, emoji=False, markup=False)
        with Live(console=terminal, auto_refresh=False, transient=True, vertical_overflow="crop") as live:

            def show(current: Experiment) -> None:
                self._refresh(current)
                live.update(self._picture(current, live), refresh=True)

            return self._experiment.wait(interval=_EVERY_S, seen=show)

    def _picture(self, experiment: Experiment, live: Live) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        head = Text.assemble(
            (f"Experiment {experiment.id} {visible_line(experiment.name)}  ", "bold"),
            (experiment.state, "cyan" if not experiment.has_ended else ""),
            f"  {output.percent(experiment.progress)}  {output.between(experiment.started, experiment.ended)}",
        )
        summary = Text(visible_line(self._summary(experiment)), style="bright_black")
        width = min(_BAR, live.console.width - 2)
        filled = round(width * min(1.0, experiment.progress or 0.0))
        bar = Text.assemble(("━" * filled, "cyan"), ("━" * (width - filled), "bright_black"))
        parts: List[RenderableType] = [head, bar, summary]
        if experiment.reason:
            parts.append(Text(visible_line(experiment.reason), style="yellow"))
        room = max(3, live.console.height - 7)
        trials = self._to_show(experiment)[:room]
        if trials:
            parts += [Text(), output.grid(*trial_cells(experiment.metric, trials))]
        parts.append(Text(self._hint, style="bright_black"))
        return Group(*parts)

    def _to_show(self, experiment: Experiment) -> List[Trial]:
        """Those that run first, then the best of the others."""
        running = [trial for trial in self._trials if not trial.has_ended]
        ended = best_first(experiment, [trial for trial in self._trials if trial.has_ended])
        return running + ended

    def _summary(self, experiment: Experiment) -> str:
        best = best_line(experiment)
        count = max(experiment.trial_count, len(self._trials))
        return f"{count} trials {counts(self._trials)}".rstrip() + (f"  best {best}" if best else "")

    def _refresh(self, current: Experiment) -> None:
        # Polling the experiment itself finds out whether the master is away for long.
        with contextlib.suppress(TenaxError):
            self._trials = self._fetch(current)

    def _fetch(self, current: Experiment) -> List[Trial]:
        if current.trial_count <= _SHOWN:
            return current.trials()
        path = f"/api/v1/experiments/{current.id}/trials"
        order = "ORDER_BY_ASC" if current.smaller_is_better else "ORDER_BY_DESC"
        trials: List[Trial] = []
        for value in pages(
            current.session, path, "trials", {"sortBy": "SORT_BY_BEST_VALIDATION_METRIC", "orderBy": order}, size=50
        ):
            trials.append(Trial.read(value, current.session))
            if len(trials) == 50:
                break
        return trials

    def _say_line(self, current: Experiment) -> None:
        self._refresh(current)
        line = f"{current.state}  {output.percent(current.progress) or '0 %'}  {self._summary(current)}"
        if current.reason:
            line += f"  ({current.reason})"
        now = datetime.datetime.now()
        fresh = self._shown_at is None or now - self._shown_at >= _LINE_EVERY
        if line != self._shown and (fresh or current.state != self._shown_state or current.has_ended):
            self._shown, self._shown_state, self._shown_at = line, current.state, now
            output.say(f"{now:%H:%M:%S}  {line}")

    def _conclude(self, ended: Experiment) -> None:
        took = output.between(ended.started, ended.ended)
        click.echo(f"Experiment {ended.id} {output.state(ended.state)} after {took}. {ended.reason}".rstrip(), err=True)
        if ended.searcher == "single" or not self._trials:
            return
        best = best_first(ended, self._trials)[:_BEST_SHOWN]
        if len(self._trials) > len(best):
            output.say(f"The best {len(best)} of {ended.trial_count} trials:")
        trial_table(ended, best)
