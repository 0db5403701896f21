"""The run of this process, where no cluster started it. Standard library only, Python 3.9.

- Alone, it has a directory of its own, made with the first thing that it says.
- Under ``tenax track`` (``TENAX_RUN_DIR``) the directory is there, and belongs to that command: this process adds its
  reports to it, sends nothing, and knows no login.
- With ``TENAX_TRACK=1`` it has a directory of its own from the start, and a thread sends what is in it to the cluster
  that this user uses, with this user's login. A cluster that is away, or is not for us, is said in a line and changes
  nothing else.
- In detached mode (``core_v2``) the script itself says that it is tracked, and under which names; its output is kept.
"""

from __future__ import annotations

import builtins
import os
import sys

from tenax.client.connection import fast_json
from tenax.core.local_runs.files import REPORTS, LocalRun, beginning, new_card, new_run, release
from tenax.core.spooling.file import SpoolFile, own_stream_name
from tenax.core.values import plain
from tenax.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Optional

    from tenax.client.connection.session import Session
    from tenax.core.local_runs.detached import Detached
    from tenax.core.local_runs.output import OutputCopy
    from tenax.core.local_runs.trace import ResumeTrace
    from tenax.core.local_runs.tracking import Tracker
    from tenax.jsonvalue import JsonObject

#: Set by ``tenax track``: the directory of the run.
RUN_DIRECTORY = "TENAX_RUN_DIR"
#: Set by ``tenax verify-resume``: the path of the plan of this process.
VERIFY = "TENAX_VERIFY_RESUME"
#: Set by people.
TRACK = "TENAX_TRACK"
_YES = ("1", "true", "yes", "on")
_NO = ("", "0", "false", "no", "off")


def is_tracked() -> bool:
    """Whether a cluster is to hear of this run. Raises InvalidInput for a variable that says neither yes nor no."""
    return bool(os.environ.get(RUN_DIRECTORY)) or bool(_requested())


def _requested() -> Optional[bool]:
    """What ``TENAX_TRACK`` says; None: nothing."""
    value = os.environ.get(TRACK, "").lower()
    if value not in _YES + _NO:
        raise InvalidInput(f"{TRACK} is {value!r}: set it to 1 to report to the cluster that you use, or to 0")
    return value in _YES if value else None


def require_chief_known(distributed_given: bool) -> None:
    """Raises InvalidInput in a process of a distributed job that does not say which one it is."""
    size = _world_size()
    if not distributed_given and size > 1:
        raise InvalidInput(
            f"this is one of {size} processes, of which only the chief may report: pass core.init(distributed=...), "
            "for example core.DistributedContext.from_torch_distributed()"
        )


def declared_hparams(given: object) -> JsonObject:
    """What ``core.init(hparams=...)`` was given: a dict, or what argparse read. Raises TypeError, ValueError."""
    if given is None:
        return {}
    argparse = sys.modules.get("argparse")
    values = vars(given) if argparse is not None and isinstance(given, argparse.Namespace) else given
    if not hasattr(values, "items"):
        raise TypeError(
            f"core.init(hparams=...) was given a {type(given).__name__}: give a dict of names and values, "
            "such as vars(arguments) of the arguments that argparse read"
        )
    try:
        own = plain(values, "hparams")
    except TypeError as error:
        raise TypeError(f"core.init(hparams=...): {error}") from None
    assert isinstance(own, dict)
    return own


class RunByHand:
    """``chief``: whether this process speaks for the run. ``declared``: the hyperparameters that the script has.

    ``size``: how many processes it is. ``detached``: what a script in detached mode says of its run.
    """

    def __init__(self, chief: bool, declared: JsonObject, size: int = 1, detached: Optional[Detached] = None) -> None:
        given = os.environ.get(RUN_DIRECTORY)
        self._owned = not given
        self._detached = detached if self._owned else None
        self.run = LocalRun(given) if given else new_run()
        #: Whether a cluster is to hear of it. Raises before anything is kept.
        self.sends = _requested() is not False if detached is not None else is_tracked()
        card = self.run.card if given else detached.card if detached is not None else {}
        overrides = card.get("hparams")
        self._overrides: JsonObject = overrides if isinstance(overrides, dict) else {}
        checkpoint = card.get("checkpoint")
        #: Where to go on; not counted as read by the script.
        self.checkpoint: Optional[str] = checkpoint if isinstance(checkpoint, str) and checkpoint else None
        #: What the script declared, and over it what ``tenax track --hparam`` said.
        self.hparams: JsonObject = {**declared, **self._overrides}
        self._size = size
        self._unread = ([] if not self._overrides else ["context.hparams"]) + (
            ["context.latest_checkpoint"] if self.checkpoint else []
        )
        self._lock: Optional[int] = None
        #: The process whose run it is: what is forked from it does not end it.
        self._holder = 0
        self._output: Optional[OutputCopy] = None
        self._tracker: Optional[Tracker] = None
        #: For ``tenax verify-resume``; None: nobody asks.
        self.trace: Optional[ResumeTrace] = _trace() if chief else None
        # A trial has a stream once: the other runs of one that goes on have others.
        name = self._stream() if given or detached is not None else REPORTS
        self.file = SpoolFile(self.run.path, name, on_open=self._begin if self._owned else None)
        if chief and self._owned and (detached is not None or self.sends):
            self._track()

    @property
    def latest_checkpoint(self) -> Optional[str]:
        """Where to go on."""
        self._read("context.latest_checkpoint")
        return self.checkpoint

    def read_hparams(self) -> JsonObject:
        """The hyperparameters, for the script."""
        self._read("context.hparams")
        return self.hparams

    @property
    def is_named(self) -> bool:
        """Whether its script says which trial it is: that may have earlier runs, also on other machines."""
        return self._detached is not None and "trialKey" in self._detached.card

    @property
    def open_session(self) -> Optional[Callable[[], Session]]:
        """How this process comes to the cluster in detached mode; None: it does not."""
        if self._detached is None or not self.sends:
            return None
        from tenax.core.local_runs.tracking import own_session

        return self._detached.open_session or own_session

    def registered(self, seconds: float) -> JsonObject:
        """What the cluster has made of it, as in ``sent.json``; empty where it has not within ``seconds``."""
        if self._tracker is not None:
            self._tracker.tried(seconds)
        return self.run.sent

    def start_body(self) -> Optional[str]:
        """The body of the first record; None where there is nothing to say."""
        if not self.hparams and self._tracker is None:
            return None
        return fast_json.dumps({"checkpointStorage": None, "hparams": self.hparams})

    def unread(self) -> list[str]:
        """What the script was given and never asked for."""
        return self._unread

    def finish(self, state: str, reason: str) -> None:
        """The script's part is over: note it, and send what is left."""
        if not self._owned or self._lock is None or self._holder != os.getpid():
            return
        if self._output is not None:
            self._output.stop()
        try:
            self.run.write_card({**self.run.card, **ending(state, reason)})
            if self._tracker is not None:
                self._tracker.finish()
        finally:
            release(self._lock)
            self._lock = None

    def _begin(self) -> None:
        if self._lock is not None:
            return
        if self._detached is None or not self.is_named:
            self._make(self._detached.card if self._detached is not None else {})
            return
        from tenax.core.local_runs.detached import require_none_runs

        with beginning():
            # Another process may have begun it since its card was made.
            require_none_runs(self._detached.card)
            self._make(self._detached.card)

    def _make(self, more: JsonObject) -> None:
        self.run.make()
        self._lock, self._holder = self.run.hold(), os.getpid()
        self.run.write_card(new_card(_own_argv(), **{**_beginning(self._size), **more, "hparams": self.hparams}))

    def _track(self) -> None:
        from tenax.core.local_runs.tracking import Tracker

        self._begin()
        if self._detached is not None:
            from tenax.core.local_runs.output import OutputCopy

            self._output = OutputCopy(self.run)
            self._output.start()
        if not self.sends:
            return
        self._tracker = Tracker(self.run, self.open_session)
        self._tracker.start()

    def _stream(self) -> str:
        """A name that no other process of this run has, nor what this one was before it replaced itself."""
        name = own_stream_name()
        while os.path.exists(self.run.stream_path(name)):
            name = own_stream_name()
        return name

    def _read(self, what: str) -> None:
        if what in self._unread:
            self._unread.remove(what)


def _trace() -> Optional[ResumeTrace]:
    if not os.environ.get(VERIFY):
        return None
    from tenax.core.local_runs.trace import ResumeTrace

    return ResumeTrace.of_plan(os.environ[VERIFY])


def ending(state: str, reason: str) -> JsonObject:
    """What ``run.json`` says once it is over."""
    from time import time

    return {"ended": time(), "state": state, "reason": reason}


def _beginning(size: int) -> JsonObject:
    """What tells whether this program can be started again by its arguments: why not, and who started it."""
    why = _one_of_several(size)
    if why:
        return {"notAgain": why, "startedBy": list(_argv_of(os.getppid()))}
    if hasattr(builtins, "__IPYTHON__"):
        return {"notAgain": "it ran in a notebook or in IPython"}
    if sys.argv[:1] in ([], [""], ["-"]):
        return {"notAgain": "its script came from standard input"}
    return {}


def _one_of_several(size: int) -> str:
    """What to say of a process whose arguments start none of the others; empty of one that is alone."""
    processes = max(size, _world_size())
    if processes > 1:
        return f"it was one of {processes} processes, which something else started"
    multiprocessing = sys.modules.get("multiprocessing")
    spawned = multiprocessing is not None and multiprocessing.parent_process() is not None
    return "another process of its program started it" if spawned else ""


def _world_size() -> int:
    """Of how many processes this is one, as those say who start them."""
    size = os.environ.get("WORLD_SIZE", "")
    return int(size) if size.isdigit() else 1


def _argv_of(process: int) -> list[str]:
    """The arguments of a process; empty where they cannot be read."""
    try:
        with open(f"/proc/{process}/cmdline", "rb") as file:
            return [part.decode("utf-8", "replace") for part in file.read().rstrip(b"\0").split(b"\0") if part]
    except OSError:
        return []


def _own_argv() -> list[str]:
    """How to start this program again."""
    given = getattr(sys, "orig_argv", None)  # Python 3.10
    return [sys.executable, *(given[1:] if given else sys.argv)]
