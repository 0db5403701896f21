"""``import determined`` in tasks: served by tenax where nobody installed it, handed over where somebody did."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.exec.place import SOURCE, Place
from tests.kits import task_master
from tests.kits.interpreters import interpreters

SERVED = """
import sys
import determined as det
import determined.core, tenax.core
import determined.pytorch, tenax.pytorch
from determined import core
from determined.experimental import client

assert core is determined.core is tenax.core
assert det.pytorch is determined.pytorch is tenax.pytorch
assert core.__spec__.name == core.__name__ == "tenax.core"
print(det.__version__, det.get_cluster_info().trial.hparams["lr"], issubclass(det.InvalidHP, Exception))
with det.core.init() as context:
    context.train.report_training_metrics(1, {"loss": 1.0})
from determined.experimental import core_v2
import tenax.experimental.core_v2
assert core_v2 is tenax.experimental.core_v2
core_v2.init(config=core_v2.Config(name="other", hparams={"lr": 7}, external_trial_id="other"))
core_v2.train.report_training_metrics(2, {"loss": 1.0})
print(core_v2.info.trial.hparams["lr"], core_v2.info.trial.trial_id == det.get_cluster_info().trial.trial_id)
core_v2.close()
several = ("import determined.common.streams",)
for missing in ("import determined.horovod", "from determined import horovod", *several, "det.TrialContext"):
    try:
        exec(missing)
    except (ImportError, AttributeError) as error:
        print(type(error).__name__, "determined==0.38.1" in str(error) or "Tenax serves" in str(error))
"""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with task_master.running() as master:
        yield Place(tmp_path, master)


@pytest.mark.parametrize("python", interpreters())
def test_without_the_package(place: Place, python: str) -> None:
    """The parts that Tenax has are there, as the very same modules; what it has not is told in words."""
    (place.work / "train.py").write_text(SERVED)
    code, out, err = place.run(python)
    assert (code, err) == (0, "")
    assert out.splitlines() == ["0.38.1 0.1 True", "0.1 True", *["ImportError True"] * 3, "AttributeError True"]


def test_only_in_tasks() -> None:
    """A Python that is not a task's does not find it, even where tenax is installed."""
    program = "import tenax.core, importlib.util as u; print(u.find_spec('determined'))"
    done = subprocess.run([sys.executable, "-c", program], env={"PYTHONPATH": SOURCE}, capture_output=True, text=True)
    assert done.stdout == "None\n"


def test_nothing_of_it_runs_before_it_is_asked_for(place: Place) -> None:
    """A task that does not import it loads nothing; sitecustomize stays the user's own."""
    (place.work / "sitecustomize.py").write_text("import builtins\nbuiltins.mine = True\n")
    (place.work / "train.py").write_text(
        "import sys\nprint(mine, [n for n in sys.modules if n.startswith(('determined', 'tenax'))])\n"
    )
    assert place.run(PYTHONPATH=f"{SOURCE}:{place.work}") == (0, "True []\n", "")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="namespaces are Linux's")
def test_a_package_that_is_found_late(place: Place, tmp_path: Path) -> None:
    """A script that brings the package by itself, unseen, takes a private view as it imports it."""
    (place.work / "train.py").write_text(_late(tmp_path))
    assert place.run() == (0, "['cluster.json', 'rendezvous.json', 'resources.json', 'trial.json'] here\n", "")
    assert not Path("/run/determined").exists()


def test_a_package_that_is_found_too_late(place: Place, tmp_path: Path) -> None:
    """A script that has started threads by then is stopped in words: it would take itself to be off the cluster."""
    threads = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    (place.work / "train.py").write_text(threads + _late(tmp_path))
    code, out, err = place.run()
    assert (code, out) == (1, "")
    assert "has started threads" in err
    assert "DET_PRIVATE_VIEW=1" in err


def test_checkpoints_of_the_package_itself(place: Place, tmp_path: Path) -> None:
    """A program that uses its PyTorch part reads what that part saved, also with a PyTorch that reads less by itself;
    others, and who chose otherwise, load as ever."""
    package = tmp_path / "with" / "determined"
    (package / "pytorch").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "pytorch" / "__init__.py").touch()
    name = "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"
    show = f"print(os.environ.get({name!r}))"
    (place.work / "train.py").write_text(f"import os, determined\n{show}\nimport determined.pytorch\n{show}\n")
    path = f"{SOURCE}:{package.parent}"
    assert place.run(PYTHONPATH=path) == (0, "None\n1\n", "")
    assert place.run(PYTHONPATH=path, TORCH_FORCE_WEIGHTS_ONLY_LOAD="1") == (0, "None\nNone\n", "")


def _late(root: Path) -> str:
    """A script that finds a package where nobody looks, which looks at what is in the fixed path."""
    package = root / "late" / "determined"
    package.mkdir(parents=True)
    source = "import os\nprint(sorted(os.listdir('/run/determined/info')), os.environ['DET_PRIVATE_VIEW'])\n"
    (package / "__init__.py").write_text(source)
    return f"import sys\nsys.path.append({str(package.parent)!r})\nimport determined\n"


@pytest.mark.parametrize("python", interpreters())
def test_the_launcher_under_the_other_name(place: Place, python: str) -> None:
    """``python -m determined.launch...`` is our own where nobody installed that package."""
    place.configure(entrypoint="python3 -m determined.launch.wrap_rank 3 sh -c 'echo out; exit 4'")
    code, out, _ = place.run(python)
    assert (code, out) == (4, "[rank=3] out\n")
    place.configure(entrypoint="python3 -m determined.launch.torch_distributed --help")
    assert "usage: python3 -m tenax.launch.torch_distributed" in place.run(python)[1]
