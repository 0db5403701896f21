"""``import determined`` in a task. Standard library only, Python 3.9; nothing of this runs before that import.

Where the task's own Python has the ``determined`` package, this module turns into it: same name, its code, its
submodules. Where it has none, the parts that Tenax has (`determined.core`, `determined.experimental.client`...) are
those of ``tenax``, as the very same modules; what Tenax has not says so.

This directory is on PYTHONPATH in tasks only, so it comes before installed packages; it needs no ``sitecustomize``.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib.abc import InspectLoader, Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType, ModuleType
    from typing import Optional

#: What is offered under the other name: ``determined.<name>``, and the part of ``tenax`` that it is.
_PARTS = {
    "common": "tenax.experimental.common",
    "common.experimental": "tenax.experimental",
    **{name: f"tenax.{name}" for name in ("core", "experimental", "launch", "pytorch")},
    **{name: f"tenax.integrations.{name}" for name in ("transformers", "keras")},
}
_NAMES = {"get_cluster_info": "info", "ClusterInfo": "info", "TrialInfo": "info", "InvalidHP": "modes"}
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_FIXED = "/run/determined/info/cluster.json"


def _installed() -> Optional[ModuleSpec]:
    """The package that the task's own Python has."""
    elsewhere = [path for path in sys.path if os.path.abspath(path or os.curdir) != _HERE]
    spec = PathFinder.find_spec(__name__, elsewhere)
    return spec if spec is not None and spec.origin is not None else None


def _check_view() -> None:
    """It would take itself to be off the cluster, and train without anybody knowing."""
    if not os.environ.get("DET_TASK_TYPE") or os.path.exists(_FIXED):
        return
    refused, _, why = os.environ.get("DET_PRIVATE_VIEW", "").partition(": ")
    if refused == "refused":
        raise ImportError(why, name=__name__)
    _load_tenax()
    private_view = importlib.import_module("tenax.exec.private_view")
    try:
        private_view.give_late(os.environ)
    except private_view.NoPrivateView as error:
        raise ImportError(
            "the installed package 'determined' reads /run/determined, which this task has not: it was found only now, "
            f"and {error}. Set DET_PRIVATE_VIEW=1 in environment.environment_variables of the experiment, or name the "
            "Python that has it in DET_PYTHON_EXECUTABLE there",
            name=__name__,
        ) from None


def _become(spec: ModuleSpec) -> None:
    """Turn this module into the one of ``spec``."""
    assert spec.loader is not None
    module = sys.modules[__name__]
    for name in [name for name in vars(module) if not name.startswith("__")]:
        delattr(module, name)
    module.__spec__, module.__loader__, module.__file__ = spec, spec.loader, spec.origin
    module.__path__ = list(spec.submodule_search_locations or [])
    module.__doc__ = None
    spec.loader.exec_module(module)


class _OwnCheckpoints(MetaPathFinder):
    """Lets a program that imports ``determined.pytorch`` read its own checkpoints with PyTorch 2.6 and newer.

    That package was written when ``torch.load`` read whatever was saved; now it must be told. Only its module's import
    is looked at; names of this module are gone by then.
    """

    def find_spec(
        self, fullname: str, path: Optional[Sequence[str]], target: Optional[ModuleType] = None
    ) -> Optional[ModuleSpec]:
        if fullname == "determined.pytorch":
            import os
            import sys

            sys.meta_path.remove(self)
            if not os.environ.get("TORCH_FORCE_WEIGHTS_ONLY_LOAD"):
                os.environ.setdefault("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
        return None


class _Same(Loader):
    """Gives a module of ``tenax`` as it is."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._spec: Optional[ModuleSpec] = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self._name)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The machinery has put the other name's there.
        module.__spec__ = self._spec
        if self._spec is not None:
            module.__loader__, module.__package__ = self._spec.loader, self._spec.parent

    def get_code(self, _: str) -> Optional[CodeType]:
        """For ``python -m``: a program of ``tenax`` under the other name."""
        spec = importlib.util.find_spec(self._name)
        loader = spec.loader if spec is not None else None
        return loader.get_code(self._name) if isinstance(loader, InspectLoader) else None


def _absent(name: str) -> str:
    return (
        f"there is no {name} here: this task has no package 'determined', and Tenax serves {_served()} under that "
        f"name. Install determined=={_version()} in the task's environment, where it works unchanged, or use what "
        "Tenax offers"
    )


class _Finder(MetaPathFinder):
    """Finds ``determined.<part>...``."""

    def find_spec(
        self, fullname: str, path: Optional[Sequence[str]], target: Optional[ModuleType] = None
    ) -> Optional[ModuleSpec]:
        if not fullname.startswith("determined."):
            return None
        ours = _own_name(fullname.partition(".")[2])
        known = importlib.util.find_spec(ours) if ours is not None else None
        if ours is None or known is None:
            # Not ModuleNotFoundError: ``from determined import <part>`` would swallow it, and the words.
            raise ImportError(_absent(fullname), name=fullname)
        package = known.submodule_search_locations is not None
        return ModuleSpec(fullname, _Same(ours), origin=known.origin, is_package=package)


def _own_name(part: str) -> Optional[str]:
    """The module of ``tenax`` that is ``determined.<part>``, by the longest of `_PARTS` that begins it; None: none."""
    names = part.split(".")
    for count in range(len(names), 0, -1):
        ours = _PARTS.get(".".join(names[:count]))
        if ours is not None:
            return ".".join((ours, *names[count:]))
    return None


def _served() -> str:
    return ", ".join(f"determined.{part}" for part in _PARTS if part != "common")


def _load_tenax() -> None:
    """Make ``tenax`` importable in a Python that has not got it, without a word about what else lies beside it."""
    if importlib.util.find_spec("tenax") is not None:
        return
    package = os.path.dirname(os.path.dirname(_HERE))
    spec = importlib.util.spec_from_file_location(
        "tenax", os.path.join(package, "__init__.py"), submodule_search_locations=[package]
    )
    assert spec is not None
    assert spec.loader is not None
    sys.modules["tenax"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


def _version() -> str:
    return str(importlib.import_module("tenax.wire.task_names").DETERMINED_VERSION)


def _serve(name: str) -> object:
    if name in _NAMES:
        return getattr(importlib.import_module(f"tenax.core.{_NAMES[name]}"), name)
    if name in _PARTS:
        return importlib.import_module(f"determined.{name}")
    raise AttributeError(
        f"there is no determined.{name} here: this task has no package 'determined', and Tenax serves "
        f"{', '.join(_NAMES)} and {_served()} under that name"
    )


_package = _installed()
if _package is not None:
    _check_view()
    sys.meta_path.insert(0, _OwnCheckpoints())
    _become(_package)
else:
    _load_tenax()
    sys.meta_path.insert(0, _Finder())
    #: The version whose interface this is.
    __version__ = _version()
    LOG_FORMAT = "%(levelname)s: [%(process)s] %(name)s: %(message)s"

    def __getattr__(name: str) -> object:
        """What is loaded when it is used."""
        value = _serve(name)
        globals()[name] = value
        return value
