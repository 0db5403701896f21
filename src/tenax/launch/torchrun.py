"""torchrun, as `tenax.launch.torch_distributed` starts it: what it would say of its ranks is left to the launcher.

Python 3.9, and the user's torch.
"""

from __future__ import annotations

import sys

from tenax.core.spool import say


def main() -> int:
    try:
        from torch.distributed.elastic.multiprocessing.api import SignalException
        from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
        from torch.distributed.run import main as torchrun
    except ImportError as error:
        say(
            f"torch cannot be imported by {sys.executable}: {error}. Install it there (pip install torch), or name a "
            "Python that has it: DET_PYTHON_EXECUTABLE in environment.environment_variables"
        )
        return 1
    try:
        torchrun(sys.argv[1:])
    except ChildFailedError:
        return 1
    except SignalException as ended:
        return 128 + int(ended.sigval)
    return 0


if __name__ == "__main__":
    sys.exit(main())
