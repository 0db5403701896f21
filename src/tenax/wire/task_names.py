"""What a task and those who start it call by the same name. Every task loads it: no import here may cost anything.

Standard library only, Python 3.9. Paths and names that are Determined's are kept, since its users' code knows them.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenax.jsonvalue import Json

#: Determined's release whose interfaces are served: by the API, and to tasks that import its package.
DETERMINED_VERSION = "0.38.1"
#: The run directory in a container, and where ``DET_RUN_DIR`` does not say otherwise.
RUN_DIRECTORY = "/run/determined"
#: The cluster's startup hook, in the run directory; and the one that comes with the code.
CLUSTER_HOOK = "dynamic-tcd-startup-hook.sh"
OWN_HOOK = "startup-hook.sh"
#: As the first word of a command line: the interpreter of this machine or image.
PYTHON = "{python}"
#: The command line of a task that is no trial, for `tenax.exec.task`, as JSON: a list of words.
ENTRYPOINT = "TENAX_TASK_ENTRYPOINT"
#: In the run directory of a task that deletes checkpoints: what is to go.
REMOVALS_FILE = "removals.json"
#: In the run directory: made by the agent when the task is to save and leave, and no master is there to say so.
LEAVE_FILE = "leave"
#: How the output of a run begins; the configuration follows.
RUN_BEGINS = "New trial runner in (container "
#: How a trial says that its configuration keeps it from starting, as it would every time.
CANNOT_START = "tenax: this trial cannot start as it is configured: "
#: Of a trial on several machines: whether this member is the first, which says what begins.
FIRST_MEMBER = "TENAX_FIRST_MEMBER"
YES, NO = "yes", "no"
#: Set where the checkpoint to go on from may be gone: whether this member is to look, or to ask what another has found.
CHECKPOINT_IN_DOUBT = "TENAX_CHECKPOINT_IN_DOUBT"
LOOK, ASK = "look", "ask"
#: Absolute mounts that a plain process does not have, as JSON: the path it knows -> the one of this machine; and those
#: that are not to be written, a list.
HOST_PATHS = "DET_HOST_PATHS"
READ_ONLY_PATHS = "DET_READ_ONLY_PATHS"
#: How much shared memory a plain process is to have of its own, in bytes.
SHM_BYTES = "DET_SHM_BYTES"
#: What starts one rank per slot, on all machines of a trial, where nothing else is said.
LAUNCHER = "tenax.launch.torch_distributed"
#: The same where there is no PyTorch.
PROCESSES = "tenax.launch.processes"
#: All that do: for a new one, its line here and its name in `tenax.config.schema.entrypoint`.
LAUNCHERS = (LAUNCHER, PROCESSES, "tenax.launch.deepspeed", "tenax.launch.horovod")
#: With the names that they have in configurations of Determined.
LAUNCHER_NAMES = (*LAUNCHERS, *(name.replace("tenax", "determined", 1) for name in LAUNCHERS))
#: What trains the class that an entrypoint names.
CLASS_TRAINER = "tenax.pytorch.of_class"
#: What puts the hyperparameters of a trial into the command line of its script.
WITH_HPARAMS = "tenax.launch.with_hparams"
#: The place, as JSON, in which files that checkpoints have in common are stored once, where the operator has chosen so.
SHARED_FILES_IN = "TENAX_SHARED_FILES_IN"
#: All masters of the cluster, between commas, where there are several; ``DET_MASTER`` is one of them.
MASTERS = "TENAX_MASTERS"
#: Forms of spools that the agent reads beside lines, between commas; an agent of before sets nothing.
SPOOL_FORMATS, SEGMENTS = "TENAX_SPOOL_FORMATS", "segments"
#: Of the process runtime: ``0`` keeps a trial from starting in an interpreter that has its imports loaded.
WARM_START = "TENAX_WARM_START"
#: Where this trial's script is to note what it imports (`tenax.exec.learn_imports`).
LEARN_IMPORTS = "TENAX_LEARN_IMPORTS"
_NAME = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.")


def masters_of(env: Mapping[str, str]) -> str:
    """Where a task with this environment finds its master: one address, or several between commas; "" for nowhere.

    Whoever sets another ``DET_MASTER`` means that one alone.
    """
    named, every = env.get("DET_MASTER", "").rstrip("/"), env.get(MASTERS, "")
    return every if named in every.split(",") else named


def names_a_class(entrypoint: Json) -> bool:
    """``module.path:Class``, and nothing more."""
    text = entrypoint.strip() if isinstance(entrypoint, str) else ""
    module, colon, name = text.partition(":")
    return bool(colon and module and name) and _NAME.issuperset(module) and _NAME.issuperset(name) and "/" not in text
