"""``tenax demo``: a cluster of its own, a search on real data, its best checkpoint checked; then all is stopped."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Optional

import click

from tenax.cli.console import exits, output
from tenax.client.connection import reading
from tenax.errors import InvalidInput

if TYPE_CHECKING:
    from tenax.client.checkpoints import Checkpoint
    from tenax.client.experiments import Experiment
    from tenax.client.trials import Trial
    from tenax.local.state_dir import StateDir
    from tenax.local.supervise.cluster import LocalCluster

#: Below the root of a checkout.
_EXAMPLE = Path("examples") / "digits"


@click.command()
@click.option("--keep", is_flag=True, help="Leave the cluster running when the search has ended.")
@click.option(
    "--example",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Directory with adaptive.yaml and evaluate.py (default: examples/digits of this checkout).",
)
def demo(keep: bool, example: Optional[Path]) -> int:
    """Start a cluster, search hyperparameters for the handwritten digits, check the best checkpoint, stop everything.

    With --keep the cluster is left running. The demo needs torch and scikit-learn in this environment.
    """
    from tenax.local.requirements import refuse_without_servers
    from tenax.local.state_dir import StateDir
    from tenax.local.supervise.python import refuse_old_python

    refuse_old_python()
    refuse_without_servers()
    code = example if example is not None else _example()
    _refuse_without_torch()
    _end_like_ctrl_c()
    root = _directory()
    kept = False
    demo = _Demo(StateDir(root), code)
    try:
        result = demo.run()
        kept = keep
        return result
    finally:
        if not kept:
            _stop(StateDir(root))
            shutil.rmtree(root, ignore_errors=True)
            again = "make demo KEEP=1" if "MAKELEVEL" in os.environ else "tenax demo --keep"
            output.say(f"The demo's cluster is stopped and its files are deleted; {again} leaves it running.")
        else:
            _show_how_to_stop(root, demo.url)


class _Demo:
    """One run. Raises TenaxError where a part of it fails."""

    def __init__(self, state: StateDir, code: Path) -> None:
        self._state = state
        self._code = code
        #: Where its master answers, once there is one.
        self.url = ""

    def run(self) -> int:
        from tenax.cli.console.follow import Follower
        from tenax.client.connection.session import Session
        from tenax.client.context import read_context
        from tenax.client.experiments import create_experiment

        output.say(f"1. A cluster in {self._state.root}: database, master and an agent with two slots.")
        cluster = self._up()
        self.url = cluster.url
        with Session(cluster.url, local=self._state) as session:
            output.say(f"\n2. A search over the hyperparameters in {self._code / 'adaptive.yaml'}.")
            config = (self._code / "adaptive.yaml").read_text(encoding="utf-8")
            experiment, _ = create_experiment(session, config, read_context(self._code))
            ended = Follower(experiment, hint="Ctrl-C stops the demo.", next_step=False).run()
            if ended.state != "COMPLETED":
                output.fail(f"The search ended as {ended.state}: {ended.reason or 'its logs say why'}")
                return exits.NOT_COMPLETED
            return self._check(ended)

    def _up(self) -> LocalCluster:
        from tenax.cli.local.up import start
        from tenax.local.supervise.control import prepare

        cluster, lock = prepare(self._state, {"port": 0, "slots": "2"})
        if start(cluster, lock, hints=False) != exits.OK:
            raise InvalidInput(f"The demo's agent did not start: see {self._state.log('agent')}.")
        return cluster

    def _check(self, ended: Experiment) -> int:
        best = ended.best_checkpoint()
        stopped = sum(1 for trial in ended.trials() if _stopped_early(trial, ended))
        output.say(f"{stopped} of {ended.trial_count} trials were stopped early by the search.")
        output.say(f"\n3. The best checkpoint, loaded again: trial {best.trial_id}, {best.uuid}")
        directory = best.path()
        if directory is None:
            raise InvalidInput(f"The checkpoint {best.uuid} is not where its record says.")
        output.say(f"   {directory}")
        return self._evaluate(best, ended.metric, directory)

    def _evaluate(self, best: Checkpoint, metric: str, directory: Path) -> int:
        command = [sys.executable, "evaluate.py", str(directory)]
        done = subprocess.run(command, cwd=self._code, capture_output=True, text=True)
        click.echo(f"   {done.stdout.strip()}")
        reported = reading.real(best.metadata.get(metric))
        if done.returncode != 0 or reported != best.searcher_metric:
            output.fail(f"The checkpoint does not give the figure that was reported.\n{done.stderr.strip()}")
            return exits.FAILED
        click.echo(click.style("   It gives the figure that was reported.", fg="green"))
        output.say(f"\nWhat next: {_program()} up, then docs/quickstart.md with a script of your own.")
        return exits.OK


def _program() -> str:
    """How this program is called from here: `make demo` has it in an environment that no shell has activated."""
    own = Path(sys.executable).with_name("tenax")
    on_path = shutil.which("tenax")
    if not own.exists() or (on_path and os.path.samefile(on_path, own)):
        return "tenax"
    return str(own.relative_to(Path.cwd()) if own.is_relative_to(Path.cwd()) else own)


def _stopped_early(trial: Trial, experiment: Experiment) -> bool:
    """Whether it has trained for less than the search's longest time."""
    searcher = reading.record(experiment.config, "searcher")
    longest = reading.integer(searcher, "max_time")
    trained = trial.latest_validation.metrics if trial.latest_validation is not None else {}
    return trained.get(reading.text(searcher, "time_metric"), 0.0) < longest


def _example() -> Path:
    for base in (Path.cwd(), Path(__file__).resolve().parents[4]):
        if (base / _EXAMPLE / "adaptive.yaml").is_file():
            return base / _EXAMPLE
    raise InvalidInput(f"{_EXAMPLE} is not here: run the demo in a checkout of Tenax, or name it with --example.")


def _refuse_without_torch() -> None:
    missing = [name for name, module in (("torch", "torch"), ("scikit-learn", "sklearn")) if not _is_there(module)]
    if missing:
        raise InvalidInput(f"The demo trains with {' and '.join(missing)}: pip install {' '.join(missing)}")


def _is_there(module: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(module) is not None


def _directory() -> Path:
    root = Path(tempfile.mkdtemp(prefix="tenax-demo-"))
    if os.geteuid() == 0:
        # The database runs as another account, which must pass.
        root.chmod(0o711)
    return root


def _end_like_ctrl_c() -> None:
    """Whoever ends the demo in another way gets everything stopped, too."""

    def ask(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, ask)


def _stop(state: StateDir) -> None:
    from tenax.local.running_tasks import end_all
    from tenax.local.supervise.ending import stop

    stop(state)
    end_all(state.agent, remove=True)


def _show_how_to_stop(root: Path, url: str) -> None:
    output.say(
        "\nThe cluster is still running. To explore it:\n"
        f"  export TENAX_DIR={root}\n"
        "  tenax experiment list\n"
        "  tenax experiment describe 1\n"
        "  tenax trial logs 1\n"
        f"  tenax open 1   (in the browser: the web page, {url}/ui/)\n"
        f"To stop it: tenax down --kill-tasks, and remove {root}."
    )
