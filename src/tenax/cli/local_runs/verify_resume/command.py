"""``tenax verify-resume``: four short runs of a script here, and what they say."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Dict, Iterator, List, Optional, Tuple

import click

from tenax.cli.console import output
from tenax.cli.console.lazy import StrictCommand
from tenax.errors import InvalidInput
from tenax.launch.signals import dying_with

if TYPE_CHECKING:
    from tenax.cli.local_runs.verify_resume.findings import RunTrace, Verdict
    from tenax.core.local_runs.files import LocalRun
    from tenax.core.local_runs.reading import LocalCheckpoint
    from tenax.jsonvalue import Json, JsonObject

#: So many reports after it was asked to stop, a script does not obey.
_OVER = 10
_LOOK_S = 0.05
_SEED = 20240229
_LEAVE = "save and leave the loop where context.preempt.should_preempt() is true, and ask after each report."
_NEVER_ASKS = f"The script never asks whether to stop, so nothing can pause it: {_LEAVE}"


@click.command(cls=StrictCommand, context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("argv", nargs=-1, required=True, type=click.UNPROCESSED, metavar="[--] PROGRAM [ARGUMENT]...")
@click.option(
    "--steps", default=20, show_default=True, type=click.IntRange(min=2), help="How many reported steps are compared."
)
@click.option("--kill", is_flag=True, help="Kill it half way instead of asking it to stop.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def verify_resume(argv: Tuple[str, ...], steps: int, kill: bool, as_json: bool) -> int:
    """Show whether a script that was paused goes on as if it had not been.

    It is run four times on this machine, without a cluster: twice straight, once until half of the steps, where it is
    asked to stop (context.preempt.should_preempt()), and once more from the checkpoint that it stored. Then parameters,
    optimizers, learning rates, samples, random states and metrics are compared, bit for bit; what is not the same is
    said, and what to do. All runs have the same seed from core.init on. The exit code is 0 if nothing differs, else 1.
    """
    from tenax.cli.local_runs.track import program_of
    from tenax.cli.local_runs.verify_resume.findings import judge

    program = program_of(argv)
    with _nothing_left(), tempfile.TemporaryDirectory(prefix="tenax-verify-") as directory:
        runs = _Runs(program, Path(directory), quiet=as_json)
        straight = runs.make("straight", {"stopsAfter": steps})
        reported = straight.trace.steps
        if len(reported) < 2:
            raise InvalidInput(
                f"The script reported {len(reported)} steps: two at least must be reported, with "
                "context.train.report_training_metrics(step, ...) or the like, before it ends."
            )
        last, half = reported[-1], reported[(len(reported) - 1) // 2]
        again = runs.make("again", {"stopsAt": last})
        stopped = runs.make("killed" if kill else "paused", {"killsAt" if kill else "stopsAt": half}, dies=kill)
        checkpoint = _checkpoint_of(stopped, half, kill)
        resumed = runs.make("resumed", {"stopsAt": last}, checkpoint=checkpoint.uuid)
    verdict = judge(straight.trace, again.trace, resumed.trace, checkpoint.step)
    if as_json:
        output.document(_document(verdict, last, half, checkpoint.step))
    else:
        _show(verdict, checkpoint.step, last)
    return 0 if verdict.exact else 1


@contextmanager
def _nothing_left() -> Iterator[None]:
    """Whoever is asked to end does so as at Ctrl-C: neither the script goes on, nor does what it stored stay."""

    def interrupt(*_: object) -> None:
        signal.raise_signal(signal.SIGINT)

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass
class _Made:
    """A run that has ended."""

    trace: RunTrace
    run: LocalRun


class _Runs:
    """Runs of one program, in one directory for data that is nobody else's."""

    def __init__(self, program: List[str], directory: Path, *, quiet: bool) -> None:
        self._program = program
        self._directory = directory
        self._quiet = quiet

    def make(self, name: str, plan: Dict[str, Json], *, checkpoint: Optional[str] = None, dies: bool = False) -> _Made:
        """From start to end. Raises InvalidInput for one that fails, or goes on where it should stop."""
        from tenax.core.local_runs.by_hand import RUN_DIRECTORY, TRACK, VERIFY
        from tenax.core.local_runs.files import LocalRun, new_card
        from tenax.local.user_data import VARIABLE

        run = LocalRun(str(self._directory / "runs" / name))
        run.make()
        card: JsonObject = {"checkpoint": checkpoint} if checkpoint else {}
        run.write_card(new_card(self._program, **card))
        trace, described = self._directory / f"{name}.jsonl", self._directory / f"{name}.json"
        described.write_text(json.dumps({**plan, "trace": str(trace), "seed": _SEED}))
        environment = {key: value for key, value in os.environ.items() if key != TRACK}
        environment.update(
            {VARIABLE: str(self._directory), RUN_DIRECTORY: run.path, VERIFY: str(described), "PYTHONUNBUFFERED": "1"}
        )
        with open(run.output_path("stdout"), "wb") as out, open(run.output_path("stderr"), "wb") as err:
            try:
                process = subprocess.Popen(
                    self._program, env=environment, stdout=out, stderr=err, preexec_fn=dying_with(os.getpid())
                )
            except OSError as error:
                raise InvalidInput(f"{self._program[0]} cannot be started: {error.strerror or error}.") from None
            try:
                self._watch(name, process, trace, plan)
            finally:
                process.terminate()
                code = process.wait()
        made = _Made(_read(trace), run)
        if code and not dies:
            raise InvalidInput(f"The run '{name}' failed: {_why(code, run)}")
        self._say(f"{name:<9} {_steps(made.trace.steps)}")
        return made

    def _watch(self, name: str, process: subprocess.Popen[bytes], trace: Path, plan: Dict[str, Json]) -> None:
        """Until it ends. Raises InvalidInput where it does not obey."""
        while True:
            try:
                process.wait(_LOOK_S)
                return
            except subprocess.TimeoutExpired:
                its = _read(trace)
            if _beyond(its, plan) > _OVER:
                raise InvalidInput(
                    _NEVER_ASKS
                    if its.signalled_at is None
                    else f"The run '{name}' was asked to stop and went on: {_LEAVE}"
                )

    def _say(self, text: str) -> None:
        if not self._quiet:
            output.say(text)


def _beyond(trace: RunTrace, plan: Dict[str, Json]) -> int:
    """How many steps were reported after the one at which it is to stop."""
    after, at = plan.get("stopsAfter"), plan.get("stopsAt")
    if isinstance(after, int):
        return len(trace.steps) - after
    return sum(step > at for step in trace.steps) if isinstance(at, int) else 0


def _lines(trace: Path) -> List[JsonObject]:
    try:
        lines = trace.read_text().split("\n")[:-1]
    except FileNotFoundError:
        return []
    return [document for document in map(json.loads, lines) if isinstance(document, dict)]


def _read(trace: Path) -> RunTrace:
    from tenax.cli.local_runs.verify_resume.findings import RunTrace

    its = RunTrace()
    for line in _lines(trace):
        its.add(line)
    return its


def _checkpoint_of(stopped: _Made, half: int, kill: bool) -> LocalCheckpoint:
    """What it goes on from. Raises InvalidInput."""
    from tenax.core.local_runs.reading import RunStory

    if not kill and stopped.trace.signalled_at is None:
        raise InvalidInput(_NEVER_ASKS)
    kept = RunStory(stopped.run).kept
    if not kept:
        when = f"before it was killed at step {half}" if kill else f"when it was asked to stop at step {half}"
        raise InvalidInput(
            f"The script stored no checkpoint {when}, so a pause loses everything: call "
            "context.checkpoint.store_path({'steps_completed': step}) "
            + ("now and then." if kill else "before it leaves.")
        )
    return kept[-1]


def _why(code: int, run: LocalRun) -> str:
    from tenax.cli.local_runs.script import ending_of

    return f"{ending_of(code, (), run).reason}."


def _steps(steps: List[int]) -> str:
    return f"steps {steps[0]} to {steps[-1]}" if steps else "no steps"


def _document(verdict: Verdict, last: int, half: int, checkpoint_step: int) -> JsonObject:
    return {**asdict(verdict), "stoppedAt": half, "checkpointStep": checkpoint_step, "lastStep": last}


def _show(verdict: Verdict, checkpoint_step: int, last: int) -> None:
    for finding in verdict.findings:
        click.echo(f"  ✗ {finding.what}: {finding.how}.\n      {finding.advice[0].upper()}{finding.advice[1:]}.")
    if verdict.same:
        click.echo(f"  ✓ the same: {', '.join(verdict.same)}")
    for finding in verdict.harmless:
        click.echo(f"  - {finding.what}: {finding.how}; {finding.advice}.")
    if verdict.uncompared:
        click.echo(f"  - not compared, since two runs from the start differ in it: {', '.join(verdict.uncompared)}")
    if verdict.exact:
        click.echo(f"It goes on from step {checkpoint_step} to {last} as if it had not been stopped.")
    elif verdict.exact is None:
        click.echo("Whether it goes on as if it had not been stopped cannot be judged.")
    else:
        click.echo("After a pause it is another run.")
