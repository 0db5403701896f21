"""Following an experiment until it ends: one live table where it can be written over, a line per change elsewhere.

Of an experiment of one trial, the output is shown, which is what its author wants to see, and how far it is.
"""

from __future__ import annotations

import contextlib
import datetime
import math
import shutil
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, List, Optional

import click

from tenax.cli.console import output
from tenax.cli.console.layout import between_words, broken, cut
from tenax.cli.console.trial_status import TrialStatus
from tenax.cli.experiment.curves import drawn, panel_of
from tenax.cli.experiment.view import (
    best_first,
    best_line,
    best_of,
    counts,
    missing_metric,
    progress,
    progress_hint,
    share,
    trial_cells,
    trial_table,
)
from tenax.client.experiments import Experiment
from tenax.client.trials import LogFilter, Trial, pages
from tenax.display.terminal import VisibleStream, moves_cursor, visible_line
from tenax.errors import TenaxError

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

    from tenax.cli.console.plots.curves import Panel
    from tenax.client.checkpoints import Checkpoint

_EVERY_S = 0.5
_WAITING = ("QUEUED", "STARTING")
#: A search of more trials is shown by its numbers and its best trials.
_SHOWN = 200
_BEST_SHOWN = 10
_BAR = 60
#: Trials whose curves are drawn while a search runs, and how often they are fetched.
_CURVES = 5
_CURVES_EVERY_S = 2.0
_PLOT_ROWS, _LEAST_PLOT_ROWS = 12, 5
#: Of a plot: the empty line above it, its title, its axis and what stands below that.
_AROUND_A_PLOT = 4
#: Trials that stand below a plot, if there are so many; a low terminal has fewer curves, or none.
_LEAST_TRIALS = 4
#: In a line of the legend, for the letter and the last value.
_LAST_ROOM = 20
_LEAST_NAME = 12
#: Off a terminal: a line at least this often while something changes.
_LINE_EVERY = datetime.timedelta(seconds=5)


class Follower:
    """Shows one experiment. Owned by one command."""

    def __init__(
        self,
        experiment: Experiment,
        *,
        hint: str = "Ctrl-C detaches; the experiment keeps running.",
        after: Optional[datetime.datetime] = None,
        next_step: bool = True,
    ) -> None:
        """``after``: output that is older than this is not shown. ``next_step``: whether to say what comes next."""
        self._experiment = experiment
        self._hint = hint
        self._after = after
        self._next_step = next_step
        self._panel: Optional[Panel] = None
        #: While a table is live, another one stands in its place.
        self._stream = sys.stderr
        self._drawn_at = -math.inf
        self._trials: List[Trial] = []
        self._shown = ""
        self._shown_state = ""
        self._shown_at: Optional[datetime.datetime] = None

    def run(self) -> Experiment:
        """Until it has ended; the experiment as it ended."""
        if self._experiment.searcher == "single":
            ended = self._watch_output()
        elif moves_cursor(sys.stderr):
            ended = self._watch_table()
        else:
            ended = self._experiment.wait(interval=_EVERY_S, seen=self._say_line)
        self._refresh(ended)
        self._conclude(ended)
        return ended

    def _watch_output(self) -> Experiment:
        """The lines of its only trial as they come, how far it is below them, then its end."""
        from tenax.cli.trial import show_line, without_configuration

        trial = self._first_trial()
        if trial is not None:
            since = LogFilter(after=self._after.isoformat() if self._after is not None else "")
            status = TrialStatus(self._experiment, trial)
            with status.shown():
                for line in trial.logs(follow=True, where=since):
                    with status.above():
                        show_line(without_configuration(line))
        return self._experiment.wait(interval=_EVERY_S)

    def _first_trial(self) -> Optional[Trial]:
        first: List[Trial] = []

        class _Started(Exception):
            pass

        def check(current: Experiment) -> None:
            self._say_waiting(current)
            # While it waits, why it does is all that there is to see.
            if current.state not in _WAITING:
                first.extend(self._fetch(current)[:1])
            if first:
                raise _Started

        with contextlib.suppress(_Started):
            self._experiment.wait(interval=_EVERY_S, seen=check)
        return first[0] if first else None

    def _say_waiting(self, current: Experiment) -> None:
        message = (
            f"{output.worded(current.state).lower()}: {current.reason}"
            if current.reason and not current.has_ended
            else ""
        )
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

        width = live.console.width
        state = output.worded(experiment.state)
        far = f"  {progress(experiment)}  {output.ran(experiment)}"
        # Of the first line the name alone may be cut.
        name = cut(
            visible_line(experiment.name), max(_LEAST_NAME, width - len(f"Experiment {experiment.id}   {state}{far}"))
        )
        head = Text.assemble(
            (f"Experiment {experiment.id} {name}  ", "bold"),
            (state, "cyan" if not experiment.has_ended else ""),
            far,
        )
        summary = [Text(row, style="bright_black") for row in broken(visible_line(self._summary(experiment)), width)]
        long = min(_BAR, width - 2)
        filled = round(long * min(1.0, experiment.progress or 0.0))
        # Without colour the two parts differ by their characters alone.
        rest = "·" if live.console.no_color else "━"
        bar = Text.assemble(("━" * filled, "cyan"), (rest * (long - filled), "bright_black"))
        hint = progress_hint(experiment, self._trials)
        remarks = (experiment.reason, missing_metric(experiment, self._trials), hint)
        # Every line is a row of the terminal: what is longer is broken or cut here, and nowhere else.
        lines = [output.cautioned(row) for remark in remarks if remark for row in broken(visible_line(remark), width)]
        room = max(3, live.console.height - 4 - len(summary) - len(lines))
        curves = self._curves(experiment, width, room)
        lines += [*curves, *self._table(experiment, width, room - len(curves))]
        parts = [head, bar, *summary, *map(Text.from_ansi, lines), Text(self._hint, style="bright_black")]
        for part in parts:
            part.no_wrap, part.overflow = True, "ellipsis"
        return Group(*parts)

    def _table(self, experiment: Experiment, width: int, room: int) -> List[str]:
        """As many rows of the table of trials as there is room for, and how many trials are left out."""
        every = self._to_show(experiment)
        count = min(len(every), max(1, room))
        while count:
            columns, rows = trial_cells(experiment.metric, every[:count])
            cells = [[visible_line(cell) for cell in row] for row in rows]
            lines = ["", *output.fitted_lines(columns, cells, width)[0]]
            hidden = max(experiment.trial_count, len(every)) - count
            lines += [click.style(f"and {hidden} more: a higher terminal shows them", dim=True)] if hidden else []
            if len(lines) <= room or count == 1:
                return lines[: max(1, room)]
            count -= 1
        return []

    def _curves(self, experiment: Experiment, width: int, room: int) -> List[str]:
        """The curves of the best trials, where they leave room for the table."""
        table = 3 + min(len(self._trials), _LEAST_TRIALS)
        most = room - table - _AROUND_A_PLOT - _LEAST_PLOT_ROWS
        if most < 1:
            return []
        if time.monotonic() - self._drawn_at >= _CURVES_EVERY_S:
            self._drawn_at = time.monotonic()
            self._panel = self._fetch_panel(experiment, _CURVES)
        if self._panel is None:
            return []
        panel = _narrowed(self._panel, width, most)
        around = _AROUND_A_PLOT + len(panel.curves) + len(panel.notes())
        height = min(_PLOT_ROWS, room - table - around)
        return ["", *drawn([panel], self._stream, height)] if height >= _LEAST_PLOT_ROWS else []

    def _fetch_panel(self, experiment: Experiment, most: int) -> Optional[Panel]:
        """The curves of the searcher's metric of the best trials; None before there are any."""
        trials = [trial for trial in best_first(experiment, self._trials) if trial.latest_validation is not None][:most]
        with contextlib.suppress(TenaxError):
            if trials:
                panel = panel_of(experiment.session, trials, experiment.metric, "validation")
                return panel if panel.points() else None
        return self._panel

    def _to_show(self, experiment: Experiment) -> List[Trial]:
        """Those that run first, then the best of the others."""
        running = [trial for trial in self._trials if not trial.has_ended]
        ended = best_first(experiment, [trial for trial in self._trials if trial.has_ended])
        return running + ended

    def _summary(self, experiment: Experiment) -> str:
        best = self._best(experiment)
        count = max(experiment.trial_count, len(self._trials))
        return f"{count} trials {counts(self._trials)}".rstrip() + (f"  best {best}" if best else "")

    def _best(self, experiment: Experiment) -> str:
        """Of the same answer as the table: the experiment was asked for before, and its trials go on."""
        for trial in best_first(experiment, self._trials)[:1]:
            value = best_of(trial, experiment.metric)
            if value is not None and not math.isnan(value):
                return f"{experiment.metric} {output.number(value)} (trial {trial.id})"
        return best_line(experiment)

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
        left = output.duration(current.left_s)
        now = datetime.datetime.now()
        fresh = self._shown_at is None or now - self._shown_at >= _LINE_EVERY
        if line != self._shown and (fresh or current.state != self._shown_state or current.has_ended):
            self._shown, self._shown_state, self._shown_at = line, current.state, now
            output.say(f"{now:%H:%M:%S}  {line}" + (f"  about {left} left" if left else ""))

    def _conclude(self, ended: Experiment) -> None:
        took = output.ran(ended)
        text = f"Experiment {ended.id} {output.state(ended.state)} after {took}. {ended.reason}".rstrip()
        room = shutil.get_terminal_size().columns if self._stream.isatty() else 0
        output.say("\n".join(between_words(text, room)))
        if not self._trials:
            return
        warning = missing_metric(ended, self._trials)
        if warning:
            output.warn(warning)
        if sys.stderr.isatty():
            panel = self._fetch_panel(ended, _CURVES)
            if panel is not None:
                output.say("\n".join(["", *drawn([panel], self._stream), ""]))
        if ended.searcher == "single":
            conclude_trial(ended, self._trials[0])
            return
        best = best_first(ended, self._trials)[:_BEST_SHOWN]
        if len(self._trials) > len(best):
            output.say(f"{share(ended, best, ended.trial_count)}:")
        trial_table(ended, best)
        if self._next_step:
            # Why it failed is said by a trial that did.
            failed = [trial for trial in self._trials if trial.state == "ERROR"] if ended.state == "ERROR" else []
            subject = (failed or best)[0]
            output.say(f"  {'next':<11}{_next_command(ended, subject, _checkpoint_of(subject))}")


def _narrowed(panel: Panel, width: int, most: int) -> Panel:
    """The first curves, with names that leave a line room for its letter and its last value."""
    room = max(_LEAST_NAME, width - _LAST_ROOM - (len(panel.title) + 10 if min(most, len(panel.curves)) == 1 else 0))
    return replace(panel, curves=[replace(curve, name=cut(curve.name, room)) for curve in panel.curves[:most]])


def conclude_trial(experiment: Experiment, trial: Trial) -> None:
    """What came of the only trial of an experiment that has ended, and what to do next."""
    rows = []
    value = best_of(trial, experiment.metric)
    if value is not None:
        best = trial.best_validation
        rows.append(
            ("best", f"{experiment.metric} {output.number(value)}" + (f" at step {best.steps}" if best else ""))
        )
    checkpoint = _checkpoint_of(trial)
    if checkpoint is not None:
        rows.append(("checkpoint", f"{checkpoint.uuid} at step {checkpoint.steps}"))
    rows.append(("next", _next_command(experiment, trial, checkpoint)))
    for name, text in rows:
        output.say(f"  {name:<11}{text}")


def _checkpoint_of(trial: Trial) -> Optional[Checkpoint]:
    """The best checkpoint of a trial, or else the one with the most steps; None where no files are."""
    with contextlib.suppress(TenaxError):
        there = [checkpoint for checkpoint in trial.checkpoints() if checkpoint.has_files]
        by_uuid = {checkpoint.uuid: checkpoint for checkpoint in there}
        return by_uuid.get(trial.best_checkpoint_uuid) or max(
            there, key=lambda checkpoint: checkpoint.steps, default=None
        )
    return None


def _next_command(experiment: Experiment, trial: Trial, checkpoint: Optional[Checkpoint]) -> str:
    """What people do after such an end."""
    if experiment.state == "ERROR":
        return f"tenax trial logs {trial.id} --tail 50"
    if experiment.state == "CANCELED":
        return f"tenax experiment {'continue' if experiment.continuable else 'fork'} {experiment.id} -f"
    return (
        f"tenax checkpoint download {checkpoint.uuid}" if checkpoint is not None else f"tenax trial metrics {trial.id}"
    )
